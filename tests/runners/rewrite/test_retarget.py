"""The same commands on another device: the input stays, the target goes."""

from __future__ import annotations

import msgspec
import pytest

from runners.core.protocol import Testcase, TestcaseKind
from runners.core.toolchain.guest import make_launch_step
from runners.rewrite.testcase import describe_retarget, retarget_testcase
from runners.toolchains.iree.rewriting import BACKENDS, compile_for

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
    """All other words stay as posted."""
    moved = retarget_testcase(HIP, "vmvx")
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
    """One dash, two dashes, and a value after a space are understood."""
    moved = retarget_testcase(with_steps(("iree-compile", *words, "m.mlir")), "llvm-cpu")
    assert moved is not None
    assert moved.steps == (("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir"),)


def test_a_testcase_without_a_target_is_not_retargeted() -> None:
    """A command without a target is not changed."""
    assert retarget_testcase(with_steps(("iree-opt", "--canonicalize", "m.mlir")), "vmvx") is None
    assert retarget_testcase(HIP, "tpu") is None
    python = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": ""}, steps=(("python", "a.py"),))
    assert retarget_testcase(python, "vmvx") is None


def test_retargeting_twice_changes_nothing_more() -> None:
    """The operation is idempotent."""
    once = retarget_testcase(HIP, "vmvx")
    assert once is not None
    assert retarget_testcase(once, "vmvx") is None


def test_flags_of_the_backend_stay_with_it() -> None:
    """A changed number of threads does not remove the flags of the processor."""
    cpu = with_steps(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "m.mlir"),
        ("iree-run-module", "--device=local-task", "--module=m.vmfb"),
    )
    moved = retarget_testcase(cpu, "local-sync")
    assert moved is not None
    assert moved.steps == (cpu.steps[0], ("iree-run-module", "--device=local-sync", "--module=m.vmfb"))


def test_a_value_behind_a_space_goes_with_its_flag_and_a_file_stays() -> None:
    """A switch is kept, and a file after it is no value of the switch."""
    gpu = with_steps(
        ("iree-compile", "--iree-hip-target", "gfx942", "--iree-hal-target-device", "hip", "--iree-hip-x", "m.mlir"),
    )
    moved = retarget_testcase(gpu, "vmvx")
    assert moved is not None
    assert moved.steps == (("iree-compile", "--iree-hal-target-backends=vmvx", "m.mlir"),)


def test_a_run_on_the_default_device_gets_a_device_flag() -> None:
    """A module for Vulkan does not run on the default device."""
    cpu = with_steps(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--module=m.vmfb"),
    )
    moved = retarget_testcase(cpu, "vulkan")
    assert moved is not None
    assert moved.steps[1] == ("iree-run-module", "--module=m.vmfb", "--device=vulkan")


def test_input_that_names_its_own_target_is_not_retargeted() -> None:
    """Such a target would override the flags."""
    text = 'module attributes {hal.device.targets = [#hal.device.target<"hip">]} {}'
    own = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": text}, steps=HIP.steps)
    assert retarget_testcase(own, "vmvx") is None


@pytest.mark.parametrize("device", sorted(BACKENDS))
def test_a_retargeted_testcase_is_of_its_device(device: str) -> None:
    """Its command lines name that device's backend and runtime, and no other."""
    moved = retarget_testcase(HIP, device) or HIP
    flags = [word for step in moved.steps for word in step if word.startswith(("--iree-hal-target", "--device"))]
    assert {flag.partition("=")[2].partition(":")[0] for flag in flags} == set(BACKENDS[device])


TVM = Testcase(
    kind=TestcaseKind.PYTHON,
    toolchain="tvm",
    files={"repro.py": 'import tvm\ntvm.compile(mod, target="cuda")\n'},
    steps=(("python", "repro.py", "--size", "4"),),
)


def test_a_tvm_testcase_keeps_its_text() -> None:
    """The hook gets the target, and runs the reporter's text."""
    moved = retarget_testcase(TVM, "llvm")
    assert moved is not None
    assert moved.files == TVM.files
    assert moved.steps == (make_launch_step("tvm.retarget", "llvm", "repro.py", "--size", "4"),)
    assert "every target is llvm" in describe_retarget(moved)[0]


@pytest.mark.parametrize("testcase", [HIP, TVM])
def test_a_toolchain_that_retargets_nothing_leaves_every_testcase(testcase: Testcase) -> None:
    """Neither a command line nor a Python script implies a certain compiler."""
    assert retarget_testcase(msgspec.structs.replace(testcase, toolchain="python"), "vulkan") is None
    other = "tvm" if testcase is HIP else "iree"
    assert retarget_testcase(msgspec.structs.replace(testcase, toolchain=other), "vulkan") is None


def test_a_tvm_testcase_for_the_cpu_is_not_moved_there() -> None:
    """The testcase runs there as posted."""
    plain = Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "import tvm"}, steps=(("python", "a.py"),)
    )
    assert retarget_testcase(plain, "llvm") is None
    assert retarget_testcase(plain, "toaster") is None


@pytest.mark.parametrize(
    ("device", "flags"),
    [
        ("hip", ("--iree-hal-target-backends=rocm", "m.mlir", "--iree-hip-target=gfx942")),
        ("cuda", ("--iree-hal-target-backends=cuda", "m.mlir", "--iree-cuda-target=sm_80")),
        ("vulkan", ("--iree-hal-target-backends=vulkan-spirv", "m.mlir")),
    ],
)
def test_what_only_compiles_is_compiled_for_a_usual_chip_of_each_target(device: str, flags: tuple[str, ...]) -> None:
    """The compiler refuses to choose a chip of AMD."""
    posted = with_steps(("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir"))
    moved = compile_for(posted, device)
    assert moved is not None
    assert moved.steps == (("iree-compile", *flags),)
    assert compile_for(HIP, device) is None
