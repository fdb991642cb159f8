"""A report that names a wrong and a right release, and quotes no values, is answered by the outputs of the two."""

from __future__ import annotations

import msgspec
import pytest

from runners.core.failure.printed.named_builds import mark_by_named_builds
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome
from tests.support.observed import PLAN, observe

ASKS = msgspec.structs.replace(
    PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT), reported="1.2", good=("1.0",), order=("1.0", "1.1", "1.2", "1.3")
)
M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE


def print_on(version: str, excerpt: str, **more: object) -> Observation:
    return observe(version, S, ended=Exited(code=0), excerpt=excerpt, **more)


def mark(*seen: Observation, **plan: object) -> list[Outcome]:
    marked = mark_by_named_builds(msgspec.structs.replace(ASKS, **plan), seen)
    return [one.outcome for one in marked]


RIGHT, WRONG = print_on("1.0", "sum 0.25\nmax 3"), print_on("1.2", "sum nan\nmax 3")


def test_other_releases_print_what_one_of_the_two_prints() -> None:
    """A third output says nothing."""
    others = (print_on("1.1", "sum 0.2500001\nmax 3"), print_on("1.3", "sum nan\nmax 3"))
    assert mark(RIGHT, *others, WRONG) == [P, P, M, M]
    assert mark(RIGHT, WRONG, print_on("1.3", "sum 7\nmax 3")) == [P, M, S]


@pytest.mark.parametrize(
    "plan",
    [
        {"claim": Claim(kind=ClaimKind.WRONG_RESULT, actual="sum nan")},
        {"claim": Claim(kind=ClaimKind.ERROR)},
        {"good": ()},
        {"reported": None},
    ],
)
def test_other_reports_are_not_answered_in_this_way(plan: dict[str, object]) -> None:
    assert mark(RIGHT, WRONG, **plan) == [S, S]


@pytest.mark.parametrize(
    "again",
    [print_on("1.2", "sum 5\nmax 3", attempt=2), print_on("1.0", "sum nan\nmax 3", attempt=2)],
)
def test_outputs_that_change_from_run_to_run_tell_nothing(again: Observation) -> None:
    assert set(mark(RIGHT, WRONG, again)) == {S}


def test_equal_outputs_and_other_ends_tell_nothing() -> None:
    assert mark(RIGHT, print_on("1.2", "sum 0.25\nmax 3")) == [S, S]
    assert mark(RIGHT, observe("1.2", S, ended=Exited(code=1), excerpt="sum nan")) == [S, S]
