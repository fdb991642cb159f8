"""Tests of the interpreter of elementwise programs: its values, and the programs that it leaves alone."""

from __future__ import annotations

import pytest

from runners.core.protocol import Exited, Outcome, Signature, Testcase, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.reference import check_definitions
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from tests.support.means import make_means
from tests.support.observed import observe

LINES = """func.func @main(%a: tensor<3xi32>, %b: tensor<3xi32>) -> tensor<3xi32> {
  %c = arith.constant dense<10> : tensor<3xi32> // each
  %q = arith.divsi %a, %b : tensor<3xi32>
  %r = arith.addi %q, %c : tensor<3xi32>
  return %r : tensor<3xi32>
}
"""
GENERIC = """#id = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xi32> {
  %empty = tensor.empty() : tensor<3xi32>
  %two = arith.constant 2.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<3xf32>, tensor<3xf32>) outs(%empty : tensor<3xi32>) {
  ^bb0(%x: f32, %y: f32, %out: i32):
    %d = arith.mulf %x, %two : f32
    %c = arith.cmpf oge, %d, %y : f32
    %e = arith.extui %c : i1 to i32
    linalg.yield %e : i32
  } -> tensor<3xi32>
  return %r : tensor<3xi32>
}
"""


def program(text: str, *inputs: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": text},
        steps=(
            ("iree-compile", "m.mlir", "-o", "m.vmfb"),
            ("iree-run-module", "--module=m.vmfb", "--function=main", *(f"--input={one}" for one in inputs)),
        ),
    )


@pytest.mark.parametrize(
    ("testcase", "numbers"),
    [
        (program(LINES, "3xi32=-7,7,-9", "3xi32=2,2,4"), (7, 13, 8)),
        (program(LINES, "3xi32=9", "3xi32=3"), (13, 13, 13)),
        (program(LINES.replace("3x", "?x"), "3xi32=9", "3xi32=3"), (13, 13, 13)),
        (program(GENERIC, "3xf32=1 2 nan", "3xf32=2 5 0"), (1, 0, 0)),
    ],
)
def test_an_elementwise_program_is_computed(testcase: Testcase, numbers: tuple[int, ...]) -> None:
    results = compute_program(testcase)
    assert results is not None
    assert [one.numbers for one in results] == [numbers]


def test_each_result_of_a_program_is_computed() -> None:
    results = compute_program(program(TWO_RESULTS, "3xi32=-7,7,-9", "3xi32=2,2,4"))
    assert results is not None
    assert [one.numbers for one in results] == [(-3, 3, -2), (-1, 1, -1)]


@pytest.mark.parametrize(
    "testcase",
    [
        program(LINES, "3xi32=1", "3xi32=0"),
        program(LINES, "3xi32=1"),
        program(LINES, "4xi32=1", "3xi32=1"),
        program(LINES, "3xi32=1", "@b.npy"),
        program(LINES.replace("arith.divsi", "arith.unheard"), "3xi32=1", "3xi32=1"),
        program(LINES.replace("3x", "?x"), "3xi32=1", "i32=1"),
        program(GENERIC.replace('"parallel"', '"reduction"'), "3xf32=1", "3xf32=1"),
        program(GENERIC.replace("(d0) -> (d0)", "(d0) -> (2 - d0)"), "3xf32=1", "3xf32=1"),
        program(GENERIC.replace("cmpf oge, %d, %y", "cmpf oge, %d, %out"), "3xf32=1", "3xf32=1"),
    ],
    ids=["zero", "input", "shape", "file", "operation", "dynamic", "reduction", "map", "output"],
)
def test_a_program_that_is_not_plainly_elementwise_has_no_result(testcase: Testcase) -> None:
    """No guess: a reference that may be wrong is no reference."""
    assert compute_program(testcase) is None


TWO_RESULTS = """\
func.func @main(%x: tensor<3xi32>, %y: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
  %q = arith.divsi %x, %y : tensor<3xi32>
  %r = arith.remsi %x, %y : tensor<3xi32>
  return %q, %r : tensor<3xi32>, tensor<3xi32>
}
"""
WRONG = Signature(type="unexpected-output", message="element at index 0 (7) does not match the expected (6)")


@pytest.mark.parametrize(
    ("printed", "vote"),
    [("3xi32=7 13 8", "agrees"), ("3xi32=7 13 9", "differs"), ("3xi32=7 13 ...", None), ("3xf32=1", None)],
)
@pytest.mark.parametrize("checked", [True, False])
def test_the_printed_result_is_compared(printed: str, vote: str | None, checked: bool) -> None:
    """With and without an expected output on the command line."""
    heading = (
        "[FAILED] result[0]: no\n  expected:\n3xi32=0 0 0\n  actual:" if checked else "result[0]: hal.buffer_view"
    )
    seen = observe(
        "1.0",
        Outcome.MATCH,
        excerpt=f"EXEC @main\n{heading}\n{printed}",
        ended=Exited(code=int(checked)),
        signature=WRONG if checked else None,
    )
    failure = Failure(testcase=program(LINES, "3xi32=-7,7,-9", "3xi32=2,2,4"), seen=seen)
    found = check_definitions(failure, make_means()).findings
    assert [one.evidence["vote"] for one in found] == ([] if vote is None else [vote])


def test_a_large_text_is_left_alone() -> None:
    assert compute_program(program("func.func @main(%a: i32) {\n" * 10_000, "1")) is None
