"""The device of a report about IREE."""

from __future__ import annotations

import pytest

from runners.core.toolchain.reports import DeviceText
from runners.toolchains.iree.reports.devices import read_devices


@pytest.mark.parametrize(
    ("title", "device"),
    [
        ("[GPU only] shape mismatch in a convolution", "cuda"),
        ("Numerics are off on MI250", "hip"),
        ("gfx1201: compile failure", "hip"),
        ("[ROCm] argmax is slow", "hip"),
        ("H100 hangs in a reduction", "cuda"),
        ("Pixel with Adreno: wrong softmax", "vulkan"),
        ("[Metal] threadgroup too large", "metal"),
        ("metallic gpus", "llvm-cpu"),
        ("Conv2d crashes", "llvm-cpu"),
    ],
)
def test_a_title_names_the_device_of_a_command_without_one(title: str, device: str) -> None:
    """A CPU is never put in the place of a named accelerator."""
    assert read_devices(DeviceText(commands="iree-compile a.mlir", title=title)).chosen == device


def test_flags_name_the_device_before_words() -> None:
    """A flag of one backend counts as its target; a target counts more."""
    title = "[CUDA] wrong"
    assert (
        read_devices(DeviceText(commands="iree-compile --iree-hip-target=gfx90a a.mlir", title=title)).chosen == "hip"
    )
    target = "iree-compile --iree-hal-target-backends=llvm-cpu --iree-hip-target=gfx90a a.mlir"
    assert read_devices(DeviceText(commands=target, title=title)).chosen == "llvm-cpu"


def test_a_machine_in_the_prose_is_no_device() -> None:
    """A GPU in a description of the machine says nothing about the target; an AMD chip in a sentence does."""
    assert (
        read_devices(DeviceText(commands="iree-compile a.mlir", prose="GPU: RTX 4090, CUDA 12.1")).chosen
        == "llvm-cpu"
    )
    assert read_devices(DeviceText(commands="iree-compile a.mlir", prose="It fails on MI300X only.")).chosen == "hip"


@pytest.mark.parametrize(
    ("output", "named"),
    [
        ('for backend #hal.executable.target<"rocm", "rocm-hsaco-fb", {abi = "hip"}>', ("rocm",)),
        ("0. Program arguments: iree-compile --iree-hal-target-backends=vmvx a.mlir", ("vmvx",)),
        ("0. Program arguments: iree-compile --iree-hip-target=gfx942 a.mlir", ("hip",)),
        ("a.mlir:3:8: error: failed to legalize operation 'tensor.pack'", ()),
    ],
)
def test_quoted_output_names_the_target_of_mlir_without_a_command(output: str, named: tuple[str, ...]) -> None:
    assert read_devices(DeviceText(commands="func.func @f() {}", output=output)).named == named
    flags = "iree-compile --iree-hal-target-backends=llvm-cpu"
    assert read_devices(DeviceText(commands=flags, output=output)).named == ("llvm-cpu",)


@pytest.mark.parametrize(
    ("title", "named"),
    [
        ("[CPU] wrong tile sizes", ("llvm-cpu",)),
        ("Softmax fails on x86_64", ("llvm-cpu",)),
        ("Compiles on CPU, fails on GPU", ()),
        ("Softmax fails", ()),
    ],
)
def test_a_title_names_the_processor_unless_it_names_a_gpu_too(title: str, named: tuple[str, ...]) -> None:
    """A device that the text names is not assumed."""
    assert read_devices(DeviceText(commands="func.func @f() {}", title=title)).named == named
