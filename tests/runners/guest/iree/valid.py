"""Valid IREE programs, some with accesses at the edges of their tensors. No diagnoser may report a fault."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from runners.core.protocol import Testcase
from tests.runners.guest.iree import faults, larger as iree_larger
from tests.runners.guest.iree.faults import make_execution

LAST_ELEMENT = """\
func.func @f(%t: tensor<6x4xf32>, %i: index) -> tensor<1xf32> {
  %c3 = arith.constant 3 : index
  %two = arith.constant 2 : index
  %row = arith.addi %i, %two : index
  %v = tensor.extract %t[%row, %c3] : tensor<6x4xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}
"""
GUARDED = """\
func.func @f(%t: tensor<6xf32>, %i: index) -> tensor<1xf32> {
  %c6 = arith.constant 6 : index
  %z = arith.constant 0.0 : f32
  %inside = arith.cmpi ult, %i, %c6 : index
  %v = scf.if %inside -> (f32) {
    %w = tensor.extract %t[%i] : tensor<6xf32>
    scf.yield %w : f32
  } else {
    scf.yield %z : f32
  }
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}
"""
CLAMPED = """\
func.func @f(%t: tensor<6xf32>, %i: index) -> tensor<1xf32> {
  %c5 = arith.constant 5 : index
  %c0 = arith.constant 0 : index
  %low = arith.maxsi %i, %c0 : index
  %at = arith.minsi %low, %c5 : index
  %v = tensor.extract %t[%at] : tensor<6xf32>
  %r = tensor.from_elements %v : tensor<1xf32>
  return %r : tensor<1xf32>
}
"""
GATHER = """\
func.func @f(%t: tensor<5x3xf32>, %rows: tensor<4xi32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4xi32>) outs(%e : tensor<4x3xf32>) {
  ^bb0(%row: i32, %o: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<5x3xf32>
    linalg.yield %v : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""
RECURRENCE = """\
func.func @f(%x: tensor<7xf32>, %by: tensor<7xf32>) -> tensor<7xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %x) -> (tensor<7xf32>) {
    %a = arith.mulf %h, %by : tensor<7xf32>
    %b = arith.addf %a, %x : tensor<7xf32>
    scf.yield %b : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}
"""
OVERWRITTEN = """\
func.func @f(%x: tensor<8x8xf32>, %part: tensor<3x8xf32>) -> tensor<8x8xf32> {
  %y = tensor.insert_slice %part into %x[5, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<8x8xf32>
  %z = arith.addf %y, %x : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
"""
CONVOLUTION = """\
func.func @f(%x: tensor<1x9x9x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<1x4x4x8xf32> {
  %z = arith.constant dense<0.0> : tensor<1x4x4x8xf32>
  %c = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x9x9x3xf32>, tensor<3x3x3x8xf32>) outs(%z : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %r = arith.maximumf %c, %z : tensor<1x4x4x8xf32>
  return %r : tensor<1x4x4x8xf32>
}
"""
DYNAMIC = """\
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x5xf32>) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %m = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x5xf32>) outs(%z : tensor<?x5xf32>) -> tensor<?x5xf32>
  return %m : tensor<?x5xf32>
}
"""
SOFTMAX = """\
func.func @f(%q: tensor<6x8xf32>, %k: tensor<8x6xf32>, %v: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %z = arith.constant dense<0.0> : tensor<6x6xf32>
  %e = tensor.empty() : tensor<6x6xf32>
  %s = linalg.matmul ins(%q, %k : tensor<6x8xf32>, tensor<8x6xf32>) outs(%z : tensor<6x6xf32>) -> tensor<6x6xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %y = arith.constant dense<0.0> : tensor<6x8xf32>
  %r = linalg.matmul ins(%p, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%y : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
"""


def list_valid_programs() -> Iterator[tuple[str, Testcase]]:
    yield "last element, by a sum", make_execution(LAST_ELEMENT, "6x4xf32=1", "3")
    yield "index beyond, guarded", make_execution(GUARDED, "6xf32=1", "9")
    yield "index below, clamped", make_execution(CLAMPED, "6xf32=1", "-4")
    yield "gather of first and last rows", make_execution(GATHER, "5x3xf32=2", "4xi32=0,4,4,0")
    yield "recurrence", make_execution(RECURRENCE, "7xf32=1,2,3,4,5,6,7", "7xf32=0.5")
    yield "last rows overwritten", make_execution(OVERWRITTEN, "8x8xf32=1", "3x8xf32=2")
    yield "convolution with strides", make_execution(CONVOLUTION, "1x9x9x3xf32=0.5", "3x3x3x8xf32=0.25")
    yield "matmul of any number of rows", make_execution(DYNAMIC, "11x8xf32=0.5", "8x5xf32=2")
    yield "attention", make_execution(SOFTMAX, "6x8xf32=0.1", "8x6xf32=0.2", "6x8xf32=0.3")
    yield from faults.list_valid_programs()
    yield from iree_larger.list_valid_programs()


@functools.cache
def make_valid_programs() -> Mapping[str, Testcase]:
    """Return the programs of this module, of ``faults.py`` and of ``larger.py`` by their titles."""
    return MappingProxyType(dict(list_valid_programs()))
