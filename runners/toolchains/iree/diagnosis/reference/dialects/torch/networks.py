"""Run products, pools and normalizations of the torch dialect. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import Number
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import NOTHING, Call, Run, join_shapes, map_each
from runners.toolchains.iree.diagnosis.reference.dialects.torch.reductions import find_greatest, list_rows
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Index, Values, check_steps, find_place, list_elements


def _multiply(call: Call, a: Values, b: Values) -> Values:
    """Multiply two matrices, or a batch of them."""
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise UndefinedResult("matrices that do not fit")
    outer = join_shapes(Values("i1", (0,), a.shape[:-2]), Values("i1", (0,), b.shape[:-2]))[0].shape
    left, right = (
        tensors.broadcast(one, (*outer, *one.shape[-2:]), range(len(outer) + 2 - len(one.shape), len(outer) + 2))
        for one in (a, b)
    )
    depth = a.shape[-1]
    to = TensorType((*outer, a.shape[-2], b.shape[-1]), call.element)
    check_steps(math.prod(to.shape) * depth)
    first, second = list_elements(left), list_elements(right)
    sums = [
        [
            first[find_place(left.shape, (*index[:-1], at))]
            * second[find_place(right.shape, (*index[:-2], at, index[-1]))]
            for at in range(depth)
        ]
        for index in tensors.iterate_indices(to.shape)
    ]
    return tensors.add_terms(sums, to, is_rounded=a.is_rounded or b.is_rounded)


def _multiply_matrices(call: Call) -> Values:
    """Run ``matmul``: a vector is a row on the left, and a column on the right."""
    a, b = call[0], call[1]
    if not a.shape or not b.shape:
        raise UndefinedResult("a product of scalars")
    left = tensors.reshape(a, (1, *a.shape)) if len(a.shape) == 1 else a
    right = tensors.reshape(b, (*b.shape, 1)) if len(b.shape) == 1 else b
    made = _multiply(call, left, right)
    shape = list(made.shape)
    if len(b.shape) == 1:
        shape.pop(-1)
    if len(a.shape) == 1:
        shape.pop(-1 if len(b.shape) == 1 else -2)
    return tensors.reshape(made, shape)


def _apply_layer(call: Call) -> Values:
    """Run ``linear``: the weights have the shape (outputs, inputs)."""
    x, weight = call[0], call[1]
    rows = tensors.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    made = tensors.reshape(_multiply(call, rows, tensors.transpose(weight, (1, 0))), (*x.shape[:-1], weight.shape[0]))
    bias = call.operands[2] if len(call.operands) > 2 else NOTHING
    return made if bias.element == "none" else map_each(call, [made, bias], lambda a, b: a + b)


def _add_product(call: Call) -> Values:
    """Run ``addmm``."""
    if call.get_float(3) != 1 or call.get_float(4) != 1:
        raise UndefinedResult("a scaled sum")
    return map_each(call, [call[0], _multiply(call, call[1], call[2])], lambda a, b: a + b)


@dataclass(frozen=True, slots=True)
class _Pool:
    """The windows of a pool over the last dimensions of a tensor."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]
    rounds_up: bool

    def list_sizes(self, shape: Sequence[int]) -> list[int]:
        sizes = []
        for extent, size, stride, width, step in zip(
            shape[-len(self.extents) :], self.extents, self.strides, self.padding, self.dilations, strict=True
        ):
            reach = extent + 2 * width - (size - 1) * step - 1
            count = (-(-reach // stride) if self.rounds_up else reach // stride) + 1
            if self.rounds_up and (count - 1) * stride >= extent + width:
                count -= 1  # no window begins in the padding at the end
            if count < 1:
                raise UndefinedResult("a window beyond the image")
            sizes.append(count)
        return sizes

    def list_places(self, at: Index) -> list[list[int]]:
        """Return, for each dimension, the places of a window, including those in the padding."""
        return [
            [o * stride - width + i * step for i in range(size)]
            for o, size, stride, width, step in zip(
                at, self.extents, self.strides, self.padding, self.dilations, strict=True
            )
        ]


def _read_pool(call: Call, rank: int, *, dilated: bool) -> _Pool:
    def read(at: int, default: tuple[int, ...]) -> tuple[int, ...]:
        listed = call.get_integers(at) or default
        return listed * rank if len(listed) == 1 else listed

    extents = read(1, ())
    strides, padding = read(2, extents), read(3, (0,) * rank)
    dilations = read(4, (1,) * rank) if dilated else (1,) * rank
    at = 5 if dilated else 4
    pool = _Pool(extents, strides, padding, dilations, call.get_integer(at, 0) != 0)
    if {len(extents), len(strides), len(padding), len(dilations)} != {rank} or min(strides) < 1:
        raise UndefinedResult("a pool")
    return pool


def _pool_greatest(rank: int) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        return _run_pool(call, _read_pool(call, rank, dilated=True), lambda inside, _: find_greatest(inside))

    return run


def _pool_mean(rank: int) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        pool = _read_pool(call, rank, dilated=False)
        counts_padding = call.get_integer(5, 1) != 0
        fixed = call.get_integer(6, 0) if len(call.operands) > 6 else 0

        def average(inside: list[Number], count: int) -> Number:
            divisor = fixed or (count if counts_padding else len(inside))
            if not divisor:
                raise UndefinedResult("the mean of nothing")
            return math.fsum(inside) / divisor

        return _run_pool(call, pool, average)

    return run


def _run_pool(call: Call, pool: _Pool, compute: Callable[[list[Number], int], Number]) -> Values:
    """Compute each element from the elements in its window, and from its number of places, padding included."""
    given = call[0]
    rank = len(pool.extents)
    outer, image = given.shape[:-rank], given.shape[-rank:]
    to = (*outer, *pool.list_sizes(given.shape))
    elements = list_elements(given)
    check_steps(math.prod(to) * math.prod(pool.extents))
    numbers = []
    for index in tensors.iterate_indices(to):
        places = pool.list_places(index[-rank:])
        padded = [
            [one for one in listed if one < extent + width]
            for listed, extent, width in zip(places, image, pool.padding, strict=True)
        ]
        inside = [[one for one in listed if 0 <= one < n] for listed, n in zip(padded, image, strict=True)]
        chosen = [elements[find_place(given.shape, (*index[:-rank], *one))] for one in product(*inside)]
        numbers.append(compute(chosen, math.prod(map(len, padded))))
    return call.keep(numbers, to, given)


def _normalize_layer(call: Call) -> Values:
    given, sizes = call[0], call.get_integers(1) or ()
    axes = tuple(range(len(given.shape) - len(sizes), len(given.shape)))
    epsilon = call.get_float(4)
    _, rows = list_rows(given, axes)
    numbers = []
    for row in rows:
        mean = math.fsum(row) / len(row)
        variance = math.fsum((one - mean) ** 2 for one in row) / len(row)
        numbers += [(one - mean) / math.sqrt(variance + epsilon) for one in row]
    made = call.keep(numbers, given.shape, given)
    for at, combine in ((2, lambda a, b: a * b), (3, lambda a, b: a + b)):
        if call[at].element != "none":
            made = map_each(call, [made, call[at]], combine)
    return made


NETWORKS: Mapping[str, Run] = {
    "aten.mm": lambda call: _multiply(call, call[0], call[1]),
    "aten.bmm": lambda call: _multiply(call, call[0], call[1]),
    "aten.matmul": _multiply_matrices,
    "aten.linear": _apply_layer,
    "aten.addmm": _add_product,
    "aten.max_pool1d": _pool_greatest(1),
    "aten.max_pool2d": _pool_greatest(2),
    "aten.avg_pool1d": _pool_mean(1),
    "aten.avg_pool2d": _pool_mean(2),
    "aten.layer_norm": _normalize_layer,
}
