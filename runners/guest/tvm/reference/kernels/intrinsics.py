"""Define the intrinsic functions of TIR. Functions of floats are computed in float64, then rounded to their type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.kernels.types import Number, Type, UndefinedResult
from runners.guest.tvm.reference.operators.basic import demand


def _round_value(value: Number) -> Number:
    """Round to the nearest integer. Libraries round ties differently."""
    if math.isfinite(value) and abs(value - math.trunc(value)) == 0.5:
        raise UndefinedResult("a tie of round")
    return float(np.rint(value))


def _wrap(function: Callable[..., Any]) -> Callable[..., Number]:
    return lambda *operands: float(function(*map(np.float64, operands)))


FLOATS: Mapping[str, Callable[..., Number]] = {
    **{
        name: _wrap(getattr(np, name))
        for name in (
            *("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "tanh", "sinh", "cosh", "sin", "cos", "tan"),
            *("floor", "ceil", "trunc", "fmod", "hypot", "copysign"),
        )
    },
    "exp10": _wrap(lambda x: np.power(10.0, x)),
    "rsqrt": _wrap(lambda x: 1 / np.sqrt(x)),
    "sigmoid": _wrap(lambda x: 1 / (1 + np.exp(-x))),
    "asin": _wrap(np.arcsin),
    "acos": _wrap(np.arccos),
    "atan": _wrap(np.arctan),
    "asinh": _wrap(np.arcsinh),
    "acosh": _wrap(np.arccosh),
    "atanh": _wrap(np.arctanh),
    "atan2": _wrap(np.arctan2),
    "pow": _wrap(np.power),
    "power": _wrap(np.power),
    "erf": math.erf,
    "fabs": abs,
    "abs": abs,
    "nearbyint": _wrap(np.rint),
    "round": _round_value,
    "fma": lambda a, b, c: a * b + c,
}
"""Functions from floats to a float."""
EXACT = frozenset({"floor", "ceil", "trunc", "copysign", "fabs", "abs", "nearbyint", "round"})
"""Functions of floats whose result is exact in every implementation."""
TESTS: Mapping[str, Callable[[Number], bool]] = {
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}


def find_intrinsic(name: str, operands: list[Type]) -> Callable[..., Number]:
    """Return an intrinsic function for operands of these types.

    Raises:
        CannotEvaluate: it has no equivalent.
    """
    demand(bool(operands) and len(set(operands)) == 1, name or "a call of no operator")
    type = operands[0]
    if name in TESTS:
        return TESTS[name] if type.kind == "f" else lambda value: name == "isfinite"
    if type.is_integer and name in ("abs", "fabs"):
        return abs
    if type.is_integer and name == "popcount":
        return lambda value: (value & (2**type.bits - 1)).bit_count()
    if type.is_integer and name == "clz":
        return lambda value: _count_leading_zeros(value, type.bits)
    demand(type.kind == "f" and name in FLOATS, name)
    return FLOATS[name]


def _count_leading_zeros(value: Number, bits: int) -> Number:
    if value == 0:
        raise UndefinedResult("clz of 0")
    return bits - (value & (2**bits - 1)).bit_length()
