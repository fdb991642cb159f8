"""Tests of lookups whose index, an element of an input, leaves the table."""

from __future__ import annotations

import pytest

from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.rules.lookups import find_lookup

LOOKUP = """func.func @f(%table: tensor<4xf32>, %ids: tensor<3xi32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%ids : tensor<3xi32>) outs(%e : tensor<3xf32>) {
  ^bb0(%id: i32, %out: f32):
    %at = arith.index_cast %id : i32 to index
    %value = tensor.extract %table[%at] : tensor<4xf32>
    linalg.yield %value : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""
BOUNDED = LOOKUP.replace(
    "%at = arith.index_cast %id", "%top = arith.minsi %id, %c3 : i32\n    %at = arith.index_cast %top"
)
GUARDED = LOOKUP.replace("%value =", "%value = scf.if %c -> f32 {\n    %inner =")


def program(source: str, ids: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"a.mlir": source},
        steps=(
            ("iree-compile", "a.mlir", "-o", "a.vmfb"),
            (
                "iree-run-module",
                "--module=a.vmfb",
                "--function=f",
                "--input=4xf32=10,11,12,13",
                f"--input=3xi32={ids}",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("ids", "value", "inside"), [("0,4,1", 4, "0,3,1"), ("-1 2 9", -1, "0 2 3"), ("[3,3,7]", 7, "[3,3,3]")]
)
def test_an_index_beyond_its_table_is_moved_to_the_nearest_end(ids: str, value: int, inside: str) -> None:
    fault = find_lookup(program(LOOKUP, ids))
    assert fault is not None
    assert (fault.operation, fault.line, fault.value, fault.extent) == ("tensor.extract", 7, value, 4)
    assert fault.mended.steps[1][-1] == f"--input=3xi32={inside}"
    assert fault.mended.files == {"a.mlir": LOOKUP}


@pytest.mark.parametrize(
    ("source", "ids"), [(LOOKUP, "0,3,1"), (LOOKUP, "1"), (BOUNDED, "0,4,1"), (GUARDED, "0,4,1")]
)
def test_an_index_inside_or_bounded_or_guarded_is_no_fault(source: str, ids: str) -> None:
    assert find_lookup(program(source, ids)) is None
