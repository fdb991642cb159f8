"""Name containers, control groups and temporary directories after the process that made them.

The name tells whether the maker still runs, so a later run can find and remove the leftovers of a killed one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "reprobot"

_serial = itertools.count(1)
_NAME = re.compile(rf"^{PREFIX}-(\d+)-(\d+)-\d+$")


def _read_start_ticks(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot, or None if there is no such process.

    The value is field 22 of ``/proc/PID/stat``. The second field may contain spaces and brackets, hence the split at
    the last bracket.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def make_name() -> str:
    """Return a name for the resources of one probe: ``reprobot-PID-START-SERIAL``, unique since boot."""
    pid = os.getpid()
    return f"{PREFIX}-{pid}-{_read_start_ticks(pid)}-{next(_serial)}"


def is_leftover(name: str) -> bool:
    """True if ``name`` is from `make_name` and its maker is dead. A reused process id has another start."""
    match = _NAME.match(name)
    return match is not None and _read_start_ticks(int(match[1])) != int(match[2])


@contextlib.contextmanager
def open_private_directory() -> Iterator[Path]:
    """Create a temporary directory that only this user can enter; remove the directory on exit."""
    path = Path(tempfile.gettempdir(), make_name())
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def find_leftover_processes(program: str) -> list[int]:
    """Return ids of this user's processes of ``program`` whose command line has a name made by a dead process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode("utf-8", "replace")
            mine = words.startswith(f"{program}\0") and path.stat().st_uid == os.geteuid()
            if mine and any(map(is_leftover, re.findall(rf"{PREFIX}-\d+-\d+-\d+", words))):
                found.append(int(path.name))
    return found


def find_leftover_directories() -> list[Path]:
    """Return private directories whose makers are dead."""
    found = Path(tempfile.gettempdir()).glob(f"{PREFIX}-*")
    return sorted(path for path in found if is_leftover(path.name) and path.is_dir())
