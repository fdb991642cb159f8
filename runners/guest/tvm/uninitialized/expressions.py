"""Compile TIR expressions to closures that compute known integers, unknown values or undefined values.

A closure takes the list of the function's variables and buffers, so that an expression is compiled once and evaluated
in every iteration. Integers are computed within the range of their type. Other numbers are only compared, and only if
they are given arguments or constants, because a processor may round the results of arithmetic differently.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's variables, absent for mypy

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.uninitialized.effects import find_escaping, find_named, get_memory_key, is_pure
from runners.guest.tvm.uninitialized.memory import (
    UNKNOWN,
    CannotTell,
    Index,
    Memory,
    Undefined,
    UndefinedUse,
    UseFound,
    Value,
)

Variables = list[Any]
Evaluate = Callable[[Variables], Value]
Execute = Callable[[Variables], None]


class ExpressionCompiler:
    """Compiles the expressions of one function, and assigns a slot to each variable and buffer."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._initial: Variables = []
        self._shapes: dict[int, tuple[str, ...]] = {}
        self._at_once: frozenset[int] = frozenset()
        """Buffers that concurrent iterations write, so that the order of reads is unknown."""
        self._memories: list[Memory] = []
        self._aliased: set[int] = set()

    def _get_slot(self, variable: Node, value: Value = UNKNOWN) -> int:
        key = hash(variable)
        if key not in self._slots:
            self._slots[key] = len(self._initial)
            self._initial.append(value)
        return self._slots[key]

    def _get_buffer_slot(self, buffer: Node) -> int:
        """Return the slot of a buffer's memory. A second buffer over the same memory counts all of it as written."""
        key = get_memory_key(buffer)
        shape = tuple(str(getattr(buffer, name)) for name in ("shape", "dtype", "strides", "elem_offset"))
        if key not in self._slots:
            # A buffer without a visible allocation belongs to other code.
            self._get_slot(ir.get_memory(buffer), self._create_memory(buffer, fresh=False))
        slot = self._slots[key]
        if self._shapes.setdefault(key, shape) != shape:
            self._aliased.add(slot)
        return slot

    def _create_memory(self, buffer: Node, fresh: bool, given: Any = None) -> Memory:
        constant = tuple(int(extent.value) for extent in buffer.shape if hasattr(extent, "value"))
        extents = constant if len(constant) == len(buffer.shape) else None
        memory = Memory(str(buffer.name), extents if given is None else given.shape, fresh, given=given)
        self._memories.append(memory)
        return memory

    def _compile_forget_calls(self, expression: Node) -> Execute:
        """Compile the effect of an expression that may not run. Unknown code may write the memory passed to it."""
        return self._compile_forget_keys(find_escaping(expression))

    def _compile_forget_keys(self, keys: frozenset[int]) -> Execute:
        slots = [self._slots[key] for key in keys if key in self._slots]

        def forget(variables: Variables) -> None:
            for slot in slots:
                if isinstance(variables[slot], Memory):
                    variables[slot].forget()

        return forget

    def _compile_indices(self, indices: Sequence[Node]) -> tuple[bool, Callable[[Variables], Index]]:
        """Return True if the index has lanes, and the index. An axis with lanes evaluates to a tuple."""
        parts = [
            self._compile_ramp(one) if ir.get_kind(one) == "Ramp" else self._compile_expression(one)
            for one in indices
        ]
        lanes = any(ir.get_kind(one) == "Ramp" for one in indices)

        def evaluate_index(variables: Variables) -> Index:
            return tuple(require_defined(part(variables), "an index") for part in parts)

        return lanes, evaluate_index

    def _compile_ramp(self, node: Node) -> Evaluate:
        base, stride = self._compile_expression(node.base), self._compile_expression(node.stride)
        count = getattr(node.lanes, "value", None)

        def evaluate_ramp(variables: Variables) -> Value:
            first, step = require_defined(base(variables), "an index"), require_defined(stride(variables), "an index")
            if count is None or type(first) is not int or type(step) is not int:
                return UNKNOWN
            return tuple(first + step * lane for lane in range(int(count)))

        return evaluate_ramp

    def _compile_expression(self, node: Node) -> Evaluate:
        kind = ir.get_kind(node)
        if kind == "IntImm":
            value = int(node.value)
            return lambda variables: value
        if kind == "FloatImm":
            number = _round_constant(float(node.value), ir.get_dtype(node))
            return lambda variables: number
        if kind == "StringImm":
            return lambda variables: UNKNOWN
        if kind in ("Var", "SizeVar"):
            return self._compile_variable(node)
        if kind in ir.LOADS:
            return self._compile_load(node)
        if kind in BINARY:
            return self._compile_binary(BINARY[kind], node, node.a, node.b)
        return self._compile_other(kind, node)

    def _compile_other(self, kind: str, node: Node) -> Evaluate:
        match kind:
            case "And" | "Or":
                return self._compile_lazy(node, stops_at=int(kind == "Or"))
            case "Not":
                return self._compile_binary(operator.xor, node, node.a, ir.make_true())
            case "Cast":
                return self._compile_cast(node)
            case "Select":
                return self._compile_choice(node.condition, node.true_value, node.false_value)
            case "Let":
                return self._compile_let(node)
            case "Call":
                return self._compile_call(node)
            case "Broadcast":
                return self._compile_operands(node, [node.value])
            case "BitwiseNot":
                return self._compile_operands(node, [node.a])
            case "Ramp":
                return self._compile_operands(node, [node.base, node.stride])
        raise CannotTell(kind)

    def _compile_variable(self, node: Node) -> Evaluate:
        """Compile a variable. A buffer as a value is its address, so unknown code may write it from then on."""
        slot = self._get_slot(node)

        def evaluate_variable(variables: Variables) -> Value:
            value = variables[slot]
            if isinstance(value, Memory):
                value.forget()
                return UNKNOWN
            return value

        return evaluate_variable

    def _compile_load(self, node: Node) -> Evaluate:
        if getattr(node, "predicate", None) is not None:
            raise CannotTell("a load with a predicate")
        buffer = ir.get_buffer(node)
        slot = self._get_buffer_slot(buffer)
        lanes, index = self._compile_indices(node.indices)
        certain = get_memory_key(buffer) not in self._at_once

        def evaluate_load(variables: Variables) -> Value:
            memory = variables[slot]
            at = index(variables)
            value = (
                _find_undefined([memory.read_element(one) for one in iterate_lanes(at)])
                if lanes
                else memory.read_element(at)
            )
            return value if certain or not isinstance(value, Undefined) else UNKNOWN

        return evaluate_load

    def _compile_binary(self, apply: Callable[[int, int], int], node: Node, left: Node, right: Node) -> Evaluate:
        first, second = self._compile_expression(left), self._compile_expression(right)
        low, high = _get_limits(ir.get_dtype(node))
        product = apply is operator.mul and high > 0
        exact = apply in COMPARISONS

        def evaluate_binary(variables: Variables) -> Value:
            a, b = first(variables), second(variables)
            if type(a) is int and type(b) is int:
                try:
                    value = int(apply(a, b))
                except (ZeroDivisionError, ValueError, OverflowError):
                    return UNKNOWN
                return value if low <= value <= high else UNKNOWN
            if exact and type(a) in NUMBERS and type(b) in NUMBERS and a == a and b == b:
                value = apply(a, b)
                return int(value) if type(value) is bool else value
            if product and ((type(a) is int and a == 0) or (type(b) is int and b == 0)):
                return 0
            return _find_undefined((a, b))

        return evaluate_binary

    def _compile_lazy(self, node: Node, stops_at: int) -> Evaluate:
        first, second = self._compile_expression(node.a), self._compile_expression(node.b)
        forget = self._compile_forget_calls(node.b)

        def evaluate_lazy(variables: Variables) -> Value:
            a = first(variables)
            if type(a) is int:
                return stops_at if bool(a) == bool(stops_at) else second(variables)
            forget(variables)
            return a

        return evaluate_lazy

    def _compile_cast(self, node: Node) -> Evaluate:
        value = self._compile_expression(node.value)
        low, high = _get_limits(ir.get_dtype(node))

        def evaluate_cast(variables: Variables) -> Value:
            seen = value(variables)
            if isinstance(seen, Undefined):
                return seen
            return seen if type(seen) is int and low <= seen <= high else UNKNOWN

        return evaluate_cast

    def _compile_choice(self, condition: Node, then: Node, otherwise: Node) -> Evaluate:
        """Compile a conditional value. The other operand may be read, without effect on the result."""
        holds, first, second = (
            self._compile_expression(condition),
            self._compile_expression(then),
            self._compile_expression(otherwise),
        )
        forget = [self._compile_forget_calls(then), self._compile_forget_calls(otherwise)]

        def evaluate_choice(variables: Variables) -> Value:
            chosen = holds(variables)
            if type(chosen) is int:
                return first(variables) if chosen else second(variables)
            for one in forget:
                one(variables)
            return chosen

        return evaluate_choice

    def _compile_let(self, node: Node) -> Evaluate:
        slot, value = self._get_slot(node.var), self._compile_expression(node.value)
        body = self._compile_expression(node.body)

        def evaluate_let(variables: Variables) -> Value:
            variables[slot] = value(variables)
            return body(variables)

        return evaluate_let

    def _compile_call(self, node: Node) -> Evaluate:
        name = ir.get_operator(node)
        if name == "if_then_else":
            return self._compile_choice(*node.args)
        if name == "likely":
            return self._compile_expression(node.args[0])
        if name in SPELLED_AS_CALLS:
            return self._compile_binary(SPELLED_AS_CALLS[name], node, *node.args)
        if is_pure(node.op):
            return self._compile_operands(node, list(node.args))
        if name in ("ret", "break_loop", "continue_loop"):
            raise CannotTell(name)
        return self._compile_unknown_call(node)

    def _compile_unknown_call(self, node: Node) -> Evaluate:
        """Compile a call of unknown code, which may read and write all memory named in the call."""
        forget = self._compile_forget_keys(find_named(node))

        def evaluate_call(variables: Variables) -> Value:
            forget(variables)
            return UNKNOWN

        return evaluate_call

    def _compile_operands(self, node: Node, operands: list[Node]) -> Evaluate:
        """Compile an operation without computing its value. The result is undefined if an operand is."""
        parts = [self._compile_expression(one) for one in operands]
        return lambda variables: _find_undefined([part(variables) for part in parts])


