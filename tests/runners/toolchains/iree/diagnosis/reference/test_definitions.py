"""Tests of the scalar operations: their definitions where languages differ, and no result where none is defined."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from runners.toolchains.iree.diagnosis.reference.definitions import (
    FloatFormat,
    compare,
    compute,
    convert,
    keep_bits,
    round_float,
    wrap_value,
)

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
        ("math.exp", "f32", [1000.0], math.inf),
        ("math.log", "f32", [0.0], -math.inf),
        ("math.log1p", "f32", [-1.0], -math.inf),
        ("math.floor", "f32", [math.inf], math.inf),
        ("math.powf", "f32", [0.0, -3.0], math.inf),
        ("math.powf", "f32", [-2.0, 3.0], -8.0),
        ("arith.maxnumf", "f32", [math.nan, 2.0], 2.0),
        ("arith.addf", "bf16", [256.0, 1.0], 256.0),
        ("arith.addf", "f8E4M3FN", [16.0, 1.0], 16.0),
        ("arith.addf", "f8E5M2", [57344.0, 57344.0], math.inf),
    ],
)
def test_an_operation_is_computed_as_defined(
    operation: str, element: str, values: list[float], result: float
) -> None:
    assert compute(operation, element, list(values)) == result


@pytest.mark.parametrize(
    ("operation", "element", "values"),
    [
        ("math.sqrt", "f32", [-1.0]),
        ("math.log", "f32", [-1.0]),
        ("math.powf", "f32", [-2.0, 0.5]),
        ("math.sin", "f32", [math.inf]),
        ("arith.addf", "f8E4M3FN", [448.0, 448.0]),
    ],
)
def test_a_result_outside_the_domain_is_not_a_number(operation: str, element: str, values: list[float]) -> None:
    result = compute(operation, element, list(values))
    assert result is not None
    assert math.isnan(result)


@given(st.floats(width=32))
def test_floats_are_rounded_as_the_library_rounds_to_f16(value: float) -> None:
    """``struct`` packs f16, which is the peer of the own rounding."""
    own = round_float(value, FloatFormat(10, -14, 65504.0))
    peer = wrap_value(value, "f16")
    assert (own, math.copysign(1, own)) == (peer, math.copysign(1, peer)) or (math.isnan(own) and math.isnan(peer))


@pytest.mark.parametrize(
    ("operation", "element", "values"),
    [
        ("arith.divsi", "i32", [1, 0]),
        ("arith.divsi", "i8", [-128, -1]),
        ("arith.shli", "i32", [1, 32]),
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


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("f8E4M3FN", {0x01: 2.0**-9, 0x38: 1.0, 0x7E: 448.0, 0x7F: None, 0x80: -0.0, 0xB8: -1.0}),
        ("f8E4M3FNUZ", {0x01: 2.0**-10, 0x38: 0.5, 0x7E: 224.0, 0x7F: 240.0, 0x80: None, 0xB8: -0.5}),
        ("f8E5M2", {0x01: 2.0**-16, 0x3C: 1.0, 0x7B: 57344.0, 0x7C: math.inf, 0x7D: None, 0xFC: -math.inf}),
        ("f8E5M2FNUZ", {0x01: 2.0**-17, 0x40: 1.0, 0x7F: 57344.0, 0x80: None, 0xC0: -1.0}),
        ("f8E4M3", {0x38: 1.0, 0x77: 240.0, 0x78: math.inf, 0x79: None}),
    ],
)
def test_a_byte_keeps_its_bits_as_a_float_of_eight(element: str, values: dict[int, float | None]) -> None:
    """The values of ``ml_dtypes``, with which all bytes of the five formats were compared."""
    for code, value in values.items():
        assert str(keep_bits(code, "ui8", element)) == str(value)
        assert value is None or keep_bits(value, element, "ui8") == code
    assert keep_bits(-72, "i8", "f8E4M3FN") == -1.0
    assert keep_bits(1.0, "f8E4M3FN", "f8E4M3FNUZ") == 0.5
    assert keep_bits(1, "i16", element) is None
