"""Hardware detection on made-up file systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.core.toolchain.facts import BROWSER, NVIDIA, Hardware
from runners.hardware.detect import Absent, Present, detect_hardware
from runners.toolchains import TOOLCHAINS


def machine(root: Path, *files: str) -> Path:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_gpu_needs_device_files_and_driver(tmp_path: Path) -> None:
    """The GPU's own file comes first: a cell gets that GPU."""
    root = machine(tmp_path, "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "usr/lib64/libcuda.so.1")
    assert detect_hardware(NVIDIA, root) == Present(nodes=("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"))


@pytest.mark.parametrize(
    ("files", "says"),
    [((), "/dev/nvidia"), (("dev/nvidia0", "dev/nvidiactl"), "libcuda.so.1"), (("dev/nvidiactl",), "/dev/nvidia")],
)
def test_driver_without_card_or_card_without_driver_is_absent(
    tmp_path: Path, files: tuple[str, ...], says: str
) -> None:
    """The reason names the missing part."""
    found = detect_hardware(NVIDIA, machine(tmp_path, *files))
    assert isinstance(found, Absent)
    assert says in found.why


def test_hardware_without_files_is_absent(tmp_path: Path) -> None:
    """A device counts as absent if no file can show it."""
    assert detect_hardware(BROWSER, tmp_path) == Absent(why="needs a browser")


@pytest.mark.parametrize("name", sorted(TOOLCHAINS))
def test_every_device_describes_its_hardware(name: str) -> None:
    """`reprobot doctor` and verdicts show the description."""
    for device in TOOLCHAINS[name].DEVICES:
        assert device.hardware is None or isinstance(device.hardware, Hardware)
        assert device.hardware is None or device.hardware.words