def _get_limits(dtype: str) -> tuple[int, int]:
    """Return the range of an integer type. An empty range for other types, whose values are not computed."""
    if dtype in ("bool", "uint1"):
        return 0, 1
    bits = dtype.removeprefix("u").removeprefix("int")
    if not bits.isdigit():
        return 1, 0
    return (0, 2 ** int(bits) - 1) if dtype.startswith("u") else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)


def _round_constant(value: float, dtype: str) -> Value:
    """Return a constant rounded to its type. Unknown for types that numpy lacks."""
    return float(np.dtype(dtype).type(value)) if dtype in ("float16", "float32", "float64") else UNKNOWN


def _divide_truncating(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Div": _divide_truncating,
    "Mod": lambda a, b: a - b * _divide_truncating(a, b),
    "Min": min,
    "Max": max,
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
COMPARISONS = (min, max, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
"""Operations that are also exact for floating-point numbers except NaN."""
NUMBERS = (int, float)
SPELLED_AS_CALLS = {name: BINARY[kind] for name, kind in ir.SPELLED_AS_CALLS.items()}


def _find_undefined(values: Sequence[Value]) -> Value:
    return next((value for value in values if isinstance(value, Undefined)), UNKNOWN)


def require_defined(value: Value, where: str) -> Value:
    """Return ``value``.

    Raises:
        UseFound: the value is undefined.
    """
    if isinstance(value, Undefined):
        raise UseFound(UndefinedUse(value, where))
    return value


def iterate_lanes(index: Index) -> Iterator[Index]:
    """Yield the index of each lane. An axis without lanes is the same for all."""
    count = max((len(part) for part in index if type(part) is tuple), default=1)
    for lane in range(count):
        yield tuple(part[lane] if type(part) is tuple else part for part in index)
