"""Compile TIR statements to closures, and run them. All kinds of loops have the same meaning and run serially."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from tvm import tirx

from runners.guest.tvm import ir
from runners.guest.tvm.ir import Node
from runners.guest.tvm.reference.kernels.expressions import Evaluate, ExpressionCompiler, Variables
from runners.guest.tvm.reference.kernels.memory import Iterations, Memory
from runners.guest.tvm.reference.kernels.types import Number, UndefinedAccess, UndefinedResult, read_type
from runners.guest.tvm.reference.operators.basic import CannotEvaluate, demand

Execute = Callable[[Variables], None]

MAX_STATEMENTS = 300_000
MAX_ITERATIONS = 1_000_000
MAX_ELEMENTS = 1_000_000
"""Maximum number of elements of the memory that a function allocates at a time."""
_PARALLEL, _VECTORIZED, _THREAD_BINDING = 1, 2, 4
_REDUCTION = 2
"""``IterVar.kCommReduce``."""
_HARMLESS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit", "pragma_loop_partition_hint")
"""Attributes that only advise the compiler."""


class Returned(Exception):
    """The function returns a value."""

    def __init__(self, value: Number | None) -> None:
        super().__init__()
        self.value = value


class _LoopEnded(Exception):
    """The innermost loop ends, as ``break`` requires."""


class _IterationEnded(Exception):
    """The innermost loop continues with its next iteration, as ``continue`` requires."""


_JUMPS = {"break_loop": _LoopEnded, "continue_loop": _IterationEnded}


class StatementCompiler(ExpressionCompiler):
    """Compiles the statements of one function."""

    def __init__(self, *, wide: bool, deadline: float, lenient: bool = False) -> None:
        super().__init__(wide=wide)
        self._deadline = deadline
        self._lenient = lenient
        """True if a store of an undefined value continues, and makes its element undefined."""
        self.undefined = ""
        """The reason of the first undefined value."""
        self._statements = self._iterations = 0

    def _count_statement(self) -> None:
        self._statements += 1
        if self._statements > MAX_STATEMENTS:
            raise CannotEvaluate(f"more than {MAX_STATEMENTS} statements")

    def _count_iteration(self) -> None:
        self._iterations += 1
        if self._iterations > MAX_ITERATIONS:
            raise CannotEvaluate(f"more than {MAX_ITERATIONS} iterations")
        if not self._iterations % 256 and time.monotonic() > self._deadline:
            raise CannotEvaluate("a long computation")

    def _compile_statement(self, node: Node) -> Execute:
        match ir.get_kind(node):
            case "SeqStmt":
                return _compile_sequence([self._compile_statement(child) for child in node.seq])
            case "For":
                return self._compile_loop(node)
            case "While":
                return self._compile_while(node)
            case "IfThenElse":
                return self._compile_branch(node)
            case "Bind" | "LetStmt":
                return self._compile_bind(node)
            case "BufferStore":
                return self._compile_store(node)
            case "AllocBuffer" | "DeclBuffer" as kind:
                return self._compile_buffer(node, kind)
            case "SBlockRealize" | "BlockRealize":
                return self._compile_block(node)
            case "AssertStmt":
                return self._compile_assertion(node)
            case "AttrStmt":
                demand(str(node.attr_key) in _HARMLESS, f"the attribute {node.attr_key}")
                return self._compile_statement(node.body)
            case "Evaluate" | "Return":
                return self._compile_evaluation(node)
            case kind:
                raise CannotEvaluate(kind)

    def _compile_loop(self, node: Node) -> Execute:
        kind = int(node.kind)
        demand(kind < _THREAD_BINDING and getattr(node, "thread_binding", None) is None, "a loop bound to threads")
        low, extent = self._compile_scalar(node.min), self._compile_scalar(node.extent)
        given = getattr(node, "step", None)
        step = (lambda variables: 1) if given is None else self._compile_scalar(given)
        slot = self._get_slot(hash(node.loop_var))
        fit = self._get_fit(read_type(ir.get_dtype(node.loop_var)))
        outside, at_once = self._at_once, kind in (_PARALLEL, _VECTORIZED)
        self._at_once = outside or at_once
        body = self._compile_statement(node.body)
        self._at_once = outside

        def run_loop(variables: Variables) -> None:
            first, by = low(variables), step(variables)
            demand(by > 0, "a loop that goes backwards")
            for at in range(first, first + extent(variables), by):
                self._count_iteration()
                variables[slot] = fit(at)
                if not _run_iteration(body, variables):
                    break

        return self._watch_iterations(run_loop, slot) if at_once else run_loop

    def _watch_iterations(self, run_loop: Execute, slot: int) -> Execute:
        """Run a loop whose iterations may run concurrently, so that races are detected."""
        running = self._running

        def run_watched(variables: Variables) -> None:
            running.append(Iterations(variables, slot))
            try:
                run_loop(variables)
            finally:
                running.pop()

        return run_watched

    def _compile_while(self, node: Node) -> Execute:
        condition, body = self._compile_scalar(node.condition), self._compile_statement(node.body)

        def run_while(variables: Variables) -> None:
            while condition(variables):
                self._count_iteration()
                if not _run_iteration(body, variables):
                    break

        return run_while

    def _compile_branch(self, node: Node) -> Execute:
        condition, then = self._compile_scalar(node.condition), self._compile_statement(node.then_case)
        otherwise = self._compile_statement(node.else_case) if node.else_case is not None else None

        def run_branch(variables: Variables) -> None:
            if condition(variables):
                then(variables)
            elif otherwise is not None:
                otherwise(variables)

        return run_branch

    def _compile_bind(self, node: Node) -> Execute:
        value = self._compile_scalar(node.value)
        slot = self._get_slot(hash(node.var))
        body = self._compile_statement(node.body) if getattr(node, "body", None) is not None else None

        def run_bind(variables: Variables) -> None:
            self._count_statement()
            variables[slot] = value(variables)
            if body is not None:
                body(variables)

        return run_bind

    def _compile_store(self, node: Node) -> Execute:
        demand(getattr(node, "predicate", None) is None, "a store with a predicate")
        type = read_type(ir.get_dtype(node.value))
        demand(type.name == str(node.buffer.dtype), "a store of another type")
        lanes = range(max([type.lanes, *(read_type(ir.get_dtype(one)).lanes for one in node.indices)]))
        demand(type.lanes == len(lanes), "a store of one value to many elements")
        self.accumulates = self.accumulates or _reads_buffer(node.value, node.buffer)
        values = [self._compile(node.value, lane) for lane in lanes]
        places = [self._compile_place(node.buffer, node.indices, lane) for lane in lanes]
        running = self._running if self._at_once else []
        evaluate_all = self._evaluate_defined if self._lenient else _evaluate_all

        def run_store(variables: Variables) -> None:
            self._count_statement()
            stored = evaluate_all(values, variables)
            for value, find in zip(stored, places, strict=True):
                memory, at = find(variables)
                for loop in running:
                    loop.note_write(memory, at)
                memory.cells[at] = value

        return run_store

    def _evaluate_defined(self, values: list[Evaluate], variables: Variables) -> list[Number | None]:
        """Return the values, with None for each undefined result. An undefined access ends the evaluation."""
        found: list[Number | None] = []
        for value in values:
            try:
                found.append(value(variables))
            except UndefinedAccess:
                raise
            except UndefinedResult as why:
                self.undefined = self.undefined or str(why)
                found.append(None)
        return found

    # ------------------------------------------------------------------------------------------ buffers

    def _compile_buffer(self, node: Node, kind: str) -> Execute:
        """Compile an allocation, or a second name for known memory."""
        buffer = node.buffer
        if kind == "AllocBuffer":
            declare = self._compile_allocation(buffer)
        else:
            declare = self._compile_declaration(buffer, getattr(node, "data", None))
        if getattr(node, "body", None) is None:
            return declare
        return _compile_sequence([declare, self._compile_statement(node.body)])

    def _compile_allocation(self, buffer: Node) -> Execute:
        demand_plain(buffer)
        extents = [self._compile_scalar(one) for one in buffer.shape]
        dtype, name = str(buffer.dtype), str(buffer.name)
        slot = self._get_slot(hash(ir.get_memory(buffer)))

        def run_allocation(variables: Variables) -> None:
            size = math.prod(extent(variables) for extent in extents)
            demand(0 <= size <= MAX_ELEMENTS, "memory of this size")
            variables[slot] = Memory(name, [None] * size, dtype)

        return run_allocation

    def _compile_declaration(self, buffer: Node, source: Node) -> Execute:
        demand_plain(buffer)
        key = hash(ir.get_memory(buffer))
        if source is None:  # until 0.25 the buffer has the variable of its memory
            demand(key in self._slots, "a buffer without known memory")
            return _do_nothing
        demand(ir.get_operator(source) == "buffer_data", "a buffer at an address")
        viewed = hash(ir.get_memory(source.args[0]))
        demand(viewed in self._slots, "a buffer without known memory")
        given, slot = self._slots[viewed], self._get_slot(key)
        self.accumulates = True  # a store and a load may name the same memory differently

        def run_declaration(variables: Variables) -> None:
            variables[slot] = variables[given]

        return run_declaration

    def _compile_block(self, node: Node) -> Execute:
        """Compile a block, which runs if its predicate holds. ``init`` runs before a reduction's first iteration."""
        block = node.block
        demand(not len(block.match_buffers), "a matched buffer")
        values = [self._compile_scalar(value) for value in node.iter_values]
        predicate = self._compile_scalar(node.predicate)
        slots = [self._get_slot(hash(one.var)) for one in block.iter_vars]
        starts = [self._compile_scalar(one.dom.min) for one in block.iter_vars]
        extents = [self._compile_scalar(one.dom.extent) for one in block.iter_vars]
        reductions = [at for at, one in enumerate(block.iter_vars) if int(one.iter_type) == _REDUCTION]
        fresh = [self._compile_allocation(buffer) for buffer in block.alloc_buffers]
        init = None if block.init is None else self._compile_statement(block.init)
        body = self._compile_statement(block.body)
        name = str(block.name_hint)

        def run_block(variables: Variables) -> None:
            if not predicate(variables):
                return
            bound = [value(variables) for value in values]
            lows = [low(variables) for low in starts]
            for at, low, extent in zip(bound, lows, extents, strict=True):
                if not low <= at < low + extent(variables):
                    raise UndefinedResult(f"an index outside its axis, in the block {name}")
            for slot, value in zip(slots, bound, strict=True):
                variables[slot] = value
            for allocate in fresh:
                allocate(variables)
            if init is not None and all(bound[at] == lows[at] for at in reductions):
                init(variables)
            body(variables)

        return run_block

    # ------------------------------------------------------------------------------------------ the rest

    def _compile_assertion(self, node: Node) -> Execute:
        condition = self._compile_scalar(node.condition)
        body = self._compile_statement(node.body) if getattr(node, "body", None) is not None else _do_nothing

        def run_assertion(variables: Variables) -> None:
            demand(condition(variables), "an assertion that does not hold")
            body(variables)

        return run_assertion

    def _compile_evaluation(self, node: Node) -> Execute:
        """Compile an expression that is evaluated without use of its value, or the end of the function."""
        value = node.value
        jump = _JUMPS.get(ir.get_operator(value))
        if jump is not None:
            return self._compile_jump(jump)
        returns = ir.get_kind(node) == "Return" or ir.get_operator(value) == "ret"
        if returns and ir.get_kind(node) == "Evaluate":
            value = value.args[0] if len(value.args) else None
        evaluate: Evaluate = self._compile_scalar(value) if value is not None else _evaluate_nothing

        def run_evaluation(variables: Variables) -> None:
            self._count_statement()
            result = evaluate(variables)
            if returns:
                raise Returned(result)

        return run_evaluation

    def _compile_jump(self, jump: type[Exception]) -> Execute:
        demand(not self._at_once, "a loop of iterations at once that ends early")

        def run_jump(variables: Variables) -> None:
            self._count_statement()
            raise jump

        return run_jump


