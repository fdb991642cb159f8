"""Define the number types of TIR: rounding, wrapping, and the values for which an operation is undefined."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import CannotEvaluate

Number = Any
"""An int (also for ``bool``) or a float."""
Fit = Callable[[Number], Number]

_TEXT = re.compile(r"(?P<name>bool|u?int\d{1,2}|bfloat16|float(?:16|32|64)|float8_\w+?)(?:x(?P<lanes>\d{1,4}))?$")
_SMALL_FLOATS = re.compile(r"bfloat16|float8")
"""Floats that NumPy has only with the package ``ml_dtypes``."""


class UndefinedResult(CannotEvaluate):
    """The program does something whose result is undefined."""


class UndefinedAccess(UndefinedResult):
    """Like `UndefinedResult`, for an operation that may end the process even if its result is unused."""


@dataclass(frozen=True)
class Type:
    """A type of scalars, and the number of lanes."""

    name: str
    kind: str
    """``b``, ``i``, ``u`` or ``f``, as in NumPy."""
    bits: int
    lanes: int = 1

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def limits(self) -> tuple[int, int]:
        """The range of an integer or boolean type."""
        if self.kind == "i":
            return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
        return 0, 2**self.bits - 1


def read_type(text: str) -> Type:
    """Return the type with this text.

    Raises:
        CannotEvaluate: values of the type are not numbers, or have no equivalent.
    """
    text = "bool" + text.removeprefix("uint1") if re.match(r"uint1(x|$)", text) else text
    found = _TEXT.match(text)
    if found is None:
        raise CannotEvaluate(f"the type {text}"[:60])
    name, lanes = found["name"], int(found["lanes"] or 1)
    if name == "bool":
        return Type(name, "b", 1, lanes)
    if "float" in name:
        return Type(name, "f", 8 if name.startswith("float8") else int(name.rpartition("float")[2]), lanes)
    return Type(name, name[0], int(name.rpartition("int")[2]), lanes)


def get_array_type(name: str) -> Any:
    """Return NumPy's type of this name.

    Raises:
        CannotEvaluate: neither NumPy nor ``ml_dtypes`` has the type.
    """
    try:
        if _SMALL_FLOATS.match(name):
            return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        return np.dtype(name)
    except (ImportError, AttributeError, TypeError) as error:
        raise CannotEvaluate(f"the type {name}") from error


def make_fit(type: Type, *, wide: bool) -> Fit:
    """Return a function that converts the exact result of an operation to a type.

    Unsigned and short integers wrap around. An overflow of a signed integer of 32 or more bits is undefined: only for
    these does TVM's LLVM code have ``nsw``. With ``wide``, floats remain in float64.
    """
    if type.kind == "f":
        return _keep if wide or type.bits == 64 else make_rounding(type)
    if type.kind == "b":
        return lambda value: int(bool(value))
    low, high = type.limits
    if type.kind == "u":
        return lambda value: value & high

    if type.bits < 32:
        return lambda value: (value - low) % (high - low + 1) + low

    def fit_signed(value: Number) -> Number:
        if low <= value <= high:
            return value
        raise UndefinedResult(f"an overflow of {type.name}")

    return fit_signed


def make_rounding(type: Type) -> Fit:
    """Return a function that rounds to a float type."""
    round_value = get_array_type(type.name).type
    return lambda value: float(round_value(value))


def make_cast(given: Type, wanted: Type, *, wide: bool) -> Fit:
    """Return the conversion between two types. Integers wrap around, as each conversion between them keeps bits.

    A cast to a narrower float type also rounds with ``wide``, because the program requests that rounding.
    """
    if wanted.kind == "f":
        narrows = given.kind == "f" and wanted.bits < given.bits
        fit = make_rounding(wanted) if narrows else make_fit(wanted, wide=wide)
        return lambda value: fit(float(value))
    if wanted.kind == "b":
        return _cast_bool
    low, high = wanted.limits
    span = high - low + 1
    if given.kind != "f":
        return lambda value: (value - low) % span + low

    def cast_float(value: Number) -> Number:
        if not math.isfinite(value) or not low <= math.trunc(value) <= high:
            raise UndefinedResult(f"a cast of {value} to {wanted.name}")
        return math.trunc(value)

    return cast_float


def _cast_bool(value: Number) -> Number:
    if value != value:
        raise UndefinedResult("a cast of NaN to bool")
    return int(value != 0)


def _keep(value: Number) -> Number:
    return value
