"""Move, combine and reduce the elements of tensors of static shapes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, wrap_value
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult

MAX_STEPS = 40_000
"""Maximum number of elements that one operation reads or writes."""
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """The elements of a tensor in row-major order, or the only value of all elements."""

    element: str
    numbers: tuple[Number, ...]
    shape: tuple[int, ...] = ()
    """The shape, if known. The lines of a loop body compute many iterations at once, and have no shape."""
    is_rounded: bool = False
    """True if a reduction was rounded. Another order, or additions with more digits, give another result."""

    def pick(self, at: int) -> Number:
        return self.numbers[at % len(self.numbers)]


def check_steps(count: int) -> int:
    if count > MAX_STEPS:
        raise UndefinedResult(f"{count} steps")
    return count


def iterate_indices(shape: Sequence[int]) -> Iterator[Index]:
    check_steps(math.prod(shape))
    return product(*map(range, shape))


def list_elements(values: Values) -> tuple[Number, ...]:
    """Return all elements of a tensor with a known shape."""
    count = check_steps(math.prod(values.shape))
    if len(values.numbers) not in (1, count):
        raise UndefinedResult("elements of many iterations")
    return values.numbers if len(values.numbers) == count else values.numbers * count


def find_place(shape: Sequence[int], index: Sequence[int]) -> int:
    place = 0
    for extent, at in zip(shape, index, strict=True):
        place = place * extent + at
    return place


def move_elements(values: Values, to: Sequence[int], read: Callable[[Index], Index]) -> Values:
    """Return a tensor of shape ``to``. ``read`` maps each of its indices to an index of ``values``."""
    elements = list_elements(values)
    if len(values.shape) and not elements and math.prod(to):
        raise UndefinedResult("elements of an empty tensor")
    numbers = []
    for index in iterate_indices(to):
        source = read(index)
        if len(source) != len(values.shape) or not all(
            0 <= at < extent for at, extent in zip(source, values.shape, strict=True)
        ):
            raise UndefinedResult("an index outside the tensor")
        numbers.append(elements[find_place(values.shape, source)])
    return replace(values, numbers=tuple(numbers), shape=tuple(to))


def broadcast(values: Values, to: Sequence[int], dimensions: Sequence[int]) -> Values:
    """Return a tensor whose dimension ``dimensions[i]`` is dimension ``i`` of ``values``."""
    if len(dimensions) != len(values.shape):
        raise UndefinedResult("dimensions of a broadcast")
    extents = values.shape
    return move_elements(
        values,
        to,
        lambda index: tuple(index[at] if extents[i] > 1 else 0 for i, at in enumerate(dimensions)),
    )


def broadcast_alike(values: Values, to: Sequence[int]) -> Values:
    """Return a tensor of equal rank whose extents of 1 are repeated. A scalar is repeated everywhere."""
    if values.shape == tuple(to) or len(values.numbers) == 1:
        return replace(values, shape=tuple(to))
    return broadcast(values, to, range(len(to) - len(values.shape), len(to)))


def reshape(values: Values, to: Sequence[int]) -> Values:
    if math.prod(values.shape) != math.prod(to):
        raise UndefinedResult("a reshape to another number of elements")
    return replace(values, shape=tuple(to))


def transpose(values: Values, order: Sequence[int]) -> Values:
    """Return a tensor whose dimension ``i`` is dimension ``order[i]`` of ``values``."""
    if sorted(order) != list(range(len(values.shape))):
        raise UndefinedResult("order of a transposition")
    back = [order.index(at) for at in range(len(order))]
    shape = [values.shape[at] for at in order]
    return move_elements(values, shape, lambda index: tuple(index[at] for at in back))


def cut_slice(values: Values, starts: Sequence[int], steps: Sequence[int], to: Sequence[int]) -> Values:
    return move_elements(
        values, to, lambda index: tuple(a + i * s for a, i, s in zip(starts, index, steps, strict=True))
    )


def reverse(values: Values, dimensions: Sequence[int]) -> Values:
    shape = values.shape
    return move_elements(
        values,
        shape,
        lambda index: tuple(shape[i] - 1 - at if i in dimensions else at for i, at in enumerate(index)),
    )


def pad(values: Values, fill: Values, low: Sequence[int], interior: Sequence[int], to: Sequence[int]) -> Values:
    """Return a tensor with ``fill`` around the elements, and between them where ``interior`` is not zero."""
    if len(fill.numbers) != 1 or len(low) != len(values.shape) or len(interior) != len(low):
        raise UndefinedResult("padding")
    elements = list_elements(values)
    numbers = []
    for index in iterate_indices(to):
        places = [divmod(at - start, step + 1) for at, start, step in zip(index, low, interior, strict=True)]
        inside = all(not rest and 0 <= at < n for (at, rest), n in zip(places, values.shape, strict=True))
        source = [at for at, _ in places]
        numbers.append(elements[find_place(values.shape, source)] if inside else fill.numbers[0])
    return Values(values.element, tuple(numbers), tuple(to), values.is_rounded or fill.is_rounded)


@dataclass(frozen=True, slots=True)
class Tiling:
    """How ``linalg.pack`` cuts a tensor into tiles. The result has outer dimensions, then those of a tile."""

    outer: tuple[int, ...]
    """For each outer dimension of the packed tensor, the dimension of the plain one."""
    positions: tuple[int, ...]
    """For each dimension of a tile, the dimension of the plain tensor."""
    tiles: tuple[int, ...]

    def find_plain(self, index: Index) -> Index:
        """Return the place in the plain tensor, which may be in the padding."""
        rank = len(self.outer)
        place = [0] * rank
        for at, dimension in zip(index, self.outer, strict=False):
            place[dimension] = at
        for at, dimension, extent in zip(index[rank:], self.positions, self.tiles, strict=True):
            place[dimension] = place[dimension] * extent + at
        return tuple(place)

    def find_packed(self, index: Index) -> Index:
        tile_of = dict(zip(self.positions, self.tiles, strict=True))
        outer = [index[at] // tile_of.get(at, 1) for at in self.outer]
        return (*outer, *(index[at] % tile_of[at] for at in self.positions))


def pack(values: Values, tiling: Tiling, fill: Values | None, to: Sequence[int]) -> Values:
    """Return the tiles of a tensor. Without ``fill``, no tile may reach beyond the tensor."""
    elements = list_elements(values)
    numbers = []
    for index in iterate_indices(to):
        place = tiling.find_plain(index)
        if all(at < extent for at, extent in zip(place, values.shape, strict=True)):
            numbers.append(elements[find_place(values.shape, place)])
        elif fill is not None:
            numbers.append(fill.pick(0))
        else:
            raise UndefinedResult("a tile beyond the tensor, without a padding value")
    return replace(values, numbers=tuple(numbers), shape=tuple(to))


def unpack(values: Values, tiling: Tiling, to: Sequence[int]) -> Values:
    """Return the tensor whose tiles are ``values``, without its padding."""
    return move_elements(values, to, tiling.find_packed)


def concatenate(parts: Sequence[Values], dimension: int, to: TensorType) -> Values:
    check_steps(sum(part.shape[dimension] for part in parts))
    owners = [(part, at) for part in parts for at in range(part.shape[dimension])]
    if len(owners) != to.shape[dimension]:
        raise UndefinedResult("extents of a concatenation")
    elements = {id(part): list_elements(part) for part in parts}
    numbers = []
    for index in iterate_indices(to.shape):
        part, at = owners[index[dimension]]
        source = [*index[:dimension], at, *index[dimension + 1 :]]
        numbers.append(elements[id(part)][find_place(part.shape, source)])
    return Values(to.element, tuple(numbers), to.shape, any(part.is_rounded for part in parts))


Combination = Callable[[list[Values]], Sequence[Values]]
"""Combines the partial results and the next elements, in this order, for all places at once."""


def reduce(
    operands: Sequence[Values], starts: Sequence[Values], dimensions: Sequence[int], combine: Combination
) -> list[Values]:
    """Combine the elements along ``dimensions``, from the first to the last."""
    shape = operands[0].shape
    kept = [at for at in range(len(shape)) if at not in dimensions]
    to = [shape[at] for at in kept]
    check_steps(math.prod(shape))
    count = math.prod(to)
    listed = [list_elements(one) for one in operands]
    partial = [replace(one, numbers=one.numbers * count if len(one.numbers) == 1 else one.numbers) for one in starts]
    for step in product(*(range(shape[at]) for at in dimensions)) if count else ():
        chosen = dict(zip(dimensions, step, strict=True))
        places = []
        for point in product(*map(range, to)):
            index = chosen | dict(zip(kept, point, strict=True))
            places.append(find_place(shape, [index[at] for at in range(len(shape))]))
        elements = [
            replace(one, numbers=tuple(all_of[place] for place in places), shape=())
            for one, all_of in zip(operands, listed, strict=True)
        ]
        partial = [*combine([*partial, *elements])]
    rounded = any(one.is_rounded for one in (*operands, *starts))
    return [replace(one, shape=tuple(to), is_rounded=rounded or one.is_rounded) for one in partial]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window that moves over the dimensions of a tensor."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...]
    """Number of padding rows before each dimension."""
    dilations: tuple[int, ...]
    base_dilations: tuple[int, ...] = ()
    """Distances between the tensor's elements; ones if empty. Padding is between them."""
    reversed: tuple[bool, ...] = ()
    """The dimensions along which the window is traversed from its last place to its first."""

    def list_places(self, shape: Sequence[int], at: Index) -> Iterator[tuple[Index, Index | None]]:
        """Yield each index in the window with its index in the tensor. None in the padding."""
        backward = self.reversed or (False,) * len(self.extents)
        steps = self.base_dilations or (1,) * len(self.extents)
        for inner in product(*map(range, self.extents)):
            moved = (n - 1 - i if back else i for n, i, back in zip(self.extents, inner, backward, strict=True))
            padded = (
                o * s - p + i * d
                for o, s, p, i, d in zip(at, self.strides, self.low, moved, self.dilations, strict=True)
            )
            places = [divmod(place, step) for place, step in zip(padded, steps, strict=True)]
            inside = all(not rest and 0 <= p < n for (p, rest), n in zip(places, shape, strict=True))
            yield inner, tuple(place for place, _ in places) if inside else None


