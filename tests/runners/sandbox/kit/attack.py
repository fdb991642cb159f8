"""What an attack is: a program, what it may leave behind, and how its probe must be said to have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from runners.core.protocol import Ended, Exited, Limits, OutOfMemory, Signalled, StepResult, TimedOut

MIB = 1024**2
# The wall clock is for what hangs: no attack that ends by itself may be cut short on a slow machine.
LIMITS = Limits(wall_s=60, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)
QUICK = Limits(wall_s=1.0, memory_bytes=192 * MIB, processes=48, disk_bytes=24 * MIB)

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
    """It went through to its end, and nothing it tried worked."""
    return "BREACH" not in step.stdout and step.stdout.rstrip().endswith("contained")


def anything(step: StepResult) -> object:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """``check`` looks at the (only) step's output; ``ended`` at how the probe is said to have ended."""

    name: str
    source: str
    ended: Callable[[Ended], bool] = field(default_factory=exited)
    check: Check = says_contained
    limits: Limits = LIMITS
    counts_all: bool = False
    """Contained only where what all processes use together, of memory or processor time, is counted."""


def refusals(name: str, imports: str, *lines: str) -> Attack:
    body = "\n".join(f"refused({line!r}, lambda: {line})" for line in lines)
    return Attack(name=name, source=f"import {imports}\n{body}\ncontained()\n")
