"""Evaluate a Relax function with NumPy, operator by operator, without the compiler's own lowering.

The module is read only by reflection. With ``widen``, floats are computed in float64; otherwise in their own type. A
result whose shape or kind differs from the module's ends the evaluation, because then the equivalent is wrong.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.reference.kernels.evaluate import Unwritten, evaluate_kernel
from runners.guest.tvm.reference.kernels.types import get_array_type
from runners.guest.tvm.reference.operators.basic import Call, CannotEvaluate, Value, demand
from runners.guest.tvm.reference.operators.table import OPERATORS

Node = Any
"""Any object of the compiler's IR. The compiler has no type stubs."""

MAX_ELEMENTS = 2_000_000
MAX_CALLS = 2_000
MAX_DEPTH = 20
MAX_KERNEL_SECONDS = 5.0
"""Time limit for the kernels of one call of a Relax function."""
CALL_KERNEL = "relax.call_tir"
_DTYPE = re.compile(r"(?:float|int|uint)(?:8|16|32|64)|bool|bfloat16|float8_\w{1,20}")
_SMALL = re.compile(r"bfloat16|float8_\w+")
"""Float types that NumPy lacks. Their values are stored in float32, and each result is rounded."""
_ROUNDS = "relax.astype"
"""The operator whose rounding a program requests. It rounds with ``widen`` too."""


def evaluate_function(
    module: Node, name: str, arguments: Sequence[Value], *, widen: bool, used: set[str] | None = None
) -> Value:
    """Return the result of a module's function for these arguments, and add the applied operators to ``used``.

    Raises:
        CannotEvaluate: it uses an operator without an equivalent, or an operator is undefined for its operands.
    """
    with np.errstate(all="ignore"):
        evaluation = _Evaluation(module, widen)
        result = evaluation.call_function(module[name], [_widen(one, widen) for one in arguments], 0)
    if used is not None:
        used |= evaluation.used
    return result


def calls_kernels(module: Node) -> bool:
    """True if a Relax function of the module calls a TIR kernel."""
    return any(_get_kind(function) == "PrimFunc" for function in module.functions.values())


def _widen(value: Value, widen: bool) -> Value:
    if isinstance(value, tuple):
        return tuple(_widen(one, widen) for one in value)
    if isinstance(value, np.ndarray) and _SMALL.fullmatch(value.dtype.name):
        return value.astype(np.float64 if widen else np.float32)
    return value.astype(np.float64) if widen and isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


