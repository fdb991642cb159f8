"""The type of an attack: a program, a check of its output, and the end that its probe must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runners.core.protocol import Ended, Exited, Limits, OutOfMemory, Signalled, StepResult, TimedOut

MIB = 1024**2
# Long, because the limit is for hangs: an attack that ends by itself must do so on a slow machine too.
LIMITS = Limits(wall_s=60, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
QUICK = Limits(wall_s=1.0, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
"""For attacks that only have to be stopped. On a busy machine they may not even have begun by then."""
FLOODING = Limits(wall_s=6.0, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
"""For attacks that have to write before the limit stops them."""

Check = Callable[[StepResult], object]


def exited(code: int = 0) -> Callable[[Ended], bool]:
    return lambda ended: ended == Exited(code=code)


def signalled(number: int) -> Callable[[Ended], bool]:
    return lambda ended: ended == Signalled(code=number)


def timed_out(ended: Ended) -> bool:
    return isinstance(ended, TimedOut) and ended.where.startswith("step 1 (python attack.py)")


def out_of_memory(ended: Ended) -> bool:
    return ended == OutOfMemory(limit_bytes=LIMITS.memory_bytes)


def says_contained(step: StepResult) -> object:
    """True if the attack ran to its end and no attempt worked."""
    return "BREACH" not in step.stdout and step.stdout.rstrip().endswith("contained")


def anything(step: StepResult) -> object:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack. ``check`` tests the output of its only step, ``ended`` the reported end of its probe."""

    name: str
    source: str
    ended: Callable[[Ended], bool] = field(default_factory=exited)
    check: Check = says_contained
    limits: Limits = LIMITS
    counts_all: bool = False
    """True if only a count over all processes, of memory or processor time, contains the attack."""


def refusals(name: str, imports: str, *lines: str) -> Attack:
    body = "\n".join(f"refused({line!r}, lambda: {line})" for line in lines)
    return Attack(name=name, source=f"import {imports}\n{body}\ncontained()\n")
