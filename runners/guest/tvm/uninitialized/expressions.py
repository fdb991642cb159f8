"""The values of TIR expressions, as far as a function can be followed: integers, something unknown, or undefined.

An expression becomes a closure over the list of the function's variables and buffers, so that it is taken apart once
and evaluated for every iteration. Integers are worked out within the range of their type. Of other numbers only those
that were given and are compared as they stand: what arithmetic on them would give, a processor may round otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # the toolchain's own, absent where this is checked

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.uninitialized.effects import is_pure, key_of, named_in, passed_on
from runners.guest.tvm.uninitialized.memory import UNKNOWN, CannotTell, Found, Index, Memory, Undefined, Use, Value

Environment = list[Any]
Evaluate = Callable[[Environment], Value]
Execute = Callable[[Environment], None]


class Expressions:
    """The variables and buffers of one function, and its expressions."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._initial: Environment = []
        self._shapes: dict[int, tuple[str, ...]] = {}
        self._at_once: frozenset[int] = frozenset()
        """Buffers that iterations which may run at the same time write: the order of reads is not known there."""
        self._memories: list[Memory] = []
        self._aliased: set[int] = set()

    def _slot(self, variable: Node, value: Value = UNKNOWN) -> int:
        key = hash(variable)
        if key not in self._slots:
            self._slots[key] = len(self._initial)
            self._initial.append(value)
        return self._slots[key]

    def _buffer_slot(self, buffer: Node) -> int:
        """The slot of a buffer's memory; a second buffer over the same memory makes all of it count as written."""
        key = key_of(buffer)
        shape = tuple(str(getattr(buffer, name)) for name in ("shape", "dtype", "strides", "elem_offset"))
        if key not in self._slots:
            # One that is allocated nowhere in sight is memory of somebody else.
            self._slot(ir.data_of(buffer), self._allocated(buffer, fresh=False))
        slot = self._slots[key]
        if self._shapes.setdefault(key, shape) != shape:
            self._aliased.add(slot)
        return slot

    def _allocated(self, buffer: Node, fresh: bool, given: Any = None) -> Memory:
        constant = tuple(int(extent.value) for extent in buffer.shape if hasattr(extent, "value"))
        extents = constant if len(constant) == len(buffer.shape) else None
        memory = Memory(str(buffer.name), extents if given is None else given.shape, fresh, given=given)
        self._memories.append(memory)
        return memory

    def _forgetting_calls(self, expression: Node) -> Execute:
        """The same for part of an expression: what it passes to code that is not seen may be written."""
        return self._blurring(passed_on(expression))

    def _blurring(self, keys: frozenset[int]) -> Execute:
        slots = [self._slots[key] for key in keys if key in self._slots]

        def blur(environment: Environment) -> None:
            for slot in slots:
                if isinstance(environment[slot], Memory):
                    environment[slot].blur()

        return blur

    def _indices(self, indices: Sequence[Node]) -> tuple[bool, Callable[[Environment], Index]]:
        """Whether the index has lanes, and the index; a lane's axis gives a tuple."""
        parts = [self._ramp(one) if ir.kind_of(one) == "Ramp" else self._expression(one) for one in indices]
        lanes = any(ir.kind_of(one) == "Ramp" for one in indices)

        def index(environment: Environment) -> Index:
            return tuple(decided(part(environment), "an index") for part in parts)

        return lanes, index

    def _ramp(self, node: Node) -> Evaluate:
        base, stride = self._expression(node.base), self._expression(node.stride)
        count = getattr(node.lanes, "value", None)

        def ramp(environment: Environment) -> Value:
            first, step = decided(base(environment), "an index"), decided(stride(environment), "an index")
            if count is None or type(first) is not int or type(step) is not int:
                return UNKNOWN
            return tuple(first + step * lane for lane in range(int(count)))

        return ramp

    def _expression(self, node: Node) -> Evaluate:
        kind = ir.kind_of(node)
        if kind == "IntImm":
            value = int(node.value)
            return lambda environment: value
        if kind == "FloatImm":
            number = _as_stored(float(node.value), ir.dtype_of(node))
            return lambda environment: number
        if kind == "StringImm":
            return lambda environment: UNKNOWN
        if kind in ("Var", "SizeVar"):
            return self._variable(node)
        if kind in ir.LOADS:
            return self._load(node)
        if kind in BINARY:
            return self._binary(BINARY[kind], node, node.a, node.b)
        return self._other(kind, node)

    def _other(self, kind: str, node: Node) -> Evaluate:
        match kind:
            case "And" | "Or":
                return self._lazy(node, stops_at=int(kind == "Or"))
            case "Not":
                return self._binary(operator.xor, node, node.a, ir.true())
            case "Cast":
                return self._cast(node)
            case "Select":
                return self._choice(node.condition, node.true_value, node.false_value)
            case "Let":
                return self._let(node)
            case "Call":
                return self._call(node)
            case "Broadcast":
                return self._all_of(node, [node.value])
            case "BitwiseNot":
                return self._all_of(node, [node.a])
            case "Ramp":
                return self._all_of(node, [node.base, node.stride])
        raise CannotTell(kind)

    def _variable(self, node: Node) -> Evaluate:
        """A buffer as a value is its address: it may be written from then on."""
        slot = self._slot(node)

        def variable(environment: Environment) -> Value:
            value = environment[slot]
            if isinstance(value, Memory):
                value.blur()
                return UNKNOWN
            return value

        return variable

    def _load(self, node: Node) -> Evaluate:
        if getattr(node, "predicate", None) is not None:
            raise CannotTell("a load with a predicate")
        buffer = ir.buffer_of(node)
        slot = self._buffer_slot(buffer)
        lanes, index = self._indices(node.indices)
        certain = key_of(buffer) not in self._at_once

        def load(environment: Environment) -> Value:
            memory = environment[slot]
            at = index(environment)
            value = _first_undefined([memory.read(one) for one in each_lane(at)]) if lanes else memory.read(at)
            return value if certain or not isinstance(value, Undefined) else UNKNOWN

        return load

    def _binary(self, apply: Callable[[int, int], int], node: Node, left: Node, right: Node) -> Evaluate:
        first, second = self._expression(left), self._expression(right)
        low, high = _limits(ir.dtype_of(node))
        product = apply is operator.mul and high > 0
        exact = apply in COMPARISONS

        def binary(environment: Environment) -> Value:
            a, b = first(environment), second(environment)
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
            return _first_undefined((a, b))

        return binary

    def _lazy(self, node: Node, stops_at: int) -> Evaluate:
        first, second = self._expression(node.a), self._expression(node.b)
        forget = self._forgetting_calls(node.b)

        def lazy(environment: Environment) -> Value:
            a = first(environment)
            if type(a) is int:
                return stops_at if bool(a) == bool(stops_at) else second(environment)
            forget(environment)
            return a

        return lazy

    def _cast(self, node: Node) -> Evaluate:
        value = self._expression(node.value)
        low, high = _limits(ir.dtype_of(node))

        def cast(environment: Environment) -> Value:
            seen = value(environment)
            if isinstance(seen, Undefined):
                return seen
            return seen if type(seen) is int and low <= seen <= high else UNKNOWN

        return cast

    def _choice(self, condition: Node, then: Node, otherwise: Node) -> Evaluate:
        """The value that is chosen. The other one may be read, and does not matter."""
        holds, first, second = self._expression(condition), self._expression(then), self._expression(otherwise)
        forget = [self._forgetting_calls(then), self._forgetting_calls(otherwise)]

        def choice(environment: Environment) -> Value:
            decided = holds(environment)
            if type(decided) is int:
                return first(environment) if decided else second(environment)
            for one in forget:
                one(environment)
            return decided

        return choice

    def _let(self, node: Node) -> Evaluate:
        slot, value = self._slot(node.var), self._expression(node.value)
        body = self._expression(node.body)

        def let(environment: Environment) -> Value:
            environment[slot] = value(environment)
            return body(environment)

        return let

    def _call(self, node: Node) -> Evaluate:
        name = ir.operator_of(node)
        if name == "if_then_else":
            return self._choice(*node.args)
        if name == "likely":
            return self._expression(node.args[0])
        if name in SPELLED_AS_CALLS:
            return self._binary(SPELLED_AS_CALLS[name], node, *node.args)
        if is_pure(node.op):
            return self._all_of(node, list(node.args))
        if name in ("ret", "break_loop", "continue_loop"):
            raise CannotTell(name)
        return self._passed_on(node)

    def _passed_on(self, node: Node) -> Evaluate:
        """A call into code that is not seen: whatever memory is named in it may be read and written."""
        blur = self._blurring(named_in(node))

        def call(environment: Environment) -> Value:
            blur(environment)
            return UNKNOWN

        return call

    def _all_of(self, node: Node, operands: list[Node]) -> Evaluate:
        """Some function of the operands, not worked out: undefined if one of them is."""
        parts = [self._expression(one) for one in operands]
        return lambda environment: _first_undefined([part(environment) for part in parts])


