"""Which issues are said to behave alike, and which are not."""

from __future__ import annotations

import pytest

from bot.tracker.duplicates import ALIKE, MOST_SUGGESTIONS, mark_alike, measure_likeness
from runners.core.protocol import Signature
from tests.bot.tracker.rows import ROW, make_row

assert ROW.failure is not None
ROW_MESSAGE = ROW.failure.message
CRASH = Signature(type="SIGSEGV")


def alike(*rows: object) -> dict[str, tuple[str, ...]]:
    return {row.issue.id: row.like for row in mark_alike(list(rows))}  # type: ignore[arg-type]


def test_the_same_failure_on_the_same_releases_is_alike() -> None:
    assert alike(make_row("1"), make_row("2")) == {"1": ("2",), "2": ("1",)}


@pytest.mark.parametrize(
    "other",
    [
        {"cells": {"0.25.0": "good", "0.26.0": "bad"}},
        {"cells": {"0.27.0": "bad"}},
        {"cells": {"0.25.0": "incompatible", "0.26.0": "timeout"}},
        {"cells": {"0.25.0": "bad", "0.26.0": "incompatible"}},
        {"failure": Signature(type="InternalError", message=f"{ROW_MESSAGE} for Celu")},
        {"fixed_in": "0.27.0"},
        {"regressed_in": "0.26.0"},
        {"toolchain": "iree"},
        {"device": "cuda"},
        {"verdict": "not-reproduced"},
        {"verdict": "invalid-repro"},
        {"failure": None},
        {
            "failure": Signature(
                type="InternalError", message="Check failed: rank mismatch in the broadcast of a shape"
            )
        },
        {"failure": Signature(type="ValueError", message="Check failed: the layout of the operand is not supported")},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_difference_in_behaviour_separates(other: dict[str, object]) -> None:
    assert alike(make_row("1"), make_row("2", **other)) == {"1": (), "2": ()}


def test_other_guilty_passes_separate() -> None:
    assert alike(make_row("1", passes=("A",)), make_row("2", passes=("B",)))["1"] == ()
    assert alike(make_row("1", passes=("A",)), make_row("2", passes=("A",)))["1"] == ("2",)


def test_a_bare_crash_needs_a_pass_or_a_frame() -> None:
    """Two segmentation faults have nothing in common but the signal."""
    one, other = make_row("1", failure=CRASH), make_row("2", failure=CRASH)
    assert measure_likeness(one, other) == 0
    passes = {"failure": CRASH, "passes": ("FuseOps",)}
    assert alike(make_row("1", **passes), make_row("2", **passes))["1"] == ("2",)


def test_one_testcase_is_alike_whatever_its_failure_says() -> None:
    same = {"failure": CRASH, "testcase": "d"}
    assert alike(make_row("1", **same), make_row("2", **same))["1"] == ("2",)


def test_there_are_few_suggestions() -> None:
    rows = [make_row(str(number)) for number in range(10)]
    assert {len(found) for found in alike(*rows).values()} == {MOST_SUGGESTIONS}


def test_likeness_has_no_direction() -> None:
    """A number in one message, such as a size, does not separate."""
    other = make_row("2", failure=Signature(type="InternalError", message=f"{ROW_MESSAGE} 4"))
    assert measure_likeness(ROW, other) == measure_likeness(other, ROW)
    assert measure_likeness(ROW, other) >= ALIKE
