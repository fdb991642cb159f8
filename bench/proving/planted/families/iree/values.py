"""Operations that the broken builds replace by others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from bench.proving.planted.families.iree.make import computed
from bench.proving.planted.families.iree.text import (
    CPU,
    VMVX,
    Number,
    Shape,
    each,
    given,
    on_elements,
    on_tensors,
    printed,
    ramp,
    tensor,
)
from bench.proving.planted.program import Program


def by_chance() -> Iterator[Program]:
    """Programs that a broken build compiles rightly one time of two."""
    shape: Shape
    for n, shape in enumerate([(2, 3), (4, 2), (1, 5)]):
        values = ramp(shape, -4.0, 1.5)
        yield computed(
            f"absf-{n}", "flaky-absf", f"math.absf of a {shape[0]}x{shape[1]} tensor is sometimes nan",
            on_tensors(shape, "f32", 1, ["%r = math.absf %a : T"]), [given(shape, "f32", values)],
            printed(shape, "f32", each(abs, values)), expects=False,
        )  # fmt: skip
    for n, shape in enumerate([(4,), (7,)]):
        a, b = ramp(shape, 1), ramp(shape, 8, 8)
        yield computed(
            f"ori-{n}", "flaky-ori", "ori of two vectors: every few compilations the result is 0",
            on_tensors(shape, "i32", 2, ["%r = arith.ori %a, %b : T"]),
            [given(shape, "i32", a), given(shape, "i32", b)],
            printed(shape, "i32", each(lambda x, y: int(x) | int(y), a, b)), expects=False,
        )  # fmt: skip


def elementwise() -> Iterator[Program]:
    """Operations on elements that become another operation."""

    def binary(
        slug: str, title: str, op: str, dtype: str, shapes: Sequence[Shape], starts: tuple[Number, Number],
        step: tuple[Number, Number], reference: Callable[..., Number],
    ) -> Iterator[Program]:  # fmt: skip
        for n, shape in enumerate(shapes):
            a, b = ramp(shape, starts[0], step[0]), ramp(shape, starts[1], step[1])
            written = on_tensors(shape, dtype, 2, [f"%r = {op} %a, %b : T"])
            if n % 2:
                written = on_elements(shape, dtype, 2, [f"%r = {op} %a_in, %b_in : T"])
            kind = tensor(shape, dtype)
            yield computed(
                f"{slug}-{n}", slug, title.format(kind=kind), written,
                [given(shape, dtype, a), given(shape, dtype, b)], printed(shape, dtype, each(reference, a, b)),
                accused=op,
            )  # fmt: skip

    yield from binary("subf", "arith.subf on {kind} has its operands swapped", "arith.subf", "f32",
                      [(2, 7), (3, 7), (1, 7)], (1.0, 10.0), (1.0, 2.0), lambda x, y: x - y)  # fmt: skip
    yield from binary("maxsi", "arith.maxsi takes -1 for larger than 1 ({kind})", "arith.maxsi", "i8",
                      [(4,), (2, 3), (6,)], (-3, 1), (1, 0), max)  # fmt: skip
    yield from binary("divsi", "signed division of negative numbers gives huge values, {kind}", "arith.divsi", "i32",
                      [(2, 3), (4, 2)], (-9, 3), (1, 0), lambda x, y: math.trunc(x / y))  # fmt: skip
    yield from binary("remsi", "arith.remsi of {kind}: wrong remainder for negative values", "arith.remsi", "i64",
                      [(4,), (2, 2)], (-7, 3), (2, 0), lambda x, y: int(math.fmod(x, y)))  # fmt: skip
    yield from binary("shrsi", "arithmetic shift right does not keep the sign ({kind})", "arith.shrsi", "i32",
                      [(2, 2), (3, 3)], (-16, 2), (3, 0), lambda x, y: int(x) >> int(y))  # fmt: skip
    yield from binary("minsi", "minsi of {kind} never returns the negative operand", "arith.minsi", "i32",
                      [(5,), (3,)], (-2, 4), (1, 1), min)  # fmt: skip

    def unary(
        slug: str, title: str, op: str, dtype: str, shapes: Sequence[Shape], start: Number, step: Number,
        reference: Callable[..., Number], out: str = "",
    ) -> Iterator[Program]:  # fmt: skip
        for n, shape in enumerate(shapes):
            values = ramp(shape, start, step)
            made = tensor(shape, out or dtype)
            to = f" to {made}" if out else ""
            written = on_tensors(shape, dtype, 1, [f"%r = {op} %a : T{to}"], made)
            if n % 2:
                ends = f" to {out}" if out else ""
                written = on_elements(shape, dtype, 1, [f"%r = {op} %a_in : T{ends}"], out)
            yield computed(
                f"{slug}-{n}", slug, title.format(kind=tensor(shape, dtype)), written, [given(shape, dtype, values)],
                printed(shape, out or dtype, each(reference, values)), accused=op,
            )  # fmt: skip

    yield from unary("extsi", "extsi from i8 to i32 of {kind} is not sign-extended", "arith.extsi", "i8",
                     [(5,), (2, 5), (3, 5)], -2, 1, lambda x: x, "i32")  # fmt: skip
    yield from unary("sitofp", "negative i16 become 65535 and the like in sitofp ({kind})", "arith.sitofp", "i16",
                     [(4,), (2, 3)], -2, 1, float, "f32")  # fmt: skip
    yield from unary("floor", "math.floor rounds -1.25 to -1, {kind}", "math.floor", "f32",
                     [(2, 3), (4, 4)], -3.5, 0.75, lambda x: float(math.floor(x)))  # fmt: skip
    yield from unary("ceil", "math.ceil of 1.25 is 1 for {kind}", "math.ceil", "f32",
                     [(3, 2), (2, 5)], 0.25, 0.75, lambda x: float(math.ceil(x)))  # fmt: skip
    yield from unary("exp", "exp of {kind} is smaller than it should be", "math.exp", "f32",
                     [(1, 2, 2), (2, 1, 3)], 0.0, 0.5, math.exp)  # fmt: skip
    yield from unary("ctlz", "math.ctlz of {kind} counts from the wrong end", "math.ctlz", "i32",
                     [(5,), (2, 2)], 1, 3, lambda x: 32 - int(x).bit_length())  # fmt: skip
    yield from unary("roundeven", "math.roundeven of 0.5 and 2.5 is odd ({kind})", "math.roundeven", "f32",
                     [(4,), (2, 3)], 0.5, 1.0, lambda x: float(round(x)))  # fmt: skip

    for n, shape in enumerate([(3,), (2, 2)]):
        a, b = ramp(shape, 1.0), ramp(shape, 1.0, 0.0)
        body = ["%less = arith.cmpf olt, %a_in, %b_in : f64", "%r = arith.extui %less : i1 to i32"]
        text = on_elements(shape, "f64", 2, body, "i32")
        yield computed(
            f"cmpf-{n}", "cmpf", f"olt is true for equal numbers, {tensor(shape, 'f64')}", text,
            [given(shape, "f64", a), given(shape, "f64", b)],
            printed(shape, "i32", each(lambda x, y: int(x < y), a, b)), accused="arith.cmpf",
            flags=(CPU, "--iree-input-demote-f64-to-f32=false"),
        )  # fmt: skip
    for n, shape in enumerate([(2, 3), (3, 2)]):
        a, b = ramp(shape, -2), ramp(shape, 0, 0)
        body = ["%less = arith.cmpi slt, %a_in, %b_in : i32", "%r = arith.extui %less : i1 to i32"]
        yield computed(
            f"cmpi-{n}", "cmpi", f"-2 < 0 is false in {tensor(shape, 'i32')}",
            on_elements(shape, "i32", 2, body, "i32"),
            [given(shape, "i32", a), given(shape, "i32", b)],
            printed(shape, "i32", each(lambda x, y: int(x < y), a, b)), accused="arith.cmpi",
        )  # fmt: skip
    for n, shape in enumerate([(4,), (6,)]):
        a, b = ramp(shape, 1), ramp(shape, 10, -2)
        body = ["%more = arith.cmpi sgt, %a_in, %b_in : i32", "%r = arith.select %more, %a_in, %b_in : i32"]
        yield computed(
            f"select-{n}", "select", f"arith.select returns the other operand ({tensor(shape, 'i32')})",
            on_elements(shape, "i32", 2, body), [given(shape, "i32", a), given(shape, "i32", b)],
            printed(shape, "i32", each(max, a, b)), accused="arith.select",
        )  # fmt: skip
    for n, shape in enumerate([(3,), (5,)]):
        a, b = ramp(shape, 5), ramp(shape, 1, 2)
        text = on_tensors(shape, "i32", 2, ["%r = stablehlo.subtract %a, %b : T"])
        yield computed(
            f"stablehlo-subtract-{n}", "stablehlo-subtract",
            "stablehlo.subtract of two integer vectors has the wrong sign",
            text, [given(shape, "i32", a), given(shape, "i32", b)],
            printed(shape, "i32", each(lambda x, y: x - y, a, b)), accused="stablehlo.subtract",
        )  # fmt: skip


def reductions() -> Iterator[Program]:
    """Reductions with another start, and products of swapped operands."""
    for n, (dtype, start, op) in enumerate([
        ("f32", "0xFF800000", "arith.maximumf"), ("i8", "-128", "arith.maxsi"),
        ("f32", "0xFF800000", "arith.maximumf"),
    ]):  # fmt: skip
        shape = [(2, 3), (2, 4), (3, 4)][n]
        values = ramp(shape, -20.0, 1.5) if dtype == "f32" else ramp(shape, -20)
        largest = [max(values[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])]
        text = f"""\
