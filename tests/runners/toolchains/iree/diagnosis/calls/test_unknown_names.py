"""Tests of names on the command line that no release knows, and of names that another era or machine knows."""

from __future__ import annotations

import pytest

from runners.core.findings.calls import UnknownDevice, UnknownFlag
from runners.core.protocol import Signature, Testcase, TestcaseKind
from runners.core.toolchain.wrong_call import WrongCall
from runners.toolchains.iree.diagnosis.calls.unknown_names import find_other_target, find_unknown_name


def commands(*flags: str, backend: str = "llvm-cpu", device: str = "local-task") -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": ""},
        steps=(
            ("iree-compile", f"--iree-hal-target-backends={backend}", *flags, "m.mlir", "-o", "m.vmfb"),
            ("iree-run-module", f"--device={device}", "--module=m.vmfb"),
        ),
    )


def find(testcase: Testcase, message: str, excerpt: str = "") -> WrongCall | None:
    return find_unknown_name(testcase, Signature(type="flag-error", message=message), excerpt)


def test_a_flag_that_no_release_has_is_left_out_or_replaced_by_the_suggested_flag() -> None:
    testcase = commands("--iree-optimize-harder=3")
    message = "Unknown command line argument '--iree-optimize-harder=3'"
    found = find(testcase, message, f"{message}\niree-compile: Did you mean '--iree-opt-level=3'?")
    assert found is not None
    assert found.call == UnknownFlag(name="--iree-optimize-harder", program="iree-compile")
    assert [one.steps[0][2] for one in found.mended] == ["m.mlir", "--iree-opt-level=3"]


@pytest.mark.parametrize("flag", ["--iree-opt-level=O2", "--iree-flow-demote-f64-to-f32", "--iree-llvm-target-cpu=x"])
def test_a_flag_of_another_era_is_no_mistake(flag: str) -> None:
    """A release introduced, renamed or removed it."""
    assert find(commands(flag), f"Unknown command line argument '{flag}'") is None


def test_a_flag_that_the_command_does_not_have_is_not_the_testcases() -> None:
    """A tool may pass flags of its own to another tool."""
    assert find(commands(), "Unknown command line argument '--internal'") is None


@pytest.mark.parametrize(
    ("testcase", "message", "flag"),
    [
        (commands(device="gpu9"), "no driver 'gpu9' registered; creating driver", "--device"),
        (commands(device="llvm-cpu"), "no driver 'llvm-cpu' registered; creating driver", "--device"),
        (commands(backend="llvmcpu"), "target backend 'llvmcpu' not registered", "--iree-hal-target-backends"),
    ],
)
def test_a_device_that_no_release_knows_is_a_mistake(testcase: Testcase, message: str, flag: str) -> None:
    """The mended testcase is for the processor."""
    found = find(testcase, message)
    assert found is not None
    assert isinstance(found.call, UnknownDevice)
    assert found.call.flag == flag
    assert found.mended[0].steps == commands().steps


@pytest.mark.parametrize("device", ["cuda", "hip", "vulkan", "metal", "amdgpu", "dylib"])
def test_a_device_that_this_machine_lacks_is_no_mistake(device: str) -> None:
    """Nor is a driver of an earlier year."""
    assert find(commands(device=device), f"no driver '{device}' registered; creating driver") is None


@pytest.mark.parametrize(
    ("backend", "device", "apart"),
    [
        ("vulkan-spirv", "local-task", True),
        ("cuda,rocm", "local-sync", True),
        ("cuda,llvm-cpu", "local-task", False),
        ("llvm-cpu", "local-task", False),
        ("vmvx", "local-sync", False),
        ("vulkan-spirv", "vulkan", False),
    ],
)
def test_a_program_for_accelerators_alone_does_not_run_on_the_processor(
    backend: str, device: str, apart: bool
) -> None:
    found = find_other_target(commands(backend=backend, device=device))
    assert (found is not None) is apart
    assert found is None or found.mended[0].steps == commands(device=device).steps[:1] + found.mended[0].steps[1:]