def _reads_buffer(value: Node, buffer: Node) -> bool:
    stored = hash(ir.get_memory(buffer))
    return any(hash(ir.get_memory(ir.get_buffer(load))) == stored for load in ir.iterate_loads(value))


def _run_iteration(body: Execute, variables: Variables) -> bool:
    """Run one iteration of a loop. Return False if it ends the loop."""
    try:
        body(variables)
    except _IterationEnded:
        return True
    except _LoopEnded:
        return False
    return True


def _evaluate_all(values: list[Evaluate], variables: Variables) -> list[Number | None]:
    return [value(variables) for value in values]


def demand_plain(buffer: Node) -> None:
    """End the evaluation unless a buffer is at the start of its memory and has no gaps."""
    offset = getattr(buffer, "elem_offset", None)
    demand(not len(buffer.strides or ()), "a buffer with strides")
    demand(offset is None or getattr(offset, "value", None) == 0, "a buffer with an offset")
    demand(not len(getattr(buffer, "axis_separators", None) or ()), "a buffer with separated axes")
    layout = getattr(buffer, "layout", None)
    plain = layout is None or str(layout) == str(tirx.decl_buffer(buffer.shape, str(buffer.dtype)).layout)
    demand(plain, "a buffer with another layout")


def _compile_sequence(statements: list[Execute]) -> Execute:
    def run_sequence(variables: Variables) -> None:
        for statement in statements:
            statement(variables)

    return run_sequence


def _do_nothing(variables: Variables) -> None:
    """Do nothing, for a statement without effect."""


def _evaluate_nothing(variables: Variables) -> Any:
    return None
