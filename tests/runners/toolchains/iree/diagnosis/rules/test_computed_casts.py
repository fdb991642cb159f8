"""A computed float that its integer type cannot hold is found where the program casts it, and clamped there."""

from __future__ import annotations

import pytest

from runners.core.protocol import Testcase
from runners.toolchains.iree.diagnosis.reference.statements import CastOutOfRange
from runners.toolchains.iree.diagnosis.rules.computed_casts import find_computed_cast, list_limits
from tests.runners.toolchains.iree.diagnosis.reference.test_elementwise import program

SCALED = """#map = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xi8> {
  %e = tensor.empty() : tensor<4xi8>
  %s = arith.constant 10.0 : f32
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%e : tensor<4xi8>) {
  ^bb0(%in: f32, %out: i8):
    %m = arith.mulf %in, %s : f32
    %q = arith.fptosi %m : f32 to i8
    linalg.yield %q : i8
  } -> tensor<4xi8>
  return %0 : tensor<4xi8>
}
"""
WHOLE = """func.func @main(%x: tensor<2xf32>) -> tensor<2xi8> {
  %m = arith.addf %x, %x : tensor<2xf32>
  %q = arith.fptoui %m : tensor<2xf32> to tensor<2xi8>
  return %q : tensor<2xi8>
}
"""


def find_mended(text: str, *inputs: str) -> str | None:
    """Return the text of the mended program; None without a fault."""
    testcase: Testcase = program(text, *inputs)
    rule = find_computed_cast(testcase)
    return None if rule is None else next(iter(rule.mended.files.values()))


@pytest.mark.parametrize("values", ["1 2 13 -5", "1 2 nan -5", "-12.9 0 0 0"])
def test_a_cast_in_a_loop_is_clamped(values: str) -> None:
    mended = find_mended(SCALED, f"4xf32={values}")
    assert mended is not None
    assert (
        "%held_limit_0 = arith.constant -128.0 : f32\n    %held_0 = arith.maxnumf %m, %held_limit_0 : f32" in mended
    )
    assert "%q = arith.fptosi %held_1 : f32 to i8" in mended


@pytest.mark.parametrize("values", ["1 2 12.79 -5", "-12.8 0 0 0"])
def test_a_cast_that_fits_is_no_fault(values: str) -> None:
    """The fraction is cut off first: 127.9 is 127."""
    assert find_mended(SCALED, f"4xf32={values}") is None


def test_a_cast_of_a_tensor_is_clamped_as_a_whole() -> None:
    mended = find_mended(WHOLE, "2xf32=1 200")
    assert mended is not None
    assert "arith.constant dense<255.0> : tensor<2xf32>" in mended


def test_a_program_that_the_interpreter_does_not_know_has_no_fault() -> None:
    assert find_mended(SCALED.replace("arith.mulf %in, %s", "math.unknown %in, %s"), "4xf32=1 2 13 -5") is None


@pytest.mark.parametrize(
    ("operation", "source", "target", "limits"),
    [
        ("fptosi", "f32", "i32", (-2147483648.0, 2147483520.0)),
        ("fptosi", "f64", "i32", (-2147483648.0, 2147483647.0)),
        ("fptoui", "f16", "i16", (0.0, 65504.0)),
        ("fptosi", "f16", "i8", (-128.0, 127.0)),
    ],
)
def test_the_limits_are_floats_that_the_integer_type_holds(
    operation: str, source: str, target: str, limits: tuple[float, float]
) -> None:
    assert list_limits(CastOutOfRange(operation, "%q", "%m", 1e9, source, target)) == limits