class _Evaluation:
    """The evaluation of one call."""

    def __init__(self, module: Node, widen: bool) -> None:
        self._module = module
        self._wide = widen
        self._calls = 0
        self.used: set[str] = set()
        """The names of the applied operators."""
        self._deadline = time.monotonic() + MAX_KERNEL_SECONDS

    def call_function(self, function: Node, arguments: Sequence[Value], depth: int) -> Value:
        demand(depth < MAX_DEPTH, "calls nested too deeply")
        demand(
            _get_kind(function) == "Function" and len(function.params) == len(arguments), "the arguments do not fit"
        )
        known: dict[int, Value] = {}
        for parameter, argument in zip(function.params, arguments, strict=True):
            known[hash(parameter)] = argument
            _bind_shape(get_annotation(parameter), argument, known)
        return _Body(self, known, depth).evaluate(function.body)

    def apply_operator(self, node: Node, operands: tuple[Value, ...]) -> Value:
        """Apply the operator of a call, and check the result against the types of the module."""
        self._calls += 1
        name = str(getattr(node.op, "name", ""))
        demand(name in OPERATORS and self._calls <= MAX_CALLS, name or "a call of no operator")
        self.used.add(name)
        annotation = get_annotation(node)
        dtype = self._read_dtype(annotation)
        call = Call(operands, _Attributes(node.attrs), dtype, _read_shape(annotation))
        try:
            result = OPERATORS[name](call)
        except (TypeError, ValueError, IndexError, AttributeError, KeyError, OverflowError) as error:
            raise CannotEvaluate(f"{name}: {type(error).__name__}: {error}") from error
        return self._round_result(self._check_result(result, call, name), annotation, name)

    def _round_result(self, result: Value, annotation: Node, name: str) -> Value:
        """Round a result to a type that NumPy lacks, or to a narrow type that a program requests."""
        dtype = str(getattr(annotation, "dtype", ""))
        narrow = _SMALL.fullmatch(dtype) is not None
        rounds = name == _ROUNDS if self._wide else narrow
        if isinstance(result, tuple) or not rounds or not (narrow or dtype == "float16"):
            return result
        return result.astype(get_array_type(dtype)).astype(result.dtype)

    def call_kernel(
        self, kernel: Node, inputs: Sequence[Value], outputs: Sequence[Unwritten], sizes: Sequence[int]
    ) -> Value:
        """Return the values that a kernel writes into its outputs. A tuple of them if there are several."""
        buffers = ir.list_buffers(kernel)
        given = [_narrow(one, buffers.get(position)) for position, one in enumerate(inputs)]
        left = evaluate_kernel(kernel, [*given, *outputs, *sizes], wide=self._wide, deadline=self._deadline).values
        arrays = [one for one in given if isinstance(one, np.ndarray)]
        kept = (np.array_equal(one, made.astype(one.dtype)) for one, made in zip(arrays, left, strict=False))
        demand(all(kept), "a kernel that changes its inputs")
        made = [
            array if self._wide and array.dtype.kind == "f" else _widen(array.astype(output.dtype), False)
            for array, output in zip(left[len(arrays) :], outputs, strict=True)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _check_result(self, result: Value, call: Call, name: str) -> Value:
        if isinstance(result, tuple) or call.dtype is None:
            return result
        array = np.asarray(result)
        demand(array.size <= MAX_ELEMENTS, "a tensor of this size")
        demand(call.shape is None or array.shape == call.shape, f"{name}: another shape")
        kinds = {array.dtype.kind, np.dtype(call.dtype).kind}
        demand(len(kinds) == 1 or kinds <= {"i", "u"}, f"{name}: another type")
        return array.astype(call.dtype)

    def read_constant(self, node: Node) -> Value:
        return _widen(node.data.numpy() if hasattr(node, "data") else node.value.numpy(), self._wide)

    def find_function(self, variable: Node) -> Node:
        return self._module[variable.name_hint]

    def _read_dtype(self, annotation: Node) -> Any:
        name = str(getattr(annotation, "dtype", ""))
        if _DTYPE.fullmatch(name) is None:
            return None
        dtype = np.dtype("float32" if _SMALL.fullmatch(name) else name)
        return np.dtype("float64") if self._wide and dtype.kind == "f" else dtype


def _narrow(value: Value, buffer: Node | None) -> Value:
    """Return an input in the type of its buffer. Wide values are rounded at the border of a kernel."""
    if buffer is None or not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    return value.astype(get_array_type(str(buffer.dtype)))


class _Body:
    """The values of one function's variables, by hash.

    A hash is needed, because the compiler's comparison of variables is an expression, not a bool.
    """

    def __init__(self, evaluation: _Evaluation, known: dict[int, Value], depth: int) -> None:
        self._evaluation = evaluation
        self._known = known
        self._depth = depth

    def evaluate(self, node: Node) -> Value:
        kind = _get_kind(node)
        if kind == "SeqExpr":
            return self._evaluate_sequence(node)
        if kind in ("Var", "DataflowVar", "SizeVar"):
            demand(hash(node) in self._known, "a variable without a value")
            return self._known[hash(node)]
        if kind == "Tuple":
            return tuple(self.evaluate(field) for field in node.fields)
        if kind == "TupleGetItem":
            return self.evaluate(node.tuple_value)[int(node.index)]
        if kind in ("Constant", "GenericConst"):
            return self._evaluation.read_constant(node)
        if kind == "ShapeExpr":
            return tuple(int(self.evaluate(extent)) for extent in node.values)
        return self._evaluate_other(node, kind)

    def _evaluate_other(self, node: Node, kind: str) -> Value:
        if kind == "PrimValue":
            return self.evaluate(node.value)
        if kind in ("IntImm", "FloatImm"):
            return node.value
        if kind == "If":
            return self.evaluate(node.true_branch if bool(self.evaluate(node.cond)) else node.false_branch)
        if kind in ARITHMETIC:
            return ARITHMETIC[kind](int(self.evaluate(node.a)), int(self.evaluate(node.b)))
        if kind == "Call" and str(getattr(node.op, "name", "")) == CALL_KERNEL:
            return self._call_kernel(node)
        if kind == "Call":
            operands = tuple(self.evaluate(argument) for argument in node.args if _get_kind(argument) != "GlobalVar")
            demand(len(operands) == len(node.args), str(getattr(node.op, "name", "")))
            if _get_kind(node.op) == "GlobalVar":
                called = self._evaluation.find_function(node.op)
                return self._evaluation.call_function(called, operands, self._depth + 1)
            return self._evaluation.apply_operator(node, operands)
        raise CannotEvaluate(kind)

    def _call_kernel(self, node: Node) -> Value:
        kernel = self._evaluation.find_function(node.args[0])
        inputs = self.evaluate(node.args[1])
        sizes = self.evaluate(node.args[2]) if len(node.args) > 2 else ()
        annotation = get_annotation(node)
        made = list(getattr(annotation, "fields", None) or [annotation])
        outputs = [self._read_output(one) for one in made]
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        return self._evaluation.call_kernel(kernel, inputs, outputs, sizes)

    def _read_output(self, annotation: Node) -> Unwritten:
        extents = getattr(getattr(annotation, "shape", None), "values", None)
        name = str(getattr(annotation, "dtype", ""))
        if extents is None or _DTYPE.fullmatch(name) is None:
            raise CannotEvaluate("an output of unknown shape or of another type")
        return Unwritten(tuple(int(self.evaluate(one)) for one in extents), get_array_type(name))

    def _evaluate_sequence(self, node: Node) -> Value:
        for block in node.blocks:
            for binding in block.bindings:
                value = self.evaluate(binding.value)
                if _get_kind(binding) == "MatchCast":
                    _bind_shape(getattr(binding, "ty", None) or binding.struct_info, value, self._known)
                self._known[hash(binding.var)] = value
        return self.evaluate(node.body)


ARITHMETIC: Mapping[str, Any] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Max": max,
    "Min": min,
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
}
"""Expressions in symbolic shapes."""


