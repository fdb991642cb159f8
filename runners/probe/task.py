"""Define the input of a probe (`Task`) and its result (`ProbeResult`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runners.core import conditions as varied
from runners.core.protocol import Ended, Limits, StepResult, Testcase, Varied
from runners.core.toolchain.guest import GuestFacts, is_launch_step

Program = str | tuple[str, ...]
"""A path inside the sandbox, or a path and its first arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions that may differ between two probes of one testcase. By default, a plain process."""

    scripts: bool = False
    """Run ``python FILE`` through ``runners/guest/script/``, which records the script's failure."""
    fork: bool = False
    """Fork such steps from a process that has executed their first imports, if the session has one."""
    early: Mapping[str, str] = field(default_factory=dict)
    """Variables that an interpreter reads at its start: the hash seed, the settings of the memory allocator."""
    threads: int | None = None
    """Number of threads of the compiled program. Libraries read it after their import."""
    perturb: int | None = None
    """glibc fills new memory with the complement of this byte (1 … 255), and freed memory with the byte."""
    seed: int | None = None
    """Seed for random generators that a Python step does not seed. Needs ``scripts``."""


PLAIN = Conditions()


def derive_conditions(under: Varied, attempt: int) -> Conditions:
    """Return the conditions of a run. Every second attempt is a plain process in its own sandbox.

    A run with another hash seed is not forked: an interpreter fixes the seed at its start, so the zygote would serve
    only this run.
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
    """A testcase and the settings of one run."""

    testcase: Testcase
    tools: Mapping[str, Program]
    """The first word of a step → the program that runs inside."""
    limits: Limits
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables of the steps, besides PATH and HOME."""
    guest: GuestFacts = field(default_factory=GuestFacts)
    """The toolchain's facts that are needed to observe its programs."""
    probe_file: str | None = None
    """Path inside of a file whose content is returned."""
    conditions: Conditions = PLAIN


def find_script(step: tuple[str, ...], testcase: Testcase) -> str | None:
    """Return the testcase's file that a step runs, from ``python FILE`` or the arguments of a guest program.

    None for any other step.
    """
    if step[0] != "python" or len(step) < 2:
        return None
    if step[1] in testcase.files:
        return step[1]
    return next((word for word in step[3:] if word in testcase.files), None) if is_launch_step(step) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result of one run. ``steps`` contains the started steps; ``ended`` is the end of the last one."""

    steps: tuple[StepResult, ...]
    ended: Ended
    seconds: float
    peak_bytes: int
    engine: str
    probe_file: str | None = None
    """Content of the task's ``probe_file``, which a guest program wrote: a claim."""
