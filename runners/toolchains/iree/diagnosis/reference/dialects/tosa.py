"""Run the operations of TOSA by their specification. Pure.

Over the years, attributes became operands (shapes, zero points, shifts) and changed their names. Both forms are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import (
    FLOATS,
    Number,
    count_bits,
    is_known,
    to_unsigned,
    wrap_value,
)
from runners.toolchains.iree.diagnosis.reference.dialects.stablehlo import map_elements, round_values
from runners.toolchains.iree.diagnosis.reference.scalars import (
    compare_pair,
    compute_pair,
    compute_single,
    list_limits,
    round_number,
)
from runners.toolchains.iree.diagnosis.reference.statements import (
    Statement,
    UndefinedResult,
    read_dense,
    read_float,
    read_integers,
    require_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Values, Window, check_steps, find_place, list_elements

_UNARY = frozenset(
    [
        "abs",
        "ceil",
        "floor",
        "exp",
        "log",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "erf",
        "reciprocal",
        "rsqrt",
        "bitwise_not",
        "logical_not",
        "clz",
    ]
)
_BINARY = frozenset(
    [
        "add",
        "sub",
        "maximum",
        "minimum",
        "pow",
        "intdiv",
        "int_div",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "logical_and",
        "logical_or",
        "logical_xor",
    ]
)
_ORDERS = {"equal": "eq", "greater": "gt", "greater_equal": "ge"}
_REDUCTIONS: Mapping[str, str] = {
    **{"reduce_sum": "add", "reduce_max": "maximum", "reduce_min": "minimum"},
    **{"reduce_prod": "multiply", "reduce_product": "multiply", "reduce_all": "and", "reduce_any": "or"},
}


def run_tosa(statement: Statement, operands: Sequence[Values], *, wide: bool) -> Sequence[Values]:
    """Return the results of an operation. ``wide`` keeps the floats of arithmetic in float64."""
    name = statement.operation.partition(".")[2]
    to = statement.types[0]
    if not is_known(to.element):
        raise UndefinedResult(to.element)
    if name in _UNARY and len(operands) == 1:
        return [map_elements(operands, to, lambda a: compute_single(name, operands[0].element, *a), wide=wide)]
    if name in _BINARY and len(operands) == 2:
        pair = _broadcast(operands, to)
        return [map_elements(pair, to, lambda a: _keep_in_range(_pair(name, to, a), to), wide=wide)]
    if name in _ORDERS:
        order = _ORDERS[name]
        return [map_elements(_broadcast(operands, to), to, lambda a: compare_pair(order, *a), wide=False)]
    if name in _REDUCTIONS:
        return [_reduce(statement, operands[0], to, _REDUCTIONS[name], wide=wide)]
    if name not in _OTHERS:
        raise UndefinedResult(statement.operation)
    result = _OTHERS[name](statement, operands, to)
    return [result if wide or result.element not in FLOATS else round_values(result)]


def _broadcast(operands: Sequence[Values], to: TensorType) -> list[Values]:
    return [tensors.broadcast_alike(one, to.shape) for one in operands]


def _pair(name: str, to: TensorType, pair: tuple[Number, ...]) -> Number:
    return compute_pair(name, to.element, pair[0], pair[1])


def _keep_in_range(number: Number, to: TensorType) -> Number:
    """Reject an integer that overflows, because TOSA does not define its value."""
    if to.element not in FLOATS and to.element != "i1" and wrap_value(number, to.element) != number:
        raise UndefinedResult("an overflow")
    return number


# ---------------------------------------------------------------------------------------------- elementwise


def _make_constant(statement: Statement, _: Sequence[Values], to: TensorType) -> Values:
    return Values(to.element, read_dense(statement.attributes, to.element, math.prod(to.shape)), to.shape)


def _multiply(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    shifts = operands[2].numbers if len(operands) == 3 else read_integers(statement.attributes, "shift") or (0,)
    shift = int(shifts[0])
    if not 0 <= shift <= 63:
        raise UndefinedResult("shift of a product")

    def scale(pair: tuple[Number, ...]) -> Number:
        product = pair[0] * pair[1]
        return (int(product) + (1 << (shift - 1))) >> shift if shift else _keep_in_range(product, to)

    return map_elements(_broadcast(operands[:2], to), to, scale, wide=True)


def _negate(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    zero, out = _read_zero_points(statement, operands, 1, "input1_zp", "output_zp")
    if to.element in FLOATS:
        return map_elements(operands[:1], to, lambda a: -a[0], wide=True)
    low, high = list_limits(to.element)
    return map_elements(operands[:1], to, lambda a: min(high, max(low, out - (int(a[0]) - zero))), wide=True)


def _read_zero_points(
    statement: Statement, operands: Sequence[Values], count: int, first: str, second: str
) -> tuple[int, int]:
    """Return two zero points, from the operands after the first ``count`` or from attributes."""
    given = operands[count : count + 2]
    if len(given) == 2 and all(len(set(one.numbers)) == 1 for one in given):
        return int(given[0].numbers[0]), int(given[1].numbers[0])
    if given:
        raise UndefinedResult("zero points")
    names = (first, second)
    values = [(read_integers(statement.attributes, name) or (0,))[0] for name in names]
    return values[0], values[1]


def _clamp(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    floats = to.element in FLOATS
    limits = [
        read_float(statement.attributes, name)
        for name in (("min_fp", "max_fp") if floats else ("min_int", "max_int"))
    ]
    if None in limits:
        limits = [read_float(statement.attributes, name) for name in ("min_val", "max_val")]
    low, high = limits
    if low is None or high is None or "IGNORE" in statement.attributes:
        raise UndefinedResult("limits")
    exact = (low, high) if floats else (int(low), int(high))
    return map_elements(
        operands, to, lambda a: a[0] if a[0] != a[0] else max(exact[0], min(exact[1], a[0])), wide=True
    )


def _cast(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    source = operands[0].element
    return map_elements(operands, to, lambda a: round_number(a[0], source, to.element), wide=False)


def _select(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    return map_elements(_broadcast(operands, to), to, lambda a: a[1] if a[0] else a[2], wide=True)


def _shift(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    bits, name = count_bits(to.element), statement.operation
    rounds = "round = true" in statement.attributes

    def move(pair: tuple[Number, ...]) -> Number:
        value, amount = int(pair[0]), int(pair[1])
        if not 0 <= amount < bits:
            raise UndefinedResult("a shift by the width")
        if name.endswith("left_shift"):
            return value << amount
        if name.endswith("logical_right_shift"):
            return to_unsigned(value, bits) >> amount
        return (value >> amount) + (1 if rounds and amount and (value >> (amount - 1)) & 1 else 0)

    return map_elements(_broadcast(operands, to), to, move, wide=False)


def _rescale(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``apply_scale_32`` and ``apply_scale_16`` of the specification."""
    text, given = statement.attributes, operands[0]
    if re.search(r"unsigned\s*=\s*true", text) or "INEXACT" in text:
        raise UndefinedResult("unsigned rescaling")
    multipliers = operands[1].numbers if len(operands) > 2 else require_integers(text, "multiplier")
    shifts = operands[2].numbers if len(operands) > 2 else require_integers(text, "shift")
    zero, out = _read_zero_points(statement, operands, 3 if len(operands) > 2 else 1, "input_zp", "output_zp")
    doubles = "DOUBLE_ROUND" in text or "double_round = true" in text
    low, high = list_limits(to.element)
    width = given.shape[-1] if given.shape else 1
    numbers = []
    for at, number in enumerate(list_elements(given)):
        channel = at % width if len(multipliers) > 1 else 0
        value, shift = int(number) - zero, int(shifts[channel % len(shifts)])
        if not 2 <= shift <= 62:
            raise UndefinedResult("shift of a rescaling")
        half = 1 << (shift - 1)
        if doubles and shift > 31:
            half += (1 << 30) if value >= 0 else -(1 << 30)
        scaled = (value * int(multipliers[channel]) + half) >> shift
        numbers.append(min(high, max(low, scaled + out)))
    return Values(to.element, tuple(numbers), to.shape, given.is_rounded)


