"""Limit the processor time of a probe: of all its processes together, including dead ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from runners.core.protocol import Limits

SHARE = 0.75
"""Share of all processors for the whole wall time. No compiler keeps that many busy for long (bench.speed.overhead
prints the use of ours). So only code that computes endlessly on all processors reaches this limit."""
START_S = 15.0
"""Allowance for the interpreter's start and the imports before the testcase, which are counted too."""
GRACE_S = 4.0
"""Time between the announcement and the kill. Meanwhile the supervisor asks the step for its position."""
_SHORTEST_PAUSE_S = 0.02


def count_processors() -> int:
    return len(os.sched_getaffinity(0))


def compute_allowance(limits: Limits) -> float:
    """Return the processor seconds for one probe: ``limits.cpu_s`` if given, else `SHARE` of all processors.

    The default is never less than one processor could provide in the wall time.
    """
    if limits.cpu_s is not None:
        return limits.cpu_s
    return max(1.0, SHARE * count_processors()) * limits.wall_s + START_S


@dataclass(frozen=True, slots=True)
class Meter:
    """A limit on processor time.

    ``read_total`` returns the kernel's count in seconds for all processes, including dead ones. The time is used up
    when the count reaches ``limit``.
    """

    read_total: Callable[[], float]
    limit: float

    def compute_pause_s(self) -> float:
        """Return the seconds until the time could be used up with every processor busy. 0 if it is used up."""
        left = self.limit - self.read_total()
        return 0.0 if left <= 0 else max(_SHORTEST_PAUSE_S, left / count_processors())


def start_meter(read_total: Callable[[], float] | None, cpu_s: float | None) -> Meter | None:
    """Return a meter that allows ``cpu_s`` seconds from now on. None without a counter or without a limit."""
    if read_total is None or cpu_s is None:
        return None
    return Meter(read_total, read_total() + cpu_s)


class SandboxTally:
    """The processor time of all sandboxes of this process. The kernel counts it only in their control groups.

    getrusage(2) counts only children that were waited for, so it misses the processes of a killed sandbox.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._total = 0.0

    def add(self, seconds: float) -> None:
        with self._guard:
            self._total += seconds

    def read(self) -> float:
        """Return the seconds up to the last answers of the sandboxes. 0 if no control groups are available."""
        return self._total


SANDBOXES = SandboxTally()


def count_time(read_total: Callable[[], float], counted: float) -> float:
    """Add the time of a sandbox since the last count to `SANDBOXES`. Return the sandbox's total."""
    total = read_total()
    SANDBOXES.add(total - counted)
    return total
