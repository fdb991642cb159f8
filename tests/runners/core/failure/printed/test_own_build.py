"""The build that a report is about tells which of two printed programs is the wrong one, where no words do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from runners.core.failure.printed.own_build import find_change, mark_by_own_build
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome
from tests.support.observed import ORDER, PLAN, observe

M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE
OLD = "func.func @f(%a: f32) -> f32 {\n  %0 = unit.scale %a : f32\n  %1 = unit.scale %0 : f32\n  return %1 : f32\n}"
NEW = "func.func @f(%x: f32) -> f32 {\n  %7 = unit.scale %x : f32\n  return %7 : f32\n}"
THIRD = NEW.replace("unit.scale", "unit.other")
SAID = "Two scales are not merged."
FIRST, SECOND, THIRD_BUILD, NEWEST = ORDER[0], ORDER[1], ORDER[2], ORDER[-1]


def print_on(version: str, excerpt: str, outcome: Outcome = S, code: int = 0) -> Observation:
    return observe(version, outcome, ended=Exited(code=code), excerpt=excerpt)


def mark(*seen: Observation, reported: str | None = SECOND, **claim: object) -> list[Outcome]:
    made = Claim(kind=ClaimKind.WRONG_RESULT, told=SAID)
    changed = msgspec.structs.replace(made, **claim)
    plan = msgspec.structs.replace(PLAN, claim=changed, reported=reported)
    return [one.outcome for one in mark_by_own_build(plan, seen)]


def test_builds_are_bad_like_the_reported_one_until_the_program_changes() -> None:
    """The numbers of values tell nothing."""
    seen = (print_on(SECOND, OLD), print_on(THIRD_BUILD, OLD.replace("%0", "%9")), print_on(NEWEST, NEW))
    assert mark(*seen) == [M, M, P]


def test_an_older_build_that_prints_what_the_newest_prints_is_good_and_a_third_program_is_neither() -> None:
    assert mark(print_on(FIRST, NEW), print_on(SECOND, OLD), print_on(NEWEST, NEW)) == [P, M, P]
    assert mark(print_on(FIRST, THIRD), print_on(SECOND, OLD), print_on(NEWEST, NEW)) == [S, M, P]


@pytest.mark.parametrize(
    ("seen", "more"),
    [
        ((print_on(SECOND, OLD), print_on(NEWEST, OLD)), {}),
        ((print_on(SECOND, OLD), print_on(THIRD_BUILD, THIRD), print_on(NEWEST, NEW)), {}),
        ((print_on(SECOND, OLD), print_on(SECOND, NEW), print_on(NEWEST, NEW)), {}),
        ((print_on(SECOND, OLD), print_on(NEWEST, f"[…]\n{NEW}")), {}),
        ((print_on(SECOND, "7"), print_on(NEWEST, "8")), {}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW, code=1)), {}),
        ((print_on(SECOND, OLD, M), print_on(NEWEST, NEW)), {}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"reported": None}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"told": "The loops stay apart."}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"kind": ClaimKind.ERROR}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"actual": THIRD}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"sometimes": True}),
    ],
    ids=[
        "no change",
        "two changes",
        "runs of one build differ",
        "only the end is kept",
        "no program",
        "the newest release fails",
        "another comparison has judged",
        "no build is named",
        "the report speaks of something else",
        "another claim",
        "the report quotes a program",
        "it happens sometimes",
    ],
)
def test_nothing_is_marked_without_one_change_of_what_the_report_speaks_of(
    seen: tuple[Observation, ...], more: dict[str, Any]
) -> None:
    assert mark(*seen, **more) == [one.outcome for one in seen]


def test_the_change_names_the_operations_of_which_the_report_speaks() -> None:
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told=SAID)
    plan = msgspec.structs.replace(PLAN, claim=claim, reported=SECOND)
    change = find_change(plan, (print_on(SECOND, OLD), print_on(NEWEST, NEW)))
    assert change is not None
    assert change.names == ("unit.scale",)
