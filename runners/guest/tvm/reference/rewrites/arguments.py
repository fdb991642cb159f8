"""Generate arguments for a function of a module: the same in every run, and exact in all types of floats.

Floats are quarters from -2 to 2. Sums and products of a few of them are exact, so that another order of the
operations changes no digit. Integers may be indices, so a generator makes no negative ones unless requested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.types import get_array_type, read_type
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value, demand

MAX_ELEMENTS = 20_000
_VARIABLES = ("Var", "SizeVar")


class Generator:
    """Arguments of one function. Each shape variable has one size."""

    def __init__(self, size: int, *, signed: bool) -> None:
        self._size = size
        self._signed = signed
        self._sizes: dict[int, int] = {}
        self._chance = np.random.default_rng(size)

    def make_for_kernel(self, kernel: Node) -> list[Value]:
        """Return arguments for a kernel: an array for each buffer, and a number for each variable."""
        buffers = ir.list_buffers(kernel)
        made: dict[int, Value] = {at: self._make_array(str(one.dtype), one.shape) for at, one in buffers.items()}
        for at, parameter in enumerate(kernel.params):
            if at not in made:
                demand(read_type(ir.get_dtype(parameter)).is_integer, "a parameter that is no integer")
                made[at] = self._get_size(parameter)
        return [made[at] for at in range(len(kernel.params))]

    def make_for_function(self, annotations: Sequence[Node]) -> list[Value]:
        """Return arguments for parameters of a Relax function by their annotations."""
        return [self._make_value(one) for one in annotations]

    def _make_value(self, annotation: Node) -> Value:
        fields = getattr(annotation, "fields", None)
        if fields is not None:
            return tuple(self._make_value(one) for one in fields)
        extents = getattr(getattr(annotation, "shape", None), "values", None)
        if extents is not None:
            return self._make_array(str(annotation.dtype), extents)
        extents = getattr(annotation, "values", None)
        if extents is None:
            raise CannotEvaluate("a parameter of unknown shape or type")
        return self._make_shape(extents)

    def _make_array(self, dtype: str, extents: Sequence[Node]) -> Value:
        shape = self._make_shape(extents)
        demand(math.prod(shape) <= MAX_ELEMENTS, "an argument of this size")
        kind = read_type(dtype).kind
        low, high = _RANGES[kind] if self._signed or kind == "f" else (0, 2)
        numbers = self._chance.integers(low, high, size=shape)
        return (numbers / 4 if kind == "f" else numbers).astype(get_array_type(dtype))

    def _make_shape(self, extents: Sequence[Node]) -> tuple[int, ...]:
        return tuple(self._get_size(one) if _is_variable(one) else _read_extent(one) for one in extents)

    def _get_size(self, variable: Node) -> int:
        return self._sizes.setdefault(hash(variable), self._size)


_RANGES: Mapping[str, tuple[int, int]] = {"f": (-8, 9), "i": (-3, 4), "u": (0, 7), "b": (0, 2)}
"""Kind of a type → the least number, and the first number that is too large. Floats are divided by four."""


def _is_variable(extent: Node) -> bool:
    return ir.get_kind(extent) in _VARIABLES


def _read_extent(extent: Any) -> int:
    number = extent if isinstance(extent, int) else getattr(extent, "value", None)
    if not isinstance(number, int):
        raise CannotEvaluate("an extent that is an expression")
    return number
