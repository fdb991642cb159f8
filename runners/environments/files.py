"""Measure, link and write files of the store. Report a full or read-only disk in one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from runners.core.errors import InfraError


def walk_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files below a folder with their status. Files that vanish meanwhile are left out.

    Paths are strings: an environment has thousands of files, and `Path` objects take four times as long as the rest.
    """
    waiting = [str(folder)]  # no recursion: a build may create any depth
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                inside = list(entries)
        except OSError:
            continue
        for entry in inside:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield entry.path, status


def measure_disk_bytes(folder: Path) -> int:
    """Return the bytes that a folder occupies on disk, with hard links counted once."""
    return sum({(s.st_dev, s.st_ino): s.st_blocks * 512 for _, s in walk_files(folder)}.values())


def measure_unshared_bytes(folder: Path) -> int:
    """Return the bytes that a folder occupies on disk, without files that have a hard link elsewhere."""
    return sum(status.st_blocks * 512 for _, status in walk_files(folder) if status.st_nlink == 1)


def link_tree(source: Path, target: Path) -> None:
    """Hard-link every file below ``source`` into ``target``. Existing files in ``target`` are kept."""
    waiting = [(source, target)]
    while waiting:
        source, target = waiting.pop()
        make_folder(target)
        with os.scandir(source) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), target / entry.name))
                else:
                    _link_file(Path(entry.path), target / entry.name)


_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP})


def _link_file(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target, follow_symlinks=False)  # a file system without hard links


def make_folder(folder: Path) -> Path:
    """Create a folder that every user may read, because sandboxes run as an unprivileged user. Return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(0o755)
    return folder


def write_text(path: Path, text: str) -> None:
    """Write a file that every user may read: completely or not at all."""
    make_folder(path.parent)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


@contextlib.contextmanager
def translate_disk_errors(root: Path) -> Iterator[None]:
    """Turn errors of a full, read-only or forbidden disk into an `InfraError` of one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise InfraError(
            f"the store {root} cannot be written ({error.strerror}): free some space, or set REPROBOT_CACHE"
        ) from error
