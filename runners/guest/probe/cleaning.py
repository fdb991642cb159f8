"""Remove or detect leftovers of a probe before the session's next probe. Only the supervisor imports this module.

``processes.py`` kills the processes. Some effects outlive their process: files in the writable folders, queues and
memory of System V and POSIX, and changes of another process of the same user (priority, processors, scheduling),
which forks would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

MAX_ENTRIES = 20_000
"""An honest testcase leaves fewer files. Removing more would take longer than a new sandbox."""
_QUEUES = ("/dev/mqueue",)
_SYSTEM_V = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")

_TCP = ("/proc/net/tcp", "/proc/net/tcp6")

ProcessState = tuple[object, ...]


class CannotClean(Exception):
    """A probe left files that cannot be removed here."""


def empty_folders(writable: Iterable[str]) -> None:
    """Remove everything below each of the ``writable`` folders, but not the folders themselves.

    Raises:
        CannotClean: there are too many files, or a file cannot be removed.
    """
    left = MAX_ENTRIES
    try:
        for root in writable:
            # No other process is alive that could replace a directory by a link meanwhile.
            for folder, folders, files in os.walk(root, topdown=False):
                left -= len(files) + len(folders)
                if left < 0:
                    raise CannotClean(f"more than {MAX_ENTRIES} files were left")
                for name in files:
                    os.unlink(os.path.join(folder, name))
                for name in folders:
                    remove_folder(os.path.join(folder, name))
            if os.listdir(root):
                raise CannotClean(f"{root} could not be emptied")
    except (OSError, RecursionError) as error:
        raise CannotClean(f"files could not be removed: {error}") from error


def remove_folder(path: str) -> None:
    """Remove a directory, or a symbolic link to one: ``os.walk`` lists both as directories."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        os.rmdir(path)


def list_queues() -> list[str]:
    """Return shared memory, semaphores and queues, which outlive their processes."""
    found = [path for folder in _QUEUES if os.path.isdir(folder) for path in os.listdir(folder)]
    for path in _SYSTEM_V:
        try:
            with open(path) as file:
                found += file.read().splitlines()[1:]
        except OSError:
            continue
    return [ascii(name)[1:-1] for name in found]  # a name may contain any byte; the host reads UTF-8


def list_ports() -> list[str]:
    """Return TCP sockets. A closed connection keeps its ports for a minute: another probe cannot bind them."""
    found: list[str] = []
    for path in _TCP:
        try:
            with open(path) as file:
                found += (" ".join(line.split()[1:4]) for line in file.read().splitlines()[1:])
        except OSError:
            continue
    return found


def read_state(processes: Iterable[int], writable: Iterable[str]) -> ProcessState:
    """Return the properties of the processes and folders that another process of the same user can change."""
    return (
        *(_read_scheduling(pid) for pid in processes),
        *(os.stat(folder).st_mode for folder in writable),
    )


def _read_scheduling(pid: int) -> ProcessState:
    processors = frozenset(os.sched_getaffinity(pid))
    priorities = os.getpriority(os.PRIO_PROCESS, pid), os.sched_getparam(pid).sched_priority
    return *priorities, processors, os.sched_getscheduler(pid)
