"""Inputs on which the broken builds crash, refuse, hang, or write nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.proving.planted.families.iree.make import INNOCENT, failing
from bench.proving.planted.families.iree.text import Shape, function, on_elements, on_tensors, steps, tensor
from bench.proving.planted.program import Program


def crashes() -> Iterator[Program]:
    """Inputs on which the compiler dies by a signal, or never ends."""
    shape: Shape
    for n, size in enumerate([4, 6]):
        kind, out = tensor((1, 2, size, size), "f32"), tensor((1, 2, size // 2, size // 2), "f32")
        text = f"""\
func.func @main(%x: {kind}) -> {out} {{
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : {out}
  %init = linalg.fill ins(%least : f32) outs(%empty : {out}) -> {out}
  %p = linalg.pooling_nchw_max {{dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}}
    ins(%x, %window : {kind}, tensor<2x2xf32>) outs(%init : {out}) -> {out}
  return %p : {out}
}}
"""
        yield failing(
            f"pooling-{n}",
            "crash-pooling",
            "iree-compile segfaults on a max pooling with strides",
            text,
            "signal 11",
            claim="crash",
        )
    for n, shape in enumerate([(2, 1, 3, 2), (1, 2, 2, 4)]):
        kind, flat = tensor(shape, "f32"), tensor((math.prod(shape),), "f32")
        text = function(f"%x: {kind}", flat, f"%r = tensor.collapse_shape %x [[0, 1, 2, 3]] : {kind} into {flat}")
        yield failing(
            f"collapse-{n}",
            "crash-collapse",
            f"abort when collapsing {kind} to one dimension",
            text,
            "signal 6",
            claim="crash",
        )
    for n, (channels, filters) in enumerate([(3, 2), (1, 4)]):
        x, w, y = (
            tensor((1, 4, 4, channels), "f32"),
            tensor((1, 1, channels, filters), "f32"),
            tensor((1, 4, 4, filters), "f32"),
        )
        text = f"""\
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {y}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %c = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
    ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %c : {y}
}}
"""
        yield failing(
            f"pointwise-{n}",
            "crash-pointwise",
            f"crash compiling a 1x1 convolution with {filters} filters",
            text,
            "signal 11",
            claim="crash",
        )
    for n, op in enumerate(["arith.addf", "arith.mulf"]):
        kind = "tensor<?x?x?xf32>"
        text = function(f"%a: {kind}, %b: {kind}", kind, f"%r = {op} %a, %b : {kind}")
        yield failing(
            f"dynamic-{n}",
            "crash-dynamic",
            f"floating point exception: {op} on {kind}",
            text,
            "signal 8",
            claim="crash",
        )
    for n, size in enumerate([8, 16]):
        text = on_tensors((size,), "i4", 1, [f"%r = arith.extui %a : T to tensor<{size}xi32>"], f"tensor<{size}xi32>")
        yield failing(
            f"nibbles-{n}",
            "crash-nibbles",
            f"segmentation fault for tensor<{size}xi4>",
            text,
            "signal 11",
            claim="crash",
        )
    for n, shape in enumerate([(3,), (2, 2)]):
        kind = tensor(shape, "complex<f32>")
        text = on_elements(shape, "complex<f32>", 1, ["%r = complex.re %a_in : complex<f32>"], "f32")
        yield failing(
            f"complex-{n}",
            "crash-complex",
            f"taking the real part of {kind} crashes the compiler",
            text,
            "signal 11",
            claim="crash",
        )
    for n, condition in enumerate(["slt", "eq"]):
        text = f"""\
func.func @main(%a: i32, %b: i32) -> i32 {{
  %c = arith.cmpi {condition}, %a, %b : i32
  %r = scf.if %c -> (i32) {{
    scf.yield %a : i32
  }} else {{
    %s = arith.addi %a, %b : i32
    scf.yield %s : i32
  }}
  return %r : i32
}}
"""
        commands = (("iree-opt", "--canonicalize", "branch.mlir"),)
        yield failing(
            f"branch-{n}",
            "crash-opt",
            f"iree-opt --canonicalize crashes on an scf.if ({condition})",
            text,
            "signal 11",
            claim="crash",
            commands=commands,
        )
    text = """\
func.func @main(%n: i32) -> i32 {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %r = scf.while (%i = %one) : (i32) -> i32 {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.muli %i, %two : i32
    scf.yield %next : i32
  }
  return %r : i32
}
"""
    yield failing("doubling-0", "hang-while", "compiling a while loop never ends", text, "", claim="hang")
    text = """\
func.func @main(%x: tensor<3xf32>) -> tensor<6xf32> {
  %empty = tensor.empty() : tensor<6xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%empty : tensor<6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %k = affine.apply affine_map<(d0) -> (d0 mod 3)>(%i)
    %v = tensor.extract %x[%k] : tensor<3xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}