# ---------------------------------------------------------------------------------------------- moves


def _read_operand(statement: Statement, operands: Sequence[Values], at: int, *names: str) -> tuple[int, ...]:
    """Return integers that are an operand today and were an attribute before."""
    if len(operands) > at:
        return tuple(int(number) for number in list_elements(operands[at]))
    found = (read_integers(statement.attributes, name) for name in names)
    result = next((one for one in found if one is not None), None)
    if result is None:
        raise UndefinedResult(names[0])
    return result


def _transpose(statement: Statement, operands: Sequence[Values], _: TensorType) -> Values:
    return tensors.transpose(operands[0], _read_operand(statement, operands, 1, "perms"))


def _slice(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    starts = _read_operand(statement, operands, 1, "start")
    return tensors.cut_slice(operands[0], starts, [1] * len(starts), to.shape)


def _pad(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    amounts = _read_operand(statement, operands, 1, "padding")
    if len(operands) > 2:
        fill = operands[2]
    elif re.search(r"pad_const|input_zp|quantization", statement.attributes):
        raise UndefinedResult("a value of padding")
    else:
        fill = Values(to.element, (0,))
    return tensors.pad(operands[0], fill, amounts[::2], [0] * (len(amounts) // 2), to.shape)


def _concatenate(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    return tensors.concatenate(operands, require_integers(statement.attributes, "axis")[0], to)


def _tile(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    shape = operands[0].shape
    return tensors.move_elements(
        operands[0], to.shape, lambda index: tuple(i % n for i, n in zip(index, shape, strict=True))
    )


def _reverse(statement: Statement, operands: Sequence[Values], _: TensorType) -> Values:
    return tensors.reverse(operands[0], require_integers(statement.attributes, "axis"))


def _gather(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    values, indices = operands
    places = list_elements(indices)
    return tensors.move_elements(
        values,
        to.shape,
        lambda index: (index[0], int(places[find_place(indices.shape, index[:2])]), index[2]),
    )


# ---------------------------------------------------------------------------------------------- reductions


def _reduce(statement: Statement, given: Values, to: TensorType, name: str, *, wide: bool) -> Values:
    axis = require_integers(statement.attributes, "axis")
    first = tensors.cut_slice(given, [0] * len(given.shape), [1] * len(given.shape), to.shape)
    extents = list(given.shape)
    extents[axis[0]] -= 1
    if extents[axis[0]] < 0:
        raise UndefinedResult("a reduction of no elements")
    rest = tensors.cut_slice(given, [int(at == axis[0]) for at in range(len(extents))], [1] * len(extents), extents)
    kept = tuple(extent for at, extent in enumerate(given.shape) if at != axis[0])
    element = TensorType((), given.element)

    def combine(pair: list[Values]) -> list[Values]:
        return [map_elements(pair, element, lambda a: _keep_in_range(_pair(name, element, a), element), wide=wide)]

    (result,) = tensors.reduce([rest], [tensors.reshape(first, kept)], axis, combine)
    return tensors.reshape(result, to.shape)


def _find_greatest(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``argmax``: find the first of the greatest elements."""
    (axis,) = require_integers(statement.attributes, "axis")
    given = operands[0]
    elements = list_elements(given)
    if any(number != number for number in elements):
        raise UndefinedResult("the greatest of NaN")
    numbers = []
    for index in tensors.iterate_indices(to.shape):
        row = [
            elements[find_place(given.shape, [*index[:axis], at, *index[axis:]])] for at in range(given.shape[axis])
        ]
        numbers.append(row.index(max(row)))
    return Values(to.element, tuple(numbers), to.shape, given.is_rounded)


def _multiply_matrices(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    a, b = operands[:2]
    zeros = _read_zero_points(statement, operands, 2, "a_zp", "b_zp")
    left, right = _subtract(a, zeros[0]), _subtract(b, zeros[1])
    depth = a.shape[-1]
    check_steps(math.prod(to.shape) * depth)
    sums = []
    for batch, row, column in tensors.iterate_indices(to.shape):
        terms = [
            left[find_place(a.shape, (batch, row, k))] * right[find_place(b.shape, (batch, k, column))]
            for k in range(depth)
        ]
        _keep_in_range(sum(terms), to)
        sums.append(terms)
    return tensors.add_terms(sums, to, is_rounded=a.is_rounded or b.is_rounded)


def _subtract(values: Values, zero: int) -> list[Number]:
    return [number - zero for number in list_elements(values)]


def _convolve(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Convolve images NHWC or NDHWC.

    The weights are OHWI or ODHWI, and HWCM for ``depthwise_conv2d``.
    """
    image, weights, bias = operands[:3]
    depthwise, rank = "depthwise" in statement.operation, len(image.shape) - 2
    zeros = _read_zero_points(statement, operands, 3, "input_zp", "weight_zp")
    sizes = weights.shape[:2] if depthwise else weights.shape[1:-1]
    transposed = "transpose" in statement.operation
    window = _read_transposed(statement, sizes) if transposed else _read_window(statement, sizes)
    left, right, added = _subtract(image, zeros[0]), _subtract(weights, zeros[1]), list_elements(bias)
    channels = image.shape[-1]
    check_steps(math.prod(to.shape) * math.prod(sizes) * (1 if depthwise else channels))
    sums = []
    for n, *at, feature in tensors.iterate_indices(to.shape):
        terms: list[Number] = [added[feature % len(added)]]
        for inner, place in window.list_places(image.shape[1 : 1 + rank], tuple(at)):
            if place is None:
                continue
            if depthwise:
                channel, copy = divmod(feature, weights.shape[3])
                terms.append(
                    left[find_place(image.shape, (n, *place, channel))]
                    * right[find_place(weights.shape, (*inner, channel, copy))]
                )
            else:
                terms.extend(
                    left[find_place(image.shape, (n, *place, c))]
                    * right[find_place(weights.shape, (feature, *inner, c))]
                    for c in range(channels)
                )
        _keep_in_range(sum(terms), to)
        sums.append(terms)
    return tensors.add_terms(sums, to, is_rounded=any(one.is_rounded for one in operands[:3]))


def _read_window(statement: Statement, sizes: Sequence[int]) -> Window:
    """Return the window. Its padding is listed as top, bottom, left, right."""
    pads = require_integers(statement.attributes, "pad", 2 * len(sizes))
    return Window(
        extents=tuple(sizes),
        strides=require_integers(statement.attributes, "stride", len(sizes)),
        low=pads[::2],
        dilations=read_integers(statement.attributes, "dilation") or (1,) * len(sizes),
    )


def _read_transposed(statement: Statement, sizes: Sequence[int]) -> Window:
    """Return the window that collects the contributions of the image's elements to one place of the result."""
    pads = require_integers(statement.attributes, "out_pad", 4)
    strides = require_integers(statement.attributes, "stride", 2)
    if min(strides) < 1:
        raise UndefinedResult("strides")
    return Window(
        extents=tuple(sizes),
        strides=(1, 1),
        low=tuple(size - 1 + pad for size, pad in zip(sizes, pads[::2], strict=True)),
        dilations=(1, 1),
        base_dilations=strides,
        reversed=(True, True),
    )


def _pool(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``max_pool2d``, or ``avg_pool2d``: the mean of the elements without the padding."""
    given = operands[0]
    means, floats = "avg" in statement.operation, to.element in FLOATS
    zero, out = _read_zero_points(statement, operands, 1, "input_zp", "output_zp") if means else (0, 0)
    window = _read_window(statement, require_integers(statement.attributes, "kernel", 2))
    elements = list_elements(given)
    check_steps(math.prod(to.shape) * math.prod(window.extents))
    numbers: list[Number] = []
    for n, y, x, c in tensors.iterate_indices(to.shape):
        places = [place for _, place in window.list_places(given.shape[1:3], (y, x)) if place is not None]
        inside = [elements[find_place(given.shape, (n, *place, c))] for place in places]
        if not inside or any(number != number for number in inside):
            raise UndefinedResult("a window of padding")
        if not means:
            numbers.append(max(inside))
        elif floats:
            numbers.append(sum(inside) / len(inside))
        else:
            numbers.append(_average(sum(map(int, inside)) - zero * len(inside), len(inside), out, to))
    return Values(to.element, tuple(numbers), to.shape, given.is_rounded)


def _average(total: int, count: int, zero: int, to: TensorType) -> int:
    """Run ``reciprocal_scale`` and ``apply_scale_32`` of the specification."""
    bits = (count - 1).bit_length()
    multiplier, shift = (((1 << 30) + 1) << bits) // count, 30 + bits
    low, high = list_limits(to.element)
    return max(low, min(high, ((total * multiplier + (1 << (shift - 1))) >> shift) + zero))


def _look_up(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``table`` for 8-bit integers. Its first entry is for the least of them."""
    given, table = operands
    entries = list_elements(table)
    if given.element != "i8" or len(entries) != 256:
        raise UndefinedResult("a table with values between its entries")
    return map_elements([given], to, lambda a: entries[int(a[0]) + 128], wide=True)


def _scatter(_: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``scatter``. Two updates of one place have no defined result."""
    values, indices, updates = operands
    numbers, new, places = list(list_elements(values)), list_elements(updates), list_elements(indices)
    written = set()
    for (n, w, c), number in zip(tensors.iterate_indices(updates.shape), new, strict=True):
        row = int(places[find_place(indices.shape, (n, w))])
        place = find_place(values.shape, (n, row, c))
        if not 0 <= row < values.shape[1] or place in written:
            raise UndefinedResult("places of a scatter")
        written.add(place)
        numbers[place] = number
    return Values(to.element, tuple(numbers), to.shape, values.is_rounded or updates.is_rounded)


_OTHERS: Mapping[str, Callable[[Statement, Sequence[Values], TensorType], Values]] = {
    "const": _make_constant,
    "const_shape": _make_constant,
    "mul": _multiply,
    "negate": _negate,
    "clamp": _clamp,
    "cast": _cast,
    "select": _select,
    "arithmetic_right_shift": _shift,
    "logical_right_shift": _shift,
    "logical_left_shift": _shift,
    "rescale": _rescale,
    "identity": lambda _, operands, __: operands[0],
    "reshape": lambda _, operands, to: tensors.reshape(operands[0], to.shape),
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concat": _concatenate,
    "tile": _tile,
    "reverse": _reverse,
    "gather": _gather,
    "argmax": _find_greatest,
    "matmul": _multiply_matrices,
    "conv2d": _convolve,
    "depthwise_conv2d": _convolve,
    "conv3d": _convolve,
    "transpose_conv2d": _convolve,
    "table": _look_up,
    "scatter": _scatter,
    "max_pool2d": _pool,
    "avg_pool2d": _pool,
}
