"""The same failure on two builds gets the same answer, if the report quotes none."""

from __future__ import annotations

import msgspec
import pytest

from bot.verdict.same_failure import match_posted_calls, match_same_failures
from runners.core.findings.kinds import Moved
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Signature,
    Variant,
)
from tests.support.observed import PLAN as ANY, observe

SAME = Signature(type="InternalError", message="no rule for the operator relax.cumprod of five axes")


def see(version: str, outcome: Outcome, signature: Signature = SAME) -> Observation:
    return msgspec.structs.replace(observe(version, outcome), signature=signature)


def outcomes(plan: Plan, *seen: Observation) -> list[Outcome]:
    return [one.outcome for one in match_same_failures(plan, seen)]


PLAN = msgspec.structs.replace(ANY, claim=Claim(kind=ClaimKind.ERROR))
KNOWN, OTHER = see("1.0", Outcome.MATCH), see("1.1", Outcome.OTHER_FAILURE)


def test_a_failure_that_equals_a_recognized_one_is_recognized() -> None:
    assert outcomes(PLAN, KNOWN, OTHER) == [Outcome.MATCH, Outcome.MATCH]
    assert outcomes(PLAN, OTHER) == [Outcome.OTHER_FAILURE]


@pytest.mark.parametrize(
    "signature",
    [
        Signature(type="ValueError", message=SAME.message),
        Signature(type=SAME.type, message="the module has no function of this name at all"),
    ],
)
def test_another_failure_stays_another(signature: Signature) -> None:
    assert outcomes(PLAN, KNOWN, see("1.1", Outcome.OTHER_FAILURE, signature))[1] is Outcome.OTHER_FAILURE


def test_a_crash_without_a_message_equals_no_other_crash() -> None:
    crash = Signature(type="SIGSEGV", message="")
    seen = see("1.0", Outcome.MATCH, crash), see("1.1", Outcome.OTHER_FAILURE, crash)
    assert outcomes(PLAN, *seen)[1] is Outcome.OTHER_FAILURE


def test_a_report_that_quotes_its_failure_decides_by_itself() -> None:
    quoted = Claim(kind=ClaimKind.ERROR, signature=Signature(type="InternalError", message="something else"))
    plan = msgspec.structs.replace(PLAN, claim=quoted)
    assert outcomes(plan, KNOWN, OTHER) == [Outcome.MATCH, Outcome.OTHER_FAILURE]


# ---------------------------------------------------------------------------- a posted call that lacks a needed flag

ILLEGAL = Signature(type="mlir-error", message="failed to legalize operation 'stablehlo.add' that was marked illegal")
NEEDED = Finding(
    kind=FindingKind.API_MOVED,
    summary="1.0 reads this input only with --iree-input-type=mhlo",
    evidence={"name": "--iree-input-type=mhlo", "moved": Moved.NEEDED.value, "moved_in": "1.0"},
)


def _refuse(**changes: object) -> Observation:
    seen = see("1.0", Outcome.INCOMPATIBLE, ILLEGAL)
    return msgspec.structs.replace(seen, **{"toolchain": "iree", "findings": (NEEDED,), **changes})


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (ILLEGAL.message, Outcome.MATCH),
        ("The following illegal operations still remain:", Outcome.MATCH),
        ("failed to legalize operation 'math.cbrt' that was marked illegal", Outcome.INCOMPATIBLE),
        ("no lowering for this gather", Outcome.INCOMPATIBLE),
    ],
)
def test_the_quoted_refusal_of_a_posted_call_is_the_reported_failure(message: str, outcome: Outcome) -> None:
    claim = Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message=message))
    testcase = msgspec.structs.replace(ANY.testcase, toolchain="iree")
    plan = msgspec.structs.replace(ANY, claim=claim, testcase=testcase)
    (seen,) = match_posted_calls(plan, [_refuse()], assumed=False)
    assert seen.outcome is outcome
    assert (seen.answer is Answer.BAD) is (outcome is Outcome.MATCH)
    for kept, assumed in [(_refuse(), True), (_refuse(findings=()), False), (_refuse(variant=Variant.PORTED), False)]:
        assert match_posted_calls(plan, [kept], assumed=assumed) == (kept,)
