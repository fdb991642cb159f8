"""Run the elementwise operations of StableHLO, CHLO and TOSA on one element, by the dialects' names. Pure.

An ``i1`` is stored as -1 or 0, as in `definitions`. `UndefinedResult` means that the specification does not define
the result.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from runners.toolchains.iree.diagnosis.reference.definitions import (
    FLOAT_FUNCTIONS,
    FLOAT_PAIRS,
    FLOATS,
    INTEGER_PAIRS,
    ORDERS,
    Number,
    count_bits,
    power,
    remain_float,
    to_unsigned,
    wrap_value,
)
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult

_FLOAT_NAMES: Mapping[str, str] = {
    **{name: name for name in FLOAT_FUNCTIONS},
    **{"negate": "neg", "exponential": "exp", "exponential_minus_one": "expm1", "log_plus_one": "log1p"},
    **{"round_nearest_even": "roundeven", "round_nearest_afz": "round", "cosine": "cos", "sine": "sin"},
    **{"sigmoid": "logistic"},
}
"""Names of the dialects → names of `FLOAT_FUNCTIONS`."""


_FLOAT_PAIRS: Mapping[str, Callable[[float, float], float]] = {
    **{"add": operator.add, "subtract": operator.sub, "sub": operator.sub},
    **{"multiply": operator.mul, "mul": operator.mul, "divide": FLOAT_PAIRS["divf"]},
    **{"maximum": FLOAT_PAIRS["maximumf"], "minimum": FLOAT_PAIRS["minimumf"]},
    **{"power": power, "pow": power, "remainder": remain_float, "atan2": math.atan2},
}
_INTEGER_NAMES: Mapping[str, str] = {
    **{"add": "addi", "subtract": "subi", "sub": "subi", "multiply": "muli", "mul": "muli"},
    **{"and": "andi", "or": "ori", "xor": "xori", "bitwise_and": "andi", "bitwise_or": "ori", "bitwise_xor": "xori"},
    **{"logical_and": "andi", "logical_or": "ori", "logical_xor": "xori"},
    **{"intdiv": "divsi", "int_div": "divsi"},
}
_BY_SIGN: Mapping[str, str] = {"divide": "div", "remainder": "rem", "maximum": "max", "minimum": "min"}
"""Operations whose definition depends on the sign of the type → the stem of the ``arith`` operation."""
_BOOLEANS: Mapping[str, str] = {"add": "ori", "maximum": "ori", "multiply": "andi", "minimum": "andi"}


def _shift(name: str, a: int, b: int, bits: int, element: str) -> int:
    """Shift as StableHLO defines it: more than the width gives zeros, or copies of the sign."""
    amount = to_unsigned(b, bits)
    if name == "shift_left":
        return a << amount if amount < bits else 0
    if name == "shift_right_logical":
        return to_unsigned(a, bits) >> amount if amount < bits else 0
    signed = wrap_value(a, element.removeprefix("u"))
    return int(signed) >> min(amount, bits - 1)


def _raise_integer(a: int, b: int) -> int:
    if b < 0 or b > 64:
        raise UndefinedResult("a power of integers")
    return int(a**b)


def _compute_integers(name: str, a: int, b: int, element: str) -> int:
    bits = count_bits(element)
    if element == "i1" and name in _BOOLEANS:
        name = _BOOLEANS[name]
    elif name.startswith("shift_"):
        return _shift(name, a, b, bits, element)
    elif name in ("power", "pow"):
        return _raise_integer(a, b)
    elif name in _BY_SIGN:
        name = f"{_BY_SIGN[name]}{'u' if element[0] == 'u' else 's'}i"
    known = INTEGER_PAIRS.get(_INTEGER_NAMES.get(name, name))
    result = None if known is None else known(a, b, bits)
    if result is None:
        raise UndefinedResult(f"{name} of {a} and {b}")
    return result


def compute_pair(name: str, element: str, a: Number, b: Number) -> Number:
    """Return the result of two elements, before it is rounded or wrapped to its type."""
    if element not in FLOATS:
        return _compute_integers(name, int(a), int(b), element)
    if name not in _FLOAT_PAIRS:
        raise UndefinedResult(f"{name} of floats")
    try:
        return _FLOAT_PAIRS[name](float(a), float(b))
    except (OverflowError, ValueError):
        raise UndefinedResult(f"{name} of {a} and {b}") from None


def compute_single(name: str, element: str, a: Number) -> Number:
    """Return the result of one element, before it is rounded or wrapped to its type."""
    if element in FLOATS:
        if name not in _FLOAT_NAMES:
            raise UndefinedResult(f"{name} of floats")
        try:
            return FLOAT_FUNCTIONS[_FLOAT_NAMES[name]](float(a))
        except (OverflowError, ValueError):
            raise UndefinedResult(f"{name} of {a}") from None
    whole, bits = int(a), count_bits(element)
    match name:
        case "negate":
            return -whole
        case "abs":
            return abs(whole)
        case "sign":
            return (whole > 0) - (whole < 0)
        case "not" | "bitwise_not" | "logical_not":
            return ~whole
        case "popcnt":
            return to_unsigned(whole, bits).bit_count()
        case "count_leading_zeros" | "clz":
            return bits - to_unsigned(whole, bits).bit_length()
        case _:
            raise UndefinedResult(f"{name} of integers")


def compare_pair(order: str, a: Number, b: Number) -> int:
    """Return the ``i1`` of a comparison (``eq``, ``ne``, ``lt``, ``le``, ``gt``, ``ge``). NaN is only unequal."""
    return -int(ORDERS[order](a, b))


def truncate_number(value: Number, source: str, target: str) -> Number:
    """Run ``stablehlo.convert``: towards zero. A float that does not fit the integer type has no defined result."""
    if target == "i1":
        return -int(value != 0)
    if source == "i1":
        return int(value != 0)
    if target in FLOATS or source not in FLOATS:
        return value
    if not math.isfinite(value) or wrap_value(math.trunc(value), target) != math.trunc(value):
        raise UndefinedResult(f"{value} as {target}")
    return math.trunc(value)


def round_number(value: Number, source: str, target: str) -> Number:
    """Run ``tosa.cast``: to the nearest integer, ties to even, and saturated."""
    if target not in FLOATS and target != "i1" and source in FLOATS:
        if math.isnan(value):
            raise UndefinedResult(f"{value} as {target}")
        low, high = list_limits(target)
        return max(low, min(high, round(value) if math.isfinite(value) else high if value > 0 else low))
    return truncate_number(value, source, target)


def list_limits(element: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = count_bits(element)
    return (0, (1 << bits) - 1) if element[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
