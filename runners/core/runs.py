"""One run of a testcase as data: the request with everything that decides the run, and the result.

A request names a release, not an environment: the environment belongs to the result. Requests with equal keys ask for
the same run, so a recording can replace a sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import msgspec

from runners.core.protocol import (
    Ended,
    Limits,
    Name,
    NotRun,
    Observation,
    OutOfMemory,
    StepResult,
    Testcase,
    Text,
    TimedOut,
    Varied,
    Wire,
)


class RunRequest(Wire, frozen=True, kw_only=True):
    """The request of one run."""

    version: Name
    device: Name
    testcase: Testcase
    limits: Limits = Limits()
    varied: Varied = Varied()
    attempt: int = 1
    """Number of the run of its cell. Every second attempt has its own process and sandbox."""
    seed: int | None = None
    """Seed of the random numbers that a Python step draws without its own seed."""
    may_fork: bool = True
    """False to forbid a fork of a process that has done the imports, for every attempt."""
    fresh: bool = False
    """True to run in a new sandbox, without a fork. A run that confirms a statement is such a run."""
    hook: bool = False
    """True to return the file that a guest program writes."""

    @property
    def key(self) -> str:
        """The sha256 of the request without its limits, which matter only to a run that reaches them.

        ``fresh`` is left out too: it decides the trust in a result, not the result.
        """
        asked = msgspec.to_builtins(msgspec.structs.replace(self, limits=Limits()))
        del asked["fresh"]
        return sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


class RunResult(Wire, frozen=True, kw_only=True):
    """The result of one run. ``steps`` are the started steps; ``ended`` is the end of the last of them."""

    steps: tuple[StepResult, ...] = ()
    ended: Ended
    seconds: float = 0.0
    peak_bytes: int = 0
    engine: Name = ""
    hook_file: Text | None = None
    """The content of a guest program's file. The text comes from the guest."""
    environment: Name = ""
    """Digest of the environment's lock. Empty without an environment."""
    fork: Name = ""
    """The commit and the wheel of a build that is not a release of the toolchain."""
    driver: Name = ""
    """The software that replaced the device's hardware."""
    image: Name = ""
    """Digest of the sandbox's image; empty for the host's own system."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded run: a row of a ledger of runs, and a line of its export.

    The environment, the engine, the image and the driver are in ``result``.
    """

    key: str
    """`RunRequest.key` of the request that the run answered."""
    ordinal: int
    """Number of the run among equal requests of one investigation, from 0."""
    version: Name
    testcase: str
    """Digest of the testcase."""
    guest: str
    """Digest of the guest programs that made the run."""
    date: str
    result: RunResult
    limits: Limits | None = None
    """The limits of the run; None if unknown. `answers` compares them if the run reached one."""
    fresh: bool = False
    """True if the run had its own sandbox."""

    def answers(self, request: RunRequest) -> bool:
        """True if the recorded run is the one that the request would make. Their keys are equal.

        A run that confirms a statement must have had its own sandbox. A timed-out run answers for the same limit and
        for shorter ones only. A run that ran out of memory answers for the same limits only. A run that took longer
        than the requested limit does not answer.
        """
        if request.fresh and not self.fresh:
            return False
        asked = request.limits
        if isinstance(self.result.ended, TimedOut) and self.limits is not None and asked.cpu_s is None:
            asked = msgspec.structs.replace(asked, wall_s=max(asked.wall_s, self.limits.wall_s))
            return self.limits == asked
        if isinstance(self.result.ended, TimedOut | OutOfMemory):
            return self.limits == request.limits
        return self.limits == request.limits or self.result.seconds <= request.limits.wall_s


Execute = Callable[[RunRequest], RunResult]
"""Makes a run. A failure of the testcase is a result, never an exception."""

Tell = Callable[[tuple[Observation, ...]], None]
"""Receives the runs on which an answer rests, before the diagnosis of a failure adds to them."""


def report_not_run(reason: NotRun, engine: str = "") -> RunResult:
    """Return the result of a run that could not be made."""
    return RunResult(ended=reason, engine=engine)
