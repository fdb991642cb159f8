"""What a failure's text says of the device rather than of the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.core.failure.missing_device import find_device_trouble, find_missing_device, find_missing_part
from runners.sandbox.bubblewrap_command import build_mount_options
from runners.sandbox.containers.command_line import list_devices
from runners.sandbox.contract import SandboxSpec
from runners.toolchains import ALL_FAILURES

NODES = ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("InternalError: CUDA: out of memory", "ran out of memory"),
        ("--task_topology_nodes=current selected 2 node(s) but none contain any usable cores", "no processor to use"),
        ("CUDA_ERROR_OUT_OF_MEMORY (2)", "ran out of memory"),
        ("iree: RESOURCE_EXHAUSTED; hip driver failed to allocate", "ran out of memory"),
        ("CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable error"),
        ("CUDA driver version is insufficient for CUDA runtime version", "does not fit the device"),
    ],
)
def test_trouble_of_a_device_is_recognized(text: str, why: str) -> None:
    """Such a run is no evidence about the compiler."""
    found = find_device_trouble(text, ALL_FAILURES)
    assert found is not None
    assert why in found


@pytest.mark.parametrize(
    "text",
    ["CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access", "MemoryError", "out of memory", "CUDA launch failed"],
)
def test_an_illegal_access_is_no_trouble_of_the_device(text: str) -> None:
    """A wrongly compiled kernel reads outside its tensors: that may be the very bug."""
    assert find_device_trouble(text, ALL_FAILURES) is None
    assert find_missing_device(text, ALL_FAILURES) is None


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("RuntimeError: Unknown backend iree. Available backends are ['cpu']", "iree"),
        ("Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are present.", "gpu"),
        ("RuntimeError: Unable to initialize backend 'rocm': no such plugin", "rocm"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cuda"),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have a GPU", "nvidia"),
    ],
)
def test_a_framework_that_misses_its_device_says_nothing_of_the_compiler(text: str, device: str) -> None:
    assert find_missing_device(text, ALL_FAILURES) == f"no {device} device or runtime here"


def test_a_container_gets_one_gpu_by_its_name(tmp_path: Path) -> None:
    """Where the toolkit has described the GPUs, by number; never all of them."""
    (tmp_path / "nvidia.yaml").touch()
    spec = SandboxSpec(argv=("true",), mounts=(), devices=NODES)
    assert list_devices(spec, [tmp_path]) == ["nvidia.com/gpu=1"]
    assert list_devices(SandboxSpec(argv=("true",), mounts=()), [tmp_path]) == []


def test_without_a_description_it_gets_the_device_files_that_are_there(tmp_path: Path) -> None:
    """Files, not privileges."""
    spec = SandboxSpec(argv=("true",), mounts=(), devices=("/dev/null", "/dev/nvidia-nothing"))
    assert list_devices(spec, [tmp_path]) == ["/dev/null"]


def test_bubblewrap_binds_only_the_requested_devices() -> None:
    """Only the accelerator's own files, and those before /dev is made read-only."""
    plain = build_mount_options((), {}, 1)
    assert "--dev-bind-try" not in plain
    given = build_mount_options((), {}, 1, NODES)
    assert [given[i + 1] for i, word in enumerate(given) if word == "--dev-bind-try"] == list(NODES)
    assert given.index("--dev-bind-try") < given.index("--remount-ro")


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: Cannot find global function target.build.llvm",
        "Check failed: (bf != nullptr) is false: target.build.llvm is not enabled",
    ],
)
def test_a_build_without_llvm_is_no_evidence(text: str) -> None:
    """One of the forks runs passes only: a program that compiles there is neither good nor bad."""
    why = find_missing_part(text, ALL_FAILURES)
    assert why is not None
    assert "no LLVM" in why
    assert find_missing_device(text, ALL_FAILURES) is None  # no device would help


@pytest.mark.parametrize(
    "text", ["target='llvm'", 'f = tvm.get_global_func("target.build.llvm")', "LLVM ERROR: abort"]
)
def test_the_mere_name_of_llvm_is_no_sign(text: str) -> None:
    """Programs and backtraces name LLVM all the time."""
    assert find_missing_part(text, ALL_FAILURES) is None


def test_the_compiler_of_a_maker_that_is_not_installed_is_a_missing_device() -> None:
    """A file of the testcase that is missing is another failure."""
    missing = find_missing_device("FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'", ALL_FAILURES)
    assert missing == "no nvcc here, the compiler of the device's maker"
    assert find_missing_device("No such file or directory: 'a/nvcc.txt'", ALL_FAILURES) is None
