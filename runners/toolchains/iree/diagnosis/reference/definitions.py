"""Compute the scalar operations of MLIR's ``arith`` and ``math`` dialects by their definitions. Pure.

An integer is kept as its signed value. A float is rounded to its type after each operation. A result is None where
the definition leaves it undefined.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Mapping

Number = int | float
_ROUNDING = {"f16": "<e", "f32": "<f", "f64": "<d"}
FLOATS = frozenset(_ROUNDING)


def is_known(element: str) -> bool:
    """True for an element type with which this module computes."""
    return element in _ROUNDING or re.fullmatch(r"i(?:1|8|16|32|64)", element) is not None


def wrap_value(value: Number, element: str) -> Number:
    """Return a value as its type holds it: an integer modulo its width, a float rounded."""
    if element in _ROUNDING:
        try:
            return float(struct.unpack(_ROUNDING[element], struct.pack(_ROUNDING[element], value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    bits = int(element[1:])
    low = int(value) & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _divide(a: int, b: int, bits: int) -> int | None:
    """Return the quotient rounded towards zero; None for zero, and for the quotient that does not fit."""
    if not b or (b == -1 and a == -(1 << (bits - 1))):
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remain(a: int, b: int, bits: int) -> int | None:
    quotient = _divide(a, b, bits)
    return None if quotient is None else a - b * quotient


_INTEGERS: Mapping[str, Callable[[int, int, int], int | None]] = {
    "addi": lambda a, b, _: a + b,
    "subi": lambda a, b, _: a - b,
    "muli": lambda a, b, _: a * b,
    "andi": lambda a, b, _: a & b,
    "ori": lambda a, b, _: a | b,
    "xori": lambda a, b, _: a ^ b,
    "divsi": _divide,
    "remsi": _remain,
    "divui": lambda a, b, bits: _unsigned(a, bits) // _unsigned(b, bits) if b else None,
    "remui": lambda a, b, bits: _unsigned(a, bits) % _unsigned(b, bits) if b else None,
    "maxsi": lambda a, b, _: max(a, b),
    "minsi": lambda a, b, _: min(a, b),
    "maxui": lambda a, b, bits: max(a, b, key=lambda n: _unsigned(n, bits)),
    "minui": lambda a, b, bits: min(a, b, key=lambda n: _unsigned(n, bits)),
    "shli": lambda a, b, bits: a << b if 0 <= b < bits else None,
    "shrsi": lambda a, b, bits: a >> b if 0 <= b < bits else None,
    "shrui": lambda a, b, bits: _unsigned(a, bits) >> b if 0 <= b < bits else None,
}


def _divide_floats(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _choose(pick: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """``maximumf`` and ``minimumf`` give NaN for NaN."""
    return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else pick(a, b)


_FLOAT_PAIRS: Mapping[str, Callable[[float, float], float]] = {
    "addf": operator.add,
    "subf": operator.sub,
    "mulf": operator.mul,
    "divf": _divide_floats,
    "maximumf": _choose(max),
    "minimumf": _choose(min),
}
_FLOAT_SINGLES: Mapping[str, Callable[[float], float]] = {
    "arith.negf": operator.neg,
    "math.absf": abs,
    "math.ceil": lambda a: float(math.ceil(a)),
    "math.floor": lambda a: float(math.floor(a)),
    "math.roundeven": lambda a: float(round(a)),
    "math.round": lambda a: math.copysign(math.floor(abs(a) + 0.5), a),
    "math.trunc": lambda a: float(math.trunc(a)),
    "math.sqrt": math.sqrt,
    "math.rsqrt": lambda a: _divide_floats(1.0, math.sqrt(a)),
    "math.exp": math.exp,
    "math.exp2": lambda a: 2.0**a,
    "math.log": math.log,
    "math.sin": math.sin,
    "math.cos": math.cos,
    "math.tanh": math.tanh,
    "math.erf": math.erf,
}
_INTEGER_SINGLES: Mapping[str, Callable[[int, int], int]] = {
    "math.absi": lambda a, _: abs(a),
    "math.ctpop": lambda a, bits: _unsigned(a, bits).bit_count(),
}
_ORDERS: Mapping[str, Callable[[Number, Number], bool]] = {
    **{"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le},
    **{"gt": operator.gt, "ge": operator.ge},
}


def compute(operation: str, element: str, values: list[Number]) -> Number | None:
    """Return the result of an operation of ``element``; None if it is unknown or undefined."""
    result = _compute(operation, element, values)
    return None if result is None else wrap_value(result, element)


def _compute(operation: str, element: str, values: list[Number]) -> Number | None:
    dialect, _, name = operation.partition(".")
    try:
        if element in FLOATS:
            if len(values) == 2 and dialect == "arith" and name in _FLOAT_PAIRS:
                return _FLOAT_PAIRS[name](values[0], values[1])
            return _FLOAT_SINGLES[operation](values[0]) if operation in _FLOAT_SINGLES and len(values) == 1 else None
        bits, whole = int(element[1:]), [int(value) for value in values]
        if len(whole) == 2 and dialect == "arith" and name in _INTEGERS:
            return _INTEGERS[name](whole[0], whole[1], bits)
        return (
            _INTEGER_SINGLES[operation](whole[0], bits) if operation in _INTEGER_SINGLES and len(whole) == 1 else None
        )
    except (ValueError, OverflowError, TypeError):  # infinite and undefined values, which Python refuses
        return None


def compare(kind: str, predicate: str, element: str, a: Number, b: Number) -> Number | None:
    """Return the ``i1`` of ``arith.cmpi`` or ``arith.cmpf``, as -1 or 0; None if the predicate is unknown."""
    if kind == "cmpi":
        unsigned, bits = predicate.startswith("u"), int(element[1:])
        order = _ORDERS.get(predicate if predicate in ("eq", "ne") else predicate[1:])
        pair = (_unsigned(int(a), bits), _unsigned(int(b), bits)) if unsigned else (a, b)
        return None if order is None else -int(order(*pair))
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return -int(unordered is (predicate == "uno"))
    order = _ORDERS.get(predicate[1:])
    if order is None or predicate[0] not in "ou":
        return None
    return -int(predicate[0] == "u" if unordered else order(a, b))


def convert(operation: str, value: Number, source: str, target: str) -> Number | None:
    """Return a value cast from one type to another; None for an unknown cast, and a value that does not fit."""
    match operation:
        case "extsi" | "trunci" | "sitofp" | "extf" | "truncf":
            return wrap_value(value, target)
        case "extui" | "uitofp":
            return wrap_value(_unsigned(int(value), int(source[1:])), target)
        case "fptosi":
            fits = math.isfinite(value) and wrap_value(math.trunc(value), target) == math.trunc(value)
            return math.trunc(value) if fits else None
        case _:
            return None
