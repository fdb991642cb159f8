"""The search keeps its promises whatever is skipped and in whatever order answers arrive."""

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
)
from runners.core.protocol import Answer

GOOD, BAD, SKIP = Answer.GOOD, Answer.BAD, Answer.SKIP


def run_search(truth: list[Answer], start: list[int]) -> tuple[list[str], dict[str, Answer]]:
    """Probe as the executor does, until nothing more can be learned."""
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
    """Good before, bad after: the edge is exactly the change, found in logarithmically many probes."""
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
def test_any_history_is_bracketed_truthfully(truth: list[Answer], data: st.DataObject) -> None:
    """Whatever the history: ends of an edge answered as said, everything between was skipped, and it ends."""
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


def test_without_a_bad_build_every_build_is_looked_at() -> None:
    """A failure that lives in one middle release only is found."""
    truth = [GOOD] * 7 + [BAD] + [GOOD] * 8
    order, answers = run_search(truth, [0, 15])
    assert answers[order[7]] is BAD
    came, went = find_introduction(order, answers), find_fix(order, answers)
    assert came is not None
    assert went is not None
    assert (came.older, came.newer, went.older, went.newer) == ("1.6", "1.7", "1.7", "1.8")


def test_a_skipped_build_stays_in_the_range() -> None:
    """A build that cannot answer is never named as an end."""
    order, answers = run_search([GOOD, GOOD, SKIP, SKIP, BAD, BAD], [0, 5])
    edge = find_introduction(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer, edge.skipped) == ("1.1", "1.4", ("1.2", "1.3"))


def test_a_fix_is_found_although_the_newest_builds_cannot_run_it() -> None:
    """Bad, then good for one release, then an API that moved: the good release is looked for and found."""
    order, answers = run_search([BAD] * 4 + [GOOD] + [SKIP] * 11, [3, 15, 0])
    edge = find_fix(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == ("1.3", "1.4")
    assert len(answers) <= 8


def test_how_far_back_it_goes_is_told_even_when_older_builds_cannot_run_it() -> None:
    """Skip, then bad: the first bad build is exact, found by halving."""
    order, answers = run_search([SKIP] * 6 + [BAD] * 10, [0, 15])
    edge = find_introduction(order, answers)
    assert edge is not None
    assert (edge.older, edge.newer) == (None, "1.6")
    assert len(answers) <= 6


def test_attempts_that_disagree_answer_nothing() -> None:
    """One good and one bad run of the same build are no evidence for either."""
    assert combine_attempts([GOOD, BAD]) is SKIP
    assert combine_attempts([BAD, SKIP, BAD]) is BAD
    assert combine_attempts([]) is SKIP


def test_an_unsteady_history_is_noticed() -> None:
    """bad → good → bad has two changes, and skips do not hide them."""
    order = ["a", "b", "c", "d"]
    assert count_changes(order, {"a": BAD, "b": GOOD, "c": SKIP, "d": BAD}) == 2


@given(st.integers(3, 40), st.data())
def test_between_failing_builds_no_wide_gap_is_left(size: int, data: st.DataObject) -> None:
    """Asked until it asks for nothing, every build has been looked at or is next to three at most that were not."""
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
