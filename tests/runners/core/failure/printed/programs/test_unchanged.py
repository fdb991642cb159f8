"""A pass that does nothing prints the posted program."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from runners.core.failure.printed.programs.unchanged import mark_by_input
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome, Testcase, TestcaseKind, Variant
from tests.support.observed import ORDER, PLAN, observe

M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE
GIVEN = "func.func @f(%a: f32) -> f32 {\n  %0 = unit.scale %a : f32\n  %1 = unit.scale %0 : f32\n  return %1 : f32\n}"
PRINTED = GIVEN.replace("%0", "%s").replace("%a", "%arg0")
FOLDED = "func.func @f(%arg0: f32) -> f32 {\n  %0 = unit.scale %arg0 : f32\n  return %0 : f32\n}"
MARKED = PRINTED.replace("unit.scale %s", 'unit.scale {kind = "merged"} %s')
SAID = "The pass leaves the two scales as they are."
FIRST, NEWEST = ORDER[0], ORDER[-1]


def print_on(version: str, excerpt: str, outcome: Outcome = S, **more: object) -> Observation:
    return observe(version, outcome, ended=Exited(code=0), excerpt=excerpt, **more)


def mark(*seen: Observation, files: dict[str, str] | None = None, **more: Any) -> list[Outcome]:
    """Return the outcomes after the rule. ``more``: fields of the claim."""
    claim = msgspec.structs.replace(Claim(kind=ClaimKind.WRONG_RESULT, told=SAID), **more)
    steps = (("iree-opt", "--canonicalize", "a.mlir"),)
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files=files or {"a.mlir": GIVEN}, steps=steps
    )
    plan = msgspec.structs.replace(PLAN, claim=claim, testcase=testcase)
    return [one.outcome for one in mark_by_input(plan, seen)]


def test_the_posted_program_is_the_reported_behaviour_and_a_changed_program_is_not() -> None:
    assert mark(print_on(FIRST, PRINTED), print_on(NEWEST, FOLDED)) == [M, P]
    assert mark(print_on(FIRST, FOLDED), print_on(NEWEST, FOLDED)) == [P, P]


def test_an_added_attribute_is_a_change() -> None:
    assert mark(print_on(NEWEST, MARKED)) == [P]


LOOP = """func.func @f(%a: memref<4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c4 {
    %m = unit.scale %x : f32
    unit.store %m, %a[%i] : memref<4xf32>
  }
  return
}"""
SCALE, BEGIN = "    %m = unit.scale %x : f32\n", "  scf.for"
SWAPPED = """func.func @f(%a: f32) -> f32 {
  %c = arith.constant 7.0 : f32
  %0 = unit.add %c, %a : f32
  return %0 : f32
}"""
RANKED = """func.func @f(%a: tensor<4xf32>) -> tensor<?xf32> {
  %0 = unit.abs %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (LOOP, LOOP.replace(SCALE, "").replace(BEGIN, f"{SCALE}{BEGIN}")),
        (SWAPPED, SWAPPED.replace("%c, %a", "%a, %c")),
        (SWAPPED, SWAPPED.replace("7.0", "8.0")),
        (RANKED, RANKED.replace("?", "4")),
    ],
    ids=("hoisted", "swapped", "another-constant", "inferred-type"),
)
def test_the_same_operations_in_other_use_are_no_unchanged_program(given: str, printed: str) -> None:
    """Such a change may be the one that the report misses."""
    assert mark(print_on(FIRST, given), print_on(NEWEST, printed), files={"a.mlir": given}) == [M, S]


def test_equal_constants_that_the_printer_merges_are_no_change() -> None:
    given = LOOP.replace("step %c4", "step %d4").replace(BEGIN, f"  %d4 = arith.constant 4 : index\n{BEGIN}")
    assert mark(print_on(FIRST, LOOP), files={"a.mlir": given}) == [M]


def test_a_missing_transformation_alone_does_not_say_that_nothing_changes() -> None:
    """The extraction reads the posted program as the wrong output. Another change may leave the reported one out."""
    said = "The two scales are not merged."
    assert mark(print_on(FIRST, PRINTED), print_on(NEWEST, FOLDED), told=said, actual=GIVEN) == [M, S]


@pytest.mark.parametrize(
    "more",
    [
        {"told": "The two scales should stay as they are."},
        {"told": "The two scales are wrong."},
        {"actual": FOLDED},
        {"sometimes": True},
        {"kind": ClaimKind.ERROR},
        {"files": {"a.py": "print(1)"}},
        {"files": {"a.mlir": GIVEN, "b.mlir": GIVEN}},
    ],
)
def test_other_reports_are_left_alone(more: dict[str, Any]) -> None:
    """A request for no change, another complaint, another quoted program, and testcases without one program."""
    assert mark(print_on(FIRST, PRINTED), print_on(NEWEST, FOLDED), **more) == [S, S]


def test_a_change_of_which_the_report_does_not_speak_shows_nothing() -> None:
    other = PRINTED.replace("return", "unit.other\n  return")
    assert mark(print_on(NEWEST, other)) == [S]


def test_other_evidence_is_stronger() -> None:
    assert mark(print_on(FIRST, PRINTED, P), print_on(NEWEST, FOLDED)) == [P, S]


def test_a_port_that_may_have_renamed_an_operation_is_left_alone() -> None:
    ported: dict[str, Any] = {"variant": Variant.PORTED, "notation_only": True}
    renamed = PRINTED.replace("unit.scale", "unit.multiply")
    assert mark(print_on(FIRST, renamed, **ported), print_on(NEWEST, FOLDED, **ported)) == [S, P]
