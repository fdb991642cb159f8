"""Tests of the interpreter of linalg loops. The expected values are those of IREE 3.13.0, for the same commands."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from runners.core.findings.kinds import Vote
from runners.core.protocol import Exited, Outcome, Signature
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.reference import check_definitions
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from tests.runners.toolchains.iree.diagnosis.reference.test_elementwise import program
from tests.support.means import make_means
from tests.support.observed import observe

MATMUL = """func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
"""
WIDENING = """func.func @main(%a: tensor<2x3xi8>, %b: tensor<3x2xi8>) -> tensor<2x2xi32> {
  %z = arith.constant 5 : i32
  %e = tensor.empty() : tensor<2x2xi32>
  %c = linalg.fill ins(%z : i32) outs(%e : tensor<2x2xi32>) -> tensor<2x2xi32>
  %0 = linalg.matmul ins(%a, %b : tensor<2x3xi8>, tensor<3x2xi8>) outs(%c : tensor<2x2xi32>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}
"""
COLUMN_SUMS = """#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d1)>
func.func @main(%a: tensor<2x3xf32>) -> tensor<3xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %c = linalg.fill ins(%z : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %0 = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<2x3xf32>) outs(%c : tensor<3xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = math.absf %x : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %n = arith.negf %0 : tensor<3xf32>
  return %n : tensor<3xf32>
}
"""
MEAN = """#id = affine_map<(d0) -> (d0)>
#sc = affine_map<(d0) -> ()>
func.func @main(%p: tensor<?xi32>, %l: tensor<?xi32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %p, %c0 : tensor<?xi32>
  %ni = arith.index_cast %n : index to i32
  %nf = arith.sitofp %ni : i32 to f32
  %e = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %hits = linalg.generic {indexing_maps = [#id, #id, #sc], iterator_types = ["reduction"]}
      ins(%p, %l : tensor<?xi32>, tensor<?xi32>) outs(%init : tensor<f32>) {
  ^bb0(%a: i32, %b: i32, %acc: f32):
    %eq = arith.cmpi eq, %a, %b : i32
    %f = arith.sitofp %eq : i1 to f32
    %s = arith.addf %acc, %f : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%hits : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%h: f32, %o: f32):
    %q = arith.divf %h, %nf : f32
    linalg.yield %q : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
"""
TRANSPOSE = """func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %e = tensor.empty() : tensor<3x2xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  } -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
"""
POOL = """func.func @main(%x: tensor<1x4x4x1xf32>) -> tensor<1x2x2x1xf32> {
  %cst = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %o = tensor.empty() : tensor<1x2x2x1xf32>
  %acc = linalg.fill ins(%cst : f32) outs(%o : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  %r = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%x, %w : tensor<1x4x4x1xf32>, tensor<2x2xf32>) outs(%acc : tensor<1x2x2x1xf32>) -> tensor<1x2x2x1xf32>
  return %r : tensor<1x2x2x1xf32>
}
"""
NEGATIVE = "1x4x4x1xf32=-1 -2 3 1 -4 -5 0.5 2 -9 -8 -0.25 -3 -7 -6 -2 -1"


@pytest.mark.parametrize(
    ("text", "inputs", "numbers"),
    [
        (MATMUL, ("2x3xf32=1 2 3 4 5 6", "3x2xf32=1 -1 0.5 2 3 3", "2x2xf32=100"), (111, 112, 124.5, 124)),
        (WIDENING, ("2x3xi8=1 2 3 4 -100 6", "3x2xi8=1 -1 100 2 3 3"), (215, 17, -9973, -181)),
        (COLUMN_SUMS, ("2x3xf32=1 -2 3 4 5 -6",), (-5, -7, -9)),
        (COLUMN_SUMS.replace("2x3xf32", "?x3xf32"), ("2x3xf32=1 -2 3 4 5 -6",), (-5, -7, -9)),
        (MEAN, ("4xi32=1 2 0 2", "4xi32=1 0 0 2"), (-0.75,)),
        (TRANSPOSE, ("2x3xf32=1 -2 3 4 5 -6",), (2, 8, -4, 10, 6, -12)),
        (POOL, (NEGATIVE,), (0, 3, 0, 0)),
    ],
    ids=["matmul", "widening", "column sums", "dynamic", "dimension", "transpose", "pool"],
)
def test_loops_are_computed_as_the_operations_define(
    text: str, inputs: tuple[str, ...], numbers: tuple[float, ...]
) -> None:
    """A reduction begins with the tensor that ``outs`` gives: the maximum of negative values and 0 is 0."""
    results = compute_program(program(text, *inputs))
    assert results is not None
    assert results[0].numbers == numbers


@pytest.mark.parametrize(
    "text",
    [
        COLUMN_SUMS.replace("#r = affine_map<(d0, d1) -> (d1)>", "#r = affine_map<(d0, d1) -> (d1 + 1)>"),
        COLUMN_SUMS.replace("math.absf", "math.unknown"),
        COLUMN_SUMS.replace('"reduction", "parallel"', '"reduction"'),
        COLUMN_SUMS.replace("  %c = linalg.fill", "  %d = linalg.fill"),
        POOL.replace("strides = dense<2> : vector<2xi64>", "strides = #s"),
        POOL.replace("pooling_nhwc_max", "pooling_ndhwc_max"),
        POOL.replace("strides = dense<2>", "strides = dense<9>"),
    ],
)
def test_other_programs_are_left_alone(text: str) -> None:
    """Accesses outside a tensor, unknown operations, unwritten initial values: no value would be right."""
    assert compute_program(program(text, NEGATIVE if "pool" in text else "2x3xf32=1 -2 3 4 5 -6")) is None


@given(st.text(alphabet="%abc= linalg.fimoutsn(:)<>x3f2{}[]#^\n d0-,", max_size=400))
def test_any_text_is_read_to_its_end(text: str) -> None:
    compute_program(program(f"{COLUMN_SUMS.rpartition('return')[0]}{text}\n}}\n", "2x3xf32=1"))


def test_a_loop_nest_that_is_too_large_is_left_alone() -> None:
    text = MATMUL.replace("2x3", "900x900").replace("3x2", "900x900").replace("2x2", "900x900")
    begun = time.process_time()
    assert compute_program(program(text, "900x900xf32=1", "900x900xf32=1", "900x900xf32=1")) is None
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("printed", "vote"), [("[[[0][3]][[0][0]]]", Vote.AGREES), ("[[[-1][3]][[0][0]]]", Vote.DIFFERS)]
)
def test_the_definitions_vote_on_a_printed_result(printed: str, vote: Vote) -> None:
    seen = observe(
        "3.13.0",
        Outcome.MATCH,
        ended=Exited(code=0),
        signature=Signature(type="output", message="x"),
        excerpt=f"EXEC @main\nresult[0]: hal.buffer_view\n1x2x2x1xf32={printed}",
    )
    testcase = program(POOL, NEGATIVE)
    found = check_definitions(Failure(testcase=testcase, seen=seen), make_means())
    assert [finding.evidence["vote"] for finding in found.findings] == [vote]
    assert vote is Vote.DIFFERS or found.findings[0].evidence["exact"] is True


@pytest.mark.parametrize(
    ("given", "printed", "votes"),
    [("1", "-2 -2 -2", [Vote.AGREES]), ("0.1 0.1 0.1 0.7 0.7 0.7", "-0.8 -0.8 -0.8", [])],
)
def test_a_rounded_sum_never_agrees(given: str, printed: str, votes: list[Vote]) -> None:
    """Another order of the additions gives other digits, which may be as right."""
    seen = observe(
        "3.13.0",
        Outcome.MATCH,
        ended=Exited(code=0),
        signature=Signature(type="output", message="x"),
        excerpt=f"EXEC @main\nresult[0]: hal.buffer_view\n3xf32={printed}",
    )
    testcase = program(COLUMN_SUMS, f"2x3xf32={given}")
    found = check_definitions(Failure(testcase=testcase, seen=seen), make_means())
    assert [finding.evidence["vote"] for finding in found.findings] == votes


CANCELS = """func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %x : f32
    %s = arith.subf %m, %y : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(("given", "rounded"), [("2xf32=1000.1 2", True), ("2xf32=3 2", False)])
def test_a_product_that_cancels_is_marked(given: str, rounded: bool) -> None:
    """A multiply-add does not round the product: its digits may be as right."""
    results = compute_program(program(CANCELS, given, "2xf32=1000200 4"))
    assert results is not None
    assert results[0].is_rounded is rounded


SPACES = " " * 3_000


@pytest.mark.parametrize(
    "line",
    [
        f"%0 = linalg.transpose ins(%a : tensor<2xf32>) outs(%a : tensor<2xf32>){SPACES}x",
        f"%0 = linalg.map{SPACES}x",
        f"%0 = linalg.fill ins(%a : f32) outs(%a : f32) -> ({(f'tensor<2xf32>{SPACES[:40]}') * 60}x",
        f"%0 = linalg.generic {SPACES}{{x}}{SPACES}x",
    ],
)
def test_a_text_of_spaces_ends_at_once(line: str) -> None:
    begun = time.process_time()
    text = f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{line}\n return %0 : tensor<2xf32>\n}}\n"
    assert compute_program(program(text, "2xf32=1")) is None
    assert time.process_time() - begun < 20