_PRECISIONS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
"""Bits of a float format, including the leading one. Formats that are not listed have 3 or 4."""
_SUM_DIGITS = 1e-5


def add_terms(sums: Sequence[Sequence[Number]], to: TensorType, *, is_rounded: bool = False) -> Values:
    """Return the sum of each list of terms. The result is marked if the order of the additions matters."""
    if to.element == "i1":
        raise UndefinedResult("sums of truth values")
    totals = [sum(terms) for terms in sums]
    if to.element not in FLOATS:
        return Values(to.element, tuple(wrap_value(one, to.element) for one in totals), to.shape, is_rounded)
    rounded = is_rounded or any(
        _may_round(terms, total, to.element) for terms, total in zip(sums, totals, strict=True)
    )
    return Values(to.element, tuple(map(float, totals)), to.shape, rounded)


def _may_round(terms: Sequence[Number], total: Number, element: str) -> bool:
    """True if the rounding of partial sums may affect the printed digits, in some order of the additions."""
    if not all(map(math.isfinite, terms)):
        return False  # infinite or NaN in every order
    whole, bits = sum(map(abs, terms)), _PRECISIONS.get(element, 3)
    if math.isinf(wrap_value(whole, element)):
        return True
    if len(terms) * math.ldexp(whole, -bits) <= _SUM_DIGITS * abs(total):
        return False
    unit = max((one.as_integer_ratio()[1] for one in terms), default=1)
    return whole * unit > 1 << bits


_NEAR = {"f32": 1e-5, "f64": 1e-5}
"""Maximum relative difference between a result and its float64 computation that another order may explain."""


def is_near(own: Values, wide: Values) -> bool:
    """True if a result and its float64 computation agree, so that rounding does not matter."""
    if len(own.numbers) != len(wide.numbers):
        return False
    if own.element not in FLOATS:
        return own.numbers == wide.numbers
    near = _NEAR.get(own.element, 0.0)
    pairs = ((a, wrap_value(b, own.element)) for a, b in zip(own.numbers, wide.numbers, strict=True))
    return all(
        (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=near, abs_tol=near / 10)
        for a, b in pairs
    )
