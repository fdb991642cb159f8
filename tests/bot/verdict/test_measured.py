"""Claims about time and memory: the releases are compared with each other, and the values are shown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bot.verdict.evidence import Evidence
from bot.verdict.judge import judge
from bot.verdict.verdict import Verdict, VerdictKind
from runners.core.failure.costs import mark_costly_runs
from runners.core.protocol import Claim, ClaimKind, Outcome
from tests.support.observed import ORDER, PLAN, observe

SLOW = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.SLOW, versions=("1.3",)), reported="1.3")


def judge_times(*seconds: Sequence[float]) -> Verdict:
    """The verdict on runs of 1.0, 1.1, …: one value for each run of the release."""
    seen = [
        observe(version, Outcome.PASS, seconds=value, attempt=i)
        for version, values in zip(ORDER, seconds, strict=False)
        for i, value in enumerate(values, 1)
    ]
    return judge(Evidence(plan=SLOW, observations=mark_costly_runs(SLOW, seen), findings=()))


def test_a_release_that_takes_several_times_as_long_is_a_regression() -> None:
    verdict = judge_times((2.0,), (2.1, 2.2), (30.0, 31.0), (29.0, 30.0))
    assert verdict.kind is VerdictKind.REGRESSION
    assert "1.0 and 1.1: 2.0 s to 2.2 s; 1.2 and 1.3: 29.0 s to 31.0 s" in verdict.reasons


def test_a_newest_release_that_is_fast_again_is_a_fix() -> None:
    assert judge_times((30.0,), (31.0,), (30.0, 32.0), (2.0, 2.0)).kind is VerdictKind.FIXED


def test_a_clean_run_is_no_answer_to_a_claim_of_slowness() -> None:
    verdict = judge_times((2.0,), (2.1,), (2.2,), (2.9, 2.8))
    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert "takes 2.0 s to 2.9 s" in verdict.headline
    assert "no release takes 3 times as long as another" in verdict.headline
