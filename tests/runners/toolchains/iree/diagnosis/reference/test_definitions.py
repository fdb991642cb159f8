"""Tests of the scalar operations: their definitions where languages differ, and no result where none is defined."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from runners.toolchains.iree.diagnosis.reference.definitions import compare, compute, convert

I8 = st.integers(-128, 127)


@pytest.mark.parametrize(
    ("operation", "element", "values", "result"),
    [
        ("arith.divsi", "i32", [-7, 2], -3),
        ("arith.remsi", "i32", [-7, 3], -1),
        ("arith.divui", "i8", [-1, 2], 127),
        ("arith.maxui", "i32", [-1, 1], -1),
        ("arith.addi", "i8", [100, 100], -56),
        ("arith.muli", "i16", [300, 300], 24464),
        ("arith.shrsi", "i8", [-128, 7], -1),
        ("arith.shrui", "i8", [-128, 7], 1),
        ("arith.divf", "f32", [1.0, 3.0], 0.3333333432674408),
        ("arith.divf", "f32", [-1.0, 0.0], -math.inf),
        ("arith.mulf", "f32", [1e38, 1e38], math.inf),
        ("math.roundeven", "f32", [2.5], 2.0),
        ("math.round", "f32", [-2.5], -3.0),
        ("math.rsqrt", "f32", [16.0], 0.25),
        ("math.ctpop", "i8", [-1], 8),
    ],
)
def test_an_operation_is_computed_as_defined(
    operation: str, element: str, values: list[float], result: float
) -> None:
    assert compute(operation, element, list(values)) == result


@pytest.mark.parametrize(
    ("operation", "element", "values"),
    [
        ("arith.divsi", "i32", [1, 0]),
        ("arith.divsi", "i8", [-128, -1]),
        ("arith.shli", "i32", [1, 32]),
        ("math.sqrt", "f32", [-1.0]),
        ("math.unheard", "f32", [1.0]),
        ("arith.addf", "i32", [1, 2]),
    ],
)
def test_what_is_undefined_or_unknown_has_no_result(operation: str, element: str, values: list[float]) -> None:
    assert compute(operation, element, list(values)) is None


@given(a=I8, b=I8.filter(bool))
def test_quotient_and_remainder_belong_together(a: int, b: int) -> None:
    """The remainder has the sign of the dividend, and is smaller than the divisor."""
    quotient, remainder = compute("arith.divsi", "i8", [a, b]), compute("arith.remsi", "i8", [a, b])
    if (a, b) == (-128, -1):
        assert quotient is None
        return
    assert quotient is not None
    assert remainder is not None
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)


@given(a=I8, b=I8)
def test_unsigned_orders_see_the_same_bits(a: int, b: int) -> None:
    assert compare("cmpi", "ult", "i8", a, b) == -int(a % 256 < b % 256)
    assert compare("cmpi", "slt", "i8", a, b) == -int(a < b)


@pytest.mark.parametrize(
    ("predicate", "result"), [("oeq", 0), ("ole", 0), ("ueq", -1), ("une", -1), ("uno", -1), ("ord", 0)]
)
def test_a_nan_is_unordered(predicate: str, result: int) -> None:
    assert compare("cmpf", predicate, "f32", math.nan, math.nan) == result


def test_casts_keep_or_drop_bits() -> None:
    assert convert("extui", -1, "i8", "i32") == 255
    assert convert("extsi", -1, "i8", "i32") == -1
    assert convert("trunci", 257, "i32", "i8") == 1
    assert convert("fptosi", 300.0, "f32", "i8") is None
    assert convert("fptosi", math.nan, "f32", "i8") is None