def _limits(dtype: str) -> tuple[int, int]:
    """The range of an integer type; an empty one for all others, whose values are not worked out."""
    if dtype in ("bool", "uint1"):
        return 0, 1
    bits = dtype.removeprefix("u").removeprefix("int")
    if not bits.isdigit():
        return 1, 0
    return (0, 2 ** int(bits) - 1) if dtype.startswith("u") else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)


def _as_stored(value: float, dtype: str) -> Value:
    """A constant as its type holds it; unknown for types that numpy does not have."""
    return float(np.dtype(dtype).type(value)) if dtype in ("float16", "float32", "float64") else UNKNOWN


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Div": _truncated,
    "Mod": lambda a, b: a - b * _truncated(a, b),
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
"""What is exact for floating-point numbers too, NaN aside."""
NUMBERS = (int, float)
SPELLED_AS_CALLS: dict[str, Callable[[int, int], int]] = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}
"""Until 0.26; nodes of their own from 0.27."""


def _first_undefined(values: Sequence[Value]) -> Value:
    return next((value for value in values if isinstance(value, Undefined)), UNKNOWN)


def decided(value: Value, where: str) -> Value:
    if isinstance(value, Undefined):
        raise Found(Use(value, where))
    return value


def each_lane(index: Index) -> Iterator[Index]:
    """The elements that an index with lanes names; an axis without lanes is the same for all."""
    count = max((len(part) for part in index if type(part) is tuple), default=1)
    for lane in range(count):
        yield tuple(part[lane] if type(part) is tuple else part for part in index)
