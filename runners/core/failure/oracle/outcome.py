"""What the classification of a run reads and returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from runners.core.failure.outcomes import get_answer
from runners.core.failure.parse import WRONG_OUTPUT
from runners.core.findings import Moved
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
"""Signature type of a diagnostic that only a compiler prints. No device is needed to compile past the diagnostic."""
OUTPUT = "output"
"""Signature type of a claim that quotes printed output rather than a failure."""
READ_BACK = "printed-again.mlir"
"""The file of a testcase that holds the program which the compiler printed, and which its last step reads again."""
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
    """The build that ``moved`` is about; empty for a notation that is no longer accepted."""
    added_in: str = ""
    """For a name that is too new: the build that added the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleContext:
    """Facts about the toolchain and the testcase that classify a run."""

    claim: Claim
    vocabulary: FailureVocabulary
    """The vocabulary of the toolchain that ran."""
    drift: Drift | None = None
    """The moved name that explains the failure, if any."""
    needed: Drift | None = None
    """The flag without which the build cannot read the input, if the testcase lacks one. Then a failure says nothing,
    whatever the build prints."""
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
    """The printed rows that tell whether a result is right."""
    caught: Sequence[str] = ()
    """The texts that the testcase prints before an exception that it caught."""
    given: str = ""
    """The program that the testcase gives the compiler, if it gives one in a file of its own."""
    renames: Mapping[str, str] | None = None
    compilers: Collection[str] = ()
    """Programs of the toolchain that compile and do not run."""


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
    """True for a run in which a value may be wrong: it prints or compares values. Other failures have none."""
    if seen.signature is None:
        return seen.ended == Exited(code=0)
    return seen.signature.type in (ASSERTION, OUTPUT)


def make_output_signature(claim: Claim) -> Signature:
    """Return the observed output as a signature: the claimed line, else the first line of the claimed output."""
    if claim.signature is not None and claim.signature.type == OUTPUT and claim.signature.message:
        return claim.signature
    return Signature(type=OUTPUT, message=next((s for s in map(str.strip, claim.actual.splitlines()) if s), "")[:200])
