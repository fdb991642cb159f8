"""A release took too much only beside a release that took several times less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.failure.costs import mark_costly_runs, measure_releases
from runners.core.protocol import Answer, Claim, ClaimKind, Observation, Outcome, Variant
from tests.support.observed import ORDER, PLAN, observe

SLOW = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.SLOW))
MEMORY = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.MEMORY))


def time(**seconds: float) -> list[Observation]:
    """Clean runs of 1.0, 1.1, … in the order of the arguments."""
    pairs = zip(ORDER, seconds.values(), strict=False)
    return [observe(version, Outcome.PASS, seconds=value) for version, value in pairs]


def find_worse(seen: Sequence[Observation]) -> set[str]:
    return {one.version for one in mark_costly_runs(SLOW, seen) if one.answer is Answer.BAD}


@pytest.mark.parametrize(
    ("seconds", "worse"),
    [
        ({"a": 2, "b": 2.2, "c": 20, "d": 21}, {"1.2", "1.3"}),
        ({"a": 20, "b": 21, "c": 2, "d": 2}, {"1.0", "1.1"}),
        ({"a": 2, "b": 4, "c": 7, "d": 5}, set()),
        ({"a": 2, "b": 9, "c": 2, "d": 9}, set()),
        ({"a": 0.1, "b": 0.1, "c": 0.9, "d": 0.9}, set()),
        ({"a": 30}, set()),
    ],
)
def test_worse_releases_lie_on_one_side_of_a_clear_change(seconds: Mapping[str, float], worse: set[str]) -> None:
    assert find_worse(time(**seconds)) == worse


@pytest.mark.parametrize(("reported", "worse"), [("1.1", {"1.1", "1.2"}), ("1.0", set()), (None, set())])
def test_a_stretch_of_slow_releases_in_the_middle_counts_with_the_reported_one(
    reported: str | None, worse: set[str]
) -> None:
    """Without the reported release, slow runs between quick ones may be noise."""
    plan = msgspec.structs.replace(SLOW, reported=reported)
    marked = mark_costly_runs(plan, time(a=1.5, b=25, c=60, d=1))
    assert {one.version for one in marked if one.answer is Answer.BAD} == worse


def test_one_quick_rerun_of_a_slow_release_takes_the_marks_back() -> None:
    """The difference between two runs of one build is noise, and so may be the difference between two releases."""
    seen = [*time(a=2, b=2, c=20, d=20), observe("1.3", Outcome.PASS, seconds=3.0, attempt=2)]
    assert find_worse(seen) == set()


def test_memory_is_compared_like_time() -> None:
    seen = [
        observe(v, Outcome.PASS, peak_bytes=size << 20) for v, size in zip(ORDER, (150, 160, 900, 950), strict=True)
    ]
    marked = mark_costly_runs(MEMORY, seen)
    assert [one.answer for one in marked] == [Answer.GOOD, Answer.GOOD, Answer.BAD, Answer.BAD]
    assert marked[2].why == "uses 900 MiB, and 160 MiB at most on 1.0 to 1.1"


def test_only_runs_of_the_posted_testcase_count() -> None:
    port = observe("1.3", Outcome.PASS, seconds=60.0, variant=Variant.PORTED)
    crash = observe("1.3", Outcome.OTHER_FAILURE, seconds=60.0)
    assert find_worse([*time(a=2, b=2), port, crash]) == set()


def test_a_run_that_reached_the_limit_is_the_failure_already() -> None:
    limit = observe("1.3", Outcome.MATCH, seconds=60.0)
    seen = [*time(a=2, b=2, c=20), limit]
    assert list(mark_costly_runs(SLOW, seen)) == seen


@given(st.lists(st.tuples(st.sampled_from(ORDER), st.floats(0, 1e4)), max_size=8))
def test_marks_hold_for_every_run_and_measuring_again_changes_nothing(runs: list[tuple[str, float]]) -> None:
    seen = [observe(v, Outcome.PASS, seconds=s, attempt=i) for i, (v, s) in enumerate(runs)]
    marked = mark_costly_runs(SLOW, seen)
    bad = [one.seconds for one in marked if one.answer is Answer.BAD]
    good = [one.seconds for one in marked if one.answer is Answer.GOOD]
    assert not bad or (good and min(bad) >= 3 * max(good))
    assert mark_costly_runs(SLOW, marked) == marked
    assert measure_releases(SLOW, marked) == measure_releases(SLOW, seen)
    assert list(mark_costly_runs(PLAN, seen)) == seen
