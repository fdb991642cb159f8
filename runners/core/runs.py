"""One run of a testcase as data: everything that decides it, and everything it showed.

A request names a release, not an environment: the environment belongs to the result. Requests with equal keys ask
for the same run, so that a ledger or a recording can answer instead of a sandbox.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import msgspec

from runners.core.protocol import Ended, Limits, Name, NotRun, StepResult, Testcase, Text, Varied, Wire


class RunRequest(Wire, frozen=True, kw_only=True):
    """A run to make."""

    version: Name
    device: Name
    testcase: Testcase
    limits: Limits = Limits()
    varied: Varied = Varied()
    attempt: int = 1
    """The number of the run of its cell. Every second attempt has a process and a sandbox of its own."""
    seed: int | None = None
    """For random numbers that a Python step draws without a seed of its own."""
    may_fork: bool = True
    """False: no fork of a process that has done the imports, whatever the attempt."""
    hook: bool = False
    """True: bring back the file that a guest program writes."""

    @property
    def key(self) -> str:
        """A sha256. Limits are left out: they decide only how a run that reaches them ends."""
        return sha256(msgspec.json.encode(msgspec.structs.replace(self, limits=Limits()), order="sorted")).hexdigest()


class RunResult(Wire, frozen=True, kw_only=True):
    """What one run showed. ``steps`` are those that were started; ``ended`` is how the last of them ended."""

    steps: tuple[StepResult, ...] = ()
    ended: Ended
    seconds: float = 0.0
    peak_bytes: int = 0
    engine: Name = ""
    hook_file: Text | None = None
    """The file of a guest program: the guest's words."""
    environment: Name = ""
    """Digest of the environment's lock; empty if there was none."""
    fork: Name = ""
    """The commit and the wheel of a build that is no release of the toolchain."""
    driver: Name = ""
    """The software that stood in for the device."""
    image: Name = ""
    """Digest of the image that the sandbox ran on; empty for the host's own system."""


Execute = Callable[[RunRequest], RunResult]
"""Makes a run. Never raises for what the testcase does."""


def report_not_run(reason: NotRun, engine: str = "") -> RunResult:
    return RunResult(ended=reason, engine=engine)
