"""Tests of the three-valued search: its promises hold for all skips and all orders of answers."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, strategies as st

from runners.core.bisection.releases import (
    choose_between_failures,
    choose_probes,
    combine_attempts,
    count_changes,
    find_fix,
    find_introduction,
    list_certain_probes,
    list_deciding,
)
from runners.core.protocol import Answer

GOOD, BAD, SKIP = Answer.GOOD, Answer.BAD, Answer.SKIP


def run_search(truth: list[Answer], start: list[int]) -> tuple[list[str], dict[str, Answer]]:
    """Probe as the executor does, until no run can add information."""
    order = [f"1.{i}" for i in range(len(truth))]
    answers = {order[i]: truth[i] for i in start}
    while probes := choose_probes(order, answers):
        for version in probes:
            assert version not in answers, "a build was probed twice"
            answers[version] = truth[int(version.partition(".")[2])]
    return order, answers


def monotone(before: Answer, after: Answer) -> Callable[[int, int], list[Answer]]:
    return lambda size, change: [before] * change + [after] * (size - change)


@given(size=st.integers(2, 40), data=st.data())
def test_an_introduced_failure_is_bracketed(size: int, data: st.DataObject) -> None:
    """Good before, bad after: the edge is exactly the change, after logarithmically many probes."""
    change = data.draw(st.integers(1, size - 1))
    order, answers = run_search(monotone(GOOD, BAD)(size, change), [0, size - 1])
    edge = find_introduction(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == (order[change - 1], order[change])
    assert edge.is_narrowed
    assert len(answers) <= 3 + size.bit_length()


@given(size=st.integers(2, 40), data=st.data())
def test_a_fix_is_bracketed(size: int, data: st.DataObject) -> None:
    """Bad before, good after: the last bad and the first good build are neighbours."""
    change = data.draw(st.integers(1, size - 1))
    order, answers = run_search(monotone(BAD, GOOD)(size, change), [0, size - 1])
    edge = find_fix(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == (order[change - 1], order[change])


@given(truth=st.lists(st.sampled_from([GOOD, BAD, SKIP]), min_size=1, max_size=25), data=st.data())
def test_edges_hold_for_any_history(truth: list[Answer], data: st.DataObject) -> None:
    """The ends of an edge answered accordingly, all builds between were skipped, and the search ends."""
    start = sorted(data.draw(st.sets(st.integers(0, len(truth) - 1), max_size=3)))
    order, answers = run_search(truth, start)
    came, went = find_introduction(order, answers), find_fix(order, answers)
    if BAD in truth and went is None and came is None:
        assert BAD not in answers.values()
    for edge, older, newer in ((came, GOOD, BAD), (went, BAD, GOOD)):
        if edge is None:
            continue
        assert edge.newer is None or answers[edge.newer] is newer
        assert edge.older is None or answers[edge.older] is older
        assert edge.older is not None or edge.newer is not None
        assert all(answers[version] is SKIP for version in edge.skipped)
        assert edge.is_narrowed


def test_a_failure_of_one_middle_release_is_found() -> None:
    """Without a bad build, the search runs every build."""
    truth = [GOOD] * 7 + [BAD] + [GOOD] * 8
    order, answers = run_search(truth, [0, 15])
    assert answers[order[7]] is BAD
    came, went = find_introduction(order, answers), find_fix(order, answers)
    assert came is not None
    assert went is not None
    assert (came.older, came.newer, went.older, went.newer) == ("1.6", "1.7", "1.7", "1.8")


@given(size=st.integers(1, 30), answer=st.sampled_from([GOOD, SKIP]), most=st.integers(1, 5), data=st.data())
def test_without_a_bad_build_the_next_builds_are_those_of_a_search_one_by_one(
    size: int, answer: Answer, most: int, data: st.DataObject
) -> None:
    """As long as no build is bad, builds that run side by side cost no further run."""
    order = [f"1.{i}" for i in range(size)]
    answers = dict.fromkeys(data.draw(st.sets(st.sampled_from(order))), answer)
    together = choose_probes(order, answers, most=most)
    for version in together:
        assert choose_probes(order, answers) == (version,)
        answers[version] = answer
    assert len(together) == most or len(answers) == size


def test_the_older_of_two_possible_fixes_comes_first() -> None:
    """A reported failure is mostly fixed soon; the newer of two possible introductions is nearer to the report."""
    order = ["a", "b", "c", "d"]
    assert choose_probes(order, {"a": BAD, "d": GOOD}) == ("b",)
    assert choose_probes(order, {"a": GOOD, "d": BAD}) == ("c",)


def test_builds_between_two_that_lack_the_api_are_not_run() -> None:
    """Without a failing build, each other build would be run."""
    order, skipped = tuple("abcdefgh"), {"a": GOOD, "d": SKIP, "h": SKIP}
    assert choose_probes(order, skipped, most=8, gone={"d", "h"}) == ("c", "b")
    assert set(choose_probes(order, skipped, most=8)) == {"b", "c", "e", "f", "g"}
    assert choose_probes(order, skipped | {"b": GOOD, "c": GOOD}, gone={"d", "h"}) == ()


def test_a_skipped_build_stays_in_the_range() -> None:
    """A build that cannot answer is never named as an end."""
    order, answers = run_search([GOOD, GOOD, SKIP, SKIP, BAD, BAD], [0, 5])
    edge = find_introduction(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer, edge.skipped) == ("1.1", "1.4", ("1.2", "1.3"))


def test_a_fix_is_found_although_the_newest_builds_skip() -> None:
    """Bad, then good for one release, then an API that moved: the search finds the good release."""
    order, answers = run_search([BAD] * 4 + [GOOD] + [SKIP] * 11, [3, 15, 0])
    edge = find_fix(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == ("1.3", "1.4")
    assert len(answers) <= 8


def test_the_oldest_bad_build_is_found_although_older_builds_skip() -> None:
    """Skip, then bad: the first bad build is exact, found by halving."""
    order, answers = run_search([SKIP] * 6 + [BAD] * 10, [0, 15])
    edge = find_introduction(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == (None, "1.6")
    assert len(answers) <= 6


def test_disagreeing_attempts_are_a_skip() -> None:
    """One good and one bad run of the same build are no evidence for either."""
    assert combine_attempts([GOOD, BAD]) is SKIP
    assert combine_attempts([BAD, SKIP, BAD]) is BAD
    assert combine_attempts([]) is SKIP


def test_changes_are_counted_across_skips() -> None:
    """bad → good → bad has two changes."""
    order = ["a", "b", "c", "d"]
    assert count_changes(order, {"a": BAD, "b": GOOD, "c": SKIP, "d": BAD}) == 2


@given(st.integers(3, 40), st.data())
def test_no_wide_gap_between_failing_builds_is_left(size: int, data: st.DataObject) -> None:
    """At the end, at most two untested builds lie between two tested builds."""
    order = [str(n) for n in range(size)]
    picked = data.draw(st.sets(st.sampled_from(order), min_size=1))
    answers = dict.fromkeys({order[0], order[-1], *picked}, Answer.BAD)
    while wanted := choose_between_failures(order, answers):
        assert not set(wanted) & answers.keys()
        answers |= dict.fromkeys(wanted, Answer.BAD)
    untested = "".join(" " if version in answers else "x" for version in order)
    assert max(map(len, untested.split()), default=0) < 3
    assert choose_between_failures(order, {**answers, order[1]: Answer.GOOD}) == ()
    assert choose_between_failures(order, dict.fromkeys((order[0], order[-1]), Answer.SKIP)) == ()


@given(data=st.data())
def test_a_certain_probe_is_chosen_whatever_the_pending_builds_answer(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 12))
    order = [f"1.{at}" for at in range(size)]
    answer = st.sampled_from([GOOD, BAD, SKIP])
    answers = data.draw(st.dictionaries(st.sampled_from(order), answer))
    unknown = [one for one in order if one not in answers]
    pending = data.draw(st.sets(st.sampled_from(unknown))) if unknown else set()
    probes = list_certain_probes(order, answers, pending)
    known = answers | {one: data.draw(answer) for one in pending}
    assert set(probes) <= set(choose_probes(order, known))


def test_a_probe_between_a_failing_and_a_newer_clean_build_is_certain_beside_the_oldest() -> None:
    """The oldest build cannot change where the fix lies. A build between the two can."""
    order = ["1.0", "1.1", "1.2", "1.3", "1.4"]
    assert list_certain_probes(order, {"1.1": BAD, "1.4": GOOD}, {"1.0"}) == ("1.2",)
    assert list_certain_probes(order, {"1.1": BAD, "1.4": GOOD}, {"1.0", "1.3"}) == ()
    assert list_certain_probes(order, {"1.4": GOOD}, {"1.0", "1.1"}) == ()


def test_the_oldest_failing_build_decides_nothing_beside_a_change() -> None:
    order = ["1.0", "1.1", "1.2"]
    assert list_deciding(order, {"1.0": BAD, "1.1": BAD, "1.2": GOOD}) == ("1.1", "1.2")
    assert list_deciding(order, {"1.0": BAD, "1.1": BAD, "1.2": BAD}) == ("1.2",)
    assert list_deciding(order, {"1.0": GOOD, "1.1": BAD, "1.2": BAD}) == ("1.0", "1.1", "1.2")
