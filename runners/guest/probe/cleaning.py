"""What one probe of a session could leave to the next, removed or at least noticed. For the supervisor alone.

Processes are ended elsewhere. What remains is what outlives its process: files in the places that can be written,
System V and POSIX queues and memory, and what a process may change of another of its own user (priority, processors,
scheduling), which forks would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

MAX_ENTRIES = 20_000
"""More files than an honest testcase leaves; removing them would cost more than a new sandbox."""
QUEUES = ("/dev/mqueue",)
_SYSTEM_V = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")

State = tuple[object, ...]


class Unclean(Exception):
    """Something is left, or was changed, that can't be undone here."""


def empty(places: Iterable[str]) -> None:
    """Remove everything below each place, which itself stays.

    Raises:
        Unclean: what is there can't be removed, or is too much.
    """
    left = MAX_ENTRIES
    try:
        for place in places:
            # Nobody else is alive, so that what is a directory stays one.
            for folder, folders, files in os.walk(place, topdown=False):
                left -= len(files) + len(folders)
                if left < 0:
                    raise Unclean(f"more than {MAX_ENTRIES} files were left")
                for name in files:
                    os.unlink(os.path.join(folder, name))
                for name in folders:
                    remove_folder(os.path.join(folder, name))
            if os.listdir(place):
                raise Unclean(f"{place} could not be emptied")
    except (OSError, RecursionError) as error:
        raise Unclean(f"what was left could not be removed: {error}") from error


def remove_folder(path: str) -> None:
    """A directory, or a symbolic link to one, which ``os.walk`` lists among the directories."""
    if os.path.islink(path):
        os.unlink(path)
    else:
        os.rmdir(path)


def queues() -> list[str]:
    """Shared memory, semaphores and queues that outlive their processes."""
    found = [path for place in QUEUES if os.path.isdir(place) for path in os.listdir(place)]
    for path in _SYSTEM_V:
        try:
            with open(path) as file:
                found += file.read().splitlines()[1:]
        except OSError:
            continue
    return found


def state_of(processes: Iterable[int], places: Iterable[str]) -> State:
    """What others of the same user could change of these processes, and of the places' own directories."""
    return (
        *((_priority(pid), _processors(pid), _scheduling(pid)) for pid in processes),
        *(os.stat(place).st_mode for place in places),
    )


def _priority(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def _processors(pid: int) -> frozenset[int]:
    return frozenset(os.sched_getaffinity(pid))


def _scheduling(pid: int) -> tuple[int, int]:
    return os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority
