"""The machine's compiler of a device's kernels: found, or left out."""

from __future__ import annotations

from pathlib import Path

from runners.toolchains import find_device, find_toolchain
from runners.workbench.probes import list_compiler_variables


def test_a_toolkit_of_the_machine_is_on_the_path_of_the_run(tmp_path: Path) -> None:
    """TVM's wheels contain no compiler of CUDA's kernels. An H100 ran them with these variables."""
    device = find_device(find_toolchain("tvm"), "cuda")
    assert device is not None
    assert list_compiler_variables(device.compiler, tmp_path) == {}
    program = tmp_path / "usr/local/cuda/bin/nvcc"
    program.parent.mkdir(parents=True)
    program.touch()
    variables = list_compiler_variables(device.compiler, tmp_path)
    assert variables["PATH"].split(":")[1] == "/usr/local/cuda/bin"
    assert variables["TVM_CUDA_COMPILE_MODE"] == "nvcc"


def test_iree_brings_its_compiler(tmp_path: Path) -> None:
    device = find_device(find_toolchain("iree"), "cuda")
    assert device is not None
    assert list_compiler_variables(device.compiler, tmp_path) == {}
