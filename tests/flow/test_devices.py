"""The same program on every device of this machine: CPU backends, and Vulkan through lavapipe.

The programs that differ really do, on every release looked at (2.9.0, 3.5.0, 3.13.0): nothing is planted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import date

import pytest

from bot.extract import Repro, extract
from bot.issue import Issue
from bot.plan import RunOptions, make_plan
from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Finding, FindingKind, Investigation, Outcome, Reason
from runners.core.toolchain.facts import NVIDIA
from runners.environments.store import default_root
from runners.hardware import lavapipe
from runners.hardware.detect import Absent, detect_hardware
from runners.workbench import Workbench, open_workbench
from tests.flow.test_command_line import ROOT

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.compilers,
    pytest.mark.skipif(
        isinstance(lavapipe.find_driver(default_root()), str),
        reason="no software Vulkan: tools/setup-system.sh --devices",
    ),
]

AGREE = {
    "remainders of negative integers": ("8xi32", "remsi", "-7,7,-8,8,5,-5,100,-100", "3,3,3,-3,-2,2,7,7"),
    "a maximum keeps NaN": ("4xf32", "maximumf", "1,nan,0,-0", "nan,1,-0,0"),
    "bytes wrap around": ("4xi8", "addi", "127,100,-128,1", "1,100,-1,1"),
    "division by zero": ("4xf32", "divf", "1,-1,0,1", "0,0,0,3"),
    "products of long integers": ("3xi64", "muli", "3000000000,-1,4", "3000000000,7,4000000000"),
    "numbers below the smallest normal one": ("3xf32", "mulf", "1e-30,1e-20,1", "1e-10,1e-20,1e-40"),
    "sums that cancel": ("4xf32", "subf", "1e7,1,0.1,-5", "1e7,1,0.3,5"),
    "bits": ("4xi32", "xori", "1,255,-1,7", "3,15,-1,0"),
    "an unsigned division": ("4xi32", "divui", "7,-1,100,9", "2,2,7,3"),
}
DIFFER = {
    "vmvx rounds the quotient of a remainder": ("4xf32", "remf", "5.5,-5.5,5.5,7.5", "2,2,-2,4", "vmvx"),
}
HALF = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.truncf %a : tensor<4xf32> to tensor<4xf16>
  %1 = arith.extf %0 : tensor<4xf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
ARC = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.acos %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return open_workbench("auto", load_catalogue(), Silent())


def program(tensor: str, op: str) -> str:
    kind = f"tensor<{tensor}>"
    return (
        f"func.func @f(%a: {kind}, %b: {kind}) -> {kind} {{\n"
        f"  %0 = arith.{op} %a, %b : {kind}\n  return %0 : {kind}\n}}\n"
    )


def combine(operations: Sequence[tuple[str, str]]) -> str:
    """Return a function with two arguments and one result for each operation."""
    kinds = [f"tensor<{tensor}>" for tensor, _ in operations]
    given = ", ".join(f"%a{place}: {kind}, %b{place}: {kind}" for place, kind in enumerate(kinds))
    body = "".join(
        f"  %{place} = arith.{op} %a{place}, %b{place} : {kinds[place]}\n" for place, (_, op) in enumerate(operations)
    )
    names, results = ", ".join(f"%{place}" for place in range(len(kinds))), ", ".join(kinds)
    return f"func.func @f({given}) -> ({results}) {{\n{body}  return {names} : {results}\n}}\n"


def investigate(
    bench: Workbench,
    mlir: str,
    inputs: list[str],
    devices: tuple[str, ...],
    *,
    backend: str = "llvm-cpu",
    device: str = "local-task",
    versions: str = "3.13.0",
) -> Investigation:
    given = " ".join(f"--input={text}" for text in inputs)
    body = (
        f"The values are wrong.\n\n```mlir\n{mlir}```\n\n```\n"
        f"iree-compile --iree-hal-target-backends={backend} a.mlir -o a.vmfb\n"
        f"iree-run-module --device={device} --module=a.vmfb --function=f {given}\n```\n"
    )
    issue = Issue(source="t", title="IREE: wrong values", body=body, sha256="0" * 64, created=date(2026, 11, 1))
    found = extract(issue)
    assert isinstance(found, Repro), found
    return bench.run(
        make_plan(found, bench.catalogue, RunOptions(versions=versions, devices=devices, bisect=False)).plan
    )


def differing(seen: Investigation) -> list[Finding]:
    return [finding for finding in seen.findings if finding.kind is FindingKind.DEVICE_SPECIFIC]


def test_devices_that_agree_are_not_told_apart(bench: Workbench) -> None:
    """All operations in one valid program, corners included: no device is accused."""
    inputs = [f"{tensor}={values}" for tensor, _, *both in AGREE.values() for values in both]
    seen = investigate(
        bench, combine([(tensor, op) for tensor, op, _, _ in AGREE.values()]), inputs, ("vmvx", "vulkan")
    )
    assert {one.device for one in seen.observations} == {"llvm-cpu", "vmvx", "vulkan"}
    assert all(one.outcome is Outcome.OTHER_FAILURE for one in seen.observations), seen.observations
    assert differing(seen) == []


@pytest.mark.parametrize("name", sorted(DIFFER))
def test_the_device_that_computes_something_else_is_named(bench: Workbench, name: str) -> None:
    """Of three, the one that stands alone."""
    tensor, op, a, b, odd = DIFFER[name]
    seen = investigate(bench, program(tensor, op), [f"{tensor}={a}", f"{tensor}={b}"], ("vmvx", "vulkan"))
    assert [finding.evidence["device"] for finding in differing(seen)] == [odd]
    assert differing(seen)[0].evidence["differs_from"] == ["llvm-cpu", "vulkan"]


@pytest.mark.parametrize(
    ("mlir", "values"), [(HALF, "1.00048828125,70000,6e-8,3"), (ARC, "0.5,-0.5,2.5,-2.5")], ids=["f16", "acos"]
)
def test_two_devices_that_differ_are_both_named(bench: Workbench, mlir: str, values: str) -> None:
    """vmvx cannot compile these; with two answers nobody knows which is right, and the finding does not claim to."""
    seen = investigate(bench, mlir, [f"4xf32={values}"], ("vmvx", "vulkan"), versions="3.5.0,3.13.0")
    (finding,) = differing(seen)
    assert {finding.evidence["device"], *finding.evidence["differs_from"]} == {"llvm-cpu", "vulkan"}
    assert finding.evidence["versions"] == ["3.5.0", "3.13.0"]


@pytest.mark.parametrize(
    ("backend", "device", "name"), [("rocm --iree-hip-target=gfx942", "hip", "hip"), ("cuda", "cuda", "cuda")]
)
def test_without_the_hardware_it_still_compiles(bench: Workbench, backend: str, device: str, name: str) -> None:
    """Three releases compile for a GPU that is not here, and each says that this is all that was shown."""
    seen = investigate(
        bench, program("4xf32", "addf"), ["4xf32=1", "4xf32=2"],
        ("llvm-cpu",), backend=backend, device=device, versions="3.4.0,3.8.0,3.11.0",
    )  # fmt: skip
    posted = [one for one in seen.observations if one.device not in ("llvm-cpu",)]
    assert {one.version for one in posted} == {"3.4.0", "3.8.0", "3.11.0"}
    assert {one.outcome for one in posted} == {Outcome.UNAVAILABLE}
    assert {one.reason for one in posted} == {Reason.COMPILES_WITHOUT_DEVICE}
    assert all(one.why == f"compiles; no {name} device or runtime here" for one in posted), posted


def test_the_gpu_check_works_up_to_the_hardware() -> None:
    """Every step that needs no GPU runs on the CPU; without one it says so with a status of its own."""
    words = [sys.executable, "-m", "bench.gpu_check"]
    done = subprocess.run([*words, "--rehearse"], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nok ") == 5
    if isinstance(detect_hardware(NVIDIA), Absent):
        bare = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert bare.returncode == 75
        assert "the NVIDIA driver does not answer" in bare.stdout
