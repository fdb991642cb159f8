"""IREE programs with a mistake of their own, on releases as they are: indices, memory, undefined operands."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.iree.make import (
    OUT_OF_BOUNDS,
    REFUSED_ACCESS,
    UNDEFINED,
    UNWRITTEN,
    Made,
    at_fault,
    lines,
)
from bench.proving.planted.families.iree.text import given, on_tensors, printed, tensor
from bench.proving.planted.program import Findings


def out_of_bounds() -> Iterator[Made]:
    for n, (size, ids, inside) in enumerate(
        [(4, [0, 4, 1], [0, 3, 1]), (6, [6, 2], [5, 2]), (3, [1, 5, 0, 2], [1, 2, 0, 2])]
    ):
        count = len(ids)
        text = f"""\
func.func @main(%table: tensor<{size}xf32>, %ids: tensor<{count}xi32>) -> tensor<{count}xf32> {{
  %empty = tensor.empty() : tensor<{count}xf32>
  %r = linalg.generic {{
      indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}}
      ins(%ids : tensor<{count}xi32>) outs(%empty : tensor<{count}xf32>) {{
  ^bb0(%id: i32, %out: f32):
    %at = arith.index_cast %id : i32 to index
    %value = tensor.extract %table[%at] : tensor<{size}xf32>
    linalg.yield %value : f32
  }} -> tensor<{count}xf32>
  return %r : tensor<{count}xf32>
}}
"""
        table = [float(10 + at) for at in range(size)]
        clipped = [table[min(at, size - 1)] for at in ids]
        right = [table[at] for at in inside]
        yield at_fault(
            f"lookup-{n}", "lookup-beyond", "a lookup in a table returns a value that is not in it", text,
            lines("lookup", [given((size,), "f32", table), given((count,), "i32", ids)],
                expected=printed((count,), "f32", clipped)),
            mended_commands=lines("lookup", [given((size,), "f32", table), given((count,), "i32", inside)],
                expected=printed((count,), "f32", right)),
            findings=OUT_OF_BOUNDS,
        )  # fmt: skip
    for n, (rows, columns, row) in enumerate([(4, 2, 3), (5, 3, 4)]):
        kind, part = tensor((rows, columns), "f32"), tensor((2, columns), "f32")
        text = f"""\
func.func @main(%x: {kind}, %row: index) -> {part} {{
  %s = tensor.extract_slice %x[%row, 0] [2, {columns}] [1, 1] : {kind} to {part}
  return %s : {part}
}}
"""
        values = [float(at) for at in range(rows * columns)]
        right = values[(row - 1) * columns : (row + 1) * columns]
        expected = values[row * columns :] + [0.0] * columns
        yield at_fault(
            f"rows-{n}", "slice-beyond", f"the second row of a slice from row {row} is not zero", text,
            lines("rows", [given((rows, columns), "f32", values), str(row)],
                expected=printed((2, columns), "f32", expected)),
            mended_commands=lines("rows", [given((rows, columns), "f32", values), str(row - 1)],
                expected=printed((2, columns), "f32", right)),
            findings=REFUSED_ACCESS, shows="OUT_OF_RANGE|INVALID_ARGUMENT", claim="error", ending="error",
        )  # fmt: skip
    for n, (size, at) in enumerate([(4, 3), (6, 5)]):
        text = f"""\
func.func @main(%x: tensor<{size}xi32>, %y: tensor<2xi32>, %at: index) -> tensor<{size}xi32> {{
  %r = tensor.insert_slice %y into %x[%at] [2] [1] : tensor<2xi32> into tensor<{size}xi32>
  return %r : tensor<{size}xi32>
}}
"""
        before = [0] * size
        after, right = [*before[:-1], 7], [*before[:-2], 7, 8]
        inputs = [given((size,), "i32", before), given((2,), "i32", [7, 8])]
        yield at_fault(
            f"insert-{n}", "insert-beyond", "insert_slice at the end of a tensor fails", text,
            lines("insert", [*inputs, str(at)], expected=printed((size,), "i32", after)),
            mended_commands=lines("insert", [*inputs, str(at - 1)], expected=printed((size,), "i32", right)),
            findings=REFUSED_ACCESS, shows="OUT_OF_RANGE|INVALID_ARGUMENT", claim="error", ending="error",
        )  # fmt: skip
    for n, (size, at) in enumerate([(4, 4), (8, 11)]):
        text = f"""\
func.func @main(%x: tensor<{size}xf32>, %at: index) -> tensor<1xf32> {{
  %v = tensor.extract %x[%at] : tensor<{size}xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}}
