"""Two failed checks of arrays: the same sentence stands above all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.failure.array_mismatch import extract_figures, parse_mismatch
from runners.core.failure.compare import SAME, compare_signatures
from runners.core.failure.parse import parse_signature
from runners.core.protocol import Signature
from runners.toolchains import ALL_FAILURES

HEADER = "AssertionError: \nNot equal to tolerance rtol=1e-05, atol=0\n\n"
VALUES = """\
Mismatched elements: {off} / 12 ({share}%)
First 5 mismatches are at indices:
 [0]: 1.5 (ACTUAL), 1.25 (DESIRED)
Max absolute difference among violations: 3.
Max relative difference among violations: {relative}
 ACTUAL: array([1, 2], dtype=int32)
"""
NAN = "nan location mismatch:\n ACTUAL: array([1., 0.], dtype=float32)\n"
SHAPES = "(shapes (4, 1), (4,) mismatch)\n ACTUAL: array([[6.]])\n"
ROUNDED = VALUES.format(off=12, share=100, relative=0.031)
OTHER_NUMBERS = VALUES.format(off=9, share=75, relative=3.5)
GARBAGE = VALUES.format(off=9, share=75, relative="1.2e+31")


def seen(below: str, header: str = HEADER) -> Signature:
    found = parse_signature(header + below, ALL_FAILURES)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reported", "observed", "same"),
    [
        (ROUNDED, ROUNDED.replace("0.031", "0.027").replace("12 / 12", "11 / 12"), True),
        (OTHER_NUMBERS, GARBAGE, True),  # memory that nobody wrote has other contents each time
        (ROUNDED, OTHER_NUMBERS, False),
        (ROUNDED, NAN, False),
        (NAN, "x and y nan location mismatch:\n x: array([1.])\n", True),  # numpy 1
        (SHAPES, ROUNDED, False),
        (SHAPES, SHAPES.replace("4", "7"), True),
        (NAN, NAN.replace("nan", "inf"), False),
    ],
)
def test_kind_and_size_distinguish_differences(reported: str, observed: str, same: bool) -> None:
    """Shapes, NaN, infinity or values; and values nearly right or not at all. Figures that move a little do not."""
    assert (compare_signatures(seen(reported), seen(observed), ALL_FAILURES).score >= SAME) is same
    assert (compare_signatures(seen(observed), seen(reported), ALL_FAILURES).score >= SAME) is same


def test_the_name_of_the_check_is_no_part_of_the_failure() -> None:
    """A testcase rewritten from one of numpy's checks to another fails in the same way."""
    equal = HEADER.replace("Not equal to tolerance rtol=1e-05, atol=0", "Arrays are not equal")
    assert compare_signatures(seen(OTHER_NUMBERS), seen(OTHER_NUMBERS, equal), ALL_FAILURES).score >= SAME
    assert compare_signatures(seen(NAN), seen(OTHER_NUMBERS, equal), ALL_FAILURES).score < SAME


def test_a_report_without_figures_still_matches() -> None:
    """The report has only the header: no figure contradicts the match."""
    bare = Signature(type="AssertionError", message="Not equal to tolerance rtol=1e-05, atol=0")
    assert compare_signatures(bare, seen(NAN), ALL_FAILURES).score >= SAME


def test_an_assertion_of_another_kind_has_no_figures() -> None:
    """Words that a testcase prints itself are compared as words."""
    assert parse_mismatch("Mismatched shapes: 3 / 16 of them") is None
    assert parse_mismatch("the model is wrong | Mismatched elements: 3 / 16 (18.8%)") is None


PIECES = st.sampled_from(
    ["Mismatched elements: ", "3 / 0", "9" * 30, " / ", "(shapes (", "1, ", ") mismatch)", "nan"]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_any_figures_are_read_without_failing(text: str) -> None:
    """Zero of zero, more than all, endless numbers: the share is 0 … 1 or None."""
    for message in (f"Arrays are not equal | {text}", extract_figures(text.splitlines())):
        found = parse_mismatch(message)
        assert found is None or found.share is None or found.share >= 0


def test_an_empty_array_has_no_share() -> None:
    """An empty array that differs: no division by zero of ours."""
    found = parse_mismatch("Arrays are not equal | Mismatched elements: 0 / 0 (nan%) | Max relative difference: nan")
    assert found is not None
    assert found.share is None
