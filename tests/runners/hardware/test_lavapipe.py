"""The software Vulkan driver under a name that every runtime accepts."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runners.hardware import lavapipe
from runners.hardware.lavapipe import Driver

NAMED = b"\x7fELF llvmpipe-private llvmpipe (LLVM 15.0.6, %u bits) rest"


def system(root: Path, library: bytes = NAMED) -> Path:
    folder = root / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libvulkan.so.1").touch()
    (folder / "libvulkan_lvp.so").write_bytes(library)
    return root


def test_copy_differs_in_the_device_name_only(tmp_path: Path) -> None:
    """The copy is the machine's own driver, except for eight letters of the device's name."""
    driver = lavapipe.find_driver(tmp_path / "store", system(tmp_path))
    assert isinstance(driver, Driver)
    copy = driver.mounts[0].host / "libvulkan_lvp.so"
    assert copy.read_bytes() == NAMED.replace(b"llvmpipe (", b"lavapipe (")
    manifest = json.loads((driver.mounts[0].host / "icd.json").read_text())
    assert (driver.mounts[0].host / manifest["ICD"]["library_path"]).samefile(copy)


def test_missing_driver_names_the_packages_to_install(tmp_path: Path) -> None:
    """A missing driver is a reason in words, not an error: everything else still runs."""
    assert "mesa-vulkan-drivers" in str(lavapipe.find_driver(tmp_path / "store", tmp_path))


def test_driver_with_several_names_is_left_alone(tmp_path: Path) -> None:
    """With two places to change, or none, there is no guess which one is the name."""
    found = lavapipe.find_driver(tmp_path / "store", system(tmp_path, NAMED + NAMED))
    assert isinstance(found, str)
    assert not (tmp_path / "store").exists()


def test_concurrent_runs_make_one_complete_copy(tmp_path: Path) -> None:
    """Runs that start together leave one complete copy and no other file."""
    root = system(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: lavapipe.find_driver(tmp_path / "store", root), range(24)))
    made = {driver.mounts[0].host for driver in found if isinstance(driver, Driver)}
    assert made == set((tmp_path / "store" / "lavapipe").iterdir())
