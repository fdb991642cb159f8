"""More valid IREE programs: networks and their operations, loops, gathers at the edges.

Each program runs without error and with a correct result, so no diagnoser may report a fault. The programs were
written before any diagnoser ran on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from runners.core.protocol import Testcase
from tests.runners.guest.iree.faults import make_execution


def write_type(shape: Sequence[int], kind: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), kind])}>"


def write_ramp(shape: Sequence[int], scale: float = 0.25, kind: str = "f32", period: int = 11) -> str:
    """Return an input of small values with different neighbours: 0, 1, … period - 1, repeated, times ``scale``."""
    values = (at % period - period // 2 for at in range(math.prod(shape)))
    words = (f"{value * scale:g}" if kind[0] == "f" else str(value) for value in values)
    return f"{'x'.join([*map(str, shape), kind])}={','.join(words)}"


def write_elementwise(
    to: str, ins: Sequence[tuple[str, Sequence[int]]], shape: Sequence[int], maps: Sequence[str], body: str
) -> str:
    """Return an elementwise operation. ``body`` computes ``%r`` from the inputs ``%0, %1, …``, all f32."""
    names = ", ".join(f"d{at}" for at in range(len(shape)))
    same = ", ".join(f"affine_map<({names}) -> ({one})>" for one in (*maps, names))
    kinds = ", ".join(write_type(one) for _, one in ins)
    blocks = "".join(f"%x{at}: f32, " for at in range(len(ins)))
    given = f"ins({', '.join(name for name, _ in ins)} : {kinds}) " if ins else ""
    parallel = ", ".join(['"parallel"'] * len(shape))
    return f"""
  {to}_e = tensor.empty() : {write_type(shape)}
  {to} = linalg.generic {{indexing_maps = [{same}], iterator_types = [{parallel}]}}
      {given}outs({to}_e : {write_type(shape)}) {{
  ^bb0({blocks}%o: f32):
    {body}
    linalg.yield %r : f32
  }} -> {write_type(shape)}"""


def write_reduction(to: str, of: str, shape: Sequence[int], axis: int, how: str, start: str) -> str:
    """Return a reduction of ``of`` to ``to`` along one axis."""
    left = [size for at, size in enumerate(shape) if at != axis]
    return f"""
  {to}_s = arith.constant {start} : f32
  {to}_e = tensor.empty() : {write_type(left)}
  {to}_i = linalg.fill ins({to}_s : f32) outs({to}_e : {write_type(left)}) -> {write_type(left)}
  {to} = linalg.reduce {{ {how} }}
    ins({of} : {write_type(shape)}) outs({to}_i : {write_type(left)}) dimensions = [{axis}]"""


def write_product(to: str, a: str, b: str, m: int, k: int, n: int) -> str:
    return f"""
  {to}_z = arith.constant dense<0.0> : {write_type((m, n))}
  {to} = linalg.matmul ins({a}, {b} : {write_type((m, k))}, {write_type((k, n))}) outs({to}_z : {write_type((m, n))})
    -> {write_type((m, n))}"""


def write_function(arguments: Sequence[tuple[str, str]], body: str, result: str, kind: str) -> str:
    listed = ", ".join(f"{name}: {one}" for name, one in arguments)
    return f"func.func @f({listed}) -> {kind} {{{body}\n  return {result} : {kind}\n}}\n"


ADD = "%r = arith.addf %x0, %x1 : f32"
MUL = "%r = arith.mulf %x0, %x1 : f32"
RELU = "%z = arith.constant 0.0 : f32\n    %r = arith.maximumf %x0, %z : f32"
TANH = "%r = math.tanh %x0 : f32"
SIGMOID = """%one = arith.constant 1.0 : f32
    %n = arith.negf %x0 : f32
    %p = math.exp %n : f32
    %d = arith.addf %one, %p : f32
    %r = arith.divf %one, %d : f32"""


def write_softmax(to: str, of: str, shape: tuple[int, int]) -> str:
    m, n = shape
    return (
        write_reduction(f"{to}_m", of, shape, 1, "arith.maximumf", "-1.0e30")
        + write_elementwise(f"{to}_x", [(of, (m, n)), (f"{to}_m", (m,))], shape, ["d0, d1", "d0"],
               "%s = arith.subf %x0, %x1 : f32\n    %r = math.exp %s : f32")
        + write_reduction(f"{to}_t", f"{to}_x", shape, 1, "arith.addf", "0.0")
        + write_elementwise(to, [(f"{to}_x", (m, n)), (f"{to}_t", (m,))], shape, ["d0, d1", "d0"],
               "%r = arith.divf %x0, %x1 : f32")
    )  # fmt: skip


def write_normalization(to: str, of: str, shape: tuple[int, int]) -> str:
    m, n = shape
    mean = f"%c = arith.constant {float(n)} : f32\n    %r = arith.divf %x0, %c : f32"
    return (
        write_reduction(f"{to}_a", of, shape, 1, "arith.addf", "0.0")
        + write_elementwise(f"{to}_b", [(f"{to}_a", (m,))], (m,), ["d0"], mean)
        + write_elementwise(
            f"{to}_c", [(of, shape), (f"{to}_b", (m,))], shape, ["d0, d1", "d0"], "%r = arith.subf %x0, %x1 : f32"
        )
        + write_elementwise(f"{to}_d", [(f"{to}_c", shape)], shape, ["d0, d1"], "%r = arith.mulf %x0, %x0 : f32")
        + write_reduction(f"{to}_g", f"{to}_d", shape, 1, "arith.addf", "0.0")
        + write_elementwise(
            f"{to}_h",
            [(f"{to}_g", (m,))],
            (m,),
            ["d0"],
            mean.replace("%r =", "%square =") + "\n    %u = arith.constant 1.0e-5 : f32"
            "\n    %above = arith.addf %square, %u : f32\n    %r = math.rsqrt %above : f32",
        )
        + write_elementwise(to, [(f"{to}_c", shape), (f"{to}_h", (m,))], shape, ["d0, d1", "d0"], MUL)
    )


def make_transformer(rows: int, width: int, heads: int, inner: int) -> Testcase:
    """Return attention per head, then two dense layers, with normalizations before and residual sums after."""
    size = width // heads
    wide, head = (rows, width), (rows, size)
    body = write_normalization("%n1", "%x", wide)
    body += "".join(write_product(f"%{name}", "%n1", f"%w{name}", rows, width, width) for name in "qkv")
    body += f"\n  %joined0 = arith.constant dense<0.0> : {write_type(wide)}"
    for at in range(heads):
        for name in "qkv":
            body += (f"\n  %{name}{at} = tensor.extract_slice %{name}[0, {at * size}] [{rows}, {size}] [1, 1]"
                     f" : {write_type(wide)} to {write_type(head)}")  # fmt: skip
        body += f"""
  %kt{at}_e = tensor.empty() : {write_type((size, rows))}
  %kt{at} = linalg.transpose ins(%k{at} : {write_type(head)}) outs(%kt{at}_e : {write_type((size, rows))})
    permutation = [1, 0]"""
        body += write_product(f"%s{at}", f"%q{at}", f"%kt{at}", rows, size, rows)
        body += write_softmax(f"%p{at}", f"%s{at}", (rows, rows))
        body += write_product(f"%o{at}", f"%p{at}", f"%v{at}", rows, rows, size)
        body += (f"\n  %joined{at + 1} = tensor.insert_slice %o{at} into %joined{at}[0, {at * size}] [{rows}, {size}]"
                 f" [1, 1] : {write_type(head)} into {write_type(wide)}")  # fmt: skip
    two = ["d0, d1", "d0, d1"]
    body += write_product("%y", f"%joined{heads}", "%wo", rows, width, width) + write_elementwise(
        "%a", [("%x", wide), ("%y", wide)], wide, two, ADD
    )
    body += write_normalization("%n2", "%a", wide) + write_product("%h", "%n2", "%w1", rows, width, inner)
    body += write_elementwise("%t", [("%h", (rows, inner))], (rows, inner), ["d0, d1"], TANH)
    body += write_product("%g", "%t", "%w2", rows, inner, width)
    body += write_elementwise("%r", [("%a", wide), ("%g", wide)], wide, two, ADD)
    square = (width, width)
    shapes = {"%x": wide, "%wq": square, "%wk": square, "%wv": square, "%wo": square,
              "%w1": (width, inner), "%w2": (inner, width)}  # fmt: skip
    mlir = write_function([(name, write_type(shape)) for name, shape in shapes.items()], body, "%r", write_type(wide))
    inputs = (write_ramp(shape, 0.05 + 0.01 * at, period=7 + at) for at, shape in enumerate(shapes.values()))
    return make_execution(mlir, *inputs)


def write_convolution(to: str, image: str, weights: str, size: int, into: tuple[int, int], kernel: int = 3) -> str:
    """Return a convolution (no padding, stride 1, NHWC and HWCF) with a rectifier, ``size - kernel + 1`` wide."""
    left = size - kernel + 1
    a, w, out = (1, size, size, into[0]), (kernel, kernel, *into), (1, left, left, into[1])
    return f"""
  {to}_z = arith.constant dense<0.0> : {write_type(out)}
  {to}_c = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
    ins({image}, {weights} : {write_type(a)}, {write_type(w)})
    outs({to}_z : {write_type(out)}) -> {write_type(out)}""" + write_elementwise(
        to, [(f"{to}_c", out)], out, ["d0, d1, d2, d3"], RELU
    )


def make_network() -> Testcase:
    """Return two convolutions, a pool of two by two, a mean over the image and a dense layer."""
    image, w1, w2, w3 = (1, 14, 14, 3), (3, 3, 3, 8), (3, 3, 8, 8), (8, 4)
    pooled, wide = (1, 5, 5, 8), (1, 10, 10, 8)
    body = write_convolution("%a", "%x", "%w1", 14, (3, 8)) + write_convolution("%b", "%a", "%w2", 12, (8, 8))
    body += f"""
  %low = arith.constant -1.0e30 : f32
  %pe = tensor.empty() : {write_type(pooled)}
  %pi = linalg.fill ins(%low : f32) outs(%pe : {write_type(pooled)}) -> {write_type(pooled)}
  %window = tensor.empty() : tensor<2x2xf32>
  %p = linalg.pooling_nhwc_max {{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}}
    ins(%b, %window : {write_type(wide)}, tensor<2x2xf32>) outs(%pi : {write_type(pooled)}) -> {write_type(pooled)}
  %flat = tensor.collapse_shape %p [[0, 1, 2], [3]] : {write_type(pooled)} into tensor<25x8xf32>"""
    body += write_reduction("%m", "%flat", (25, 8), 0, "arith.addf", "0.0")
    body += "\n  %row = tensor.expand_shape %m [[0, 1]] output_shape [1, 8] : tensor<8xf32> into tensor<1x8xf32>"
    body += write_product("%r", "%row", "%w3", 1, 8, 4)
    shapes = {"%x": image, "%w1": w1, "%w2": w2, "%w3": w3}
    mlir = write_function(
        [(name, write_type(shape)) for name, shape in shapes.items()], body, "%r", "tensor<1x4xf32>"
    )
    return make_execution(
        mlir, *(write_ramp(shape, 0.125, period=5 + 2 * at) for at, shape in enumerate(shapes.values()))
    )


def make_residual_network() -> Testcase:
    """Return three residual blocks, each with a padded convolution."""
    size, depth = 10, 6
    image = (1, size, size, depth)
    padded = (1, size + 2, size + 2, depth)
    body, current = "\n  %zero = arith.constant 0.0 : f32", "%x"
    for at in range(3):
        body += f"""
  %p{at} = tensor.pad {current} low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  }} : {write_type(image)} to {write_type(padded)}"""
        body += write_convolution(f"%c{at}", f"%p{at}", f"%w{at}", size + 2, (depth, depth))
        body += write_elementwise(
            f"%y{at}", [(current, image), (f"%c{at}", image)], image, ["d0, d1, d2, d3"] * 2, ADD
        )
        current = f"%y{at}"
    shapes = {"%x": image, **{f"%w{at}": (3, 3, depth, depth) for at in range(3)}}
    mlir = write_function(
        [(name, write_type(shape)) for name, shape in shapes.items()], body, current, write_type(image)
    )
    return make_execution(
        mlir, *(write_ramp(shape, 0.0625, period=7 + 2 * at) for at, shape in enumerate(shapes.values()))
    )


def make_dense_layers(widths: Sequence[int], rows: int, between: str) -> Testcase:
    """Return dense layers with biases, and a function between them."""
    body, current = "", "%x"
    shapes: dict[str, tuple[int, ...]] = {"%x": (rows, widths[0])}
    for at, (k, n) in enumerate(pairwise(widths)):
        shapes |= {f"%w{at}": (k, n), f"%b{at}": (n,)}
        body += write_product(f"%m{at}", current, f"%w{at}", rows, k, n)
        body += write_elementwise(
            f"%s{at}", [(f"%m{at}", (rows, n)), (f"%b{at}", (n,))], (rows, n), ["d0, d1", "d1"], ADD
        )
        body += write_elementwise(f"%y{at}", [(f"%s{at}", (rows, n))], (rows, n), ["d0, d1"], between)
        current = f"%y{at}"
    mlir = write_function(
        [(name, write_type(shape)) for name, shape in shapes.items()], body, current, write_type((rows, widths[-1]))
    )
    return make_execution(mlir, *(write_ramp(shape, 0.1, period=5 + at) for at, shape in enumerate(shapes.values())))


def make_generic(ins: Sequence[Sequence[int]], shape: Sequence[int], maps: Sequence[str], body: str) -> Testcase:
    """Return a testcase of one generic operation."""
    named = [(f"%a{at}", one) for at, one in enumerate(ins)]
    mlir = write_function(
        [(name, write_type(one)) for name, one in named],
        write_elementwise("%y", named, shape, maps, body),
        "%y",
        write_type(shape),
    )
    return make_execution(mlir, *(write_ramp(one, period=5 + 2 * at) for at, one in enumerate(ins)))


def make_gather(ins: Sequence[int], shape: Sequence[int], index: str) -> Testcase:
    """Return a gather along one axis at the computed index ``%i``, which is in bounds."""
    kind = write_type(ins)
    text = write_elementwise("%y", [], shape, [], f"{index}\n    %r = tensor.extract %a[%i] : {kind}")
    return make_execution(write_function([("%a", kind)], text, "%y", write_type(shape)), write_ramp(ins))


CUMULATIVE = """\
func.func @f(%x: tensor<9xf32>) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %z = arith.constant 0.0 : f32
  %e = arith.constant dense<0.0> : tensor<9xf32>
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%sum = %z, %to = %e) -> (f32, tensor<9xf32>) {
    %v = tensor.extract %x[%i] : tensor<9xf32>
    %s = arith.addf %sum, %v : f32
    %n = tensor.insert %s into %to[%i] : tensor<9xf32>
    scf.yield %s, %n : f32, tensor<9xf32>
  }
  return %r#1 : tensor<9xf32>
}
"""
HISTOGRAM = """\
func.func @f(%x: tensor<12xi32>) -> tensor<5xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %one = arith.constant 1 : i32
  %e = arith.constant dense<0> : tensor<5xi32>
  %r = scf.for %i = %c0 to %c12 step %c1 iter_args(%to = %e) -> (tensor<5xi32>) {
    %v = tensor.extract %x[%i] : tensor<12xi32>
    %bin = arith.index_cast %v : i32 to index
    %old = tensor.extract %to[%bin] : tensor<5xi32>
    %new = arith.addi %old, %one : i32
    %n = tensor.insert %new into %to[%bin] : tensor<5xi32>
    scf.yield %n : tensor<5xi32>
  }
  return %r : tensor<5xi32>
}
"""
ROOT = """\
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %a = tensor.extract %x[] : tensor<f32>
  %half = arith.constant 0.5 : f32
  %close = arith.constant 1.0e-4 : f32
  %r = scf.while (%g = %a) : (f32) -> f32 {
    %sq = arith.mulf %g, %g : f32
    %off = arith.subf %sq, %a : f32
    %more = arith.cmpf ogt, %off, %close : f32
    scf.condition(%more) %g : f32
  } do {
  ^bb0(%g: f32):
    %q = arith.divf %a, %g : f32
    %s = arith.addf %g, %q : f32
    %n = arith.mulf %s, %half : f32
    scf.yield %n : f32
  }
  %t = tensor.from_elements %r : tensor<f32>
  return %t : tensor<f32>
}
"""
LARGEST = """\
#row = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %low = arith.constant dense<-1.0e30> : tensor<4xf32>
  %none = arith.constant dense<0> : tensor<4xi32>
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%low, %none : tensor<4xf32>, tensor<4xi32>) {
  ^bb0(%v: f32, %best: f32, %at: i32):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i32
    %more = arith.cmpf ogt, %v, %best : f32
    %b = arith.select %more, %v, %best : f32
    %p = arith.select %more, %here, %at : i32
    linalg.yield %b, %p : f32, i32
  } -> (tensor<4xf32>, tensor<4xi32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}
