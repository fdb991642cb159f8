"""Processor time: how much a probe may have of it, and a watch over what all its processes together have had."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from runners.core.protocol import Limits

SHARE = 0.75
"""Of all processors for the whole wall time: more than any compiler keeps busy for long (bench.speed.overhead prints
what ours do), so that this limit meets only what computes without end on all of them."""
START_S = 15.0
"""For starting an interpreter and the imports done ahead, which are counted too."""
GRACE_S = 4.0
"""From the word that the time is up to the kill: enough for the supervisor to ask the step where it is."""
_SHORTEST_PAUSE_S = 0.02


def processors() -> int:
    return len(os.sched_getaffinity(0))


def allowance(limits: Limits) -> float:
    """Seconds of processor time for one probe: as asked, else `SHARE` of all processors, and never less than one
    processor could give in the wall time."""
    if limits.cpu_s is not None:
        return limits.cpu_s
    return max(1.0, SHARE * processors()) * limits.wall_s + START_S


@dataclass(frozen=True, slots=True)
class Meter:
    """``total`` reads the kernel's account of all processes, the dead included; ``limit`` is the reading, in seconds,
    at which the time is up."""

    total: Callable[[], float]
    limit: float

    def pause_s(self) -> float:
        """How long until the time can be up at all, were every processor busy for it; 0 when it is."""
        left = self.limit - self.total()
        return 0.0 if left <= 0 else max(_SHORTEST_PAUSE_S, left / processors())


def watch(total: Callable[[], float] | None, cpu_s: float | None) -> Meter | None:
    """From now on; None where nothing counts, or nothing is limited."""
    if total is None or cpu_s is None:
        return None
    return Meter(total, total() + cpu_s)