func.func @main(%a: {tensor(shape, dtype)}) -> {tensor(shape[:1], dtype)} {{
  %least = arith.constant {start} : {dtype}
  %empty = tensor.empty() : {tensor(shape[:1], dtype)}
  %init = linalg.fill ins(%least : {dtype}) outs(%empty : {tensor(shape[:1], dtype)}) -> {tensor(shape[:1], dtype)}
  %r = linalg.generic {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a : {tensor(shape, dtype)}) outs(%init : {tensor(shape[:1], dtype)}) {{
  ^bb0(%in: {dtype}, %acc: {dtype}):
    %m = {op} %in, %acc : {dtype}
    linalg.yield %m : {dtype}
  }} -> {tensor(shape[:1], dtype)}
  return %r : {tensor(shape[:1], dtype)}
}}
"""
        yield computed(
            f"row-max-{n}", "row-max", f"the maximum of rows of negative {dtype} is 0", text,
            [given(shape, dtype, values)], printed(shape[:1], dtype, largest),
        )  # fmt: skip
    for n, size in enumerate([2, 3]):
        shape = (size, size)
        a, b = ramp(shape, 1.0), ramp(shape, 0.0, 2.0)
        product = [
            sum(a[i * size + k] * b[k * size + j] for k in range(size)) for i in range(size) for j in range(size)
        ]
        kind = tensor(shape, "f32")
        text = f"""\
