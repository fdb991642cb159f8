"""The same commands on another device: the input stays, the target goes."""

from __future__ import annotations

import pytest

from runners.protocol import Testcase, TestcaseKind
from runners.retarget import retarget

HIP = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": "func.func @f()"},
    steps=(
        (
            "iree-compile",
            "--iree-hal-target-backends=rocm",
            "--iree-hip-target=gfx942",
            "-O2",
            "m.mlir",
            "-o",
            "m.vmfb",
        ),
        ("iree-run-module", "--module=m.vmfb", "--device=hip://0", "--function=f", "--input=4xf32=1"),
    ),
)


def with_steps(*steps: tuple[str, ...]) -> Testcase:
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=HIP.files, steps=steps)


def test_target_and_device_are_replaced_and_the_old_backends_flags_left_out() -> None:
    """Everything else is as posted."""
    moved = retarget(HIP, "vmvx")
    assert moved is not None
    assert moved.steps == (
        ("iree-compile", "--iree-hal-target-backends=vmvx", "-O2", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--module=m.vmfb", "--device=local-task", "--function=f", "--input=4xf32=1"),
    )
    assert moved.files == HIP.files


@pytest.mark.parametrize(
    "words",
    [("--iree-hal-target-device=hip",), ("-iree-hal-target-device=hip",), ("--iree-hal-target-device", "hip")],
)
def test_every_spelling_of_a_flag_is_understood(words: tuple[str, ...]) -> None:
    """One dash, two dashes, a value behind a space."""
    moved = retarget(with_steps(("iree-compile", *words, "m.mlir")), "llvm-cpu")
    assert moved is not None
    assert moved.steps == (("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir"),)


def test_what_names_no_target_is_not_retargeted() -> None:
    """There is nothing to replace, and nothing is invented."""
    assert retarget(with_steps(("iree-opt", "--canonicalize", "m.mlir")), "vmvx") is None
    assert retarget(HIP, "tpu") is None
    python = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": ""}, steps=(("python", "a.py"),))
    assert retarget(python, "vmvx") is None


def test_retargeting_twice_changes_nothing_more() -> None:
    """Idempotence."""
    once = retarget(HIP, "vmvx")
    assert once is not None
    assert retarget(once, "vmvx") is None
