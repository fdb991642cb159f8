"""Provide Mesa's lavapipe: a Vulkan driver that runs on the CPU.

With this driver every machine has a device besides the CPU backends.

IREE's runtimes 2.9.0 to 3.11.0 hide every device whose *name begins with* ``llvmpipe``, and no flag changes that
(measured on all of them). The name is one string constant of the driver. The runtimes get a copy of the driver in
which this constant is ``lavapipe``, which has the same length. Every other byte is unchanged. The comment uses that
name.
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
"""Path of the copy inside the sandbox. Our images have their own copy at this path."""
ICD = "icd.json"
_LIBRARY = "libvulkan_lvp.so"
_HIDDEN = b"llvmpipe (LLVM"
_SHOWN = b"lavapipe (LLVM"
_LOADER = "libvulkan.so.1"

VARIABLES = {"VK_ICD_FILENAMES": f"{GUEST}/{ICD}", "VK_DRIVER_FILES": f"{GUEST}/{ICD}"}
"""Old and new variable of the Vulkan loader. Both list only our driver, so that the machine's other drivers are
ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A software device that a sandbox can show."""

    name: str
    """``lavapipe, a Vulkan driver that runs on the CPU``."""
    mounts: tuple[Mount, ...]
    environment: dict[str, str]


def find_driver(store: Path, system: Path = Path("/")) -> Driver | str:
    """Return this machine's driver, or the reason and remedy if there is none.

    The first call makes the changed copy in ``store``.
    """
    loader, original = find_library(_LOADER, system), find_library(_LIBRARY, system)
    if loader is None or original is None:
        lacking = _LOADER if loader is None else _LIBRARY
        return f"no {lacking} here: install libvulkan1 and mesa-vulkan-drivers"
    data = original.read_bytes()
    if data.count(_HIDDEN) != 1:
        return f"{_LIBRARY} here does not name its device as Mesa 22 does: a name to replace was not found once"
    folder = store / "lavapipe" / hashlib.sha256(data).hexdigest()[:16]
    if not folder.is_dir():
        _write_copy(folder, data.replace(_HIDDEN, _SHOWN))
    return Driver(
        name=NAME,
        mounts=(Mount(host=folder, guest=GUEST),),
        environment=dict(VARIABLES),
    )


def get_image_driver() -> Driver:
    """Return the driver that our images have at `GUEST`."""
    return Driver(name=NAME, mounts=(), environment=dict(VARIABLES))


def _write_copy(folder: Path, library: bytes) -> None:
    """Write the copy completely or not at all. If two processes write at once, the first one wins."""
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
