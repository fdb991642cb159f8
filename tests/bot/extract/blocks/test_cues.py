"""The sentence before a block tells what the block is."""

from __future__ import annotations

import pytest

from bot.extract.blocks.sections import Cue, read_cue


@pytest.mark.parametrize(
    "intro",
    [
        "Every primitive succeeds, the build succeeds, and part of the output is wrong.",
        "It compiles without a warning and runs, but the values are garbage:",
        "This passes the verifier, yet the result differs from NumPy.",
        "No errors, however the second row is not correct.",
    ],
)
def test_a_silent_failure_is_no_control(intro: str) -> None:
    assert read_cue(intro) is not Cue.WORKS


@pytest.mark.parametrize(
    "intro",
    [
        "The following works fine.",
        "This version works fine, while the one above is wrong:",
        "With float32 it succeeds:",
        "This runs fine but the first one gives wrong values:",
    ],
)
def test_a_control_stays_a_control_beside_a_wrong_variant(intro: str) -> None:
    assert read_cue(intro) is Cue.WORKS


@pytest.mark.parametrize(
    "intro",
    [
        *(
            "expected `7xi32=1`, we see",
            "I expected `1`, but I get:",
            "should be 1; it prints",
            "I expect 2 of them (one at each end), the printed number is",
            "Result with 3.10.0:",
            "Output (3.2.0):",
        ),
        "`iree-opt --tile` rewrites it to two nested `scf.for` with inserts:",
        *("The last line of the body:", "Relevant part of the printed function:"),
        *("after (`iree-opt a.mlir`)", "After:", "First array is TVM, second is what it should be:"),
    ],
)
def test_the_last_clause_announces_the_block(intro: str) -> None:
    assert read_cue(intro) is Cue.OUTPUT


@pytest.mark.parametrize(
    "intro", ["You should see wrong values:", "It should show:", "Run this and you should see the following error:"]
)
def test_what_a_reader_should_see_is_not_what_the_author_expects(intro: str) -> None:
    assert read_cue(intro) is not Cue.EXPECTED


@pytest.mark.parametrize("intro", ["The relevant part of the script:", "The first lines of my code:"])
def test_a_part_of_the_code_is_no_output(intro: str) -> None:
    assert read_cue(intro) is not Cue.OUTPUT


@pytest.mark.parametrize(
    "intro",
    [
        "What I expected to see, as before:",
        "what I should get",
        "It should print this, which 0.1 printed:",
        "I expected, as numpy gives:",
        "Expected; the old release prints",
        "Expected output, printed with full precision:",
        "Expected output, the value is 2 because of rounding:",
        "Expected output, tflite gives:",
        "Expected, since `f` returns a copy:",
    ],
)
def test_an_expectation_alone_announces_what_is_expected(intro: str) -> None:
    assert read_cue(intro) is Cue.EXPECTED
