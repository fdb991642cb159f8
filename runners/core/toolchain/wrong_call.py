"""Confirm, by a run with only the call corrected, that a call does not fit its function or program.

A wrong call explains an error: a rejected call, or a missing function. It never explains a crash or a hang. It
explains a wrong value in two cases: bytes are read with another type, or a documented default changes the
computation's type.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from runners.core.failure.oracle import CHECKS
from runners.core.findings.calls import CallDifference, OtherParameterType, ReplacedType
from runners.core.findings.kinds import CONTROL_ENDS, ControlEnd, Origin
from runners.core.findings.record import make_finding, write_call
from runners.core.findings.types import CallEvidence
from runners.core.protocol import Exited, Finding, Observation, Outcome, Signature, Testcase
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

MAX_COMMAND = 300
"""Maximum length of a corrected command in a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongCall:
    """One difference between a call of the testcase and the purpose of the call."""

    call: CallDifference
    mended: tuple[Testcase, ...]
    """The same testcase with only the call corrected: the possible corrections, the most likely first."""


def find_rejection(failure: Failure) -> Signature | None:
    """Return the error that a wrong call could explain: the end of a run, except a failed check of a result."""
    seen = failure.seen
    rejected = isinstance(seen.ended, Exited) and seen.ended.code != 0 and not failure.is_flaky
    return seen.signature if rejected and seen.signature is not None and seen.signature.type not in CHECKS else None


def confirm_wrong_call(wrong: WrongCall, failure: Failure, means: Means) -> Diagnosis:
    """Run the corrected testcases. Return a finding if one of them ends cleanly."""
    controls: list[Observation] = []
    for mended in wrong.mended:
        controls.append(means.run_control(failure, mended))
        if controls[-1].outcome is Outcome.PASS:
            blamed = _blame_call(wrong, failure, mended, ControlEnd.FAILURE_GONE)
            return Diagnosis(controls=tuple(controls), findings=(blamed,))
        if isinstance(wrong.call, OtherParameterType | ReplacedType) and _prints_other_values(controls[-1]):
            blamed = _blame_call(wrong, failure, mended, ControlEnd.OTHER_VALUE)
            return Diagnosis(controls=tuple(controls), findings=(blamed,))
    return Diagnosis(controls=tuple(controls)) if controls else NOTHING_FOUND


def _prints_other_values(control: Observation) -> bool:
    """True for a run without the reported output.

    Bytes of another type are wrong whatever the right values are. A type that the testcase requests is the testcase's
    choice.
    """
    return control.outcome is Outcome.OTHER_FAILURE and control.ended == Exited(code=0)


def _blame_call(wrong: WrongCall, failure: Failure, mended: Testcase, end: ControlEnd) -> Finding:
    pairs = zip(failure.testcase.steps, mended.steps, strict=True)
    works = next((shlex.join(after) for before, after in pairs if before != after), "")
    said = ", ".join(f"{key} {value}" for key, value in write_call(wrong.call).items())
    evidence = CallEvidence(
        call=wrong.call,
        call_that_works=works if 0 < len(works) <= MAX_COMMAND else None,
        version=failure.seen.version,
        origin=Origin.TESTCASE,
        control=f"the call mended: {CONTROL_ENDS[end]}",
        control_end=end,
    )
    return make_finding(evidence, f"{wrong.call.fault}: {said}; with the call mended {CONTROL_ENDS[end]}")