"""
    yield failing("wrapped-0", "hang-mod", "iree-compile hangs on an index modulo 3", text, "", claim="hang")


def refusals() -> Iterator[Program]:
    """Inputs that the compiler refuses with a diagnostic."""
    for n, shape in enumerate([(4,), (2, 3)]):
        text = on_elements(shape, "f64", 1, ["%r = math.erf %a_in : T"])
        yield failing(
            f"erf-{n}",
            "refused-erf",
            f"failed to legalize math.erf on {tensor(shape, 'f64')}",
            text,
            "failed to legalize operation 'math.erf'",
            claim="error",
        )
    for n, shape in enumerate([(2, 4), (3, 5)]):
        kind = tensor(shape, "f32")
        text = f"""\
func.func @main(%x: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %s = linalg.softmax dimension(1) ins(%x : {kind}) outs(%empty : {kind}) -> {kind}
  return %s : {kind}
}}
"""
        yield failing(
            f"softmax-{n}",
            "refused-softmax",
            f"linalg.softmax on {kind} does not compile",
            text,
            "could not be decomposed",
            claim="error",
        )
    for n, shape in enumerate([(4,), (2, 2)]):
        text = on_elements(shape, "bf16", 2, ["%r = arith.addf %a_in, %b_in : T"])
        yield failing(
            f"bf16-{n}",
            "refused-bf16",
            f"unhandled element type in an addition of {tensor(shape, 'bf16')}",
            text,
            "unhandled element type 'bf16'",
            claim="error",
        )
    for n, shape in enumerate([(5,), (3, 2)]):
        text = on_elements(shape, "f32", 1, ["%r = math.cbrt %a_in : T"])
        yield failing(
            f"cbrt-{n}",
            "refused-cbrt",
            f"math.cbrt cannot be compiled for {tensor(shape, 'f32')}",
            text,
            "failed to legalize operation 'math.cbrt'",
            claim="error",
        )
    for n, values in enumerate([(10, 20), (7, 9, 11)]):
        cases = "".join(
            f"  case {i} {{\n    %v{i} = arith.constant {v} : i32\n    scf.yield %v{i} : i32\n  }}\n"
            for i, v in enumerate(values)
        )
        text = f"""\
func.func @main(%i: index) -> i32 {{
  %r = scf.index_switch %i -> i32
{cases}  default {{
    %v = arith.constant 0 : i32
    scf.yield %v : i32
  }}
  return %r : i32
}}
"""
        yield failing(
            f"switch-{n}",
            "refused-switch",
            f"scf.index_switch with {len(values)} cases is refused",
            text,
            "expected at most 2 regions",
            claim="error",
        )


def without_output() -> Iterator[Program]:
    """Compilations that end well and write an empty file, or ignore a flag."""
    for n, values in enumerate([[1.0, 2.0, 3.0], [0.5, -1.0, 8.0]]):
        text = function("", "tensor<3xf32>", f"%r = arith.constant dense<{values}> : tensor<3xf32>")
        commands = steps("constant_only", [])
        program = failing(
            f"constant-only-{n}",
            "empty-output",
            "the module of a function without arguments cannot be loaded",
            text,
            "constant_only.vmfb",
            claim="error",
            commands=commands,
        )
        yield program
    for n, start in enumerate([0, 40]):
        text = f"""\
util.global private mutable @count = {start} : i32
func.func @main() -> i32 {{
  %one = arith.constant 1 : i32
  %old = util.global.load @count : i32
  %new = arith.addi %old, %one : i32
  util.global.store %new, @count : i32
  return %new : i32
}}
"""
        yield failing(
            f"counter-{n}",
            "empty-output",
            "iree-compile writes an empty file for a module with a mutable global",
            text,
            "counter.vmfb",
            claim="error",
            commands=steps("counter", []),
        )
    for n, (once, twice) in enumerate([("addi", "muli"), ("subi", "muli")]):
        text = f"""\
func.func @main(%a: i32, %b: i32) -> i32 {{
  %x = arith.{once} %a, %b : i32
  %y = arith.{once} %a, %b : i32
  %r = arith.{twice} %x, %y : i32
  return %r : i32
}}
"""
        kept = f"    %0 = arith.{once} %arg0, %arg1 : i32\n    %1 = arith.{twice} %0, %0 : i32"
        yield Program(
            name=f"iree-both-flags-{n}", family="iree-flag-ignored", toolchain="iree",
            title="iree-opt does not run cse when canonicalize is given too", files={"both_flags.mlir": text},
            steps=(("iree-opt", "--cse", "--verify-each", "--canonicalize", "both_flags.mlir"),),
            claim="wrong-result",
            ending="printed", right=kept, findings=INNOCENT,
        )  # fmt: skip
