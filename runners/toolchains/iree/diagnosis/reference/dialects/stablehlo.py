"""Run the operations of StableHLO and CHLO by their specification. Pure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runners.core.mlir.operations import Region
from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.control_flow import FLOW, RunRegion, run_flow
from runners.toolchains.iree.diagnosis.reference.definitions import (
    FLOATS,
    FloatFormat,
    Number,
    is_known,
    keep_bits,
    round_float,
    wrap_value,
)
from runners.toolchains.iree.diagnosis.reference.dialects.indexed import gather, scatter, select_index
from runners.toolchains.iree.diagnosis.reference.scalars import (
    compare_pair,
    compute_pair,
    compute_single,
    truncate_number,
)
from runners.toolchains.iree.diagnosis.reference.statements import (
    Statement,
    UndefinedResult,
    read_dense,
    read_float,
    read_integers,
    require_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values, check_steps, find_place, list_elements
from runners.toolchains.iree.diagnosis.reference.windows import convolve, reduce_window, select_and_scatter

_UNARY = frozenset(
    [
        "negate",
        "abs",
        "exponential",
        "exponential_minus_one",
        "log",
        "log_plus_one",
        "sqrt",
        "rsqrt",
        "cbrt",
        "tanh",
        "logistic",
        "floor",
        "ceil",
        "round_nearest_even",
        "round_nearest_afz",
        "sign",
        "cosine",
        "sine",
        "tan",
        "not",
        "popcnt",
        "count_leading_zeros",
        "erf",
        "erfc",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "lgamma",
    ]
)
_BINARY = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "divide",
        "remainder",
        "maximum",
        "minimum",
        "power",
        "and",
        "or",
        "xor",
        "atan2",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
    ]
)


def run_stablehlo(
    statement: Statement, operands: Sequence[Values], run_region: RunRegion, *, wide: bool
) -> Sequence[Values]:
    """Return the results of an operation. ``wide`` keeps the floats of arithmetic in float64."""
    name = statement.operation.partition(".")[2]
    if name in FLOW:
        return run_flow(statement, operands, run_region)
    if name == "optimization_barrier":
        return operands
    to = statement.types[0]
    if statement.operation.startswith("chlo.broadcast_") and "broadcast_dimensions" not in statement.attributes:
        name = name.removeprefix("broadcast_")
        operands = [tensors.broadcast_alike(one, to.shape) for one in operands]
    if not all(is_known(one.element) for one in statement.types):
        raise UndefinedResult(to.element)
    if name in _UNARY and len(operands) == 1:
        return [map_elements(operands, to, lambda a: compute_single(name, operands[0].element, *a), wide=wide)]
    if name in _BINARY and len(operands) == 2:
        return [map_elements(operands, to, lambda a: compute_pair(name, operands[0].element, *a), wide=wide)]
    if name in _SEVERAL:
        return _SEVERAL[name](statement, operands, run_region)
    if name not in _SINGLE:
        raise UndefinedResult(statement.operation)
    result = _SINGLE[name](statement, operands, to)
    return [result if wide or result.element not in FLOATS else round_values(result)]


def map_elements(
    operands: Sequence[Values], to: TensorType, compute: Callable[[tuple[Number, ...]], Number], *, wide: bool
) -> Values:
    """Compute each element from the elements at its place."""
    count = check_steps(max(len(one.numbers) for one in operands)) if operands else 0
    numbers = [compute(tuple(one.pick(at) for one in operands)) for at in range(count)]
    kept = tuple(n if wide and to.element in FLOATS else wrap_value(n, to.element) for n in numbers)
    return Values(to.element, kept, to.shape, any(one.is_rounded for one in operands))


def round_values(values: Values) -> Values:
    return replace(values, numbers=tuple(wrap_value(n, values.element) for n in values.numbers))


# ---------------------------------------------------------------------------------------------- elementwise


def _make_constant(statement: Statement, _: Sequence[Values], to: TensorType) -> Values:
    return Values(to.element, read_dense(statement.attributes, to.element, math.prod(to.shape)), to.shape)


_COMPARED = re.compile(r"\b(EQ|NE|GE|GT|LE|LT)\b")


def _compare(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    order = _COMPARED.search(statement.attributes)
    if order is None or "TOTALORDER" in statement.attributes:
        raise UndefinedResult("order of a comparison")
    a, b = operands
    if a.element == "i1":  # true is the greater one
        a, b = (replace(one, numbers=tuple(-n for n in one.numbers)) for one in operands)
    return map_elements([a, b], to, lambda pair: compare_pair(order[1].lower(), *pair), wide=False)


def _convert(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    source = operands[0].element
    return map_elements(operands, to, lambda a: truncate_number(a[0], source, to.element), wide=False)


def _select(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    return map_elements(operands, to, lambda a: a[1] if a[0] else a[2], wide=True)


def _clamp(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    def limit(given: tuple[Number, ...]) -> Number:
        low, value, high = given
        return math.nan if any(n != n for n in given) else min(max(value, low), high)

    return map_elements(operands, to, limit, wide=True)


def _is_finite(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    return map_elements(operands, to, lambda a: -int(math.isfinite(a[0])), wide=False)


def _is_infinite(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    return map_elements(operands, to, lambda a: -int(math.isinf(a[0])), wide=False)


def _find_infinity(operands: Sequence[Values], to: TensorType, sought: float) -> Values:
    return map_elements(operands, to, lambda a: -int(a[0] == sought), wide=False)


def _keep_bits(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``bitcast_convert`` between types of one width. The bits of a NaN are not specified."""
    source = operands[0].element

    def cast(given: tuple[Number, ...]) -> Number:
        result = keep_bits(given[0], source, to.element)
        if result is None:
            raise UndefinedResult("bits of another width, or of NaN")
        return result

    return map_elements(operands, to, cast, wide=False)


