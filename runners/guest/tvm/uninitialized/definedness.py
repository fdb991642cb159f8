"""Which elements a TIR function reads without having written them, by the text of the function alone.

The function is interpreted as it was written, before any pass: its statements in their order, its loops one iteration
after another. What its arguments hold is not known, and neither is any number computed from it; integers that follow
from the loops are. So an answer holds whatever the function is called with, or, where the arguments of a call are
given, for that call. No pass has a part in it: a compiler that loses an initialising store changes what is computed,
and nothing here.

A value read from an element that was not written is followed, as a memory checker does: copying it is no fault, and
neither is padding that nobody looks at. It is one when it decides something (an index, a condition, how often a loop
runs), or ends in an argument or in what the function returns.

Whatever is not certain counts as written: stores at an index or under a condition that is not known, memory whose
address is passed on or that has a second name, iterations that may run at the same time. What this cannot follow at
all (threads of a device, ``break``, more than ``MOST_STEPS`` steps) gives no answer. Needs TVM 0.24 or later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.uninitialized.effects import allocated_in, leaves, viewed, written_in
from runners.guest.tvm.uninitialized.expressions import Environment, Execute, Expressions, decided, each_lane
from runners.guest.tvm.uninitialized.memory import UNKNOWN, CannotTell, Found, Memory, Undefined, Use, left_in

MOST_STEPS = 400_000
"""Stores and loop iterations in one function; some 0.5 s. Large tensors are beyond it."""
PARALLEL, VECTORIZED, THREAD_BINDING = 1, 2, 4
REDUCTION = 2
"""``IterVar.kCommReduce``."""


class Returned(Exception):
    """The function ends."""


@dataclass
class Seen:
    """What one function does with what it did not write."""

    uses: list[Use]
    buffers: frozenset[str]
    """Names of the buffers of which an element was read that had not been written, whether it mattered or not."""


def look_at(function: Node, fresh: Sequence[int] = (), given: Mapping[int, Any] | None = None) -> Seen:
    """The uses of undefined values in ``function``; ``fresh`` are the parameters that its caller leaves unwritten.

    ``given``: arguments by position, integers and arrays. With them the answer is about this call, and without about
    any. Raises `CannotTell`.
    """
    return _Function(function, frozenset(fresh), given or {}).run()


class _Function(Expressions):
    """One function, compiled to closures over a list of variables and then run once."""

    def __init__(self, function: Node, fresh: frozenset[int], given: Mapping[int, Any]) -> None:
        super().__init__()
        self._steps = 0
        self._parameters: list[Memory] = []
        buffers = ir.parameters(function)
        for position, value in given.items():
            self._give(function.params[position], buffers.get(position), value)
        for position, buffer in buffers.items():
            memory = self._allocated(buffer, position in fresh, given.get(position))
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

    def _give(self, parameter: Node, buffer: Node | None, value: Any) -> None:
        """Bind a scalar, or what a buffer's shape says of the function's variables."""
        bound = [(parameter, value)] if buffer is None else zip(buffer.shape, value.shape, strict=False)
        if buffer is not None and (len(buffer.shape), str(buffer.dtype)) != (value.ndim, value.dtype.name):
            raise CannotTell("arguments of other types")
        for variable, number in bound:
            if ir.kind_of(variable) in ("Var", "SizeVar"):
                self._slot(variable, int(number))
            elif getattr(variable, "value", number) != number:
                raise CannotTell("arguments of other shapes")

    def _allocation(self, buffer: Node) -> Execute:
        slot = self._buffer_slot(buffer)
        shape = [self._expression(extent) for extent in buffer.shape]

        def allocate(environment: Environment) -> None:
            extents = tuple(extent(environment) for extent in shape)
            memory = self._allocated(buffer, fresh=slot not in self._aliased)
            memory.extents = extents if all(type(extent) is int for extent in extents) else None
            environment[slot] = memory

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
            first = decided(low(environment), "how often a loop runs")
            count = decided(extent(environment), "how often a loop runs")
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
            holds = decided(condition(environment), "a condition")
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
                holds = decided(condition(environment), "a condition")
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
            for at in each_lane(index(environment)):
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
                decided(seen, "the value returned")
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
            runs = decided(predicate(environment), "a condition")
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


def _in_order(statements: list[Execute]) -> Execute:
    def run(environment: Environment) -> None:
        for statement in statements:
            statement(environment)

    return run


def _cannot_tell(environment: Environment) -> None:
    raise CannotTell("leaves early under a condition that is not known")