"""
QUANTISED = """\
func.func @f(%a: tensor<5x8xi8>, %b: tensor<8x6xi8>) -> tensor<5x6xi32> {
  %z = arith.constant dense<0> : tensor<5x6xi32>
  %m = linalg.matmul ins(%a, %b : tensor<5x8xi8>, tensor<8x6xi8>) outs(%z : tensor<5x6xi32>) -> tensor<5x6xi32>
  return %m : tensor<5x6xi32>
}
"""
BATCHED = """\
func.func @f(%a: tensor<3x4x5xf32>, %b: tensor<3x5x2xf32>) -> tensor<3x4x2xf32> {
  %z = arith.constant dense<0.0> : tensor<3x4x2xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<3x4x5xf32>, tensor<3x5x2xf32>)
    outs(%z : tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  return %m : tensor<3x4x2xf32>
}
"""
VECTORS = """\
func.func @f(%a: tensor<6x9xf32>, %x: tensor<9xf32>, %y: tensor<6xf32>) -> tensor<f32> {
  %z = arith.constant dense<0.0> : tensor<6xf32>
  %v = linalg.matvec ins(%a, %x : tensor<6x9xf32>, tensor<9xf32>) outs(%z : tensor<6xf32>) -> tensor<6xf32>
  %s = arith.constant dense<0.0> : tensor<f32>
  %d = linalg.dot ins(%v, %y : tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %d : tensor<f32>
}
"""
DEPTHWISE = """\
func.func @f(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4xf32>) -> tensor<1x6x6x4xf32> {
  %z = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %c = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4xf32>) outs(%z : tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  return %c : tensor<1x6x6x4xf32>
}
"""
POOLED = """\
func.func @f(%x: tensor<1x7x7x3xf32>) -> tensor<1x3x3x3xf32> {
  %z = arith.constant dense<0.0> : tensor<1x3x3x3xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %p = linalg.pooling_nhwc_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x7x7x3xf32>, tensor<3x3xf32>) outs(%z : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  %nine = arith.constant dense<9.0> : tensor<1x3x3x3xf32>
  %m = arith.divf %p, %nine : tensor<1x3x3x3xf32>
  return %m : tensor<1x3x3x3xf32>
}
"""
JOINED = """\
func.func @f(%a: tensor<2x5xf32>, %b: tensor<3x5xf32>) -> tensor<5x5xf32> {
  %e = tensor.empty() : tensor<5x5xf32>
  %one = tensor.insert_slice %a into %e[0, 0] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<5x5xf32>
  %two = tensor.insert_slice %b into %one[2, 0] [3, 5] [1, 1] : tensor<3x5xf32> into tensor<5x5xf32>
  return %two : tensor<5x5xf32>
}
"""
SHAPES = """\
func.func @f(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
  %e = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%c : tensor<6x4xf32>) outs(%e : tensor<4x6xf32>) permutation = [1, 0]
  %s = math.sqrt %t : tensor<4x6xf32>
  return %s : tensor<4x6xf32>
}
"""
EVERY_OTHER = """\
func.func @f(%x: tensor<9x5xf32>) -> tensor<5x3xf32> {
  %s = tensor.extract_slice %x[0, 0] [5, 3] [2, 2] : tensor<9x5xf32> to tensor<5x3xf32>
  %d = arith.addf %s, %s : tensor<5x3xf32>
  return %d : tensor<5x3xf32>
}
"""
ANY_ROWS = """\
func.func @f(%x: tensor<?x6xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x6xf32>) outs(%i : tensor<?xf32>) dimensions = [1]
  return %s : tensor<?xf32>
}
"""
CALLED = """\
func.func private @double(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = arith.addf %x, %x : tensor<5xf32>
  return %y : tensor<5xf32>
}
func.func @f(%x: tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %a = call @double(%x) : (tensor<5xf32>) -> tensor<5xf32>
  %b = call @double(%a) : (tensor<5xf32>) -> tensor<5xf32>
  return %a, %b : tensor<5xf32>, tensor<5xf32>
}
"""
STATE = """\
util.global private mutable @total = dense<1.0> : tensor<4xf32>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = util.global.load @total : tensor<4xf32>
  %s = arith.addf %t, %x : tensor<4xf32>
  util.global.store %s, @total : tensor<4xf32>
  %u = util.global.load @total : tensor<4xf32>
  %r = arith.mulf %u, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
