"""A report that shows rows of values, and whose words give them no role, is answered by the reported build."""

from __future__ import annotations

import time

import msgspec
import pytest

from runners.core.failure.printed.shown_values import is_shown, mark_by_shown_values
from runners.core.protocol import Claim, ClaimKind, Exited, Observation, Outcome
from tests.support.observed import PLAN, observe

M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE
TABLE = ("0 1 2 3", "53 47 65 10", "0 4 60 9")
"""The columns of a table: rows, what is expected, what is printed."""
WRONG, RIGHT = "result[0]: hal.buffer_view\n4xi32=0 4 60 9", "result[0]: hal.buffer_view\n4xi32=53 47 65 10"


def print_on(version: str, excerpt: str, **more: object) -> Observation:
    return observe(version, S, ended=Exited(code=0), excerpt=excerpt, **more)


def mark(
    *seen: Observation, shown: tuple[str, ...] = TABLE, code: str = "", named: bool = True, **claim: object
) -> list[Outcome]:
    testcase = msgspec.structs.replace(PLAN.testcase, files={"a.py": code})
    wrong = Claim(kind=ClaimKind.WRONG_RESULT, shown=shown)
    plan = msgspec.structs.replace(
        PLAN,
        claim=msgspec.structs.replace(wrong, **claim),
        testcase=testcase,
        reported="1.0" if named else None,
        order=("1.0", "1.1"),
    )
    return [one.outcome for one in mark_by_shown_values(plan, seen)]


def test_what_the_reported_build_prints_is_wrong_and_the_other_row_is_right() -> None:
    assert mark(print_on("1.0", WRONG), print_on("1.1", RIGHT)) == [M, P]
    assert mark(print_on("1.0", WRONG), print_on("1.1", WRONG)) == [M, M]
    assert mark(print_on("1.0", WRONG), print_on("1.1", "4xi32=7 7 7 8")) == [M, S]


def test_a_report_without_a_build_may_mean_any() -> None:
    """All builds print the same: each of them is the reported one."""
    assert mark(print_on("1.0", WRONG), print_on("1.1", WRONG), named=False) == [M, M]
    assert mark(print_on("1.0", WRONG), print_on("1.1", RIGHT), named=False) == [S, S]


def test_two_other_rows_and_rows_of_the_testcase_are_not_what_is_expected() -> None:
    assert mark(print_on("1.0", WRONG), print_on("1.1", RIGHT), shown=(*TABLE, "1 5 60 9")) == [M, S]
    assert mark(print_on("1.0", WRONG), print_on("1.1", RIGHT), code="[53, 47, 65, 10]") == [M, S]


@pytest.mark.parametrize(
    "claim",
    [
        {"kind": ClaimKind.ERROR},
        {"shown": ()},
        {"shown": ("0 4",)},
        {"shown": ("4 60 8", "53 47 65 10")},
        {"shown": ("0 4 60 9", "53 47")},
    ],
    ids=["another claim", "nothing", "by chance", "another value", "alone"],
)
def test_other_reports_are_not_answered_in_this_way(claim: dict[str, object]) -> None:
    assert mark(print_on("1.0", WRONG), print_on("1.1", RIGHT), **claim) == [S, S]  # type: ignore[arg-type]  # fields of the claim


def test_a_run_that_has_an_answer_and_runs_that_differ_decide_nothing() -> None:
    assert mark(print_on("1.0", WRONG), observe("1.1", P, excerpt=RIGHT)) == [S, P]
    assert mark(print_on("1.0", WRONG), print_on("1.0", RIGHT, attempt=2)) == [S, S]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("3.14", "3.1415901", True),
        ("3.15", "3.1415901", False),
        ("1.0e-01", "0.1", True),
        ("16777216", "16777217", False),
        ("3", "3.0", True),
        ("nan", "NaN", True),
        ("True", "False", False),
        ("0.1", "True", False),
    ],
)
def test_a_value_may_be_shown_with_fewer_digits(shown: str, printed: str, same: bool) -> None:
    assert is_shown(shown, printed) is same


def test_a_long_output_of_equal_values_is_compared_in_time() -> None:
    began = time.process_time()
    shown = tuple(f"{'1 ' * 60}{at} 3" for at in range(2, 40))
    assert mark(print_on("1.0", "1 " * 20_000), shown=shown) == [S]
    assert time.process_time() - began < 5
