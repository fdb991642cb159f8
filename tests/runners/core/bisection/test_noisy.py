"""The search between builds: right as often as it says, in as few runs as can be, whatever skips or lies."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

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


@settings(deadline=None, max_examples=60)
@given(size=st.integers(1, 300), data=st.data(), introduced=st.booleans())
def test_a_steady_change_is_found_exactly(size: int, data: st.DataObject, introduced: bool) -> None:
    """Whichever build it came with, and whichever way: that one, verified, in logarithmically many runs."""
    change = data.draw(st.integers(1, size))
    found, events = run(history(size, change, introduced=introduced))
    assert (found.older, found.newer, found.single) == (change - 1, change, True)
    assert len(events) <= 20 + 2 * math.ceil(math.log2(size + 1)) + 4


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_whatever_skips_the_answer_holds_and_ends_in_builds_that_were_seen(data: st.DataObject) -> None:
    """The range contains the change; its ends answered as said; nothing was run in vain for ever."""
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


def test_a_block_that_cannot_answer_is_the_answer() -> None:
    """The range ends exactly where the block does, and not every build of it is tried."""
    truth = history(2000, 1000)
    truth[800:1400] = [SKIP] * 600
    found, events = run(truth)
    assert (found.older, found.newer, found.single) == (799, 1400, False)
    assert sum(answer is SKIP for _, answer in events) < 30


def test_the_ends_are_verified_before_anything_between_is_run() -> None:
    """Ten runs of each; an end that doesn't answer as said ends the search."""
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


def test_failure_rates_are_taken_with_care() -> None:
    """Never steadier than was seen; refused where both ends fail alike."""
    steady = estimate_rates(RunCounts(fails=10), RunCounts(passes=10))
    assert steady is not None
    assert 0.9 < steady.bad < 1
    assert 0 < steady.good < 0.1
    shaky = estimate_rates(RunCounts(fails=5, passes=5), RunCounts(passes=10))
    assert shaky is not None
    assert shaky.bad < 0.5
    assert estimate_rates(RunCounts(fails=4, passes=6), RunCounts(fails=3, passes=7)) is None


def test_rates_that_differ_but_not_surely_are_measured_longer() -> None:
    """Two of ten against none of ten is promising: more runs of the ends, no refusal yet."""
    line = line_of(50)
    ends: list[Event] = [(0, GOOD)] * 10 + [(50, BAD)] * 2 + [(50, GOOD)] * 8
    step = choose_next(line, Goals(), ends, [1.0] * 51)
    assert isinstance(step, RunNext)
    assert set(step.builds) == {0, 50}


def test_a_prior_shortens_the_search_and_a_wrong_one_does_not_spoil_it() -> None:
    """With all belief on the right commit a few runs do; on the wrong one the even share finds the right one."""
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


def test_a_build_at_hand_is_preferred_to_one_that_must_be_made() -> None:
    """Bits for each second: of two builds that teach as much, the one without a wait."""
    line = line_of(100)
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    seconds = [600.0] * 101
    seconds[40] = 5.0
    assert choose_next(line, Goals(), ends, seconds) == RunNext(builds=(40,))


def test_workers_look_at_different_builds() -> None:
    """Three workers cut the belief into four parts."""
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    step = choose_next(line_of(100), Goals(), ends, [1.0] * 101, workers=3)
    assert isinstance(step, RunNext)
    assert [round(build, -1) for build in step.builds] in ([20, 50, 80], [30, 50, 70], [30, 50, 80], [20, 50, 70])


def test_more_than_one_change_is_noticed_and_the_newest_is_the_answer() -> None:
    """bad → good → bad, seen because a build before the answer certainly fails."""
    line = line_of(100)
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    seen: list[Event] = [*ends, *[(30, BAD)] * 4, *[(60, GOOD)] * 4, *[(61, BAD)] * 3]
    found = conclude_search(line, Goals(), seen)
    assert isinstance(found, Conclusion)
    assert (found.older, found.newer, found.unsteady) == (60, 61, (30,))


def test_a_single_run_that_contradicts_is_run_again() -> None:
    """Before an answer is given, the odd one out is asked until it fits: one lying run is no second change."""
    line, truth = line_of(100), history(100, 61)
    events: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10 + [(30, BAD)]
    while isinstance(step := choose_next(line, GOALS, events, [1.0] * 101), RunNext):
        events += [(build, truth[build]) for build in step.builds]
    found = conclude_search(line, GOALS, events)
    assert isinstance(found, Conclusion)
    assert (found.newer, found.unsteady) == (61, ())
    assert (30, GOOD) in events


def test_what_comes_next_either_way_is_told_before_the_answer() -> None:
    """The builds wanted after a pass and after a failure of the one under way."""
    ends: list[Event] = [(0, GOOD)] * 10 + [(100, BAD)] * 10
    wanted = predict_next(line_of(100), Goals(), ends, [1.0] * 101, [50])
    assert len(wanted) == 2
    assert wanted[0] < 50 < wanted[1]


@pytest.mark.parametrize(("p", "f", "most"), [(0.8, 0.0, 1.2), (0.5, 0.0, 1.25), (0.8, 0.05, 1.35)])
def test_lying_runs_cost_little_more_than_they_must(p: float, f: float, most: float) -> None:
    """At 99 %, over 120 histories of 200 builds: near the channel's bound, and wrong in no more than a few."""
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
    """Two builds several commits apart are a range, however sure it is."""
    line = Line(weights=(0.5, 0.5), commits=(0, 7, 14), introduced=True)
    truth = [GOOD, GOOD, BAD]
    found, _ = run(truth, line=line)
    assert (found.older, found.newer, found.verified, found.single) == (1, 2, True, False)