"""
        values = [float(at) + 1 for at in range(size)]
        inputs = [given((size,), "f32", values)]
        yield at_fault(
            f"element-{n}", "extract-beyond", "reading an element after the last one does not give the last one",
            text,
            lines("element", [*inputs, str(at)], expected=f"1xf32={size}"),
            mended_commands=lines("element", [*inputs, str(size - 1)], expected=f"1xf32={size}"),
            findings=REFUSED_ACCESS, shows="OUT_OF_RANGE|INVALID_ARGUMENT", claim="error", ending="error",
        )  # fmt: skip


def never_written() -> Iterator[Made]:
    for n, (rows, columns, op, start) in enumerate(
        [(2, 3, "arith.maximumf", "0xFF800000"), (3, 4, "arith.maximumf", "0xFF800000"), (2, 5, "arith.mulf", "1.0")]
    ):
        kind, out = tensor((rows, columns), "f32"), tensor((rows,), "f32")
        text = f"""\
func.func @main(%x: {kind}) -> {out} {{
  %start = arith.constant {start} : f32
  %empty = tensor.empty() : {out}
  %init = linalg.fill ins(%start : f32) outs(%empty : {out}) -> {out}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {kind}) outs(%init : {out}) {{
  ^bb0(%in: f32, %acc: f32):
    %v = {op} %in, %acc : f32
    linalg.yield %v : f32
  }} -> {out}
  return %r : {out}
}}
"""
        values = [-2.0 - at for at in range(rows * columns)]
        chunks = [values[i * columns : (i + 1) * columns] for i in range(rows)]
        right = [max(chunk) for chunk in chunks]
        if op == "arith.mulf":
            right = []
            for chunk in chunks:
                product = 1.0
                for value in chunk:
                    product *= value
                right.append(product)
        filled = f"  %start = arith.constant {start} : f32\n"
        init = f"  %init = linalg.fill ins(%start : f32) outs(%empty : {out}) -> {out}\n"
        mistaken = text.replace(filled, "").replace(init, "").replace("outs(%init", "outs(%empty")
        yield at_fault(
            f"no-start-{n}", "no-start", f"a reduction with {op} over rows of {columns} is wrong", mistaken,
            lines("rows", [given((rows, columns), "f32", values)], expected=printed((rows,), "f32", right)),
            mended=text, findings=UNWRITTEN,
        )  # fmt: skip
    for n, (size, part) in enumerate([(4, 2), (6, 3)]):
        text = f"""\
func.func @main(%x: tensor<{part}xf32>) -> tensor<{size}xf32> {{
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<{size}xf32>
  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<{size}xf32>) -> tensor<{size}xf32>
  %r = tensor.insert_slice %x into %init[0] [{part}] [1] : tensor<{part}xf32> into tensor<{size}xf32>
  return %r : tensor<{size}xf32>
}}
"""
        init = f"  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<{size}xf32>) -> tensor<{size}xf32>\n"
        mistaken = (
            text.replace(init, "")
            .replace("into %init", "into %empty")
            .replace("  %one = arith.constant 1.0 : f32\n", "")
        )
        values = [5.0 + at for at in range(part)]
        yield at_fault(
            f"tail-{n}", "tail-not-written", "the tail of a padded vector is not one", mistaken,
            lines("tail", [given((part,), "f32", values)],
                expected=printed((size,), "f32", values + [1.0] * (size - part))),
            mended=text, findings=Findings(may=UNWRITTEN.must + UNWRITTEN.may),
        )  # fmt: skip


def undefined() -> Iterator[Made]:
    """Operations whose result is not defined for these operands."""
    for n, (op, amount) in enumerate([("shli", 33), ("shli", 64)]):
        text = on_tensors((3,), "i32", 2, [f"%r = arith.{op} %a, %b : T"])
        values = [1, 2, 3]
        right = [v << 3 for v in values]
        yield at_fault(
            f"shift-{n}", "shift-too-far", f"{op} by {amount} is not 0", text,
            lines("shift", [given((3,), "i32", values), given((3,), "i32", [amount] * 3)], expected="3xi32=0 0 0"),
            mended_commands=lines("shift", [given((3,), "i32", values), given((3,), "i32", [3] * 3)],
                expected=printed((3,), "i32", right)),
            findings=UNDEFINED,
        )  # fmt: skip
    for n, dtype in enumerate(["i32"]):
        text = on_tensors((2,), dtype, 2, ["%r = arith.divsi %a, %b : T"])
        yield at_fault(
            f"by-zero-{n}", "division-by-zero", f"arith.divsi of {dtype} by zero is not 0", text,
            lines("ratio", [f"2x{dtype}=7,8", f"2x{dtype}=2,0"], expected=f"2x{dtype}=3 0"),
            mended_commands=lines("ratio", [f"2x{dtype}=7,8", f"2x{dtype}=2,3"], expected=f"2x{dtype}=3 2"),
            findings=UNDEFINED, shows="FAILED",
        )  # fmt: skip
