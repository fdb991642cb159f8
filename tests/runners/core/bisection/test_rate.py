"""A rate from few runs comes with the interval in which it lies."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.bisection.rate import MOST_LUCK, compute_interval, count_clean_runs, format_rate


@pytest.mark.parametrize(
    ("times", "runs", "low", "high"),
    [(0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (3, 10, 0.108, 0.603), (1, 2, 0.095, 0.905), (50, 100, 0.404, 0.596)],
)
def test_known_intervals(times: int, runs: int, low: float, high: float) -> None:
    """Against published tables of Wilson's interval."""
    assert list(compute_interval(times, runs)) == pytest.approx([low, high], abs=2e-3)


@given(st.integers(1, 500).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_rate_lies_inside_and_more_runs_narrow_it(seen: tuple[int, int]) -> None:
    """For any counts; four times the runs with the same share is a narrower interval."""
    times, runs = seen
    low, high = compute_interval(times, runs)
    assert 0 <= low <= times / runs + 1e-12
    assert times / runs - 1e-12 <= high <= 1
    closer = compute_interval(4 * times, 4 * runs)
    assert closer[1] - closer[0] < high - low


def test_in_words() -> None:
    """As the headline of a flaky testcase says it."""
    assert format_rate(3, 10) == "3 of 10 runs (95 % interval 11 to 60 %)"
    assert format_rate(5, 5).startswith("5 of 5 runs (95 % interval")
    assert [format_rate(1, 2), format_rate(4, 4)] == ["1 of 2 runs", "4 of 4 runs"]


@pytest.mark.parametrize(("times", "runs", "clean"), [(1, 2, 7), (8, 10, 3), (1, 10, 44), (199, 200, 1)])
def test_clean_runs_that_are_no_luck(times: int, runs: int, clean: int) -> None:
    """At the rate of another build, their probability is 1 % at most, and one run less is more likely."""
    assert count_clean_runs(times, runs) == clean
    assert (1 - times / runs) ** clean <= MOST_LUCK < (1 - times / runs) ** (clean - 1)
