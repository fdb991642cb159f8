"""Evaluate tensor expressions as the testcase wrote them, before the compiler makes a kernel of them.

Each tensor is computed completely, element by element, from the tensors that its expression reads. With a `Library`,
the tensors that the compiler's library made are computed with NumPy instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.evaluate import Evaluated
from runners.guest.tvm.reference.kernels.expressions import Evaluate, Variables
from runners.guest.tvm.reference.kernels.library import Library, LibraryCall, compute_call, get_key
from runners.guest.tvm.reference.kernels.statements import MAX_ELEMENTS, StatementCompiler
from runners.guest.tvm.reference.kernels.types import Number, UndefinedAccess, get_array_type, read_type
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value, demand

_VARIABLES = ("Var", "SizeVar")

Cells = list[Number]


def evaluate_expressions(
    arguments: Sequence[Node], given: Sequence[Value], *, wide: bool, deadline: float, library: Library | None = None
) -> Evaluated:
    """Return the arguments of a kernel of these tensors after a call.

    ``arguments`` are the tensors and variables of the kernel, and ``given`` the values of one call. ``deadline`` is a
    time of ``time.monotonic``.

    Raises:
        CannotEvaluate: an expression has no equivalent, or is undefined.
    """
    with np.errstate(all="ignore"):
        compiler = _TensorCompiler(arguments, given, wide=wide, deadline=deadline, library=library)
        try:
            return Evaluated(compiler.compute(), compiler.has_floats)
        except (TypeError, ValueError, OverflowError, IndexError, RecursionError) as error:
            raise CannotEvaluate(f"{type(error).__name__}: {error}") from error


class _TensorCompiler(StatementCompiler):
    def __init__(
        self,
        arguments: Sequence[Node],
        given: Sequence[Value],
        *,
        wide: bool,
        deadline: float,
        library: Library | None,
    ) -> None:
        super().__init__(wide=wide, deadline=deadline)
        self._library = library
        demand(len(arguments) == len(given), "the arguments do not fit")
        self._given = list(zip(arguments, given, strict=True))
        self._cells: dict[tuple[int, int], tuple[tuple[int, ...], Cells]] = {}
        """The shape and the elements of each output of each operation that is computed."""
        for argument, value in self._given:
            if ir.get_kind(argument) in _VARIABLES:
                demand(isinstance(value, int), "an argument of another type")
                self._bind(argument, value)
            else:
                self._bind_shape(argument, value)
        for argument, value in self._given:
            if ir.get_kind(argument) not in _VARIABLES and ir.get_kind(argument.op) == "PlaceholderOp":
                self._bind_input(argument, value)

    def compute(self) -> tuple[Value, ...]:
        """Return the array arguments after the call."""
        left = []
        for argument, value in self._given:
            if ir.get_kind(argument) in _VARIABLES:
                continue
            shape, cells = self._find_cells(argument)
            demand(shape == value.shape, "an argument of another shape")
            is_float = read_type(str(argument.dtype)).kind == "f"
            left.append(np.array(cells, dtype="float64" if is_float else value.dtype).reshape(shape))
        return tuple(left)

    def _bind(self, variable: Node, number: int) -> None:
        slot = self._get_slot(hash(variable), number)
        demand(self._initial[slot] == number, "the arguments do not fit")

    def _bind_shape(self, tensor: Node, value: Value) -> None:
        demand(isinstance(value, np.ndarray) and value.dtype == get_array_type(str(tensor.dtype)), "another type")
        demand(value.ndim == len(tensor.shape) and value.size <= MAX_ELEMENTS, "an argument of another shape")
        for extent, size in zip(tensor.shape, value.shape, strict=True):
            if ir.get_kind(extent) in _VARIABLES:
                self._bind(extent, size)

    def _bind_input(self, tensor: Node, value: Any) -> None:
        kind = read_type(str(tensor.dtype)).kind
        self.has_floats = self.has_floats or kind == "f"
        cells = value.astype({"f": "float64", "b": "int8"}.get(kind, value.dtype)).ravel().tolist()
        self._cells[hash(tensor.op), 0] = value.shape, cells

    # ------------------------------------------------------------------------------------------ tensors

    def _find_cells(self, tensor: Node) -> tuple[tuple[int, ...], Cells]:
        key = get_key(tensor)
        if key not in self._cells:
            call = self._library.find_call(key) if self._library else None
            if call is not None:
                self._compute_call(call)
            else:
                demand(ir.get_kind(tensor.op) == "ComputeOp", ir.get_kind(tensor.op))
                self._cells[key] = self._compute_cells(tensor)
        return self._cells[key]

    def _compute_call(self, call: LibraryCall) -> None:
        """Compute the tensors that a function of the library makes."""
        results = [(self._get_array_type(one), self._read_shape(one)) for one in call.results]
        for tensor, value in zip(call.results, compute_call(call, self._read_operand, results), strict=True):
            kind = value.dtype.kind
            cells = value.astype({"f": "float64", "b": "int8"}.get(kind, value.dtype)).ravel().tolist()
            self._cells[get_key(tensor)] = value.shape, cells

    def _read_operand(self, node: Node) -> Value:
        if not hasattr(node, "value_index"):
            return self._compile_scalar(node)(self._initial)
        shape, cells = self._find_cells(node)
        return np.array(cells).astype(self._get_array_type(node)).reshape(shape)

    def _get_array_type(self, tensor: Node) -> Any:
        is_wide = self._wide and read_type(str(tensor.dtype)).kind == "f"
        return np.dtype("float64") if is_wide else get_array_type(str(tensor.dtype))

    def _read_shape(self, tensor: Node) -> tuple[int, ...]:
        shape = tuple(int(self._compile_scalar(extent)(self._initial)) for extent in tensor.shape)
        demand(math.prod(shape) <= MAX_ELEMENTS, "a tensor of this size")
        return shape

    def _compute_cells(self, tensor: Node) -> tuple[tuple[int, ...], Cells]:
        operation = tensor.op
        shape = self._read_shape(tensor)
        slots = [self._get_slot(hash(axis.var)) for axis in operation.axis]
        body = operation.body[int(tensor.value_index)]
        value = self._compile_reduction(body) if ir.get_kind(body) == "Reduce" else self._compile_scalar(body)
        variables = [*self._initial]
        cells = []
        for place in itertools.product(*map(range, shape)):
            self._count_iteration()
            for slot, index in zip(slots, place, strict=True):
                variables[slot] = index
            cells.append(value(variables))
        return shape, cells

    def _compile_reduction(self, node: Node) -> Evaluate:
        """Compile a reduction. Its combiner takes tuples: ``argmax`` reduces indices and values together."""
        combiner = node.combiner
        left, right = ([self._get_slot(hash(one)) for one in side] for side in (combiner.lhs, combiner.rhs))
        axes = [(self._get_slot(hash(axis.var)), self._compile_range(axis)) for axis in node.axis]
        source = [self._compile_scalar(one) for one in node.source]
        start = [self._compile_scalar(one) for one in (node.init or combiner.identity_element)]
        combine = [self._compile_scalar(one) for one in combiner.result]
        condition = self._compile_scalar(node.condition)
        wanted = int(node.value_index)

        def reduce(variables: Variables) -> Number:
            total = [one(variables) for one in start]
            for _ in self._iterate(axes, variables):
                if condition(variables):
                    added = [one(variables) for one in source]
                    for slots, values in ((left, total), (right, added)):
                        for slot, value in zip(slots, values, strict=True):
                            variables[slot] = value
                    total = [one(variables) for one in combine]
            return total[wanted]

        return reduce

    def _compile_range(self, axis: Node) -> Callable[[Variables], range]:
        low, extent = self._compile_scalar(axis.dom.min), self._compile_scalar(axis.dom.extent)
        return lambda variables: range(int(low(variables)), int(low(variables)) + int(extent(variables)))

    def _iterate(
        self, axes: Sequence[tuple[int, Callable[[Variables], range]]], variables: Variables
    ) -> Iterator[None]:
        for place in itertools.product(*(values(variables) for _, values in axes)):
            self._count_iteration()
            for (slot, _), index in zip(axes, place, strict=True):
                variables[slot] = index
            yield

    def _compile(self, node: Node, lane: int) -> Evaluate:
        """Compile an expression. A read of a tensor is a separate node until 0.26, and a call since 0.27."""
        match ir.get_kind(node):
            case "ProducerLoad":
                return self._compile_read(node.producer, node.indices)
            case "Call" if ir.get_operator(node) == "tensor_load":
                return self._compile_read(node.args[0], list(node.args)[1:])
            case _:
                return super()._compile(node, lane)

    def _compile_read(self, tensor: Node, places: Sequence[Node]) -> Evaluate:
        self.has_floats = self.has_floats or read_type(str(tensor.dtype)).kind == "f"
        shape, cells = self._find_cells(tensor)
        indices = [self._compile_scalar(one) for one in places]
        demand(len(indices) == len(shape), "a read of another rank")

        def read(variables: Variables) -> Number:
            place = 0
            for index, extent in zip(indices, shape, strict=True):
                at = int(index(variables))
                if not 0 <= at < extent:
                    raise UndefinedAccess("an index outside its tensor")
                place = place * extent + at
            return cells[place]

        return read
