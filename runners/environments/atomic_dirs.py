"""Manage folders that are complete on disk or absent, for any number of processes.

An entry is built as a draft, under a lock that the kernel releases when its holder dies. One rename gives it its
name. A record is written last. It contains the number and total length of the entry's files. An entry that does not
match its record (cut short by a power failure, damaged by hand) counts as absent and is built again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from runners.core.hostile.folders import remove_folder, try_remove_folder
from runners.environments.files import make_folder, walk_files, write_text

_SCHEMA = 1
RECORD = "record.json"
"""File in each entry that describes the entry's files. Written last."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class _EntryRecord(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    name: str
    files: int
    bytes: int
    print: str = ""
    """Digest of every file's path, length and modification time. Old records have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicDirs:
    """Entries of one kind: ``<root>/<kind>/<name>/``. All kinds share ``building/``, ``locks/`` and ``checked/``.

    A name must not contain ``~``.
    """

    root: Path
    kind: str
    trust_s: float = 0.0
    """Seconds for which a comparison of an entry's files with its record is trusted, by other processes too."""

    def find(self, name: str) -> Path | None:
        """Return the entry if it is complete, and mark the entry as used now."""
        folder = self.root / self.kind / name
        if not self._was_checked(name):
            if not _is_complete(folder, name):
                return None
            self._note_check(name)
        with contextlib.suppress(OSError):
            os.utime(folder)
        return folder

    def build(self, name: str, fill: Callable[[Path], None], *, on_wait: Callable[[], None]) -> Path:
        """Return the entry; build it if it is absent. ``fill`` writes the files into an empty folder.

        ``on_wait`` is called once if another process is building the entry; that process's entry is then used.
        """
        with self._lock(name, on_wait):
            found = self.find(name)
            if found is not None:
                return found
            self._remove_drafts(name)
            return self._make_entry(name, fill)

    def list_names(self) -> tuple[str, ...]:
        """Return the names of all entries, complete or not, longest unused first."""
        folders = [folder for folder in (self.root / self.kind).glob("*") if folder.is_dir()]
        return tuple(folder.name for folder in sorted(folders, key=lambda f: f.stat().st_mtime))

    def sum_recorded_bytes(self) -> int:
        """Return the total length of the files of all entries, according to their records."""
        return sum(map(self.get_recorded_bytes, self.list_names()))

    def get_recorded_bytes(self, name: str) -> int:
        """Return the total length of the files of an entry, according to its record. 0 without a record."""
        record = _read_record(self.root / self.kind / name)
        return 0 if record is None else record.bytes

    def measure_unused_s(self, name: str) -> float:
        """Return the seconds since an entry was last found or made. 0 if it is gone."""
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
            self._find_note(name).unlink(missing_ok=True)
            try_remove_folder(Path(doomed))

    def _make_entry(self, name: str, fill: Callable[[Path], None]) -> Path:
        folder = make_folder(self.root / self.kind) / name
        draft = Path(tempfile.mkdtemp(prefix=f"{self.kind}~{name}~", dir=make_folder(self.root / "building")))
        try:
            fill(draft)
            measured = measure_folder(draft)
            record = _EntryRecord(
                schema=_SCHEMA, name=name, files=measured.files, bytes=measured.bytes, print=measured.print
            )
            write_text(draft / RECORD, msgspec.json.encode(record).decode())
            make_folder(draft)
            if folder.exists():  # a damaged entry
                remove_folder(folder)
            draft.rename(folder)
        finally:
            try_remove_folder(draft)
        return folder

    @contextlib.contextmanager
    def _lock(self, name: str, on_wait: Callable[[], None]) -> Iterator[None]:
        with self._find_lock(self.kind, name).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _was_checked(self, name: str) -> bool:
        """True if the entry was complete less than ``trust_s`` ago, in this boot, and was not rebuilt since."""
        note = self._find_note(name)
        try:
            age_s = time.time() - note.stat().st_mtime
            return 0 <= age_s < self.trust_s and note.read_text() == self._identify(name)
        except OSError:
            return False

    def _note_check(self, name: str) -> None:
        """Record that the entry is complete. Without trust, remove the record of another process."""
        note = self._find_note(name)
        with contextlib.suppress(OSError):  # without the record, the next process compares the files again
            if self.trust_s > 0:
                write_text(note, self._identify(name))
            else:
                note.unlink(missing_ok=True)

    def _find_note(self, name: str) -> Path:
        return self.root / "checked" / f"{self.kind}~{name}"

    def _identify(self, name: str) -> str:
        """Return the identity of this copy of the entry on this boot. A new copy has a new record."""
        record = (self.root / self.kind / name / RECORD).stat()
        return f"{record.st_ino} {record.st_mtime_ns} {_BOOT.read_text().strip()}"

    def _find_lock(self, kind: str, name: str) -> Path:
        return make_folder(self.root / "locks") / f"{kind}~{name}"

    def _remove_drafts(self, locked: str) -> None:
        """Remove drafts of killed builders: those of the entry that we have locked, and those of unlocked entries."""
        for draft in (self.root / "building").glob("*~*~*"):
            kind, name, _ = draft.name.split("~", 2)
            if (kind, name) == (self.kind, locked) or _is_unlocked(self._find_lock(kind, name)):
                try_remove_folder(draft)


def _is_unlocked(lock: Path) -> bool:
    try:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_record(folder: Path) -> _EntryRecord | None:
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=_EntryRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_complete(folder: Path, name: str) -> bool:
    record = _read_record(folder)
    if record is None or (record.schema, record.name) != (_SCHEMA, name):
        return False
    found = measure_folder(folder)
    return (found.files, found.bytes) == (record.files, record.bytes) and record.print in ("", found.print)


class FolderMeasure(NamedTuple):
    """The files below a folder, without its record. No file is read."""

    files: int
    bytes: int
    print: str
    """Digest of every file's path, length and modification time. It changes if a file is written or replaced.

    Times are rounded to seconds: tar stores no fractions, and a store may come from another machine.
    """


def measure_folder(folder: Path) -> FolderMeasure:
    """Return count, total length and digest of the files below a folder."""
    start = len(str(folder)) + 1
    every = sorted(
        (path[start:], status.st_size, int(status.st_mtime))
        for path, status in walk_files(folder)
        if os.path.basename(path) != RECORD
    )
    text = "\n".join(f"{path}\0{size}\0{written}" for path, size, written in every)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return FolderMeasure(len(every), sum(size for _, size, _ in every), digest)
