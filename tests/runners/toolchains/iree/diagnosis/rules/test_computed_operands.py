"""A computed operand that its operation excludes is found where the program meets it, and mended there."""

from __future__ import annotations

import msgspec
import pytest

from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule
from runners.toolchains.iree.diagnosis.reference.excluded import CastOutOfRange
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from runners.toolchains.iree.diagnosis.rules.computed_operands import find_computed_operand, list_limits
from tests.runners.guest.iree.valid import make_valid_programs
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


DIVISION = """func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>) -> tensor<3xi32> {
  %d = arith.subi %x, %y : tensor<3xi32>
  %q = arith.divsi %x, %d : tensor<3xi32>
  return %q : tensor<3xi32>
}
"""
SHIFT = DIVISION.replace("subi", "addi").replace("divsi", "shli")
LOOKUP = """func.func @main(%x: tensor<4xf32>, %n: index) -> f32 {
  %c = arith.constant 3 : index
  %i = arith.addi %n, %c : index
  %r = tensor.extract %x[%i] : tensor<4xf32>
  return %r : f32
}
"""
WINDOW = """func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<4xf32> {
  %c = arith.constant 3 : index
  %i = arith.muli %n, %c : index
  %r = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
GROUPS = """func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?x2xf32> {
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %r = tensor.expand_shape %x [[0, 1]] output_shape [%n, 2] : tensor<?xf32> into tensor<?x2xf32>
  %s = linalg.copy ins(%r : tensor<?x2xf32>) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %s : tensor<?x2xf32>
}
"""
HISTOGRAM = """func.func @main(%at: tensor<4x1xi32>, %new: tensor<4xi32>) -> tensor<8xi32> {
  %init = stablehlo.constant dense<0> : tensor<8xi32>
  %0 = "stablehlo.scatter"(%init, %at, %new) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<8xi32>, tensor<4x1xi32>, tensor<4xi32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}
"""
PROMISE = """func.func @main(%n: i32) -> i32 {
  %c16 = arith.constant 16 : i32
  %m = util.assume.int %n<umin = 1, umax = 15> : i32
  %r = arith.minui %m, %c16 : i32
  return %r : i32
}
"""
MENDED = {
    "a promise": (PROMISE, ("40",), "util.assume.int %held_1<umin = 1, umax = 15>"),
    "a negative number": (PROMISE, ("-1",), "%held_1 = arith.minui %held_0, %held_limit_1 : i32"),
    "equal indices": (HISTOGRAM, ("4x1xi32=3 1 3 0", "4xi32=1"), "unique_indices = false"),
    "a divisor": (
        DIVISION,
        ("3xi32=7,8,9", "3xi32=1,8,2"),
        "%held_0 = arith.maxui %d, %held_limit_0 : tensor<3xi32>",
    ),
    "a shift": (SHIFT, ("3xi32=1,2,3", "3xi32=1,2,31"), "arith.constant dense<31> : tensor<3xi32>"),
    "an index": (LOOKUP, ("4xf32=1,2,3,4", "1"), "%held_1 = arith.minsi %held_0, %held_limit_1 : index"),
    "an offset": (WINDOW, ("8xf32=1", "2"), "%held_limit_1 = arith.constant 4 : index"),
    "an extent": (GROUPS, ("8xf32=1", "5"), "tensor.empty(%held_extent)"),
}
"""Programs with an excluded operand, each with its inputs and a part of the mended text."""
KEPT = {
    "a promise": (PROMISE, ("15",)),
    "equal indices": (HISTOGRAM, ("4x1xi32=3 1 2 0", "4xi32=1")),
    "a divisor": (DIVISION, ("3xi32=7,8,9", "3xi32=1,2,3")),
    "a shift": (SHIFT, ("3xi32=1,2,3", "3xi32=1,2,28")),
    "an index": (LOOKUP, ("4xf32=1,2,3,4", "0")),
    "an offset": (WINDOW, ("8xf32=1", "1")),
    "an extent": (GROUPS, ("8xf32=1", "4")),
}


def find_mended(text: str, *inputs: str) -> str | None:
    """Return the text of the mended program; None without a fault."""
    testcase: Testcase = program(text, *inputs)
    rule = find_computed_operand(testcase)
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


@pytest.mark.parametrize("kind", MENDED)
def test_a_computed_operand_is_mended_where_it_is_used(kind: str) -> None:
    text, inputs, part = MENDED[kind]
    assert part in (find_mended(text, *inputs) or "")


@pytest.mark.parametrize("kind", KEPT)
def test_an_operand_within_the_definition_is_no_fault(kind: str) -> None:
    text, inputs = KEPT[kind]
    assert find_mended(text, *inputs) is None
    assert compute_program(program(text, *inputs)) is not None


def test_an_extent_without_a_right_value_is_no_fault_that_can_be_mended() -> None:
    """Seven elements are no rows of two."""
    assert find_mended(GROUPS, "7xf32=1", "5") is None


def test_names_of_the_mended_text_are_new() -> None:
    text = LOOKUP.replace("%c", "%held_0")
    assert "%held__0 = arith.maxsi %i, %held__limit_0 : index" in (find_mended(text, "4xf32=1,2,3,4", "1") or "")


def test_no_valid_program_has_a_fault() -> None:
    found = {title: find_computed_operand(valid) for title, valid in make_valid_programs().items()}
    assert found == dict.fromkeys(found)


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
    assert list_limits(f"arith.{operation}", CastOutOfRange(source, target)) == limits


def test_several_promises_on_one_value_are_not_read() -> None:
    several = PROMISE.replace("<umin = 1, umax = 15>", "[<umin = 1>, <umax = 15>]")
    assert find_computed_operand(program(several, "40")) is None


def test_each_call_of_a_testcase_is_computed() -> None:
    """The first call keeps the promise, and the second one breaks it, as in a report that shows both."""
    called = program(PROMISE, "9")
    broken = program(PROMISE, "40").steps[-1]
    testcase = msgspec.structs.replace(called, steps=(*called.steps, broken, called.steps[-1]))
    rule = find_computed_operand(testcase)
    assert isinstance(rule, BrokenRule)
    assert rule.words == "promises that %n is in [1, 15], and it is 40"
