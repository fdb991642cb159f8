"""Define the arithmetic of TIR. Each function returns the exact result, before it is converted to its type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from runners.guest.tvm.reference.kernels.types import Number, Type, UndefinedAccess, UndefinedResult
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, demand

Apply = Callable[[Number, Number], Number]


def _divide_floor(a: Number, b: Number) -> Number:
    return a // _check_divisor(b)


def _get_remainder(a: Number, b: Number) -> Number:
    return a % _check_divisor(b)


def _divide_truncating(a: Number, b: Number) -> Number:
    return abs(a) // abs(_check_divisor(b)) * (1 if (a < 0) == (b < 0) else -1)


def _get_truncated_remainder(a: Number, b: Number) -> Number:
    return a - b * _divide_truncating(a, b)


def _check_divisor(value: Number) -> Number:
    if value == 0:
        raise UndefinedAccess("a division by zero")
    return value


def _divide_floats(a: Number, b: Number) -> Number:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _choose_number(choose: Callable[[Number, Number], Number]) -> Apply:
    def apply(a: Number, b: Number) -> Number:
        if a != a or b != b:
            raise UndefinedResult("the largest or smallest of NaN")
        return choose(a, b)

    return apply


_ANY: Mapping[str, Apply] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Min": _choose_number(min),
    "Max": _choose_number(max),
}
_INTEGER: Mapping[str, Apply] = {
    "Div": _divide_truncating,
    "Mod": _get_truncated_remainder,
    "FloorDiv": _divide_floor,
    "FloorMod": _get_remainder,
}
COMPARISONS: Mapping[str, Apply] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
_BITS: Mapping[str, Apply] = {
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
BINARY = frozenset({*_ANY, *_INTEGER, *COMPARISONS, *_BITS})
"""Nodes with two operands ``a`` and ``b``."""


def find_operation(kind: str, operands: Type) -> Apply:
    """Return the operation of a node on operands of a type.

    Raises:
        CannotEvaluate: it is not defined for the type.
    """
    if kind in COMPARISONS:
        return COMPARISONS[kind]
    if kind in _BITS and operands.kind != "f":
        return _limit_shift(_BITS[kind], operands.bits) if kind.endswith("Shift") else _BITS[kind]
    demand(operands.kind != "b", f"{kind} of bool")
    if kind in _ANY:
        return _ANY[kind]
    if kind in _INTEGER and operands.is_integer:
        return _INTEGER[kind]
    if kind == "Div":
        return _divide_floats
    raise CannotEvaluate(f"{kind} of {operands.name}")


def _limit_shift(shift: Apply, bits: int) -> Apply:
    def apply(a: Number, b: Number) -> Number:
        if not 0 <= b < bits:
            raise UndefinedResult("a shift by the width or more")
        return shift(a, b)

    return apply
