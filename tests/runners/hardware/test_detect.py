"""What a machine has for a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.core.toolchain import hardware
from runners.core.toolchain.hardware import Hardware
from runners.hardware.detect import Absent, Present, look
from runners.toolchains import TOOLCHAINS


def machine(root: Path, *files: str) -> Path:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_a_gpu_is_its_device_files_and_its_driver(tmp_path: Path) -> None:
    """One GPU's own file comes first: it is the one that a cell is given."""
    root = machine(tmp_path, "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "usr/lib64/libcuda.so.1")
    assert look(hardware.NVIDIA, root) == Present(nodes=("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"))


@pytest.mark.parametrize(
    ("files", "says"),
    [((), "/dev/nvidia"), (("dev/nvidia0", "dev/nvidiactl"), "libcuda.so.1"), (("dev/nvidiactl",), "/dev/nvidia")],
)
def test_half_a_gpu_is_none(tmp_path: Path, files: tuple[str, ...], says: str) -> None:
    """A driver without a card, or a card without a driver, runs nothing; the reason names what lacks."""
    found = look(hardware.NVIDIA, machine(tmp_path, *files))
    assert isinstance(found, Absent)
    assert says in found.why


def test_what_no_file_shows_is_absent(tmp_path: Path) -> None:
    """Nobody is told that a device works which nothing here can see."""
    assert look(hardware.BROWSER, tmp_path) == Absent(why="needs a browser")


@pytest.mark.parametrize("name", sorted(TOOLCHAINS))
def test_every_device_says_what_it_needs(name: str) -> None:
    """A device that not every machine has comes with words for `reprobot doctor` and for verdicts."""
    for device in TOOLCHAINS[name].DEVICES:
        assert device.hardware is None or isinstance(device.hardware, Hardware)
        assert device.hardware is None or device.hardware.words
