"""Where a step is when its time is up, seen from outside it: what its threads do, and its own answer to a signal.

The share of a processor that each thread takes tells a computation from a deadlock; what it waits for is the
kernel's word. The Python stacks are printed by the testcase's process itself and are its claim.
"""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WINDOW_S = 0.4
MAX_THREADS = 24
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def look_at(processes: set[int], window_s: float = WINDOW_S) -> list[dict[str, Any]]:
    """The threads of these processes over a short time, the busiest first: names, states, share of a processor."""
    before = _threads(processes)
    time.sleep(window_s)
    after = _threads(processes)
    found: list[dict[str, Any]] = [
        {
            "process": pid,
            "name": name,
            "state": state,
            "busy": round(
                min(1.0, (ticks - before.get((pid, tid), (name, state, ticks))[2]) * _TICK_S / window_s), 2
            ),
            "waits_in": _waits_in(pid, tid) if state != "R" else "",
        }
        for (pid, tid), (name, state, ticks) in after.items()
    ]
    return sorted(found, key=lambda thread: -thread["busy"])[:MAX_THREADS]


def _threads(processes: set[int]) -> dict[tuple[int, int], tuple[str, str, int]]:
    """(process, thread) → name, state letter, clock ticks used: proc(5), ``/proc/PID/task/TID/stat``."""
    found = {}
    for pid in processes:
        with contextlib.suppress(OSError):
            for tid in list(map(int, os.listdir(f"/proc/{pid}/task")))[:MAX_THREADS]:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/stat", "rb") as file:
                    head, _, tail = file.read().rpartition(b")")
                    words = tail.split()
                    name = head.partition(b"(")[2].decode("utf-8", "replace")
                    found[pid, tid] = name, words[0].decode(), int(words[11]) + int(words[12])
    return found


def _waits_in(pid: int, tid: int) -> str:
    """The kernel's name for what a sleeping thread waits for (``futex_wait_queue``); empty where it keeps it."""
    try:
        with open(f"/proc/{pid}/task/{tid}/wchan") as file:
            name = file.read(64)
    except OSError:
        return ""
    return name if name.isidentifier() else ""