class _Attributes(Mapping[str, Any]):
    """The attributes of a call as plain Python values."""

    def __init__(self, attributes: Node) -> None:
        self._attributes = attributes

    def __getitem__(self, name: str) -> Any:
        if self._attributes is None or not hasattr(self._attributes, name):
            raise KeyError(name)
        return _read_attribute(getattr(self._attributes, name))

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def _read_attribute(value: Any) -> Any:
    if _get_kind(value) in ("Array", "list", "tuple"):
        return [_read_attribute(one) for one in value]
    return value.value if _get_kind(value) in ("IntImm", "FloatImm") else value


def _get_kind(node: Node) -> str:
    return type(node).__name__


def get_annotation(node: Node) -> Node:
    """Return the annotation of a variable or a call: its type from 0.27, its structural information before."""
    return getattr(node, "ty", None) or getattr(node, "struct_info", None)


def _read_shape(annotation: Node) -> tuple[int, ...] | None:
    extents = getattr(getattr(annotation, "shape", None), "values", None)
    if extents is None or any(not isinstance(getattr(one, "value", None), int) for one in extents):
        return None
    return tuple(int(one.value) for one in extents)


def _bind_shape(annotation: Node, value: Value, known: dict[int, Value]) -> None:
    """Bind the variables of a shape to the extents of a value."""
    fields = getattr(annotation, "fields", None)
    if isinstance(value, tuple) and fields is not None:
        for field, item in zip(fields, value, strict=False):
            _bind_shape(field, item, known)
        return
    # The annotation of a tensor has a ShapeExpr; the annotation of a shape has the extents themselves.
    extents = getattr(getattr(annotation, "shape", None), "values", None) or getattr(annotation, "values", None)
    shape = value if isinstance(value, tuple) else np.shape(value)
    if extents is None:
        return
    demand(len(extents) == len(shape), "the arguments do not fit")
    for extent, size in zip(extents, shape, strict=True):
        if _get_kind(extent) in ("Var", "SizeVar"):
            demand(known.setdefault(hash(extent), size) == size, "the arguments do not fit")
        elif isinstance(getattr(extent, "value", None), int):
            demand(int(extent.value) == size, "the arguments do not fit")
