"""The last two printed values, a result and its reference, are equal, different, or cannot be compared."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.failure.printed.pairs import compare_labelled_rows, compare_last_values, prints_array
from runners.core.failure.printed.reading import Reading


@pytest.mark.parametrize(
    ("stdout", "reading"),
    [
        ("[ 3.  5. nan -1.  2.]\n[-1.  2.  3.  5. nan]", Reading.WRONG),
        ("[1. 2.]\n[1. 2.]", Reading.RIGHT),
        ("tvm [1.0000001 2.]\nnumpy [1. 2.]", Reading.RIGHT),
        ("[1.001 2.]\n[1. 2.]", Reading.UNKNOWN),
        ("[[1. 2.]\n [3. 4.]]\n[[1. 2.]\n [3. 5.]]", Reading.WRONG),
        ("<tvm.runtime.Tensor shape=(2,), cpu(0)>\narray([1., inf], dtype=float32) [1. inf]", Reading.RIGHT),
        ("[True False]\n[ True  True]", Reading.WRONG),
        ("[True False]\n[1 0]", Reading.RIGHT),
        ("[ True False]\n[nan -1.]", Reading.UNKNOWN),  # a mask beside a result
        ("[1. 2.]\n[1. 2.]\n0.0", Reading.RIGHT),
        ("out 1.5\nref 2.5", Reading.WRONG),
        ("[1. ... 2.]\n[1. ... 2.]", Reading.UNKNOWN),
        ("[1. ... 2.]\n[1. ... 3.]", Reading.WRONG),
        ("[1. 2.]\n[1. 2. 3.]", Reading.UNKNOWN),
        ("[1. 2.]", Reading.UNKNOWN),
        ("done", Reading.UNKNOWN),
        ("", Reading.UNKNOWN),
        ("[[[[1 2", Reading.UNKNOWN),
    ],
)
def test_the_last_two_values_are_compared(stdout: str, reading: Reading) -> None:
    assert compare_last_values(stdout) is reading


@pytest.mark.parametrize(
    ("stdout", "whole", "each"),
    [
        ("[5.5e-01 0.0]\n[5.5e-01 1e-08]", Reading.RIGHT, Reading.UNKNOWN),
        ("[5.5e-01 1.0001e-04]\n[5.5e-01 1.0000e-04]", Reading.RIGHT, Reading.UNKNOWN),
        ("[0. 2.]\n[0. 2.]", Reading.RIGHT, Reading.RIGHT),
        ("[0. 2.]\n[0. 3.]", Reading.WRONG, Reading.WRONG),
    ],
)
def test_a_small_value_beside_a_large_one_decides_nothing_if_each_counts(
    stdout: str, whole: Reading, each: Reading
) -> None:
    """The sum of large values leaves such a difference, and so does a function that loses digits."""
    assert compare_last_values(stdout) is whole
    assert compare_last_values(stdout, each=True) is each


TENSOR = "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]])"


@pytest.mark.parametrize(
    ("output", "expected", "is_printed"),
    [
        ("2x2xf32=[1.5 2][3 4]", TENSOR, True),
        ("2x2xf32=[1.5 2][3 5]", TENSOR, False),
        ("[[1.5 2. ]\n [3.  4. ]]", TENSOR, True),
        ("2x2xf32=[1.5 2][3 4]\n2x2xf32=[0 0][0 0]", TENSOR, False),
        ("2x2xf32=[1.5 2][3 4]\n3xf32=[0 0 0]", TENSOR, True),
        ("4xf32=1.5 2 3 4", "tensor([1.5, 2., 3., 4.])", True),
        ("2x2xf32=[1.5 2][3 4]", "[1.5 ... 4.]", False),
        ("[1 2]", "[1 2]", False),
        ("[[[[1 2", TENSOR, False),
        ("", "", False),
    ],
    ids=[
        *("notation", "other values", "an array of numpy", "two arrays of its size", "another size"),
        "a row behind its type",
        *("values left out", "few values", "open", "empty"),
    ],
)
def test_an_array_is_recognized_in_another_notation(output: str, expected: str, is_printed: bool) -> None:
    assert prints_array(output, expected) is is_printed


GARBAGE = "3 (2, 2) [[0.0, 1e-43], [9.8e-44, 0.0]] expected [[4.0, 5.0], [8.0, 9.0]]"


@pytest.mark.parametrize(
    ("reported", "stdout", "reading"),
    [
        (GARBAGE, "3 (2, 2) [[-1e9, 3e-41], [0.0, 2.5]] expected [[4.0, 5.0], [8.0, 9.0]]", Reading.WRONG),
        (GARBAGE, "3 (2, 2) [[4.0, 5.0], [8.0, 9.0]] expected [[4.0, 5.0], [8.0, 9.0]]\ndone", Reading.RIGHT),
        (GARBAGE, "3 (2, 2) [[4.0, 5.0], [8.0, 9.0]] torch [[4.0, 5.0], [8.0, 9.0]]", Reading.UNKNOWN),
        ("y want [1 2] got [2 1]", "y want [1 2] got [1 2]\nz want [1 3] got [1 4]", Reading.WRONG),
        ("got: 3, expected: 4", "got: 4, expected: 4", Reading.RIGHT),
        ("got: 4, expected: 4", "got: 3, expected: 4", Reading.UNKNOWN),
        ("got 3 got 4 expected 5", "got 3 got 4 expected 5", Reading.UNKNOWN),
        ("", "got 3 expected 4", Reading.UNKNOWN),
        ("np.float32(3.0) 4", "np.float32(3.0) 4", Reading.UNKNOWN),
    ],
)
def test_labels_tell_a_result_from_its_reference(reported: str, stdout: str, reading: Reading) -> None:
    """Only where the report quotes rows with these labels in which the two differ."""
    assert compare_labelled_rows(stdout, reported) is reading


@given(st.text(alphabet="[]1.,- enaTru\n", max_size=300))
def test_any_output_is_read(stdout: str) -> None:
    """No output of a stranger raises an error."""
    assert compare_last_values(stdout) in (Reading.RIGHT, Reading.WRONG, Reading.UNKNOWN)
    assert compare_labelled_rows(f"got {stdout} expected {stdout}", "got 1 expected 2") is not Reading.CHANGED
