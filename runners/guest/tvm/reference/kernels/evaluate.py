"""Evaluate a call of a TIR function: bind its arguments, run its statements, and return the final values.

With ``wide``, floats are computed in float64; otherwise each operation is rounded to its own type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.memory import Memory
from runners.guest.tvm.reference.kernels.statements import MAX_ELEMENTS, Returned, StatementCompiler, demand_plain
from runners.guest.tvm.reference.kernels.types import Number, get_array_type, make_rounding, read_type
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value, demand

_VARIABLES = ("Var", "SizeVar")


@dataclass(frozen=True)
class Unwritten:
    """An array argument in which nothing is written before the call."""

    shape: tuple[int, ...]
    dtype: Any
    """NumPy's type of the elements."""


@dataclass(frozen=True)
class Evaluated:
    """The values after a call."""

    values: tuple[Value, ...]
    """The array arguments after the call, and the returned value, if any."""
    has_floats: bool
    """True if the function has float values, so that results may be rounded."""
    approximates: bool = True
    """True if implementations may differ in the last digits of a float."""
    accumulates: bool = True
    """True if an element may be a sum over others, whose order the compiler may choose."""
    undefined: str = ""
    """With ``lenient``: the reason why a value is undefined."""
    masks: tuple[Any, ...] = ()
    """With ``lenient``: for each array, an array of the same shape that is true where the element is undefined."""


def evaluate_kernel(
    function: Node, arguments: Sequence[Value], *, wide: bool, deadline: float, lenient: bool = False
) -> Evaluated:
    """Return the values after a call.

    ``deadline`` is a time of ``time.monotonic``. With ``lenient``, elements may be undefined, and are zero.

    Raises:
        CannotEvaluate: an operation of the function has no equivalent, or is undefined.
    """
    with np.errstate(all="ignore"):
        compiler = _KernelCompiler(function, arguments, wide=wide, deadline=deadline, lenient=lenient)
        values = compiler.run_function()
        return Evaluated(
            values,
            compiler.has_floats,
            compiler.approximates,
            compiler.accumulates,
            undefined=compiler.undefined,
            masks=compiler.masks,
        )


class _KernelCompiler(StatementCompiler):
    """Compiles one function for the arguments of one call."""

    def __init__(
        self, function: Node, arguments: Sequence[Value], *, wide: bool, deadline: float, lenient: bool
    ) -> None:
        super().__init__(wide=wide, deadline=deadline, lenient=lenient)
        self.masks: tuple[Any, ...] = ()
        demand(len(function.params) == len(arguments), "the arguments do not fit")
        self._arrays: list[tuple[Memory, Any]] = []
        buffers = ir.list_buffers(function)
        for position, value in enumerate(arguments):
            if position in buffers:
                self._bind_array(buffers[position], value)
            else:
                self._bind_number(function.params[position], value)
        self._check_shapes([(buffers[at], arguments[at]) for at in buffers])
        self._body = self._compile_statement(function.body)
        self._returned: Number | None = None

    def run_function(self) -> tuple[Value, ...]:
        try:
            self._body(list(self._initial))
        except Returned as returned:
            self._returned = returned.value
        except (TypeError, ValueError, OverflowError, IndexError, RecursionError) as error:
            raise CannotEvaluate(f"{type(error).__name__}: {error}") from error
        if self._lenient:
            self.masks = tuple(_make_mask(memory, given) for memory, given in self._arrays)
        left = tuple(self._make_array(memory, given) for memory, given in self._arrays)
        return left if self._returned is None else (*left, self._returned)

    def _bind_number(self, parameter: Node, value: Value) -> None:
        dtype = read_type(ir.get_dtype(parameter))
        demand(isinstance(value, bool | int | float) and dtype.lanes == 1, "an argument of another type")
        if dtype.kind == "f":
            self.has_floats = True
            number: Number = make_rounding(dtype)(float(value))
        else:
            demand(not isinstance(value, float), "an argument of another type")
            number = int(value)
            demand(dtype.limits[0] <= number <= dtype.limits[1], "an argument outside the range of its type")
        self._bind(parameter, number)

    def _bind_array(self, buffer: Node, value: Value) -> None:
        demand_plain(buffer)
        dtype = str(buffer.dtype)
        is_array = isinstance(value, np.ndarray | Unwritten)
        demand(is_array and value.dtype == get_array_type(dtype), "an argument of another type")
        size = math.prod(value.shape)
        demand(len(value.shape) == len(buffer.shape) and size <= MAX_ELEMENTS, "an argument of another shape")
        kind = read_type(dtype).kind
        self.has_floats = self.has_floats or kind == "f"
        if isinstance(value, Unwritten):
            cells: list[Number | None] = [None] * size
        else:
            cells = value.astype({"f": "float64", "b": "int8"}.get(kind, value.dtype)).ravel().tolist()
        memory = Memory(str(buffer.name), cells, dtype)
        demand(hash(ir.get_memory(buffer)) not in self._slots, "two arguments with the same memory")
        self._get_slot(hash(ir.get_memory(buffer)), memory)
        self._arrays.append((memory, value))
        for extent, size in zip(buffer.shape, value.shape, strict=True):
            if ir.get_kind(extent) in _VARIABLES:
                self._bind(extent, size)

    def _bind(self, variable: Node, number: Number) -> None:
        slot = self._get_slot(hash(variable), number)
        demand(self._initial[slot] == number, "the arguments do not fit")

    def _check_shapes(self, bound: list[tuple[Node, Any]]) -> None:
        for buffer, array in bound:
            extents = tuple(self._compile_scalar(one)(self._initial) for one in buffer.shape)
            demand(extents == array.shape, "an argument of another shape")

    def _make_array(self, memory: Memory, given: Any) -> Any:
        type = read_type(memory.dtype)
        if self._lenient:
            memory.cells = [0 if cell is None else cell for cell in memory.cells]
        demand(math.prod(given.shape) == len(memory.cells) and None not in memory.cells, "an unwritten argument")
        return np.array(memory.cells, dtype="float64" if type.kind == "f" else given.dtype).reshape(given.shape)


def _make_mask(memory: Memory, given: Any) -> Any:
    return np.array([cell is None for cell in memory.cells], dtype=bool).reshape(given.shape)
