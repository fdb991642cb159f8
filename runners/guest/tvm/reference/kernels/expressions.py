"""Compile TIR expressions to closures over the list of a function's variables, one closure for each lane of a vector.

A closure is made once and evaluated in every iteration. Nodes are distinguished by class name, because the classes
moved between releases.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.arithmetic import BINARY, COMPARISONS, find_operation
from runners.guest.tvm.reference.kernels.intrinsics import EXACT, TESTS, find_intrinsic
from runners.guest.tvm.reference.kernels.memory import Iterations, Memory, find_place
from runners.guest.tvm.reference.kernels.types import (
    Fit,
    Number,
    Type,
    UndefinedAccess,
    UndefinedResult,
    make_cast,
    make_fit,
    make_rounding,
    read_type,
)
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, demand

Variables = list[Any]
Evaluate = Callable[[Variables], Number]
Place = Callable[[Variables], tuple[Memory, int]]

_VARIABLES = ("Var", "SizeVar")
_TRANSPARENT = ("likely",)
_CODES = {("f", 16): "e", ("f", 32): "f", ("f", 64): "d"} | {
    (kind, bits): (code if kind == "i" else code.upper())
    for kind in "iu"
    for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))
}
"""Types whose bits can be read as another type, with their codes in ``struct``."""


class ExpressionCompiler:
    """Compiles the expressions of one function, and assigns a slot to each variable and to each buffer's memory."""

    def __init__(self, *, wide: bool) -> None:
        self._wide = wide
        self.has_floats = False
        self.approximates = False
        """True if implementations may differ in the last digits: doubles, divisions, functions such as ``exp``."""
        self.accumulates = False
        """True if an element is computed from an earlier value of its buffer, as in a sum over others."""
        self._slots: dict[int, int] = {}
        self._initial: Variables = []
        self._at_once = False
        """True while the body of a loop is compiled whose iterations may run concurrently."""
        self._running: list[Iterations] = []
        """The running loops whose iterations may run concurrently."""

    def _get_slot(self, key: int, value: Any = None) -> int:
        if key not in self._slots:
            self._slots[key] = len(self._initial)
            self._initial.append(value)
        return self._slots[key]

    def _get_fit(self, type: Type) -> Fit:
        return make_fit(type, wide=self._wide)

    # ------------------------------------------------------------------------------------------ expressions

    def _compile_scalar(self, node: Node) -> Evaluate:
        demand(read_type(ir.get_dtype(node)).lanes == 1, "a vector in the place of a number")
        return self._compile(node, 0)

    def _compile(self, node: Node, lane: int) -> Evaluate:
        """Compile one lane of an expression."""
        kind = ir.get_kind(node)
        type = read_type(ir.get_dtype(node))
        self.has_floats = self.has_floats or type.kind == "f"
        self.approximates = self.approximates or (type.kind == "f" and (type.bits > 32 or kind in ("Div", "Mod")))
        if kind in ("IntImm", "FloatImm"):
            return self._compile_constant(node)
        if kind in _VARIABLES:
            return self._compile_variable(node)
        if kind in ir.LOADS:
            return self._compile_load(node, lane)
        if kind in BINARY:
            return self._compile_binary(kind, node, node.a, node.b, lane)
        match kind:
            case "And" | "Or":
                return self._compile_lazy(kind, node, lane)
            case "Not":
                value = self._compile(node.a, lane)
                return lambda variables: int(not value(variables))
            case "BitwiseNot":
                return self._compile_complement(node, node.a, lane)
            case "Cast":
                given, wanted = (read_type(ir.get_dtype(one)) for one in (node.value, node))
                return self._convert(self._compile(node.value, lane), make_cast(given, wanted, wide=self._wide))
            case "Select":
                return self._compile_select(node, lane)
            case "Let":
                return self._compile_let(node, lane)
            case "Ramp":
                return self._compile_ramp(node, lane)
            case "Broadcast":
                return self._compile_scalar(node.value)
            case "Call":
                return self._compile_call(node, lane)
        raise CannotEvaluate(kind)

    @staticmethod
    def _convert(value: Evaluate, convert: Fit) -> Evaluate:
        return lambda variables: convert(value(variables))

    def _compile_constant(self, node: Node) -> Evaluate:
        type = read_type(ir.get_dtype(node))
        value = float(node.value) if type.kind == "f" else int(node.value)
        if type.kind == "f" and type.bits < 64:
            value = make_rounding(type)(value)
        elif type.kind != "f":
            value = self._get_fit(type)(value)
        return lambda variables: value

    def _compile_variable(self, node: Node) -> Evaluate:
        demand(hash(node) in self._slots and read_type(ir.get_dtype(node)).lanes == 1, "a variable without a value")
        slot = self._slots[hash(node)]

        def evaluate_variable(variables: Variables) -> Number:
            value = variables[slot]
            if value is None or isinstance(value, Memory):
                raise CannotEvaluate("a variable without a value")
            return value

        return evaluate_variable

    def _compile_binary(self, kind: str, node: Node, left: Node, right: Node, lane: int) -> Evaluate:
        first, second = self._compile(left, lane), self._compile(right, lane)
        operands = read_type(ir.get_dtype(left))
        demand(operands == read_type(ir.get_dtype(right)), f"{kind} of different types")
        apply = find_operation(kind, operands)
        if kind in COMPARISONS:
            return lambda variables: int(apply(first(variables), second(variables)))
        fit = self._get_fit(read_type(ir.get_dtype(node)))
        return lambda variables: fit(apply(first(variables), second(variables)))

    def _compile_complement(self, node: Node, operand: Node, lane: int) -> Evaluate:
        type, value = read_type(ir.get_dtype(node)), self._compile(operand, lane)
        demand(type.kind != "f", "the complement of a float")
        highest = type.limits[1] if type.kind != "i" else -1
        return lambda variables: value(variables) ^ highest

    def _compile_lazy(self, kind: str, node: Node, lane: int) -> Evaluate:
        first, second, stops_at = self._compile(node.a, lane), self._compile(node.b, lane), kind == "Or"

        def evaluate_lazy(variables: Variables) -> Number:
            return int(stops_at) if bool(first(variables)) == stops_at else int(bool(second(variables)))

        return evaluate_lazy

    def _compile_condition(self, node: Node, lane: int) -> Evaluate:
        lanes = read_type(ir.get_dtype(node)).lanes
        return self._compile(node, lane if lanes > 1 else 0)

    def _compile_select(self, node: Node, lane: int) -> Evaluate:
        """Compile a choice that computes both values, so that an access of the unused one may end the process."""
        holds = self._compile_condition(node.condition, lane)
        values = self._compile(node.false_value, lane), self._compile(node.true_value, lane)

        def evaluate_select(variables: Variables) -> Number:
            chosen = bool(holds(variables))
            try:
                values[not chosen](variables)
            except UndefinedAccess:
                raise
            except UndefinedResult:
                pass  # a value that is not used
            return values[chosen](variables)

        return evaluate_select

    def _compile_choice(self, node: Node, lane: int) -> Evaluate:
        condition, then, otherwise = node.args
        holds = self._compile_condition(condition, lane)
        first, second = self._compile(then, lane), self._compile(otherwise, lane)
        return lambda variables: first(variables) if holds(variables) else second(variables)

    def _compile_let(self, node: Node, lane: int) -> Evaluate:
        value = self._compile_scalar(node.value)
        slot = self._get_slot(hash(node.var))
        body = self._compile(node.body, lane)

        def evaluate_let(variables: Variables) -> Number:
            variables[slot] = value(variables)
            return body(variables)

        return evaluate_let

    def _compile_ramp(self, node: Node, lane: int) -> Evaluate:
        base, stride = self._compile_scalar(node.base), self._compile_scalar(node.stride)
        fit = self._get_fit(read_type(ir.get_dtype(node)))
        return lambda variables: fit(base(variables) + stride(variables) * lane)

    # ------------------------------------------------------------------------------------------ calls

    def _compile_call(self, node: Node, lane: int) -> Evaluate:
        name, operands = ir.get_operator(node), list(node.args)
        if name == "if_then_else":
            return self._compile_choice(node, lane)
        if name in _TRANSPARENT:
            return self._compile(operands[0], lane)
        if name == "bitwise_not":
            return self._compile_complement(node, operands[0], lane)
        if name in ir.SPELLED_AS_CALLS:
            return self._compile_binary(ir.SPELLED_AS_CALLS[name], node, operands[0], operands[1], lane)
        if name == "infinity" or (name == "large_uint_imm" and all(hasattr(one, "value") for one in operands)):
            low, high = (int(one.value) for one in operands) if operands else (0, 0)
            value = float("inf") if name == "infinity" else (high << 32) + low
            return lambda variables: value
        types = [read_type(ir.get_dtype(one)) for one in operands]
        result = read_type(ir.get_dtype(node))
        parts = [self._compile(one, lane) for one in operands]
        if name == "reinterpret":
            return self._compile_reinterpretation(parts, types, result)
        function = find_intrinsic(name, types)
        self.approximates = self.approximates or (result.kind == "f" and name not in EXACT)
        fit = self._get_fit(result)
        if name in TESTS:
            return lambda variables: int(function(parts[0](variables)))
        return lambda variables: fit(function(*[part(variables) for part in parts]))

    def _compile_reinterpretation(self, parts: list[Evaluate], types: list[Type], result: Type) -> Evaluate:
        demand(len(parts) == 1 and types[0].lanes == result.lanes, "a reinterpretation")
        codes = [_CODES.get((one.kind, one.bits)) for one in (types[0], result)]
        demand(None not in codes and types[0].bits == result.bits, "a reinterpretation")
        value, fit = parts[0], make_rounding(types[0]) if types[0].kind == "f" else self._get_fit(types[0])
        return lambda variables: struct.unpack(f"={codes[1]}", struct.pack(f"={codes[0]}", fit(value(variables))))[0]

    # ------------------------------------------------------------------------------------------ buffers

    def _compile_load(self, node: Node, lane: int) -> Evaluate:
        demand(getattr(node, "predicate", None) is None, "a load with a predicate")
        place = self._compile_place(ir.get_buffer(node), node.indices, lane)
        running = self._running if self._at_once else []

        def evaluate_load(variables: Variables) -> Number:
            memory, at = place(variables)
            for loop in running:
                loop.note_read(memory, at)
            value = memory.cells[at]
            if value is None:
                raise UndefinedResult(f"a read of an element of {memory.name} that nothing has written")
            return value

        return evaluate_load

    def _compile_place(self, buffer: Node, indices: Sequence[Node], lane: int) -> Place:
        """Compile the place of an element: its memory, and its position there."""
        key = hash(ir.get_memory(buffer))
        demand(key in self._slots, "a buffer without known memory")
        slot, dtype, name = self._slots[key], str(buffer.dtype), str(buffer.name)
        demand(read_type(dtype).lanes == 1 and len(buffer.shape) == len(indices), "an access of a vector")
        extents = [self._compile_scalar(one) for one in buffer.shape]
        fixed = tuple(getattr(one, "value", None) for one in buffer.shape)
        is_fixed = None not in fixed
        index = [self._compile(one, lane) for one in indices]
        demand(all(read_type(ir.get_dtype(one)).is_integer for one in indices), "an index of another type")

        def find(variables: Variables) -> tuple[Memory, int]:
            memory = variables[slot]
            if not isinstance(memory, Memory) or memory.dtype != dtype:
                raise CannotEvaluate("a buffer without known memory, or of another type")
            shape: tuple[Any, ...] = fixed if is_fixed else tuple([extent(variables) for extent in extents])
            at = find_place(name, shape, tuple([one(variables) for one in index]))
            if at >= len(memory.cells):
                raise UndefinedAccess(f"an index outside its buffer: {name}")
            return memory, at

        return find
