"""Detect the hardware of this machine by its device files and driver libraries.

The functions take the root of a file system, so that tests can use an artificial one. Only the output of a testcase
shows whether it *ran* on a device; this module never decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.core.toolchain.facts import Hardware

LIBRARIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/local/lib",
    "lib/x86_64-linux-gnu",
    "opt/rocm/lib",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The machine has the hardware. ``nodes`` are its device files; those of one accelerator come first."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The machine lacks the hardware. ``why`` states the reason and the remedy."""

    why: str


def detect_hardware(hardware: Hardware, root: Path = Path("/")) -> Present | Absent:
    """Look below ``root`` for the hardware's device files, then for the driver's library."""
    if not hardware.nodes and not hardware.library:
        return Absent(why=f"needs {hardware.words}")
    found = [_list_nodes(root, pattern) for pattern in hardware.nodes]
    if found and not found[0]:
        return Absent(why=f"no /dev/{hardware.nodes[0]} here: needs {hardware.words}")
    if hardware.library and find_library(hardware.library, root) is None:
        return Absent(why=f"no {hardware.library} here: {hardware.mend or f'needs {hardware.words}'}")
    return Present(nodes=tuple(node for nodes in found for node in nodes))


def find_library(name: str, root: Path = Path("/")) -> Path | None:
    """Return the path of a library in the usual folders of the dynamic linker, or None."""
    folders = (root / folder for folder in LIBRARIES)
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def _list_nodes(root: Path, pattern: str) -> Sequence[str]:
    device = root / "dev"
    return sorted(f"/dev/{node.relative_to(device)}" for node in device.glob(pattern)) if device.is_dir() else []
