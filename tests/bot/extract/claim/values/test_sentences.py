"""A sentence that names a printed and an expected value gives both, and no other sentence does."""

from __future__ import annotations

import pytest

from bot.extract.claim.values.sentences import ValuePair, find_printed_values, find_same_form, find_value_pair


@pytest.mark.parametrize(
    ("sentence", "printed", "expected"),
    [
        ("This returns `1.0` when it should return `4.0`.", "1.0", "4.0"),
        ("It gives `[1 nan nan]` but `[1 2 3]` is expected.", "[1 nan nan]", "[1 2 3]"),
        ("The output is 3 instead of 4.", "3", "4"),
        ("Expected 4, got 3.", "3", "4"),
        ("I get -1 where NumPy gives 255.", "-1", "255"),
        ("The result should be [0, 1], but [1, 0] comes out.", "[1, 0]", "[0, 1]"),
        ("prints `nan`, NumPy says `0.5`", "nan", "0.5"),
        ("the program prints 7 although 8 is right", "7", "8"),
        ("Actual: 3\nExpected: 4", "3", "4"),
        ("- expected result: `[2, 2]`\n- got: `[2, 3]`", "[2, 3]", "[2, 2]"),
        ("returns 0 rather than 12", "0", "12"),
        ("we see 5.0; correct would be 6.0", "5.0", "6.0"),
        ("It prints 3, not 4.", "3", "4"),
        ("numpy: 2.5\ntvm result: nan", "nan", "2.5"),
        ("Instead of 4 it returns 5.", "5", "4"),
        ("The result is 4xf32=8 -NAN 9 2 where 4xf32=8 1 9 2 is right.", "4xf32=8 -NAN 9 2", "4xf32=8 1 9 2"),
        ("It prints 7 3 instead of 3 7.", "7 3", "3 7"),
        ("Expand a (3,1) tensor to [1,3], expected shape (1,3) and tvm gives (3, 3).", "(3, 3)", "(1,3)"),
    ],
)
def test_both_values_of_a_sentence_are_read(sentence: str, printed: str, expected: str) -> None:
    assert find_value_pair(sentence) == ValuePair(printed, expected)


def test_values_that_sentences_call_printed_are_listed() -> None:
    said = "The function just sees 0.0. I'd expect 3.0 and 6.0. It prints 7.5 for the second."
    assert find_printed_values(said) == {"0.0", "7.5"}


@pytest.mark.parametrize(
    "sentence",
    [
        "I use version 3.4.0 with Python 3.11.",
        "The shape is (3, 4) and the axis is 1.",
        "It takes 3 s on 0.26 and 5 s on 0.27.",
        "It gives wrong values on 3.10, and correct ones on 3.8.",
        "With N=4 it works, with N=5 it fails.",
        "Change 3 to 4 and it works.",
        "The maximum absolute difference is 0.5 and the tolerance is 0.001.",
        "It shows `sizes = [64]` in 3.10.0 (and `tiles = [[64], [4]]` in the older releases that I have).",
        "It prints 3.",
        "Expected 4.",
        "Expected 3 7 here.",
        "Expected result of blur(24,10) is 3.",
        "It should call pad(1, 2) and not pad(2, 1).",
        "The schedule yields `1` for the first steps and `0.97` later.",
        "It prints 4, as expected: 4.",
        "The pass produces `rows = 1` and `columns = 1`, which is rejected.",
        "",
        "If y is a constant 2.0 in the IR, the result is right (56.25 …).",
    ],
)
def test_other_figures_are_no_pair(sentence: str) -> None:
    assert find_value_pair(sentence) is None


@pytest.mark.parametrize(
    ("known", "text", "other"),
    [
        ("4xf32=1024 -27 1 0.2", "Output of the run: `4xf32=1024 NAN -NAN 0.2`", "4xf32=1024 NAN -NAN 0.2"),
        ("1x1x3xf32=[[1.5 3.5 5]]", "it is 1x1x3xf32=[[1.5 3.5 2.5]] here", "1x1x3xf32=[[1.5 3.5 2.5]]"),
        ("sum: 3 of 4", "We see sum: 5 of 4.", "sum: 5 of 4"),
        ("sum: 3 of 4", "We see sum: 3 of 4.", ""),
        ("3 4", "We see 5 6.", ""),
        ("done", "done", ""),
    ],
)
def test_an_output_of_the_same_form_is_found(known: str, text: str, other: str) -> None:
    assert find_same_form(known, text) == other
