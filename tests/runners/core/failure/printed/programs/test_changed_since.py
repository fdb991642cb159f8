"""The reported build shows which of two printed programs is the wrong program, if no words do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from runners.core.failure.printed.programs.changed_since import find_change, mark_by_change
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome, Variant
from tests.support.observed import ORDER, PLAN, observe

M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE
OLD = "func.func @f(%a: f32) -> f32 {\n  %0 = unit.scale %a : f32\n  %1 = unit.scale %0 : f32\n  return %1 : f32\n}"
NEW = "func.func @f(%x: f32) -> f32 {\n  %7 = unit.scale %x : f32\n  return %7 : f32\n}"
THIRD = NEW.replace("unit.scale", "unit.other")
SCRIPT = "@R.function\ndef main(x):\n    lv = R.nn.conv2d(x, out_dtype=None)\n    return lv"
SAID = "Two scales are not merged."
FIRST, SECOND, THIRD_BUILD, NEWEST = ORDER[0], ORDER[1], ORDER[2], ORDER[-1]


def print_on(version: str, excerpt: str, outcome: Outcome = S, code: int = 0, **more: object) -> Observation:
    return observe(version, outcome, ended=Exited(code=code), excerpt=excerpt, **more)


def mark(*seen: Observation, **more: Any) -> list[Outcome]:
    """Return the outcomes after the rule. ``more``: fields of the claim, and the reported build."""
    reported = more.pop("reported", SECOND)
    claim = msgspec.structs.replace(Claim(kind=ClaimKind.WRONG_RESULT, told=SAID), **more)
    plan = msgspec.structs.replace(PLAN, claim=claim, reported=reported)
    return [one.outcome for one in mark_by_change(plan, seen)]


def test_builds_are_bad_like_the_reported_one_until_the_program_changes() -> None:
    """The numbers of values do not count."""
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
        ((print_on(SECOND, SCRIPT), print_on(NEWEST, SCRIPT.replace("None", '"void"'))), {"told": "R.nn.conv2d"}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW, variant=Variant.PORTED)), {}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW, code=1)), {}),
        ((print_on(SECOND, OLD), print_on(THIRD_BUILD, NEW, P), print_on(NEWEST, NEW)), {}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"reported": None}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"told": "The loops stay apart."}),
        ((print_on(SECOND, OLD), print_on(NEWEST, NEW)), {"told": "This unit is wrong."}),
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
        "TVMScript, whose printer changes",
        "the newest release runs another text",
        "the newest release fails",
        "another comparison calls a build good",
        "no build is named",
        "the report speaks of something else",
        "the report has the dialect alone",
        "another claim",
        "the report quotes a program",
        "it happens sometimes",
    ],
)
def test_nothing_is_marked_without_one_change_of_what_the_report_speaks_of(
    seen: tuple[Observation, ...], more: dict[str, Any]
) -> None:
    assert mark(*seen, **more) == [one.outcome for one in seen]


def test_a_build_that_prints_the_quoted_program_takes_the_place_of_the_reported_one() -> None:
    seen = (print_on(FIRST, OLD, M), print_on(SECOND, THIRD), print_on(THIRD_BUILD, NEW), print_on(NEWEST, NEW))
    assert mark(*seen, actual=OLD) == [M, S, S, S]  # two changes
    assert mark(seen[0], *seen[2:], actual=OLD) == [M, P, P]
    assert mark(print_on(FIRST, OLD, M), print_on(SECOND, OLD), print_on(NEWEST, NEW), actual=OLD) == [M, M, P]


def test_a_quoted_program_with_gaps_leaves_the_word_to_the_reported_build() -> None:
    seen = (print_on(SECOND, OLD), print_on(NEWEST, NEW))
    assert mark(*seen, actual="%0 = unit.scale ...\n...\nreturn %1") == [M, P]


def test_the_change_names_the_operations_of_which_the_report_speaks() -> None:
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told=SAID)
    plan = msgspec.structs.replace(PLAN, claim=claim, reported=SECOND)
    change = find_change(plan, (print_on(SECOND, OLD), print_on(NEWEST, NEW)))
    assert change is not None
    assert change.names == ("unit.scale",)


def test_an_operation_that_only_moved_is_a_change() -> None:
    old, new = "unit.region {\n  unit.a %0\n}\nunit.scale %0", "unit.scale %0\nunit.region {\n  unit.a %0\n}"
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT, told=SAID), reported=SECOND)
    moved = find_change(plan, (print_on(SECOND, old), print_on(NEWEST, new)))
    assert moved is not None
    assert moved.is_move
    assert moved.names == ("unit.scale",)


@pytest.mark.parametrize(("said", "names"), [("div and mul stay", ("arith.divui",)), ("it stays", ())])
def test_an_arithmetic_operation_is_named_without_its_type(said: str, names: tuple[str, ...]) -> None:
    plan = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT, told=said), reported=SECOND)
    old, new = "unit.a %0\n%2 = arith.divui %0, %1\nunit.end %2", "unit.a %0\nunit.end %1"
    change = find_change(plan, (print_on(SECOND, old), print_on(NEWEST, new)))
    assert (change.names if change is not None else ()) == names
