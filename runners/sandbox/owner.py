"""Name containers, control groups and temporary directories after the process that made them.

The name shows whether the maker still runs, so a later run can find and remove the leftovers of a killed one. A
process id is not valid in another PID namespace, such as a container that shares this machine's engine, or after
another boot. So the name contains both. Names from elsewhere are judged only by their age.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runners.core.hostile.folders import try_remove_folder

PREFIX = "reprobot"

MAX_LIFE_S = 24 * 3600.0
"""Age at which a name from another PID namespace or boot counts as a leftover. No sandbox lives that long: a session
ends after an hour, and a build of a compiler after its own time limit (an hour by default)."""

_serial = itertools.count(1)
_PATTERN = rf"{PREFIX}-(\d+)-(\d+)-([0-9a-f]+\.\d+)-(\d+)-\d+"


def _read_start_ticks(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot. None if the process does not exist.

    The value is field 22 of ``/proc/PID/stat``. The second field may contain spaces and brackets, so the text is
    split at the last bracket.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def _read_process_space() -> str:
    """Return ``BOOT.NAMESPACE``: the machine's boot and the PID namespace in which our process ids are valid.

    The kernel reuses the number of a removed namespace. The process id and its start still identify the maker.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"


def make_name() -> str:
    """Return a name for the resources of one probe: ``reprobot-PID-START-SPACE-SECONDS-SERIAL``."""
    pid = os.getpid()
    words = (PREFIX, pid, _read_start_ticks(pid), _read_process_space(), int(time.time()), next(_serial))
    return "-".join(map(str, words))


def is_leftover(name: str) -> bool:
    """True if ``name`` is from `make_name` and its maker is dead. A reused process id has another start.

    The maker of a name from another PID namespace or boot is not visible. Its resources are kept for `MAX_LIFE_S`.
    """
    match = re.fullmatch(_PATTERN, name)
    if match is None:
        return False
    pid, start, space, made = match.groups()
    if space != _read_process_space():
        return time.time() - int(made) > MAX_LIFE_S
    return _read_start_ticks(int(pid)) != int(start)


@contextlib.contextmanager
def open_private_directory() -> Iterator[Path]:
    """Create a temporary directory that only this user can enter. Remove the directory on exit."""
    path = Path(tempfile.gettempdir(), make_name())
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        try_remove_folder(path)


def find_leftover_processes(program: str) -> list[int]:
    """Return the ids of this user's processes of ``program`` whose command line names a dead maker."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (path / "cmdline").read_bytes().decode("utf-8", "replace")
            mine = words.startswith(f"{program}\0") and path.stat().st_uid == os.geteuid()
            if mine and any(is_leftover(found[0]) for found in re.finditer(_PATTERN, words)):
                found.append(int(path.name))
    return found


def find_leftover_directories() -> list[Path]:
    """Return private directories whose makers are dead."""
    found = Path(tempfile.gettempdir()).glob(f"{PREFIX}-*")
    return sorted(path for path in found if is_leftover(path.name) and path.is_dir())
