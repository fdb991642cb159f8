"""Define the input and the result of the classification of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import get_answer
from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings.kinds import Moved
from runners.core.protocol import (
    Answer,
    Claim,
    Exited,
    Observation,
    Outcome,
    PrintedRow,
    Reason,
    Signature,
    StepResult,
)
from runners.core.toolchain.failures import FailureVocabulary

COMPILER_DIAGNOSTIC = "mlir-error"
"""Signature type of a diagnostic that only a compiler prints. Compiling past the diagnostic needs no device."""
OUTPUT = "output"
"""Signature type of a claim that quotes printed output rather than a failure."""
READ_BACK = "printed-again.mlir"
"""The testcase's file that contains the program which the compiler printed. The last step reads it again."""
ASSERTION = "AssertionError"
"""Signature type of the testcase's own checks."""
CHECKS = frozenset({ASSERTION, WRONG_OUTPUT})
"""Signature types of a failed check of the result, by the testcase or by a runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A change of a toolchain's API that explains a failure."""

    name: str
    """The missing name."""
    successor: str | None
    """The replacement, if known."""
    why: str
    moved: Moved = Moved.UNKNOWN
    version: str = ""
    """The build to which ``moved`` refers. Empty for a notation that is no longer accepted."""
    added_in: str = ""
    """The build that added the name, if the name is too new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleContext:
    """Facts about the toolchain and the testcase that the classification uses."""

    claim: Claim
    vocabulary: FailureVocabulary
    """The vocabulary of the toolchain that ran."""
    drift: Drift | None = None
    """The moved name that explains the failure, if any."""
    needed: Drift | None = None
    """The flag that the build needs to read the input, if the testcase lacks it. Then a failure is not evidence."""
    missing_device: str | None = None
    """The sentence of `find_missing_device` for this output."""
    missing_part: str | None = None
    """The sentence of `find_missing_part` for this output."""
    device_trouble: str | None = None
    """The sentence of `find_device_trouble` for this output."""
    checks_itself: bool = False
    """True if the testcase contains an assertion, so that a clean end shows a correct result."""
    prints_reference: bool = False
    """True if the last two printed values are a result and a reference for that result."""
    rows: Sequence[PrintedRow] = ()
    """The printed rows that show whether a result is right."""
    caught: Sequence[str] = ()
    """The texts that the testcase prints before an exception that it caught."""
    given: str = ""
    """The program that the testcase gives the compiler, if it is in its own file."""
    renames: Mapping[str, str] | None = None
    compilers: Collection[str] = ()
    """Programs of the toolchain that compile but do not run programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The outcome of a run, the reason for it, and the observed failure."""

    outcome: Outcome
    reason: Reason
    why: str
    """The reason in words, for people."""
    detail: str = ""
    """As `Observation.detail`."""
    signature: Signature | None = None

    @property
    def answer(self) -> Answer:
        return get_answer(self.outcome)


def get_last_output(steps: Sequence[StepResult]) -> str:
    """Return the output of the last step, which belongs to the end of the run."""
    return f"{steps[-1].stdout}\n{steps[-1].stderr}" if steps else ""


def is_about_values(seen: Observation) -> bool:
    """True for a run in which a value may be wrong, because the run prints or compares values."""
    if seen.signature is None:
        return seen.ended == Exited(code=0)
    return seen.signature.type in (ASSERTION, OUTPUT)


def make_output_signature(claim: Claim) -> Signature:
    """Return the observed output as a signature: the claimed line, else the first line of the claimed output."""
    if claim.signature is not None and claim.signature.type == OUTPUT and claim.signature.message:
        return claim.signature
    return Signature(type=OUTPUT, message=next((s for s in map(str.strip, claim.actual.splitlines()) if s), "")[:200])
