"""Tests of operations on parameters whose declared shapes do not fit."""

from __future__ import annotations

import ast

import pytest

from runners.toolchains.tvm.diagnosis.rules.unfit_shapes import find_unfit

TEXT = """@R.function
def main(a: R.Tensor({a}, "float32"), b: R.Tensor({b}, "float32")):
    with R.dataflow():
        y = R.{op}(a, b)
        R.output(y)
    return y
"""


def find(op: str, a: str, b: str) -> list[str]:
    return [" ".join(map(str, shapes.values())) for _, shapes in find_unfit(ast.parse(TEXT.format(op=op, a=a, b=b)))]


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        ("matmul", "(4, 8)", "(4, 8)"),
        ("matmul", "(2, 4, 8)", "(3, 8, 5)"),
        ("matmul", "(8,)", "(7,)"),
        ("add", "(2, 3)", "(2, 4)"),
        ("maximum", "(5,)", "(2, 4)"),
    ],
)
def test_shapes_that_numpy_refuses_do_not_fit(op: str, a: str, b: str) -> None:
    assert find(op, a, b) == [f"{a} {b}"]


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        ("matmul", "(4, 8)", "(8, 5)"),
        ("matmul", "(2, 4, 8)", "(8, 5)"),
        ("matmul", "(8,)", "(8, 5)"),
        ("matmul", "(4, 8)", "(8,)"),
        ("matmul", "(4, n)", "(8, 5)"),
        ("add", "(2, 1)", "(1, 4)"),
        ("add", "(4,)", "(2, 4)"),
        ("take", "(2, 3)", "(5,)"),
    ],
)
def test_shapes_that_fit_or_are_not_known_are_no_fault(op: str, a: str, b: str) -> None:
    assert find(op, a, b) == []


@pytest.mark.parametrize("call", ["seen.matmul", "T.matmul"])
def test_a_call_that_is_not_of_relax_is_no_operation(call: str) -> None:
    text = TEXT.format(op="matmul", a="(4, 8)", b="(4, 8)").replace("R.matmul", call)
    assert list(find_unfit(ast.parse(text))) == []


def test_a_value_of_the_function_is_no_parameter() -> None:
    """The compiler inferred its shape, and may be wrong."""
    text = TEXT.format(op="matmul", a="(4, 8)", b="(4, 8)")
    assert (
        list(find_unfit(ast.parse(text.replace("        y =", "        b = R.permute_dims(b)\n        y =")))) == []
    )
