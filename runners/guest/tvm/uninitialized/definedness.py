"""Find the elements that a TIR function reads but never wrote, from the function alone.

The function is interpreted as written, before any pass: statements in order, loops iteration by iteration. The
contents of the arguments are unknown, and so are all numbers computed from them; integers that follow from the loops
are known. So the result holds for all arguments, or, if arguments of a call are given, for that call. No pass can
influence the result, not even a compiler that loses an initializing store.

Undefined values are traced, as in a memory checker. A copy of an undefined value is not a fault, and neither is
unread padding. A use is a fault if the value decides something (an index, a condition, the length of a loop), or
reaches an argument or the returned value.

Uncertain memory counts as written: stores with an unknown index or condition, memory with an escaping address or a
second name, concurrent iterations. Unsupported functions (threads of a device, ``break``, more than ``MAX_STEPS``
steps) give no result. Needs TVM 0.24 or later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.uninitialized.effects import find_allocated, find_written, get_viewed_buffer, has_early_exit
from runners.guest.tvm.uninitialized.expressions import (
    Execute,
    ExpressionCompiler,
    Variables,
    iterate_lanes,
    require_defined,
)
from runners.guest.tvm.uninitialized.memory import (
    UNKNOWN,
    CannotTell,
    Memory,
    Undefined,
    UndefinedUse,
    UseFound,
    iterate_leftovers,
)

MAX_STEPS = 400_000
"""Maximum number of stores and loop iterations in one function, about 0.5 s. Large tensors exceed it."""
PARALLEL, VECTORIZED, THREAD_BINDING = 1, 2, 4
REDUCTION = 2
"""``IterVar.kCommReduce``."""


class Returned(Exception):
    """The interpreted function returns."""


@dataclass
class UndefinedReads:
    """Reads and uses of undefined values in one function."""

    uses: list[UndefinedUse]
    buffers: frozenset[str]
    """Names of the buffers with an undefined element that was read, even without effect."""


def find_undefined_reads(
    function: Node, fresh: Sequence[int] = (), given: Mapping[int, Any] | None = None
) -> UndefinedReads:
    """Return the reads and uses of undefined values in ``function``.

    ``fresh`` contains the parameters that the caller passes uninitialized. ``given`` contains arguments by position,
    integers and arrays. With it, the result applies only to this call.

    Raises:
        CannotTell: the interpreter does not support the function.
    """
    return FunctionInterpreter(function, frozenset(fresh), given or {}).interpret_function()


class FunctionInterpreter(ExpressionCompiler):
    """Compiles one function to closures over a list of variables, and runs them once."""

    def __init__(self, function: Node, fresh: frozenset[int], given: Mapping[int, Any]) -> None:
        super().__init__()
        self._steps = 0
        self._parameters: list[Memory] = []
        buffers = ir.list_buffers(function)
        for position, value in given.items():
            self._bind_argument(function.params[position], buffers.get(position), value)
        for position, buffer in buffers.items():
            memory = self._create_memory(buffer, position in fresh, given.get(position))
            self._initial[self._get_buffer_slot(buffer)] = memory
            self._parameters.append(memory)
        self._body = self._compile_statement(function.body)

    def interpret_function(self) -> UndefinedReads:
        for slot in self._aliased:
            self._initial[slot].forget()
        variables = list(self._initial)
        uses: list[UndefinedUse] = []
        try:
            self._body(variables)
        except UseFound as found:
            uses.append(found.use)
        except Returned:
            pass
        if not uses:
            uses = [use for memory in self._parameters for use in iterate_leftovers(memory)]
        return UndefinedReads(uses, frozenset(memory.name for memory in self._memories if memory.read_unwritten))

    def _bind_argument(self, parameter: Node, buffer: Node | None, value: Any) -> None:
        """Bind a scalar argument, or the variables in a buffer's shape."""
        bound = [(parameter, value)] if buffer is None else zip(buffer.shape, value.shape, strict=False)
        if buffer is not None and (len(buffer.shape), str(buffer.dtype)) != (value.ndim, value.dtype.name):
            raise CannotTell("arguments of other types")
        for variable, number in bound:
            if ir.get_kind(variable) in ("Var", "SizeVar"):
                self._get_slot(variable, int(number))
            elif getattr(variable, "value", number) != number:
                raise CannotTell("arguments of other shapes")

    def _compile_allocation(self, buffer: Node) -> Execute:
        slot = self._get_buffer_slot(buffer)
        shape = [self._compile_expression(extent) for extent in buffer.shape]

        def run_allocation(variables: Variables) -> None:
            extents = tuple(extent(variables) for extent in shape)
            memory = self._create_memory(buffer, fresh=slot not in self._aliased)
            memory.extents = extents if all(type(extent) is int for extent in extents) else None
            variables[slot] = memory

        return run_allocation

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CannotTell(f"more than {MAX_STEPS} steps")

    # ------------------------------------------------------------------------------------------ statements

    def _compile_statement(self, node: Node) -> Execute:
        match ir.get_kind(node):
            case "SeqStmt":
                return _compile_sequence([self._compile_statement(child) for child in node.seq])
            case "For":
                return self._compile_loop(node)
            case "IfThenElse":
                return self._compile_branch(node)
            case "While":
                return self._compile_while(node)
            case "Bind":
                return self._compile_bind(node)
            case "BufferStore":
                return self._compile_store(node)
            case "AllocBuffer":
                return self._compile_allocation(node.buffer)
            case "DeclBuffer":
                return self._compile_declaration(node)
            case "SBlockRealize":
                return self._compile_block(node)
            case "Evaluate" | "Return":
                return self._compile_evaluation(node)
            case "AssertStmt":
                return lambda variables: None
            case "AttrStmt" if str(node.attr_key) not in ("thread_extent", "virtual_thread"):
                return self._compile_statement(node.body)
            case kind:
                raise CannotTell(kind)

    def _compile_loop(self, node: Node) -> Execute:
        kind = int(node.kind)
        if kind == THREAD_BINDING or getattr(node, "step", None) is not None:
            raise CannotTell("a loop bound to threads, or with a step")
        slot = self._get_slot(node.loop_var)
        low, extent = self._compile_expression(node.min), self._compile_expression(node.extent)
        outside = self._at_once
        if kind in (PARALLEL, VECTORIZED):
            self._at_once = outside | (find_written(node.body) - find_allocated(node.body))
        body = self._compile_statement(node.body)
        self._at_once = outside
        forget = self._compile_forget(node.body)

        def run_for(variables: Variables) -> None:
            first = require_defined(low(variables), "how often a loop runs")
            count = require_defined(extent(variables), "how often a loop runs")
            if type(count) is not int:
                forget(variables)
                return
            for at in range(count):
                self._count_step()
                variables[slot] = first + at if type(first) is int else UNKNOWN
                body(variables)

        return run_for

    def _compile_branch(self, node: Node) -> Execute:
        condition, then = self._compile_expression(node.condition), self._compile_statement(node.then_case)
        has_else = node.else_case is not None
        otherwise = self._compile_statement(node.else_case) if has_else else (lambda variables: None)
        forget = [self._compile_forget(node.then_case)] + ([self._compile_forget(node.else_case)] if has_else else [])

        def run_branch(variables: Variables) -> None:
            holds = require_defined(condition(variables), "a condition")
            if type(holds) is int:
                (then if holds else otherwise)(variables)
                return
            for one in forget:
                one(variables)

        return run_branch

    def _compile_while(self, node: Node) -> Execute:
        condition, body = self._compile_expression(node.condition), self._compile_statement(node.body)
        forget = self._compile_forget(node.body)

        def run_while(variables: Variables) -> None:
            while True:
                self._count_step()
                holds = require_defined(condition(variables), "a condition")
                if type(holds) is not int:
                    forget(variables)
                    return
                if not holds:
                    return
                body(variables)

        return run_while

    def _compile_bind(self, node: Node) -> Execute:
        slot, value = self._get_slot(node.var), self._compile_expression(node.value)

        def run_bind(variables: Variables) -> None:
            variables[slot] = value(variables)

        return run_bind

    def _compile_store(self, node: Node) -> Execute:
        if getattr(node, "predicate", None) is not None:
            raise CannotTell("a store with a predicate")
        slot = self._get_buffer_slot(node.buffer)
        lanes, index = self._compile_indices(node.indices)
        value = self._compile_expression(node.value)

        def run_store(variables: Variables) -> None:
            self._count_step()
            stored, memory = value(variables), variables[slot]
            if not lanes:
                memory.write_element(index(variables), stored)
                return
            for at in iterate_lanes(index(variables)):
                memory.write_element(at, stored if isinstance(stored, Undefined) else UNKNOWN)

        return run_store

    def _compile_declaration(self, node: Node) -> Execute:
        """Compile a second name for memory. The memory then counts as written."""
        source = getattr(node, "data", None)
        if source is None:  # until 0.25 the buffer has this variable, which `_get_buffer_slot` finds
            self._get_buffer_slot(node.buffer)
            return lambda variables: None
        escaping = self._compile_expression(source)
        slot = self._get_buffer_slot(node.buffer)

        def run_declaration(variables: Variables) -> None:
            escaping(variables)
            variables[slot].forget()

        return run_declaration

    def _compile_evaluation(self, node: Node) -> Execute:
        returns = ir.get_kind(node) == "Return" or ir.get_operator(node.value) == "ret"
        value = node.value.args[0] if returns and ir.get_kind(node) == "Evaluate" else node.value
        evaluate = self._compile_expression(value)

        def run_evaluation(variables: Variables) -> None:
            result = evaluate(variables)
            if returns:
                require_defined(result, "the value returned")
                raise Returned

        return run_evaluation

    def _compile_block(self, node: Node) -> Execute:
        """Compile a block, which runs if its predicate holds. ``init`` runs before a reduction's first iteration."""
        block = node.block
        values = [self._compile_expression(value) for value in node.iter_values]
        predicate = self._compile_expression(node.predicate)
        slots = [self._get_slot(one.var) for one in block.iter_vars]
        starts = [
            (self._get_slot(one.var), self._compile_expression(one.dom.min))
            for one in block.iter_vars
            if int(one.iter_type) == REDUCTION
        ]
        views = [self._compile_view(one) for one in block.match_buffers]
        fresh = [self._compile_allocation(buffer) for buffer in block.alloc_buffers]
        init = None if block.init is None else self._compile_statement(block.init)
        forget = [self._compile_forget(part) for part in (block.init, block.body) if part is not None]
        body = self._compile_statement(block.body)

        def run_block(variables: Variables) -> None:
            bound = [value(variables) for value in values]
            for slot, value in zip(slots, bound, strict=True):
                variables[slot] = value
            runs = require_defined(predicate(variables), "a condition")
            reduced = [(variables[slot], low(variables)) for slot, low in starts] if init is not None else []
            if type(runs) is not int or any(type(part) is not int for pair in reduced for part in pair):
                for one in forget:
                    one(variables)
                return
            if not runs:
                return
            for prepare in (*fresh, *views):
                prepare(variables)
            if init is not None and all(at == low for at, low in reduced):
                init(variables)
            body(variables)

        return run_block

    def _compile_view(self, match: Node) -> Execute:
        """Compile a second name for part of a buffer. The whole buffer then counts as written."""
        source = self._get_buffer_slot(get_viewed_buffer(match))
        slot = self._get_buffer_slot(match.buffer)

        def run_view(variables: Variables) -> None:
            variables[source].forget()
            variables[slot].forget()

        return run_view

    def _compile_forget(self, node: Node) -> Execute:
        """Compile the effect of a statement of which it is unknown whether, or how often, it runs."""
        if has_early_exit(node):
            return _reject_early_exit
        return self._compile_forget_keys(find_written(node) - find_allocated(node))


def _compile_sequence(statements: list[Execute]) -> Execute:
    def run_sequence(variables: Variables) -> None:
        for statement in statements:
            statement(variables)

    return run_sequence


def _reject_early_exit(variables: Variables) -> None:
    raise CannotTell("leaves early under a condition that is not known")
