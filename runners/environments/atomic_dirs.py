"""Folders that are there complete or not at all, shared by any number of processes.

An entry is built as a draft, under a lock that the kernel drops when its holder dies, and appears under its name by
one rename. A record, written last, says how many files it has and how long they are together: an entry that doesn't
match its record (cut short by a power failure, damaged by hand) does not exist, and is built again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from runners.core.errors import InfraError

_SCHEMA = 1
RECORD = "record.json"
"""An entry's own record of what is in it, written last."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    name: str
    files: int
    bytes: int
    print: str = ""
    """Over every file's path, length and time of writing; records of old have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Entries of one kind: ``<root>/<kind>/<name>/``, beside ``building/`` and ``locks/`` which all kinds share.

    A name must not contain ``~``.
    """

    root: Path
    kind: str

    def find(self, name: str) -> Path | None:
        """The entry, if it is whole; marks it as used now."""
        folder = self.root / self.kind / name
        if not _is_whole(folder, name):
            return None
        with contextlib.suppress(OSError):
            os.utime(folder)
        return folder

    def build(self, name: str, fill: Callable[[Path], None], *, waiting: Callable[[], None]) -> Path:
        """The entry, found or made: ``fill`` puts its files into an empty folder.

        ``waiting`` is called once if another process is building it: what that one makes is then used.
        """
        with self._lock(name, waiting):
            found = self.find(name)
            if found is not None:
                return found
            self._sweep(name)
            return self._make(name, fill)

    def names(self) -> tuple[str, ...]:
        """Of all entries, whole or not, longest unused first."""
        folders = [folder for folder in (self.root / self.kind).glob("*") if folder.is_dir()]
        return tuple(folder.name for folder in sorted(folders, key=lambda f: f.stat().st_mtime))

    def recorded_bytes(self) -> int:
        """Length of all entries' files together, as their records say."""
        records = (_read_record(self.root / self.kind / name) for name in self.names())
        return sum(record.bytes for record in records if record is not None)

    def unused_s(self, name: str) -> float:
        """Seconds since an entry was last found or made; 0 when it is gone."""
        try:
            return time.time() - (self.root / self.kind / name).stat().st_mtime
        except OSError:
            return 0.0

    def remove(self, name: str) -> None:
        """Make an entry disappear at once, then delete its files."""
        with self._lock(name, lambda: None):
            doomed = tempfile.mkdtemp(prefix=f"{self.kind}~{name}~", dir=make_folder(self.root / "building"))
            with contextlib.suppress(FileNotFoundError):
                (self.root / self.kind / name).rename(Path(doomed) / "entry")
            shutil.rmtree(doomed, ignore_errors=True)

    def _make(self, name: str, fill: Callable[[Path], None]) -> Path:
        folder = make_folder(self.root / self.kind) / name
        draft = Path(tempfile.mkdtemp(prefix=f"{self.kind}~{name}~", dir=make_folder(self.root / "building")))
        try:
            fill(draft)
            whole = measure(draft)
            record = _Record(schema=_SCHEMA, name=name, files=whole.files, bytes=whole.bytes, print=whole.print)
            write_text(draft / RECORD, msgspec.json.encode(record).decode())
            make_folder(draft)
            if folder.exists():  # damaged
                shutil.rmtree(folder)
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return folder

    @contextlib.contextmanager
    def _lock(self, name: str, waiting: Callable[[], None]) -> Iterator[None]:
        with self._lock_path(self.kind, name).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _lock_path(self, kind: str, name: str) -> Path:
        return make_folder(self.root / "locks") / f"{kind}~{name}"

    def _sweep(self, ours: str) -> None:
        """Remove what killed builders left: drafts whose lock is ours or nobody's."""
        for draft in (self.root / "building").glob("*~*~*"):
            kind, name, _ = draft.name.split("~", 2)
            if (kind, name) == (self.kind, ours) or _is_free(self._lock_path(kind, name)):
                shutil.rmtree(draft, ignore_errors=True)


def _is_free(lock: Path) -> bool:
    try:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_record(folder: Path) -> _Record | None:
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=_Record)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_whole(folder: Path, name: str) -> bool:
    record = _read_record(folder)
    if record is None or (record.schema, record.name) != (_SCHEMA, name):
        return False
    found = measure(folder)
    return (found.files, found.bytes) == (record.files, record.bytes) and record.print in ("", found.print)


# ------------------------------------------------------------------------------------------------- files


class Measure(NamedTuple):
    """What is below a folder, its record aside, without reading any of it."""

    files: int
    bytes: int
    print: str
    """Digest of every file's path, length and time of writing: one written to, or put in another's place, shows."""


def measure(folder: Path) -> Measure:
    """Count, total length and print of the files below a folder."""
    start = len(str(folder)) + 1
    every = sorted(
        (str(path)[start:], status.st_size, status.st_mtime_ns)
        for path, status in walk(folder)
        if path.name != RECORD
    )
    text = "\n".join(f"{path}\0{size}\0{written}" for path, size, written in every)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return Measure(len(every), sum(size for _, size, _ in every), digest)


def disk_bytes(folder: Path) -> int:
    """What a folder takes on disk, hard links counted once."""
    return sum({(s.st_dev, s.st_ino): s.st_blocks * 512 for _, s in walk(folder)}.values())


def walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Files below a folder; what vanishes meanwhile is left out."""
    try:
        with os.scandir(folder) as entries:
            inside = list(entries)
    except OSError:
        return
    for entry in inside:
        with contextlib.suppress(FileNotFoundError):
            if entry.is_dir(follow_symlinks=False):
                yield from walk(Path(entry.path))
            else:
                yield Path(entry.path), entry.stat(follow_symlinks=False)


def link_tree(source: Path, target: Path) -> None:
    """Hard-link every file below ``source`` into ``target``; a file that is there already stays."""
    make_folder(target)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                link_tree(Path(entry.path), target / entry.name)
            else:
                _link(Path(entry.path), target / entry.name)


_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP})


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(source, target, follow_symlinks=False)  # a file system without hard links


def make_folder(folder: Path) -> Path:
    """A folder that other users may read: sandboxes run as nobody."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(0o755)
    return folder


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
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
def disk_errors(root: Path) -> Iterator[None]:
    """A full, read-only or forbidden disk is a failure of infrastructure, said in one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise InfraError(
            f"the store {root} cannot be written ({error.strerror}): free some space, or set REPROBOT_CACHE"
        ) from error
