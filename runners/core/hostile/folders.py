"""Remove folders that hostile code filled, without recursion and without following links."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(folder: Path) -> None:
    """Remove a folder and everything below it.

    `shutil.rmtree` recurses, and a path may exceed the system's limit. Here each subfolder is moved to the top before
    it is emptied, so two descriptors suffice for any depth.

    Raises:
        OSError: something cannot be removed, or ``folder`` is absent or a link.
    """
    top = os.open(folder, _FOLDER)
    try:
        while names := os.listdir(top):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # removed by another process
                    _remove_entry(top, name)
    finally:
        os.close(top)
    os.rmdir(folder)


def try_remove_folder(folder: Path) -> None:
    """Remove as much of a folder as possible."""
    with contextlib.suppress(OSError):
        remove_folder(folder)


def _remove_entry(top: int, name: str) -> None:
    """Remove a file, or a folder whose own folders are moved to ``top``."""
    try:
        os.unlink(name, dir_fd=top)
        return
    except IsADirectoryError:
        pass
    _make_writable(top, name)
    below = os.open(name, _FOLDER, dir_fd=top)
    try:
        for child in os.listdir(below):
            try:
                os.unlink(child, dir_fd=below)
            except IsADirectoryError:
                _make_writable(below, child)
                os.rename(child, secrets.token_hex(16), src_dir_fd=below, dst_dir_fd=top)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _make_writable(parent: int, name: str) -> None:
    """Let the owner empty a folder. The mode is changed by descriptor, because a link may replace the folder."""
    with contextlib.suppress(OSError):
        found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{found}", 0o700)
        finally:
            os.close(found)
