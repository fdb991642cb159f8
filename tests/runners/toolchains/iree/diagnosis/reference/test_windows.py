"""Tests of windows and sums: values of the specification that the compiler does not give, and sums without a vote."""

from __future__ import annotations

import time

import pytest

from runners.core.findings.kinds import Vote
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from tests.runners.toolchains.iree.diagnosis.reference.test_elementwise import program
from tests.runners.toolchains.iree.diagnosis.reference.test_program_results import vote


def convolve(window: str = "", labels: str = "[b, 0, f]x[0, i, o]->[b, 0, f]", groups: str = "") -> str:
    return f"""func.func @main(%a: tensor<1x3x2xf32>, %w: tensor<2x1x2xf32>) -> tensor<1x2x2xf32> {{
  %0 = stablehlo.convolution(%a, %w) dim_numbers = {labels}, window = {{{window}}}
    {{{groups or "batch_group_count = 1 : i64, feature_group_count = 2 : i64"}}}
    : (tensor<1x3x2xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  return %0 : tensor<1x2x2xf32>
}}
"""


INPUTS = ["1x3x2xf32=1 4 2 5 3 6", "2x1x2xf32=10 100 1 1"]


def test_a_reversed_window_in_groups_has_the_values_of_the_specification() -> None:
    """IREE 3.13.0 gives 12 405 23 506, the values without the reversal. By hand: 10 * 2 + 1 * 1 = 21."""
    results = compute_program(program(convolve("reverse = [true]"), *INPUTS))
    assert results is not None
    assert results[0].numbers == (21, 504, 32, 605)
    assert vote(convolve("reverse = [true]"), INPUTS, ["1x2x2xf32=[[12 405][23 506]]"]) == [Vote.DIFFERS]
    assert vote(convolve(), INPUTS, ["1x2x2xf32=[[12 405][23 506]]"]) == [Vote.AGREES]


@pytest.mark.parametrize(
    "text",
    [
        convolve("stride = [0]"),
        convolve("lhs_dilate = [0]"),
        convolve(labels="[b, 0, f]x[0, i, o]->[b, 1, f]"),
        convolve(labels="[b, 0, b]x[0, i, o]->[b, 0, f]"),
        convolve(labels="[b, 0, f]x[o, i]->[b, 0, f]"),
        convolve(groups="batch_group_count = 1 : i64, feature_group_count = 1 : i64"),
        convolve(groups="batch_group_count = 2 : i64, feature_group_count = 2 : i64"),
        convolve(groups="batch_group_count = 1 : i64, feature_group_count = 0 : i64"),
    ],
)
def test_a_convolution_that_does_not_fit_its_operands_has_no_value(text: str) -> None:
    assert compute_program(program(text, *INPUTS)) is None


SELECT = """func.func @main(%a: tensor<3xf32>, %s: tensor<2xf32>) -> tensor<3xf32> {
  %z = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%a, %s, %z) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %r = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %r = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3xf32>, tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_windows_that_overlap_add_to_the_same_element() -> None:
    """IREE 3.13.0 does not compile overlapping windows."""
    results = compute_program(program(SELECT, "3xf32=1 3 2", "2xf32=10 20"))
    assert results is not None
    assert results[0].numbers == (0.5, 30.5, 0.5)


DOT = """func.func @main(%a: tensor<3xELEMENT>, %b: tensor<3xELEMENT>) -> tensor<ELEMENT> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
    : (tensor<3xELEMENT>, tensor<3xELEMENT>) -> tensor<ELEMENT>
  return %0 : tensor<ELEMENT>
}
"""


@pytest.mark.parametrize(
    ("element", "given", "rounded"),
    [
        ("f32", "100000000,1,-100000000", True),
        ("f32", "1,2,-3", False),
        ("f32", "0.1,0.2,0.3", False),
        ("f32", "0.1,0.2,-0.3", True),
        ("f16", "0.1,0.2,0.3", True),
        ("f16", "1,0.5,-2.25", False),
        ("f32", "3e38,3e38,-3e38", True),
        ("f32", "inf,1,2", False),
        ("i32", "100000000,1,-100000000", False),
    ],
)
def test_a_sum_whose_order_decides_is_marked(element: str, given: str, rounded: bool) -> None:
    text = DOT.replace("ELEMENT", element)
    results = compute_program(program(text, f"3x{element}={given}", f"3x{element}=1"))
    assert results is not None
    assert results[0].is_rounded is rounded


def test_sums_of_truth_values_have_no_value() -> None:
    assert compute_program(program(DOT.replace("ELEMENT", "i1"), "3xi1=1", "3xi1=1")) is None


def test_a_window_that_is_too_large_is_left_alone() -> None:
    text = convolve().replace("1x3x2", "1x9000x2").replace("1x2x2", "1x4001x2").replace("2x1x2", "5000x1x2")
    begun = time.process_time()
    assert compute_program(program(text, "1x9000x2xf32=1", "5000x1x2xf32=1")) is None
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(("value", "printed"), [("1e-7", None), ("0.3", 0.3125)])
def test_reduced_precision_leaves_subnormal_numbers_open(value: str, printed: float | None) -> None:
    text = """func.func @main(%a: tensor<1xf32>) -> tensor<1xf32> {
  %0 = stablehlo.reduce_precision %a, format = e5m2 : tensor<1xf32>
  return %0 : tensor<1xf32>
}
"""
    results = compute_program(program(text, f"1xf32={value}"))
    assert (results[0].numbers if results else None) == (None if printed is None else (printed,))