_PRECISION = re.compile(r"format\s*=\s*e(\d{1,2})m(\d{1,2})")


def _reduce_precision(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Round to a format with other numbers of bits. Its subnormal numbers have no result."""
    if pretty := _PRECISION.search(statement.attributes):
        exponent, fraction = int(pretty[1]), int(pretty[2])
    else:
        (exponent,) = require_integers(statement.attributes, "exponent_bits", 1)
        (fraction,) = require_integers(statement.attributes, "mantissa_bits", 1)
    if not (2 <= exponent <= 11 and 1 <= fraction <= 52):
        raise UndefinedResult("a float format")
    bias = (1 << (exponent - 1)) - 1
    kept = FloatFormat(fraction, 1 - bias, math.ldexp(2.0 - math.ldexp(1.0, -fraction), bias))

    def limit(given: tuple[Number, ...]) -> Number:
        value = float(given[0])
        if value and abs(value) < math.ldexp(1.0, 1 - bias):
            raise UndefinedResult("a subnormal number")
        return round_float(value, kept)

    return map_elements([round_values(operands[0])], to, limit, wide=False)


def _normalize(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``batch_norm_inference``."""
    at = require_integers(statement.attributes, "feature_index", 1)[0]
    epsilon = read_float(statement.attributes, "epsilon")
    given, *each = operands
    if epsilon is None or any(one.shape != given.shape[at : at + 1] for one in each):
        raise UndefinedResult("a normalization")
    scale, offset, mean, variance = (tensors.broadcast(one, to.shape, [at]) for one in each)

    def compute(of: tuple[Number, ...]) -> Number:
        return (of[0] - of[3]) / math.sqrt(of[4] + epsilon) * of[1] + of[2]

    return map_elements([given, scale, offset, mean, variance], to, compute, wide=True)


def _make_constant_like(statement: Statement, _: Sequence[Values], to: TensorType) -> Values:
    value = read_float(statement.attributes, "value")
    if value is None or (to.element not in FLOATS and value != int(value)):
        raise UndefinedResult("a constant")
    return Values(to.element, (wrap_value(value, to.element),) * check_steps(math.prod(to.shape)), to.shape)


def _get_size(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    name = "dimension" if "dimension" in statement.attributes else "dim"
    return Values(to.element, (operands[0].shape[require_integers(statement.attributes, name)[0]],), to.shape)


# ---------------------------------------------------------------------------------------------- moves


def _repeat_in_front(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``broadcast``: add new dimensions before those of the operand."""
    (given,) = operands
    return tensors.broadcast(given, to.shape, range(len(to.shape) - len(given.shape), len(to.shape)))


def _broadcast(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    name = "broadcast_dimensions" if "broadcast_dimensions" in statement.attributes else "dims"
    return tensors.broadcast(operands[0], to.shape, read_integers(statement.attributes, name) or ())


def _transpose(statement: Statement, operands: Sequence[Values], _: TensorType) -> Values:
    name = "permutation" if "permutation" in statement.attributes else "dims"
    return tensors.transpose(operands[0], read_integers(statement.attributes, name) or ())


def _reverse(statement: Statement, operands: Sequence[Values], _: TensorType) -> Values:
    name = "dimensions" if "dimensions" in statement.attributes else "dims"
    return tensors.reverse(operands[0], read_integers(statement.attributes, name) or ())


_RANGE = re.compile(r"(\d+):(\d+)(?::(\d+))?")


def _slice(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    if "start_indices" in statement.attributes:
        starts = require_integers(statement.attributes, "start_indices")
        steps = require_integers(statement.attributes, "strides", len(starts))
    else:
        ranges = _RANGE.findall(statement.attributes)
        starts, steps = tuple(int(a) for a, _, _ in ranges), tuple(int(s or 1) for _, _, s in ranges)
    if len(starts) != len(to.shape):
        raise UndefinedResult("starts of a slice")
    return tensors.cut_slice(operands[0], starts, steps, to.shape)


def _pad(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    prefix = "edge_padding_" if "edge_padding_low" in statement.attributes else ""
    low = require_integers(statement.attributes, f"{prefix}low")
    interior = require_integers(statement.attributes, "interior_padding" if prefix else "interior")
    return tensors.pad(operands[0], operands[1], low, interior, to.shape)


def _concatenate(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    name = "dimension" if "dimension" in statement.attributes else "dim"
    return tensors.concatenate(operands, require_integers(statement.attributes, name)[0], to)


def _count_up(statement: Statement, _: Sequence[Values], to: TensorType) -> Values:
    name = "iota_dimension" if "iota_dimension" in statement.attributes else "dim"
    at = require_integers(statement.attributes, name)[0]
    numbers = tuple(wrap_value(index[at], to.element) for index in tensors.iterate_indices(to.shape))
    return Values(to.element, numbers, to.shape)


def _find_starts(given: Sequence[Values], shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return where a slice begins. An index that is too large is moved inside, as specified."""
    if len(given) != len(shape) or any(len(one.numbers) != 1 for one in given):
        raise UndefinedResult("starts of a slice")
    return tuple(
        max(0, min(int(one.numbers[0]), extent - size)) for one, extent, size in zip(given, shape, sizes, strict=True)
    )


def _slice_at(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    starts = _find_starts(operands[1:], operands[0].shape, to.shape)
    return tensors.cut_slice(operands[0], starts, [1] * len(starts), to.shape)


def _update_slice(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    whole, update, *given = operands
    starts = _find_starts(given, whole.shape, update.shape)
    numbers, new = list(list_elements(whole)), list_elements(update)
    for index, number in zip(tensors.iterate_indices(update.shape), new, strict=True):
        numbers[find_place(whole.shape, [a + i for a, i in zip(starts, index, strict=True)])] = number
    return Values(to.element, tuple(numbers), to.shape, whole.is_rounded or update.is_rounded)


# ---------------------------------------------------------------------------------------------- contractions


def _contract(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``dot_general``. The result has the batching dimensions, then the left operand's, then the right one's."""
    a, b = operands
    if statement.operation.endswith(".dot"):
        pairs = {"batching": ((), ()), "contracting": ((len(a.shape) - 1,), (0,))}
    else:
        pairs = {name: _read_pair(statement.attributes, name) for name in ("batching", "contracting")}
    batch, reduced = pairs["batching"], pairs["contracting"]
    kept = [
        [at for at in range(len(one.shape)) if at not in batch[side] + reduced[side]]
        for side, one in enumerate((a, b))
    ]
    extents = [a.shape[at] for at in reduced[0]]
    if extents != [b.shape[at] for at in reduced[1]]:
        raise UndefinedResult("extents of a contraction")
    check_steps(math.prod(to.shape) * math.prod(extents))
    left, right = list_elements(a), list_elements(b)
    sums: list[list[Number]] = []
    for index in tensors.iterate_indices(to.shape):
        outer = [index[: len(batch[0])], index[len(batch[0]) :]]
        own = [outer[1][: len(kept[0])], outer[1][len(kept[0]) :]]
        terms: list[Number] = []
        for step in tensors.iterate_indices(extents):
            places = []
            for side, one in enumerate((a, b)):
                known = dict(
                    zip((*batch[side], *kept[side], *reduced[side]), (*outer[0], *own[side], *step), strict=True)
                )
                places.append(find_place(one.shape, [known[at] for at in range(len(one.shape))]))
            terms.append(left[places[0]] * right[places[1]])
        sums.append(terms)
    return tensors.add_terms(sums, to, is_rounded=a.is_rounded or b.is_rounded)


def _read_pair(attributes: str, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ``contracting_dims = [1] x [0]``, or both attributes of ``#stablehlo.dot``."""
    if found := re.search(rf"{name}_dims\s*=\s*\[([\d,\s]*)\]\s*x\s*\[([\d,\s]*)\]", attributes):
        a, b = (tuple(map(int, re.findall(r"\d+", part))) for part in found.groups())
        return a, b
    sides = (read_integers(attributes, f"{side}_{name}_dimensions") or () for side in ("lhs", "rhs"))
    a, b = sides
    return a, b


# ---------------------------------------------------------------------------------------------- regions


_APPLIES = re.compile(r"\bapplies\s+(?P<operation>[\w.]+)")


def _make_combination(statement: Statement, run_region: RunRegion) -> tensors.Combination:
    """Return the combination in the region of a reduction, or the operation that ``applies`` names."""
    if statement.regions:
        return functools.partial(run_region, statement.regions[0])
    applied = _APPLIES.search(statement.attributes)
    if applied is None:
        raise UndefinedResult("a reduction without a combination")
    name = applied["operation"]
    return lambda pair: run_region(
        Region(("%a", "%b"), f"%r = {name} %a, %b : tensor<{pair[0].element}>\nreturn %r"), pair
    )


def _reduce(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    dimensions = read_integers(statement.attributes, "dimensions")
    if dimensions is None or len(operands) % 2:
        raise UndefinedResult("dimensions of a reduction")
    half = len(operands) // 2
    if statement.operation.startswith("stablehlo") and "init:" in statement.attributes:
        given, starts = operands[::2], operands[1::2]  # (%a init: %b), (%c init: %d)
    else:
        given, starts = operands[:half], operands[half:]
    return tensors.reduce(given, starts, dimensions, _make_combination(statement, run_region))


def _reduce_window(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    return reduce_window(statement, operands, _make_combination(statement, run_region))


def _select_and_scatter(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    select, scatter = statement.regions
    return select_and_scatter(
        statement, operands, functools.partial(run_region, select), functools.partial(run_region, scatter)
    )


def sort(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    """Sort all operands along one dimension by the comparison in the region.

    The result is unknown with NaN, because then the comparison is not a strict weak order. A sort that is not
    declared stable does not define the order of different rows that compare as equal.
    """
    is_stable = re.search(r"is_stable\s*=\s*true", statement.attributes) is not None
    shape = operands[0].shape
    at = (read_integers(statement.attributes, "dimension") or (len(shape) - 1,))[0]
    listed = [list(list_elements(one)) for one in operands]
    rows = [index for index in tensors.iterate_indices(shape) if not index[at]]
    if any(number != number for numbers in listed for number in numbers):
        raise UndefinedResult("a sort of NaN")

    def is_less(a: tuple[Number, ...], b: tuple[Number, ...]) -> bool:
        pairs = [Values(one.element, (number,)) for one, *both in zip(operands, a, b, strict=True) for number in both]
        return bool(run_region(statement.regions[0], pairs)[0].numbers[0])

    def order(a: tuple[Number, ...], b: tuple[Number, ...]) -> int:
        place = -1 if is_less(a, b) else int(is_less(b, a))
        if not (place or is_stable) and a != b:
            raise UndefinedResult("the order of rows that compare as equal")
        return place

    check_steps(math.prod(shape) * max(1, shape[at]).bit_length() * 4)
    for row in rows:
        places = [find_place(shape, [*row[:at], i, *row[at + 1 :]]) for i in range(shape[at])]
        columns = [tuple(numbers[place] for numbers in listed) for place in places]
        for place, column in zip(places, sorted(columns, key=functools.cmp_to_key(order)), strict=True):
            for numbers, number in zip(listed, column, strict=True):
                numbers[place] = number
    return [replace(one, numbers=tuple(numbers)) for one, numbers in zip(operands, listed, strict=True)]


def _scatter(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    return scatter(statement, operands, functools.partial(run_region, statement.regions[0]))


def _top_k(statement: Statement, operands: Sequence[Values], _: RunRegion) -> Sequence[Values]:
    (given,) = operands
    found = re.search(r"k\s*=\s*(\d+)", statement.attributes)
    if found is None or any(n != n for n in given.numbers):
        raise UndefinedResult("k")
    elements, count, width = list_elements(given), int(found[1]), given.shape[-1]
    values: list[Number] = []
    indices: list[Number] = []
    for row in range(0, len(elements), width or 1):
        best = sorted(range(width), key=lambda at: -elements[row + at])[:count]
        values += [elements[row + at] for at in best]
        indices += best
    shape = (*given.shape[:-1], count)
    return [Values(given.element, tuple(values), shape, given.is_rounded), Values("i32", tuple(indices), shape)]


_SINGLE: Mapping[str, Callable[[Statement, Sequence[Values], TensorType], Values]] = {
    "constant": _make_constant,
    "compare": _compare,
    "convert": _convert,
    "select": _select,
    "clamp": _clamp,
    "is_finite": _is_finite,
    "is_inf": _is_infinite,
    "broadcast_in_dim": _broadcast,
    "reshape": lambda _, operands, to: tensors.reshape(operands[0], to.shape),
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "iota": _count_up,
    "dynamic_slice": _slice_at,
    "dynamic_update_slice": _update_slice,
    "dot": _contract,
    "dot_general": _contract,
    "convolution": convolve,
    "gather": gather,
    "torch_index_select": select_index,
    "bitcast_convert": _keep_bits,
    "reduce_precision": _reduce_precision,
    "batch_norm_inference": _normalize,
    "is_pos_inf": lambda _, operands, to: _find_infinity(operands, to, math.inf),
    "is_neg_inf": lambda _, operands, to: _find_infinity(operands, to, -math.inf),
    "square": lambda _, operands, to: map_elements(operands, to, lambda a: a[0] * a[0], wide=True),
    "constant_like": _make_constant_like,
    "broadcast": _repeat_in_front,
    "get_dimension_size": _get_size,
    "dynamic_reshape": lambda _, operands, to: tensors.reshape(operands[0], to.shape),
    "dynamic_broadcast_in_dim": _broadcast,
    "dynamic_iota": _count_up,
}
_SEVERAL: Mapping[str, Callable[[Statement, Sequence[Values], RunRegion], Sequence[Values]]] = {
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
    "sort": sort,
    "scatter": _scatter,
    "top_k": _top_k,
}