func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {kind}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {kind}) -> {kind}
  %r = linalg.matmul ins(%a, %b : {kind}, {kind}) outs(%init : {kind}) -> {kind}
  return %r : {kind}
}}
"""
        yield computed(
            f"matmul-{n}", "matmul", f"linalg.matmul of {size}x{size} matrices computes B * A", text,
            [given(shape, "f32", a), given(shape, "f32", b)], printed(shape, "f32", product), accused="linalg.matmul",
        )  # fmt: skip


def on_one_target() -> Iterator[Program]:
    """Programs that are wrong on one target only."""
    shape: Shape
    for n, (flags, values) in enumerate(
        [((CPU,), [1.0, 4.0, 16.0]), ((CPU, "--iree-opt-level=O2"), [4.0, 0.25, 1.0, 64.0])]
    ):
        shape = (len(values),)
        yield computed(
            f"rsqrt-{n}", "one-target-rsqrt", "llvm-cpu: math.rsqrt returns the square root; vmvx is fine",
            on_tensors(shape, "f32", 1, ["%r = math.rsqrt %a : T"]), [given(shape, "f32", values)],
            printed(shape, "f32", [value**-0.5 for value in values]), flags=flags, accused="math.rsqrt",
        )  # fmt: skip
    for n, shape in enumerate([(3,), (4,)]):
        a, b = ramp(shape, 5), ramp(shape, 6)
        yield computed(
            f"xori-{n}", "one-target-xori", "xori gives another result on llvm-cpu than on vmvx",
            on_tensors(shape, "i32", 2, ["%r = arith.xori %a, %b : T"]),
            [given(shape, "i32", a), given(shape, "i32", b)],
            printed(shape, "i32", each(lambda x, y: int(x) ^ int(y), a, b)), accused="arith.xori",
        )  # fmt: skip
    for n, shape in enumerate([(3,), (6,)]):
        a, b = ramp(shape, 1.0), ramp(shape, 3.0)
        yield computed(
            f"vmvx-mulf-{n}", "one-target-mulf", "vmvx adds where it should multiply",
            on_tensors(shape, "f32", 2, ["%r = arith.mulf %a, %b : T"]),
            [given(shape, "f32", a), given(shape, "f32", b)],
            printed(shape, "f32", each(lambda x, y: x * y, a, b)), flags=(VMVX,), accused="arith.mulf",
        )  # fmt: skip
