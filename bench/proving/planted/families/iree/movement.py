"""Operations that move elements, to other places than they should."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.proving.planted.families.iree.make import computed
from bench.proving.planted.families.iree.text import Shape, given, on_tensors, printed, ramp, tensor
from bench.proving.planted.program import Program


def data_movement() -> Iterator[Program]:
    """Operations that move elements, to other places than they should."""
    shape: Shape
    made: Shape
    for n, size in enumerate([2, 3]):
        shape, values = (size,) * 3, ramp((size,) * 3)
        kind = tensor(shape, "i32")
        moved = [
            values[size * size * k + size * i + j] for i in range(size) for j in range(size) for k in range(size)
        ]
        yield computed(
            f"transpose-{n}", "transpose", f"linalg.transpose of a {size}x{size}x{size} cube by [1, 2, 0] is wrong",
            f"""\
func.func @main(%a: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %t = linalg.transpose ins(%a : {kind}) outs(%empty : {kind}) permutation = [1, 2, 0]
  return %t : {kind}
}}
""",
            [given(shape, "i32", values)], printed(shape, "i32", moved), accused="linalg.transpose",
        )  # fmt: skip
    for n, (shape, low, high) in enumerate(
        [((1, 2), (1, 0), (0, 2)), ((2, 2), (0, 1), (1, 0)), ((2, 1), (2, 0), (0, 1))]
    ):
        values = ramp(shape, 1)
        made = tuple(a + b + c for a, b, c in zip(low, shape, high, strict=True))
        full = [0] * math.prod(made)
        for i in range(shape[0]):
            for j in range(shape[1]):
                full[(i + low[0]) * made[1] + j + low[1]] = int(values[i * shape[1] + j])
        text = f"""\
func.func @main(%a: {tensor(shape, "i32")}) -> {tensor(made, "i32")} {{
  %zero = arith.constant 0 : i32
  %p = tensor.pad %a low[{low[0]}, {low[1]}] high[{high[0]}, {high[1]}] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : i32
  }} : {tensor(shape, "i32")} to {tensor(made, "i32")}
  return %p : {tensor(made, "i32")}
}}
"""
        yield computed(
            f"pad-{n}", "pad", f"tensor.pad low{list(low)} high{list(high)} pads on the other side", text,
            [given(shape, "i32", values)], printed(made, "i32", full), accused="tensor.pad",
        )  # fmt: skip
    for n, (columns, rows) in enumerate([(2, 2), (3, 1), (4, 3)]):
        values = ramp((5, columns))
        kind, part = tensor((5, columns), "f32"), tensor((rows, columns), "f32")
        text = f"""\
func.func @main(%a: {kind}) -> {part} {{
  %s = tensor.extract_slice %a[1, 0] [{rows}, {columns}] [1, 1] : {kind} to {part}
  return %s : {part}
}}
"""
        yield computed(
            f"slice-{n}", "slice", f"extract_slice of {rows} rows from row 1 starts at row 2", text,
            [given((5, columns), "f32", values)],
            printed((rows, columns), "f32", values[columns : columns * (1 + rows)]), accused="tensor.extract_slice",
        )  # fmt: skip
    for n, constants in enumerate([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]]):
        shape = (len(constants),)
        values = ramp(shape, 1.0, 0.0)
        body = [f"%w = arith.constant dense<{constants}> : T", "%r = arith.mulf %a, %w : T"]
        yield computed(
            f"constant-{n}", "constant", f"the last element of a constant of {len(constants)} floats is 0",
            on_tensors(shape, "f32", 1, body), [given(shape, "f32", values)], printed(shape, "f32", constants),
            accused="arith.constant",
        )  # fmt: skip
    for n, op in enumerate(["tosa", "stablehlo", "tosa"]):
        size = 2 + n
        shape, values = (size, size), ramp((size, size))
        kind = tensor(shape, "f32")
        line = {
            "tosa": f'"tosa.reverse"(%a) {{axis = 0 : i32}} : ({kind}) -> {kind}',
            "stablehlo": f"stablehlo.reverse %a, dims = [0] : {kind}",
        }[op]
        flipped = [v for i in reversed(range(size)) for v in values[i * size : (i + 1) * size]]
        yield computed(
            f"reverse-{n}", f"{op}-reverse", f"{op}.reverse of a {size}x{size} tensor flips the wrong axis",
            f"func.func @main(%a: {kind}) -> {kind} {{\n  %r = {line}\n  return %r : {kind}\n}}\n",
            [given(shape, "f32", values)], printed(shape, "f32", flipped), accused=f"{op}.reverse",
        )  # fmt: skip
    for n, size in enumerate([3, 4]):
        shape, values = (size, size), ramp((size,), 1)
        kind, row = tensor(shape, "i32"), tensor((size,), "i32")
        text = f"""\
func.func @main(%a: {row}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %b = linalg.broadcast ins(%a : {row}) outs(%empty : {kind}) dimensions = [0]
  return %b : {kind}
}}
"""
        yield computed(
            f"broadcast-{n}", "broadcast", f"linalg.broadcast over dimension 0 of {size}x{size} repeats the columns",
            text,
            [given((size,), "i32", values)], printed(shape, "i32", values * size), accused="linalg.broadcast",
        )  # fmt: skip
    for n, shape in enumerate([(2,), (1, 3)]):
        a, b = ramp(shape, 1), ramp(shape, 11)
        kind, both = tensor(shape, "i32"), (2 * shape[0], *shape[1:])
        text = f"""\
func.func @main(%a: {kind}, %b: {kind}) -> {tensor(both, "i32")} {{
  %c = tensor.concat dim(0) %a, %b : ({kind}, {kind}) -> {tensor(both, "i32")}
  return %c : {tensor(both, "i32")}
}}
"""
        yield computed(
            f"concat-{n}", "concat", f"tensor.concat of two {kind} puts the second one first", text,
            [given(shape, "i32", a), given(shape, "i32", b)], printed(both, "i32", a + b), accused="tensor.concat",
        )  # fmt: skip
    for n, size in enumerate([2, 3]):
        kind = tensor((size, size), "i64")
        text = f"""\
func.func @main(%a: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : {kind}) outs(%empty : {kind}) {{
  ^bb0(%in: i64, %out: i64):
    %row = linalg.index 0 : index
    %number = arith.index_cast %row : index to i64
    %sum = arith.addi %in, %number : i64
    linalg.yield %sum : i64
  }} -> {kind}
  return %r : {kind}
}}
"""
        zeros = [0] * size * size
        yield computed(
            f"index-{n}", "index", f"linalg.index 0 gives the column in a {size}x{size} tensor of i64", text,
            [given((size, size), "i64", zeros)],
            printed((size, size), "i64", [i for i in range(size) for _ in range(size)]), accused="linalg.index",
        )  # fmt: skip