BITS = """\
func.func @f(%x: tensor<8xi32>, %y: tensor<8xi32>) -> tensor<8xi32> {
  %three = arith.constant dense<3> : tensor<8xi32>
  %a = arith.shli %x, %three : tensor<8xi32>
  %b = arith.shrsi %y, %three : tensor<8xi32>
  %c = arith.xori %a, %b : tensor<8xi32>
  %less = arith.cmpi slt, %x, %y : tensor<8xi32>
  %r = arith.select %less, %c, %x : tensor<8xi1>, tensor<8xi32>
  return %r : tensor<8xi32>
}
"""
WIDE_INTEGERS = """\
func.func @f(%x: tensor<6xi64>, %y: tensor<6xi64>) -> tensor<6xi64> {
  %p = arith.muli %x, %y : tensor<6xi64>
  %m = arith.maxsi %p, %y : tensor<6xi64>
  %s = arith.subi %m, %x : tensor<6xi64>
  return %s : tensor<6xi64>
}
"""
HALF = """\
func.func @f(%x: tensor<6xf16>) -> tensor<6xf32> {
  %w = arith.extf %x : tensor<6xf16> to tensor<6xf32>
  %s = arith.mulf %w, %w : tensor<6xf32>
  return %s : tensor<6xf32>
}
"""
TOSA = """\
func.func @f(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = tosa.add %x, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %b = tosa.tanh %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %c = tosa.sub %b, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %c : tensor<3x4xf32>
}
"""
STEPS = """\
func.func @f(%x: tensor<5x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %z = arith.constant dense<0.0> : tensor<1x4xf32>
  %r = scf.for %t = %c0 to %c5 step %c1 iter_args(%h = %z) -> (tensor<1x4xf32>) {
    %s = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<1x4xf32>
    %m = linalg.matmul ins(%h, %w : tensor<1x4xf32>, tensor<4x4xf32>) outs(%s : tensor<1x4xf32>) -> tensor<1x4xf32>
    %n = math.tanh %m : tensor<1x4xf32>
    scf.yield %n : tensor<1x4xf32>
  }
  return %r : tensor<1x4xf32>
}
"""
BAG = """\
func.func @f(%table: tensor<6x3xf32>, %rows: tensor<4xi32>) -> tensor<3xf32> {
  %z = arith.constant dense<0.0> : tensor<3xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%rows : tensor<4xi32>) outs(%z : tensor<3xf32>) {
  ^bb0(%row: i32, %sum: f32):
    %at = arith.index_cast %row : i32 to index
    %i = linalg.index 0 : index
    %v = tensor.extract %table[%at, %i] : tensor<6x3xf32>
    %s = arith.addf %sum, %v : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""
CAUSAL = """%i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %seen = arith.cmpi ule, %j, %i : index
    %low = arith.constant -1.0e9 : f32
    %r = arith.select %seen, %x0, %low : f32"""
REVERSED = """%j = linalg.index 0 : index
    %last = arith.constant 8 : index
    %i = arith.subi %last, %j : index"""
ROLLED = """%j = linalg.index 0 : index
    %by = arith.constant 4 : index
    %size = arith.constant 9 : index
    %k = arith.addi %j, %by : index
    %i = arith.remui %k, %size : index"""
NEAREST = """%j = linalg.index 0 : index
    %two = arith.constant 2 : index
    %i = arith.divui %j, %two : index"""
PAIRS = """%j = linalg.index 0 : index
    %k = linalg.index 1 : index
    %i = arith.addi %j, %k : index"""
ONE_HOT = """%j = linalg.index 1 : index
    %at = arith.index_cast %j : index to i32
    %f = arith.sitofp %at : i32 to f32
    %same = arith.cmpf oeq, %x0, %f : f32
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %r = arith.select %same, %one, %zero : f32"""
POLYNOMIAL = """%a = arith.mulf %x0, %x0 : f32
    %b = math.fma %a, %x1, %x0 : f32
    %c = math.absf %b : f32
    %r = arith.subf %c, %x1 : f32"""


def list_valid_programs() -> Iterator[tuple[str, Testcase]]:
    yield "transformer block of two heads", make_transformer(6, 16, 2, 32)
    yield "transformer block of four heads", make_transformer(9, 32, 4, 48)
    yield "convolutional network", make_network()
    yield "residual network of three blocks", make_residual_network()
    yield "three dense layers", make_dense_layers((7, 16, 12, 5), 4, RELU)
    yield "four dense layers, by tanh", make_dense_layers((5, 9, 9, 9, 3), 3, TANH)
    yield "dense layer of many, by a sigmoid", make_dense_layers((64, 33), 17, SIGMOID)
    yield (
        "softmax by hand",
        make_execution(
            write_function([("%x", "tensor<5x9xf32>")], write_softmax("%y", "%x", (5, 9)), "%y", "tensor<5x9xf32>"),
            write_ramp((5, 9)),
        ),
    )
    yield (
        "normalised rows",
        make_execution(
            write_function(
                [("%x", "tensor<4x10xf32>")], write_normalization("%y", "%x", (4, 10)), "%y", "tensor<4x10xf32>"
            ),
            write_ramp((4, 10)),
        ),
    )
    yield "recurrent steps", make_execution(STEPS, write_ramp((5, 4)), write_ramp((4, 4), 0.125))
    yield "bag of rows", make_execution(BAG, write_ramp((6, 3)), "4xi32=0,5,5,2")
    yield "causal mask", make_generic([(6, 6)], (6, 6), ["d0, d1"], CAUSAL)
    yield "reversed", make_gather((9,), (9,), REVERSED)
    yield "rolled", make_gather((9,), (9,), ROLLED)
    yield "twice as wide, nearest", make_gather((5,), (10,), NEAREST)
    yield "windows up to the edge", make_gather((9,), (6, 4), PAIRS)
    yield (
        "one-hot",
        make_execution(
            write_function(
                [("%a", "tensor<5xf32>")],
                write_elementwise("%y", [("%a", (5,))], (5, 4), ["d0"], ONE_HOT),
                "%y",
                "tensor<5x4xf32>",
            ),
            "5xf32=0,3,1,2,3",
        ),
    )
    yield "outer product", make_generic([(4,), (6,)], (4, 6), ["d0", "d1"], MUL)
    yield "broadcast row and column", make_generic([(4, 1), (1, 6)], (4, 6), ["d0, 0", "0, d1"], ADD)
    yield (
        "transposed in three dimensions",
        make_generic([(2, 3, 4)], (4, 2, 3), ["d1, d2, d0"], "%r = arith.negf %x0 : f32"),
    )
    yield "polynomial", make_generic([(7, 3), (7, 3)], (7, 3), ["d0, d1"] * 2, POLYNOMIAL)
    yield "large, element by element", make_generic([(61, 67), (61, 67)], (61, 67), ["d0, d1"] * 2, POLYNOMIAL)
    yield "diagonal", make_generic([(6, 6)], (6,), ["d0, d0"], "%r = math.exp %x0 : f32")
    yield "cumulative sum", make_execution(CUMULATIVE, write_ramp((9,)))
    yield "histogram", make_execution(HISTOGRAM, "12xi32=0,4,4,1,2,0,3,3,3,4,0,1")
    yield "square root by steps", make_execution(ROOT, "f32=2")
    yield "largest of each row and where", make_execution(LARGEST, write_ramp((4, 7), period=5))
    yield (
        "matmul of bytes",
        make_execution(QUANTISED, write_ramp((5, 8), kind="i8"), write_ramp((8, 6), kind="i8", period=7)),
    )
    yield "batch of products", make_execution(BATCHED, write_ramp((3, 4, 5)), write_ramp((3, 5, 2), period=7))
    yield "matrix, vector, number", make_execution(VECTORS, write_ramp((6, 9)), write_ramp((9,)), write_ramp((6,)))
    yield "depthwise convolution", make_execution(DEPTHWISE, write_ramp((1, 8, 8, 4)), write_ramp((3, 3, 4)))
    yield "means of windows", make_execution(POOLED, write_ramp((1, 7, 7, 3)))
    yield "joined", make_execution(JOINED, write_ramp((2, 5)), write_ramp((3, 5)))
    yield "other shapes", make_execution(SHAPES, "2x3x4xf32=4")
    yield "every other row and column", make_execution(EVERY_OTHER, write_ramp((9, 5)))
    yield "sums of any number of rows", make_execution(ANY_ROWS, write_ramp((5, 6)))
    yield "called twice, two results", make_execution(CALLED, write_ramp((5,)))
    yield "state between two uses", make_execution(STATE, write_ramp((4,)))
    yield (
        "bits and a choice",
        make_execution(BITS, write_ramp((8,), kind="i32"), write_ramp((8,), kind="i32", period=7)),
    )
    yield "wide integers", make_execution(WIDE_INTEGERS, "6xi64=1,-2,3,4000000000,5,-6", "6xi64=7,8,-9,10,0,12")
    yield "half precision, widened", make_execution(HALF, "6xf16=0.5,1.5,-2,3,-4,8")
    yield "TOSA", make_execution(TOSA, write_ramp((3, 4)), write_ramp((3, 4), period=5))
