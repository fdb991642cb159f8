"""Tests of reads of a ``tensor.empty`` in the text of an MLIR testcase."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runners.core.mlir.operations import Operation, split_operations
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis import unwritten_tensors
from runners.toolchains.iree.diagnosis.unwritten_tensors import MAX_EMPTY, MAX_USES, find_unwritten
from tests.runners.guest.iree.valid import make_valid_programs

GENERIC = """#map = affine_map<(d0) -> (d0)>
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{indexing_maps = [#map, #map],
      iterator_types = ["parallel"]}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, {other} : f32
    linalg.yield %s : f32
  }} -> tensor<4xf32>
  return %r : tensor<4xf32>
}}
"""
MATMUL = """func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {{
  %e = tensor.empty() : tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs({to} : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}}
"""
REDUCE = """func.func @f(%a: tensor<4x8xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.reduce { arith.addi } ins(%a : tensor<4x8xi32>) outs(%e : tensor<4xi32>) dimensions = [1]
  return %r : tensor<4xi32>
}
"""
EXTRACT = """func.func @f() -> i8 {
  %0 = tensor.empty() : tensor<4xi8>
  %c = arith.constant 2 : index
  %v = tensor.extract %0[%c] : tensor<4xi8>
  return %v : i8
}
"""
POOLING = """func.func @f(%x: tensor<1x4x4x1xf32>) -> tensor<1x2x2x1xf32> {{
  %w = tensor.empty() : tensor<3x3xf32>
  %z = arith.constant dense<0.0> : tensor<1x2x2x1xf32>
  // only the shape of the second input counts
  %r = linalg.pooling_nhwc_sum ins(%x, {window} : tensor<1x4x4x1xf32>, tensor<3x3xf32>) outs(%z : tensor<1x2x2x1xf32>)
  return %r : tensor<1x2x2x1xf32>
}}
"""
INSERT = """func.func @f(%x: tensor<2xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = tensor.insert_slice %x into %e[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
BOTH = INSERT.replace(
    "  return %r", "  %s = tensor.insert_slice %x into %r[2] [2] [1] : tensor<2xf32> into tensor<4xf32>\n  return %s"
)
DYNAMIC = """func.func @f(%a: tensor<?x8xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.reduce ins(%a : tensor<?x8xf32>) outs(%e : tensor<?xf32>) dimensions = [1]
    (%in: f32, %out: f32) {
      %s = arith.addf %in, %out : f32
      linalg.yield %s : f32
    }
  return %r : tensor<?xf32>
}
"""
INPUT = """func.func @f() -> tensor<4xf16> {
  %e = tensor.empty() : tensor<4xf16>
  %o = tensor.empty() : tensor<4xf16>
  %r = linalg.exp ins(%e : tensor<4xf16>) outs(%o : tensor<4xf16>) -> tensor<4xf16>
  return %r : tensor<4xf16>
}
"""


def of_text(text: str) -> Testcase:
    steps = (("iree-compile", "m.mlir", "-o", "m.vmfb"), ("iree-run-module", "--module=m.vmfb"))
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": text}, steps=steps)


@pytest.mark.parametrize(
    ("text", "operation", "line"),
    [
        (GENERIC.format(other="%out"), "linalg.generic", 4),
        (MATMUL.format(to="%e"), "linalg.matmul", 5),
        (REDUCE, "linalg.reduce", 3),
        (DYNAMIC, "linalg.reduce", 3),
        (EXTRACT, "tensor.extract", 4),
        (INPUT, "linalg.exp", 4),
        (INSERT, "tensor.insert_slice", 3),
        (POOLING.format(window="%x").replace("ins(%x", "ins(%w"), "linalg.pooling_nhwc_sum", 5),
    ],
)
def test_the_operation_that_reads_an_empty_tensor_is_named(text: str, operation: str, line: int) -> None:
    """The operation and its line."""
    found = find_unwritten(of_text(text))
    assert found is not None
    assert (found.operation, found.line) == (operation, line)


@pytest.mark.parametrize(
    "text",
    [
        GENERIC.format(other="%in"),
        MATMUL.format(to="%f"),
        MATMUL.format(to="%f").replace("  return", "  // outs(%e : tensor<4x4xf32>)\n  return"),
        EXTRACT.replace("%0[%c]", "%01[%c]"),
        BOTH,
        INSERT.replace("tensor<2xf32>", "tensor<4xf32>"),
        POOLING.format(window="%w"),
    ],
)
def test_a_tensor_that_only_gives_a_shape_is_no_fault(text: str) -> None:
    """An output that is overwritten, one that was filled, a comment, another value of a longer name."""
    assert find_unwritten(of_text(text)) is None


def test_no_valid_program_reads_an_empty_tensor() -> None:
    """The collection of valid programs on which all diagnosers are tested."""
    found = {title: find_unwritten(valid) for title, valid in make_valid_programs().items()}
    assert found == dict.fromkeys(found)


@pytest.mark.parametrize(
    ("text", "fill", "constant"),
    [
        (REDUCE, "fill-lowest", "    %e = arith.constant dense<-2147483648> : tensor<4xi32>"),
        (EXTRACT, "fill-one", "    %0 = arith.constant dense<1> : tensor<4xi8>"),
        (INPUT, "fill-highest", "    %e = arith.constant dense<0x7BFF> : tensor<4xf16>"),
        (MATMUL.format(to="%e"), "fill-zero", "    %e = arith.constant dense<0.0> : tensor<4x4xf32>"),
    ],
)
def test_only_the_empty_tensor_is_replaced(text: str, fill: str, constant: str) -> None:
    """One line of the file differs."""
    found = find_unwritten(of_text(text))
    assert found is not None
    before, after = text.splitlines(), found.fill_with(fill).files["m.mlir"].splitlines()
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [constant]


def test_a_tensor_of_dynamic_extents_is_filled() -> None:
    """A constant has no dynamic extents."""
    found = find_unwritten(of_text(DYNAMIC))
    assert found is not None
    rows = found.fill_with("fill-one").files["m.mlir"].splitlines()[1:4]
    assert rows == [
        "    %held_empty = tensor.empty(%n) : tensor<?xf32>",
        "    %held_fill = arith.constant 1.0 : f32",
        "    %e = linalg.fill ins(%held_fill : f32) outs(%held_empty : tensor<?xf32>) -> tensor<?xf32>",
    ]


def test_a_slow_text_is_read_in_bounded_time() -> None:
    """One tensor is the output of a thousand unterminated regions; of each, a bounded part is read."""
    generic = "  %r = linalg.generic {{}} outs(%e : tensor<4xf32>) {{\n  ^bb0(%out{n}: f32):\n" + "{{" * 50 + "\n"
    text = "".join(generic.format(n=n) for n in range(1_500))
    assert find_unwritten(of_text("func.func @f() {\n  %e = tensor.empty() : tensor<4xf32>\n" + text)) is None


def test_only_operations_that_name_the_tensor_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading an operation costs up to 2 ms. A file of 200,000 characters has thousands, after each of 20 tensors."""
    read: list[str] = []

    def split(text: str) -> Iterator[Operation]:
        read.append(text)
        return split_operations(text)

    monkeypatch.setattr(unwritten_tensors, "split_operations", split)
    head = "func.func @f() {\n" + "".join(f"  %e{n} = tensor.empty() : tensor<4xf32>\n" for n in range(20))
    assert find_unwritten(of_text(head + "  linalg.copy %e10x ((((\n" * 1_000)) is None
    assert read == []
    named = " ".join(f"%e{n}" for n in range(20))
    assert find_unwritten(of_text(head + f"  linalg.copy {named} ((((\n" * 1_000)) is None
    assert len(read) == MAX_EMPTY * MAX_USES


def test_fills_of_a_shared_tensor_leave_room_for_its_reader() -> None:
    """Equal ``tensor.empty`` operations are merged: one has many fills."""
    fill = "  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>\n"
    text = MATMUL.format(to="%e").replace("  %r = ", fill * MAX_USES + "  %r = ")
    found = find_unwritten(of_text(text))
    assert found is not None
    assert found.operation == "linalg.matmul"
