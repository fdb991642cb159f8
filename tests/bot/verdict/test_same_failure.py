"""The same failure on two builds gets the same answer, if the report quotes none."""

from __future__ import annotations

import msgspec
import pytest

from bot.verdict.same_failure import match_same_failures
from runners.core.protocol import Claim, ClaimKind, Observation, Outcome, Plan, Signature
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
