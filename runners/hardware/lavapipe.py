"""Mesa's lavapipe: a Vulkan driver that runs on the CPU, so that any machine has one device that is no CPU backend.

IREE's runtimes 2.9.0 to 3.11.0 hide every device whose *name begins with* ``llvmpipe`` and have no flag against it
(measured on all of them). The name is one string constant of the driver: they are given a copy in which it reads
``lavapipe``, of the same length, and nothing else differs. The comment calls the device by that name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runners.hardware.detect import find_library
from runners.sandbox.contract import Mount

DEVICE = "vulkan"
NAME = "lavapipe, a Vulkan driver that runs on the CPU"
GUEST = "/opt/vulkan"
"""Where the copy appears inside; an image of ours has one of its own there."""
ICD = "icd.json"
_LIBRARY = "libvulkan_lvp.so"
_HIDDEN = b"llvmpipe (LLVM"
_SHOWN = b"lavapipe (LLVM"
_LOADER = "libvulkan.so.1"

VARIABLES = {"VK_ICD_FILENAMES": f"{GUEST}/{ICD}", "VK_DRIVER_FILES": f"{GUEST}/{ICD}"}
"""The loader's old and new name for the list of drivers: ours alone, whatever else the machine has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A software device, ready to be shown in a sandbox."""

    name: str
    """``lavapipe, a Vulkan driver that runs on the CPU``."""
    mounts: tuple[Mount, ...]
    environment: dict[str, str]


def find(store: Path, system: Path = Path("/")) -> Driver | str:
    """The driver of this machine, its copy made in ``store`` on first use; or why there is none and the mend."""
    loader, original = find_library(_LOADER, system), find_library(_LIBRARY, system)
    if loader is None or original is None:
        lacking = _LOADER if loader is None else _LIBRARY
        return f"no {lacking} here: install libvulkan1 and mesa-vulkan-drivers"
    data = original.read_bytes()
    if data.count(_HIDDEN) != 1:
        return f"{_LIBRARY} here does not name its device as Mesa 22 does: a name to replace was not found once"
    folder = store / "lavapipe" / hashlib.sha256(data).hexdigest()[:16]
    if not folder.is_dir():
        _make(folder, data.replace(_HIDDEN, _SHOWN))
    return Driver(
        name=NAME,
        mounts=(Mount(host=folder, guest=GUEST),),
        environment=dict(VARIABLES),
    )


def of_image() -> Driver:
    """The one that an image of ours has at the same place."""
    return Driver(name=NAME, mounts=(), environment=dict(VARIABLES))


def _make(folder: Path, library: bytes) -> None:
    """Complete or not there: made beside its place and moved; of two that make it at once, one wins."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        (made / _LIBRARY).write_bytes(library)
        manifest = {"file_format_version": "1.0.0", "ICD": {"library_path": f"./{_LIBRARY}", "api_version": "1.1.0"}}
        (made / ICD).write_text(json.dumps(manifest) + "\n")
        for path in (made, *made.iterdir()):
            path.chmod(0o755)
        os.replace(made, folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
