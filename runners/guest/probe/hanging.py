"""Observe the threads of a step that exceeded its time, from outside its processes.

The processor share of each thread distinguishes a computation from a deadlock. The kernel reports where a thread
waits. The Python stacks are a claim, because the testcase's process prints them itself.
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


def sample_threads(processes: set[int], window_s: float = WINDOW_S) -> list[dict[str, Any]]:
    """Observe the threads of these processes for ``window_s``. Return one record per thread, the busiest first."""
    before = _read_threads(processes)
    time.sleep(window_s)
    after = _read_threads(processes)
    found: list[dict[str, Any]] = [
        {
            "process": pid,
            "name": name,
            "state": state,
            "busy": round(
                min(1.0, (ticks - before.get((pid, tid), (name, state, ticks))[2]) * _TICK_S / window_s), 2
            ),
            "waits_in": _read_wait_channel(pid, tid) if state != "R" else "",
        }
        for (pid, tid), (name, state, ticks) in after.items()
    ]
    return sorted(found, key=lambda thread: -thread["busy"])[:MAX_THREADS]


def _read_threads(processes: set[int]) -> dict[tuple[int, int], tuple[str, str, int]]:
    """Return (process, thread) → name, state letter, used clock ticks: proc(5), ``/proc/PID/task/TID/stat``."""
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


def _read_wait_channel(pid: int, tid: int) -> str:
    """Return the kernel function in which a thread sleeps (``futex_wait_queue``). Empty if it is hidden."""
    try:
        with open(f"/proc/{pid}/task/{tid}/wchan") as file:
            name = file.read(64)
    except OSError:
        return ""
    return name if name.isidentifier() else ""
