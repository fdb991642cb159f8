"""Tests of the search among builds with flaky failures: calibrated confidence, few runs, any skips."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from bench.bisection.channel import bound_runs
from runners.core.bisection.noisy import (
    Conclusion,
    Event,
    Finished,
    Goals,
    Line,
    Rates,
    RunCounts,
    RunNext,
    choose_next,
    conclude_search,
    estimate_rates,
    mix_prior,
    predict_next,
)
from runners.core.protocol import Answer

GOALS = Goals()
GOOD, BAD, SKIP = Answer.GOOD, Answer.BAD, Answer.SKIP


def line_of(size: int, *, introduced: bool = True, weights: Sequence[float] | None = None) -> Line:
    """Builds 0 … size, one commit apart."""
    prior = tuple(weights) if weights is not None else (1 / size,) * size
    return Line(weights=prior, commits=tuple(range(size + 1)), introduced=introduced)


def run(
    truth: Sequence[Answer], *, goals: Goals = GOALS, line: Line | None = None, workers: int = 1, most: int = 400
) -> tuple[Conclusion, list[Event]]:
    """Follow the advice on builds that always answer the same."""
    line = line or line_of(len(truth) - 1, introduced=truth[-1] is BAD)
    events: list[Event] = []
    while len(events) < most:
        step = choose_next(line, goals, events, [1.0] * len(line), workers=workers)
        if isinstance(step, Finished):
            break
        events += [(build, truth[build]) for build in step.builds]
    found = conclude_search(line, goals, events)
    assert not isinstance(found, str), found
    return found, events


def history(size: int, change: int, *, introduced: bool = True) -> list[Answer]:
    before, after = (GOOD, BAD) if introduced else (BAD, GOOD)
    return [before] * change + [after] * (size + 1 - change)


@given(size=st.integers(1, 300), data=st.data(), introduced=st.booleans())
def test_a_steady_change_is_found_exactly(size: int, data: st.DataObject, introduced: bool) -> None:
    """The first changed build is found, verified, in logarithmically many runs, for a regression and for a fix."""
    change = data.draw(st.integers(1, size))
    found, events = run(history(size, change, introduced=introduced))
    assert (found.older, found.newer, found.single) == (change - 1, change, True)
    assert len(events) <= 20 + 2 * math.ceil(math.log2(size + 1)) + 4


@given(data=st.data())
def test_skipped_builds_do_not_make_the_answer_wrong(data: st.DataObject) -> None:
    """The range contains the change, its ends answered accordingly, and the search ends."""
    size = data.draw(st.integers(2, 120))
    change = data.draw(st.integers(1, size))
    truth = history(size, change)
    for build in data.draw(st.sets(st.integers(1, size - 1))):
        truth[build] = SKIP
    found, events = run(truth)
    assert found.older < change <= found.newer
    assert (found.older, GOOD) in events
    assert (found.newer, BAD) in events
    assert len(events) < 120


def test_a_skipped_block_becomes_the_range() -> None:
    """The range ends exactly at the ends of the block, and only some of its builds are run."""
    truth = history(2000, 1000)
    truth[800:1400] = [SKIP] * 600
    found, events = run(truth)
    assert (found.older, found.newer, found.single) == (799, 1400, False)
    assert sum(answer is SKIP for _, answer in events) < 30


def test_ends_are_verified_first() -> None:
    """Ten runs of each end. An end with an unexpected answer ends the search."""
    line = line_of(50)
    events: list[Event] = [(0, GOOD)] * 10 + [(50, BAD)] * 9
    assert choose_next(line, Goals(), events, [1.0] * 51) == RunNext(builds=(50,))
    assert conclude_search(line, Goals(), [(0, GOOD)] * 10 + [(50, GOOD)] * 10) == (
        "the bad end does not fail as reported (0 of 10 runs)"
    )
    assert (
        conclude_search(line, Goals(), [(0, SKIP)] * 2 + [(50, BAD)] * 10) == "the good end cannot run the testcase"
    )
    assert choose_next(line, Goals(), [(0, BAD)] * 10 + [(50, BAD)] * 10, [1.0] * 51) == Finished(
        refused="the good end fails as reported (10 of 10 runs)"
    )


def test_failure_rates_are_conservative() -> None:
    """A rate is never steadier than observed. Ends that fail alike are refused."""
    steady = estimate_rates(RunCounts(fails=10), RunCounts(passes=10))
    assert steady is not None
    assert 0.9 < steady.bad < 1
    assert 0 < steady.good < 0.1
    shaky = estimate_rates(RunCounts(fails=5, passes=5), RunCounts(passes=10))
    assert shaky is not None
    assert shaky.bad < 0.5
    assert estimate_rates(RunCounts(fails=4, passes=6), RunCounts(fails=3, passes=7)) is None


def test_uncertain_rates_get_more_runs() -> None:
    """Two failures of ten against none of ten: more runs of the ends, no refusal yet."""
    line = line_of(50)
    ends: list[Event] = [(0, GOOD)] * 10 + [(50, BAD)] * 2 + [(50, GOOD)] * 8
    step = choose_next(line, Goals(), ends, [1.0] * 51)
    assert isinstance(step, RunNext)
    assert set(step.builds) == {0, 50}


def test_a_prior_helps_and_a_wrong_prior_costs_little() -> None:
    """A right prior shortens the search. With a wrong prior the even share finds the right commit."""
    right = [0.0] * 500
    right[336] = 1.0  # that build 337 is the first changed
    truth = history(500, 337)
    led, few = run(truth, line=line_of(500, weights=mix_prior(right)))
    plain, many = run(truth)
    misled, more = run(history(500, 100), line=line_of(500, weights=mix_prior(right)))
    assert led.newer == plain.newer == 337
    assert misled.newer == 100
    assert len(few) < len(many) <= len(more)
    assert len(more) < len(many) + 12


def test_an_available_build_is_preferred() -> None:
    """The search maximizes information per second: of two equal builds it runs the one without a wait."""
    line = line_of(100)
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    seconds = [600.0] * 101
    seconds[40] = 5.0
    assert choose_next(line, Goals(), ends, seconds) == RunNext(builds=(40,))


def test_workers_run_different_builds() -> None:
    """Three workers cut the belief into four parts."""
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    step = choose_next(line_of(100), Goals(), ends, [1.0] * 101, workers=3)
    assert isinstance(step, RunNext)
    assert [round(build, -1) for build in step.builds] in ([20, 50, 80], [30, 50, 70], [30, 50, 80], [20, 50, 70])


def test_of_several_changes_the_newest_is_the_answer() -> None:
    """bad → good → bad: a build before the answer certainly fails, and is reported as unsteady."""
    line = line_of(100)
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    seen: list[Event] = [*ends, *[(30, BAD)] * 4, *[(60, GOOD)] * 4, *[(61, BAD)] * 3]
    found = conclude_search(line, Goals(), seen)
    assert isinstance(found, Conclusion)
    assert (found.older, found.newer, found.unsteady) == (60, 61, (30,))


def test_a_contradicting_run_is_repeated() -> None:
    """A build whose one run contradicts is rerun before the answer: one wrong run is no second change."""
    line, truth = line_of(100), history(100, 61)
    events: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10 + [(30, BAD)]
    while isinstance(step := choose_next(line, GOALS, events, [1.0] * 101), RunNext):
        events += [(build, truth[build]) for build in step.builds]
    found = conclude_search(line, GOALS, events)
    assert isinstance(found, Conclusion)
    assert (found.newer, found.unsteady) == (61, ())
    assert (30, GOOD) in events


def test_the_next_builds_are_predicted_for_both_answers() -> None:
    """One build for a pass and one for a failure of the build under way."""
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    wanted = predict_next(line_of(100), Goals(), ends, [1.0] * 101, [50])
    assert len(wanted) == 2
    assert wanted[0] < 50 < wanted[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("p", "f", "most"), [(0.8, 0.0, 1.2), (0.5, 0.0, 1.25), (0.8, 0.05, 1.35)])
def test_flaky_runs_cost_little_more_than_the_bound(p: float, f: float, most: float) -> None:
    """At 99 %, over 120 histories of 200 builds: near the channel's bound, and wrong in few histories."""
    rates, size, wrong, runs = Rates(bad=p, good=f), 200, 0, 0
    for trial in range(120):
        chance = random.Random(trial)
        change = chance.randint(1, size)
        line, goals, events = line_of(size), Goals(rates=rates), list[Event]()
        while isinstance(step := choose_next(line, goals, events, [1.0] * (size + 1)), RunNext):
            for build in step.builds:
                fails = chance.random() < (p if build >= change else f)
                events.append((build, BAD if fails else GOOD))
        found = conclude_search(line, goals, events)
        assert isinstance(found, Conclusion)
        wrong += not found.older < change <= found.newer
        runs += len(events)
    assert wrong <= 4  # expected about one; four and more has a chance of a few per cent
    assert runs / 120 < most * bound_runs(size, rates)


def test_only_a_single_verified_commit_is_named() -> None:
    """Two builds several commits apart are a range, at any confidence."""
    line = Line(weights=(0.5, 0.5), commits=(0, 7, 14), introduced=True)
    truth = [GOOD, GOOD, BAD]
    found, _ = run(truth, line=line)
    assert (found.older, found.newer, found.verified, found.single) == (1, 2, True, False)
