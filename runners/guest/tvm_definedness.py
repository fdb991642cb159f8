"""Which elements a TIR function reads without having written them, by the text of the function alone.

The function is interpreted as it was written, before any pass: its statements in their order, its loops one iteration
after another. What its arguments hold is not known, and neither is any number computed from it; integers that follow
from the loops are. So an answer holds whatever the function is called with, and no pass had a part in it: a compiler
that loses an initialising store changes what is computed, and nothing here.

A value read from an element that was not written is followed, as a memory checker does: copying it is no fault, and
neither is padding that nobody looks at. It is one when it decides something (an index, a condition, how often a loop
runs), or ends in an argument or in what the function returns.

Whatever is not certain counts as written: stores at an index or under a condition that is not known, memory whose
address is passed on or that has a second name, iterations that may run at the same time. What this cannot follow at
all (threads of a device, ``break``, more than ``MOST_STEPS`` steps) gives no answer. Needs TVM 0.24 or later.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runners.guest import tvm_ir as ir
    from runners.guest.tvm_effects import (
        allocated_in,
        is_pure,
        key_of,
        leaves,
        named_in,
        passed_on,
        viewed,
        written_in,
    )
    from runners.guest.tvm_ir import Node
    from runners.guest.tvm_memory import UNKNOWN, CannotTell, Found, Index, Memory, Undefined, Use, Value, left_in
else:
    import tvm_ir as ir
    from tvm_effects import allocated_in, is_pure, key_of, leaves, named_in, passed_on, viewed, written_in
    from tvm_ir import Node
    from tvm_memory import UNKNOWN, CannotTell, Found, Index, Memory, Undefined, Use, Value, left_in

MOST_STEPS = 400_000
"""Stores and loop iterations in one function; some 0.5 s. Large tensors are beyond it."""
PARALLEL, VECTORIZED, THREAD_BINDING = 1, 2, 4
REDUCTION = 2
"""``IterVar.kCommReduce``."""


Environment = list[Any]
Evaluate = Callable[[Environment], Value]
Execute = Callable[[Environment], None]


class Returned(Exception):
    """The function ends."""


@dataclass
class Seen:
    """What one function does with what it did not write."""

    uses: list[Use]
    buffers: frozenset[str]
    """Names of the buffers of which an element was read that had not been written, whether it mattered or not."""


def look_at(function: Node, fresh: Sequence[int] = ()) -> Seen:
    """The uses of undefined values in ``function``; ``fresh`` are the parameters that its caller leaves unwritten.

    Raises `CannotTell`.
    """
    return _Function(function, frozenset(fresh)).run()


class _Function:
    """One function, compiled to closures over a list of variables and then run once."""

    def __init__(self, function: Node, fresh: frozenset[int]) -> None:
        self._slots: dict[int, int] = {}
        self._initial: Environment = []
        self._shapes: dict[int, tuple[str, ...]] = {}
        self._at_once: frozenset[int] = frozenset()
        """Buffers that iterations which may run at the same time write: the order of reads is not known there."""
        self._steps = 0
        self._memories: list[Memory] = []
        self._parameters: list[Memory] = []
        self._aliased: set[int] = set()
        for position, buffer in ir.parameters(function).items():
            memory = self._allocated(buffer, position in fresh)
            self._initial[self._buffer_slot(buffer)] = memory
            self._parameters.append(memory)
        self._body = self._statement(function.body)

    def run(self) -> Seen:
        for slot in self._aliased:
            self._initial[slot].blur()
        environment = list(self._initial)
        uses: list[Use] = []
        try:
            self._body(environment)
        except Found as found:
            uses.append(found.use)
        except Returned:
            pass
        if not uses:
            uses = [use for memory in self._parameters for use in left_in(memory)]
        return Seen(uses, frozenset(memory.name for memory in self._memories if memory.read_unwritten))

    # ------------------------------------------------------------------------------------------ variables

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

    def _allocated(self, buffer: Node, fresh: bool) -> Memory:
        extents = tuple(int(extent.value) for extent in buffer.shape if hasattr(extent, "value"))
        memory = Memory(str(buffer.name), extents if len(extents) == len(buffer.shape) else None, fresh)
        self._memories.append(memory)
        return memory

    def _allocation(self, buffer: Node) -> Execute:
        slot = self._buffer_slot(buffer)

        def allocate(environment: Environment) -> None:
            environment[slot] = self._allocated(buffer, fresh=slot not in self._aliased)

        return allocate

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise CannotTell(f"more than {MOST_STEPS} steps")

    # ------------------------------------------------------------------------------------------ statements

    def _statement(self, node: Node) -> Execute:
        match ir.kind_of(node):
            case "SeqStmt":
                return _in_order([self._statement(child) for child in node.seq])
            case "For":
                return self._loop(node)
            case "IfThenElse":
                return self._branch(node)
            case "While":
                return self._while(node)
            case "Bind":
                return self._bind(node)
            case "BufferStore":
                return self._store(node)
            case "AllocBuffer":
                return self._allocation(node.buffer)
            case "DeclBuffer":
                return self._declared(node)
            case "SBlockRealize":
                return self._block(node)
            case "Evaluate" | "Return":
                return self._evaluated(node)
            case "AssertStmt":
                return lambda environment: None
            case "AttrStmt" if str(node.attr_key) not in ("thread_extent", "virtual_thread"):
                return self._statement(node.body)
            case kind:
                raise CannotTell(kind)

    def _loop(self, node: Node) -> Execute:
        kind = int(node.kind)
        if kind == THREAD_BINDING or getattr(node, "step", None) is not None:
            raise CannotTell("a loop bound to threads, or with a step")
        slot = self._slot(node.loop_var)
        low, extent = self._expression(node.min), self._expression(node.extent)
        outside = self._at_once
        if kind in (PARALLEL, VECTORIZED):
            self._at_once = outside | (written_in(node.body) - allocated_in(node.body))
        body = self._statement(node.body)
        self._at_once = outside
        forget = self._forgetting(node.body)

        def loop(environment: Environment) -> None:
            first = _decided(low(environment), "how often a loop runs")
            count = _decided(extent(environment), "how often a loop runs")
            if type(count) is not int:
                forget(environment)
                return
            for at in range(count):
                self._step()
                environment[slot] = first + at if type(first) is int else UNKNOWN
                body(environment)

        return loop

    def _branch(self, node: Node) -> Execute:
        condition, then = self._expression(node.condition), self._statement(node.then_case)
        has_else = node.else_case is not None
        otherwise = self._statement(node.else_case) if has_else else (lambda environment: None)
        forget = [self._forgetting(node.then_case)] + ([self._forgetting(node.else_case)] if has_else else [])

        def branch(environment: Environment) -> None:
            holds = _decided(condition(environment), "a condition")
            if type(holds) is int:
                (then if holds else otherwise)(environment)
                return
            for one in forget:
                one(environment)

        return branch

    def _while(self, node: Node) -> Execute:
        condition, body = self._expression(node.condition), self._statement(node.body)
        forget = self._forgetting(node.body)

        def loop(environment: Environment) -> None:
            while True:
                self._step()
                holds = _decided(condition(environment), "a condition")
                if type(holds) is not int:
                    forget(environment)
                    return
                if not holds:
                    return
                body(environment)

        return loop

    def _bind(self, node: Node) -> Execute:
        slot, value = self._slot(node.var), self._expression(node.value)

        def bind(environment: Environment) -> None:
            environment[slot] = value(environment)

        return bind

    def _store(self, node: Node) -> Execute:
        if getattr(node, "predicate", None) is not None:
            raise CannotTell("a store with a predicate")
        slot = self._buffer_slot(node.buffer)
        lanes, index = self._indices(node.indices)
        value = self._expression(node.value)

        def store(environment: Environment) -> None:
            self._step()
            stored, memory = value(environment), environment[slot]
            if not lanes:
                memory.write(index(environment), stored)
                return
            for at in _each_lane(index(environment)):
                memory.write(at, stored if isinstance(stored, Undefined) else UNKNOWN)

        return store

    def _declared(self, node: Node) -> Execute:
        """Another name for memory. Where its source is not the memory itself, the source counts as written."""
        source = getattr(node, "data", None)
        if source is None:  # until 0.25 the buffer holds the variable, which `_buffer_slot` knows
            self._buffer_slot(node.buffer)
            return lambda environment: None
        escaping = self._expression(source)
        slot = self._buffer_slot(node.buffer)

        def declare(environment: Environment) -> None:
            escaping(environment)
            environment[slot].blur()

        return declare

    def _evaluated(self, node: Node) -> Execute:
        returns = ir.kind_of(node) == "Return" or ir.operator_of(node.value) == "ret"
        value = node.value.args[0] if returns and ir.kind_of(node) == "Evaluate" else node.value
        evaluate = self._expression(value)

        def run(environment: Environment) -> None:
            seen = evaluate(environment)
            if returns:
                _decided(seen, "the value returned")
                raise Returned

        return run

    def _block(self, node: Node) -> Execute:
        """A block runs where its predicate holds, and its ``init`` before the first of its reduction's iterations."""
        block = node.block
        values = [self._expression(value) for value in node.iter_values]
        predicate = self._expression(node.predicate)
        slots = [self._slot(one.var) for one in block.iter_vars]
        starts = [
            (self._slot(one.var), self._expression(one.dom.min))
            for one in block.iter_vars
            if int(one.iter_type) == REDUCTION
        ]
        views = [self._view(one) for one in block.match_buffers]
        fresh = [self._allocation(buffer) for buffer in block.alloc_buffers]
        init = None if block.init is None else self._statement(block.init)
        forget = [self._forgetting(part) for part in (block.init, block.body) if part is not None]
        body = self._statement(block.body)

        def run(environment: Environment) -> None:
            bound = [value(environment) for value in values]
            for slot, value in zip(slots, bound, strict=True):
                environment[slot] = value
            runs = _decided(predicate(environment), "a condition")
            reduced = [(environment[slot], low(environment)) for slot, low in starts] if init is not None else []
            if type(runs) is not int or any(type(part) is not int for pair in reduced for part in pair):
                for one in forget:
                    one(environment)
                return
            if not runs:
                return
            for prepare in (*fresh, *views):
                prepare(environment)
            if init is not None and all(at == low for at, low in reduced):
                init(environment)
            body(environment)

        return run

    def _view(self, match: Node) -> Execute:
        """A second name for part of a buffer: all of it counts as written from here on."""
        source = self._buffer_slot(viewed(match))
        slot = self._buffer_slot(match.buffer)

        def view(environment: Environment) -> None:
            environment[source].blur()
            environment[slot].blur()

        return view

    def _forgetting(self, node: Node) -> Execute:
        """What runs in place of a statement of which it is not known whether, or how often, it runs."""
        if leaves(node):
            return _cannot_tell
        return self._blurring(written_in(node) - allocated_in(node))

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

    # ------------------------------------------------------------------------------------------ expressions

    def _indices(self, indices: Sequence[Node]) -> tuple[bool, Callable[[Environment], Index]]:
        """Whether the index has lanes, and the index; a lane's axis gives a tuple."""
        parts = [self._ramp(one) if ir.kind_of(one) == "Ramp" else self._expression(one) for one in indices]
        lanes = any(ir.kind_of(one) == "Ramp" for one in indices)

        def index(environment: Environment) -> Index:
            return tuple(_decided(part(environment), "an index") for part in parts)

        return lanes, index

    def _ramp(self, node: Node) -> Evaluate:
        base, stride = self._expression(node.base), self._expression(node.stride)
        count = getattr(node.lanes, "value", None)

        def ramp(environment: Environment) -> Value:
            first, step = _decided(base(environment), "an index"), _decided(stride(environment), "an index")
            if count is None or type(first) is not int or type(step) is not int:
                return UNKNOWN
            return tuple(first + step * lane for lane in range(int(count)))

        return ramp

    def _expression(self, node: Node) -> Evaluate:
        kind = ir.kind_of(node)
        if kind == "IntImm":
            value = int(node.value)
            return lambda environment: value
        if kind in ("FloatImm", "StringImm"):
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
            value = _first_undefined([memory.read(one) for one in _each_lane(at)]) if lanes else memory.read(at)
            return value if certain or not isinstance(value, Undefined) else UNKNOWN

        return load

    def _binary(self, apply: Callable[[int, int], int], node: Node, left: Node, right: Node) -> Evaluate:
        first, second = self._expression(left), self._expression(right)
        low, high = _limits(ir.dtype_of(node))
        product = apply is operator.mul and high > 0

        def binary(environment: Environment) -> Value:
            a, b = first(environment), second(environment)
            if type(a) is int and type(b) is int:
                try:
                    value = int(apply(a, b))
                except (ZeroDivisionError, ValueError, OverflowError):
                    return UNKNOWN
                return value if low <= value <= high else UNKNOWN
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
            return seen if type(seen) is not int or low <= seen <= high else UNKNOWN

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


# ---------------------------------------------------------------------------------------------- values


def _limits(dtype: str) -> tuple[int, int]:
    """The range of an integer type; an empty one for all others, whose values are not worked out."""
    if dtype in ("bool", "uint1"):
        return 0, 1
    bits = dtype.removeprefix("u").removeprefix("int")
    if not bits.isdigit():
        return 1, 0
    return (0, 2 ** int(bits) - 1) if dtype.startswith("u") else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)


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


def _decided(value: Value, where: str) -> Value:
    if isinstance(value, Undefined):
        raise Found(Use(value, where))
    return value


def _each_lane(index: Index) -> Iterator[Index]:
    """The elements that an index with lanes names; an axis without lanes is the same for all."""
    count = max((len(part) for part in index if type(part) is tuple), default=1)
    for lane in range(count):
        yield tuple(part[lane] if type(part) is tuple else part for part in index)


def _in_order(statements: list[Execute]) -> Execute:
    def run(environment: Environment) -> None:
        for statement in statements:
            statement(environment)

    return run


def _cannot_tell(environment: Environment) -> None:
    raise CannotTell("leaves early under a condition that is not known")
