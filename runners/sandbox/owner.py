"""Who made a container, a control group or a temporary directory: written into its name, so that it can be swept."""

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


def _start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None when there is no such process.

    Field 22 of ``/proc/PID/stat``; the second field may contain spaces and brackets, hence the split.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def new_name() -> str:
    """A name for one probe's things: ``reprobot-PID-START-SERIAL``, unique on this machine since boot."""
    pid = os.getpid()
    return f"{PREFIX}-{pid}-{_start_ticks(pid)}-{next(_serial)}"


def is_leftover(name: str) -> bool:
    """Whether ``name`` is one of ours and its maker is dead (a reused process id began at another time)."""
    match = _NAME.match(name)
    return match is not None and _start_ticks(int(match[1])) != int(match[2])


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """A directory that only we can enter, named so that a sweep can find it; removed on the way out."""
    path = Path(tempfile.gettempdir(), new_name())
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def leftover_processes(program: str) -> list[int]:
    """Processes of ours of that name which name a private directory, or anything else, of a dead maker's."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode("utf-8", "replace")
            mine = words.startswith(f"{program}\0") and path.stat().st_uid == os.geteuid()
            if mine and any(map(is_leftover, re.findall(rf"{PREFIX}-\d+-\d+-\d+", words))):
                found.append(int(path.name))
    return found


def leftover_directories() -> list[Path]:
    """Private directories whose makers are dead."""
    found = Path(tempfile.gettempdir()).glob(f"{PREFIX}-*")
    return sorted(path for path in found if is_leftover(path.name) and path.is_dir())
