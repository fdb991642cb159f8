"""What one probe is asked to do, and what it showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runners.core import conditions as varied
from runners.core.protocol import Ended, Limits, StepResult, Testcase, Varied
from runners.core.toolchain.guest import GuestFacts, is_launch_step

Program = str | tuple[str, ...]
"""A path inside, or a path and its first arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What may differ between two probes of one testcase. The default is a plain process."""

    scripts: bool = False
    """Run ``python FILE`` through ``script.py``, which leaves a record of how it failed."""
    fork: bool = False
    """Fork such steps from a process that has executed their first imports, where a session has one."""
    early: Mapping[str, str] = field(default_factory=dict)
    """Variables that an interpreter reads at its start: the hash seed, how memory is handed out."""
    threads: int | None = None
    """Threads of the compiled program. Libraries read the number after their import."""
    perturb: int | None = None
    """glibc fills new memory with the complement of this byte (1 … 255), freed memory with the byte."""
    seed: int | None = None
    """For random numbers that a Python step draws without a seed of its own; needs ``scripts``."""


PLAIN = Conditions()


def conditions_of(under: Varied, attempt: int) -> Conditions:
    """How a run is made: every second one without our script around it, in a sandbox of its own.

    The hash seed is fixed when an interpreter starts: a zygote of another would serve this one run.
    """
    own = attempt % 2 == 0
    return Conditions(
        scripts=not own,
        fork=not own and under.hash_seed == 0,
        early=varied.list_start_variables(under),
        threads=under.threads,
        perturb=under.fill,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A testcase, and how it is run once."""

    testcase: Testcase
    tools: Mapping[str, Program]
    """By the first word of a step: what is executed inside."""
    limits: Limits
    variables: Mapping[str, str] = field(default_factory=dict)
    """All that the steps get of an environment, beside PATH and HOME."""
    guest: GuestFacts = field(default_factory=GuestFacts)
    """Of the toolchain: how its programs are watched."""
    probe_file: str | None = None
    """A path inside whose content is brought back."""
    conditions: Conditions = PLAIN


def script_of(step: tuple[str, ...], testcase: Testcase) -> str | None:
    """The testcase's file that a step is about: ``python FILE``, or one of our hooks with the file in its words."""
    if step[0] != "python" or len(step) < 2:
        return None
    if step[1] in testcase.files:
        return step[1]
    return next((word for word in step[3:] if word in testcase.files), None) if is_launch_step(step) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one run showed. ``steps`` has the steps that were started; ``ended`` is how the last of them ended."""

    steps: tuple[StepResult, ...]
    ended: Ended
    seconds: float
    peak_bytes: int
    engine: str
    probe_file: str | None = None
    """What a hook left in the job's probe file: the guest's words."""
