"""A kernel with a check before each access that is not proved to be inside: see ``tvm_bounds.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tvm
from tvm import tirx

from runners.guest.tvm import ir
from runners.guest.tvm.bounds.access import Site, Source
from runners.guest.tvm.ir import Node

REPORT = "reprobot.out_of_bounds"
"""The function that a failing check calls: site, then index, low and extent of each check, then each source's address
and shape."""
MAX_SOURCES = 4
SERIAL, PARALLEL, VECTORIZED, THREAD_BINDING = 0, 1, 2, 4
PLAIN_DTYPE = re.compile(r"(u?int|float)(8|16|32|64)|bool")


@dataclass(frozen=True)
class Access:
    """One load or store of an expression, with the conditions under which it happens, outermost first."""

    node: Node
    guards: tuple[Node, ...]


@dataclass(frozen=True)
class Check:
    """One thing that must hold: ``low <= index < extent`` on an axis of a buffer."""

    axis: int
    index: Node
    extent: Node
    low: Node


def accesses(expression: Node, guards: tuple[Node, ...] = ()) -> Iterator[Access]:
    """Loads of ``expression`` in the order in which their checks may be evaluated: inner indices first."""
    kind = ir.kind_of(expression)
    if kind in ("Select", "And", "Or") or ir.operator_of(expression) == "if_then_else":
        yield from _lazy_accesses(expression, guards)
    elif ir.operator_of(expression) in ("address_of", "tvm_access_ptr"):
        return  # an address is not an access
    elif kind == "Let":
        yield from accesses(expression.value, guards)
        yield from accesses(ir.substituted(expression.body, expression.var, expression.value), guards)
    else:
        for _, child in ir.children(expression):
            yield from accesses(child, guards)
        if kind in ir.LOADS:
            yield Access(expression, guards)


def _lazy_accesses(expression: Node, guards: tuple[Node, ...]) -> Iterator[Access]:
    """Operands that count only when a condition holds, as every later pass of the compiler may assume."""
    match ir.kind_of(expression):
        case "Select":
            first, then, otherwise = expression.condition, expression.true_value, expression.false_value
        case "And":
            first, then, otherwise = expression.a, expression.b, None
        case "Or":
            first, then, otherwise = expression.a, None, expression.b
        case _:
            first, then, otherwise = expression.args
    yield from accesses(first, guards)
    if then is not None:
        yield from accesses(then, (*guards, ir.truth(first)))
    if otherwise is not None:
        yield from accesses(otherwise, (*guards, tirx.Not(ir.truth(first))))


class KernelChecker:
    """Rewrites one kernel. ``sites`` receives what was checked; the position in it names the site at run time."""

    def __init__(self, function: Node, name: str, sites: list[Site]) -> None:
        self._name = name
        self._sites = sites
        self._analyzer = ir.analyzer()
        self._buffers = ir.parameters(function)
        self._function = function
        self.unchecked = 0

    def run(self) -> Node:
        """The function with its checks; the same function when nothing in it needs one."""
        before = len(self._sites)
        body = self._statement(self._function.body)
        return self._function if len(self._sites) == before else self._function.with_body(_sequence(body))

    # ------------------------------------------------------------------------------------------ statements

    def _statement(self, node: Node) -> list[Node]:
        match ir.kind_of(node):
            case "SeqStmt":
                return [out for child in node.seq for out in self._statement(child)]
            case "For":
                return self._loop(node)
            case "IfThenElse":
                return self._branch(node)
            case "While":
                return self._while(node)
            case "Bind":
                return self._bind(node)
            case "BufferStore":
                found = [*accesses(node.value)]
                found += [access for index in node.indices for access in accesses(index)]
                return self._guarded([*found, Access(node, ())], node)
            case "AttrStmt":
                return [ir.rebuilt(node, body=_sequence(self._statement(node.body)))]
            case "Evaluate":
                return self._guarded([*accesses(node.value)], node)
        return [node]

    def _loop(self, node: Node) -> list[Node]:
        if int(node.kind) == THREAD_BINDING:
            raise NotImplementedError("a loop bound to device threads")
        before = len(self._sites)
        self._analyzer.bind(node.loop_var, tvm.ir.Range.from_min_extent(node.min, node.extent))
        body = self._statement(node.body)
        if len(self._sites) != before:
            kind = SERIAL if int(node.kind) in (PARALLEL, VECTORIZED) else int(node.kind)
            node = ir.rebuilt(node, body=_sequence(body), kind=kind)
        return self._guarded([*accesses(node.min), *accesses(node.extent)], node)

    def _branch(self, node: Node) -> list[Node]:
        condition = ir.truth(node.condition)
        with self._analyzer.constraint_scope(condition):
            then = _sequence(self._statement(node.then_case))
        otherwise = node.else_case
        if otherwise is not None:
            with self._analyzer.constraint_scope(tirx.Not(condition)):
                otherwise = _sequence(self._statement(otherwise))
        return self._guarded([*accesses(node.condition)], ir.rebuilt(node, then_case=then, else_case=otherwise))

    def _while(self, node: Node) -> list[Node]:
        """The loop ends when its condition can't be evaluated; the check after it then says why it ended."""
        body = _sequence(self._statement(node.body))
        found = [*accesses(node.condition)]
        inside = self._all_inside(found)
        if inside is None:
            return [ir.rebuilt(node, body=body)]
        condition = tirx.if_then_else(inside, ir.truth(node.condition), tirx.Not(ir.true()))
        return [
            ir.rebuilt(node, body=body, condition=condition),
            *self._guarded(found, tirx.Evaluate(ir.constant(0))),
        ]

    def _bind(self, node: Node) -> list[Node]:
        """Later statements use the variable, so the value and not the statement gives way: to zero."""
        found = [*accesses(node.value)]
        if not found and ir.dtype_of(node.value) in ("int32", "int64"):
            self._analyzer.bind(node.var, node.value)
        inside = self._all_inside(found)
        if inside is None or ir.dtype_of(node.value) == "handle":
            return [node]
        value = tirx.if_then_else(inside, node.value, tirx.Cast(ir.dtype_of(node.value), tirx.IntImm("int32", 0)))
        return [*self._guarded(found, tirx.Evaluate(ir.constant(0))), ir.rebuilt(node, value=value)]

    # ------------------------------------------------------------------------------------------ checks

    def _guarded(self, found: list[Access], statement: Node) -> list[Node]:
        """``statement``, run only when every unproven access is inside; the first that isn't is reported."""
        statements = [statement]
        for access in reversed(found):
            if checks := self._unproven(access):
                report = tirx.Evaluate(self._report(access, checks))
                statements = [tirx.IfThenElse(_condition(access.guards, checks), _sequence(statements), report)]
            if hidden := self._hidden(access):
                report = tirx.Evaluate(self._report(access, hidden))
                statements.insert(0, tirx.IfThenElse(tirx.Not(_condition((), hidden)), report, None))
        return statements

    def _all_inside(self, found: list[Access]) -> Node | None:
        """One condition for all of ``found``, evaluated lazily; None when all are proven."""
        condition = None
        for access in reversed(found):
            if checks := self._unproven(access):
                own = _condition(access.guards, checks)
                condition = own if condition is None else tirx.if_then_else(own, condition, tirx.Not(ir.true()))
        return condition

    def _unproven(self, access: Access) -> list[Check]:
        checks = []
        node = access.node
        buffer = ir.buffer_of(node)
        for axis, (index, extent) in enumerate(zip(node.indices, buffer.shape, strict=False)):
            for at in _lanes(index):
                if at is None:
                    self.unchecked += 1
                elif not self._proves(access.guards, tirx.And(at >= 0, at < extent)):
                    checks.append(Check(axis, ir.int64(at), ir.int64(extent), ir.constant(0)))
        return checks

    def _hidden(self, access: Access) -> list[Check]:
        """Axis bounds that flattening hides: such an access stays in its tensor, so it is reported and still done.

        The generated scatter kernels compute a flat position and split it again (``x // n`` rows on, column
        ``x % n``), so that an index beyond its axis lands in another row.
        """
        if "scatter_elements" not in self._name or ir.kind_of(access.node) != "BufferStore":
            return []
        checks = []
        for axis, index in enumerate(access.node.indices):
            if ir.kind_of(index) == "FloorMod" and _is_element(index.a):
                extent = ir.int64(index.b)
                checks.append(Check(axis, ir.int64(index.a), extent, ir.constant(0) - extent))
        return checks

    def _proves(self, guards: tuple[Node, ...], condition: Node) -> bool:
        if not guards:
            return bool(self._analyzer.can_prove(condition))
        with self._analyzer.constraint_scope(guards[0]):
            return self._proves(guards[1:], condition)

    def _report(self, access: Access, checks: list[Check]) -> Node:
        sources = self._sources(checks)
        buffer = ir.buffer_of(access.node)
        site = Site(
            kernel=self._name,
            buffer=str(buffer.name),
            argument=self._argument(buffer),
            store=ir.kind_of(access.node) == "BufferStore",
            checks=tuple((check.axis, str(check.index), _is_element(check.index)) for check in checks),
            sources=tuple(source for source, _ in sources),
        )
        self._sites.append(site)
        arguments = [ir.constant(len(self._sites) - 1)]
        for check in checks:
            arguments += [check.index, check.low, check.extent]
        for _, node in sources:
            first = tirx.BufferLoad(node, [tirx.IntImm(ir.dtype_of(extent), 0) for extent in node.shape])
            arguments += [tirx.address_of(first), *map(ir.int64, node.shape)]
        return tirx.call_packed(REPORT, *arguments)

    def _sources(self, checks: list[Check]) -> list[tuple[Source, Node]]:
        """Integer buffers behind the indices; for one filled in the kernel, also the kernel's integer arguments."""
        nodes: list[Node] = []
        for check in checks:
            nodes += [ir.buffer_of(load) for load in ir.loads_in(check.index)]
        if any(self._argument(node) is None for node in nodes):
            nodes += [node for node in self._buffers.values() if str(node.dtype).startswith(("int", "uint"))]
        known: list[tuple[Source, Node]] = []
        for node in nodes:
            plain = len(getattr(node, "strides", None) or ()) == 0 and PLAIN_DTYPE.fullmatch(str(node.dtype))
            if plain and not any(ir.data_of(node).same_as(ir.data_of(other)) for _, other in known):
                known.append((Source(str(node.name), str(node.dtype), len(node.shape), self._argument(node)), node))
        return known[:MAX_SOURCES]

    def _argument(self, buffer: Node) -> int | None:
        for position, parameter in self._buffers.items():
            if ir.data_of(parameter).same_as(ir.data_of(buffer)):
                return position
        return None


def _condition(guards: tuple[Node, ...], checks: list[Check]) -> Node:
    """``every check holds, or a guard doesn't``; lazily, for only a guard makes an index safe to compute."""
    condition = None
    for check in checks:
        own = tirx.And(check.index >= check.low, check.index < check.extent)
        condition = own if condition is None else tirx.And(condition, own)
    for guard in reversed(guards):
        condition = tirx.if_then_else(guard, condition, ir.true())
    return condition


def _lanes(index: Node) -> list[Node | None]:
    """Scalars whose bounds are those of ``index``; None stands for a vector this can't take apart."""
    if ir.kind_of(index) == "Ramp":
        lanes = getattr(index.lanes, "value", None)
        return [None] if lanes is None else [index.base, index.base + index.stride * (int(lanes) - 1)]
    if ir.kind_of(index) == "Broadcast":
        return [index.value]
    return [None if "x" in ir.dtype_of(index) else index]


def _is_element(index: Node) -> bool:
    while ir.kind_of(index) == "Cast":
        index = index.value
    return ir.kind_of(index) in ir.LOADS


def _sequence(statements: list[Node]) -> Node:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)


# ---------------------------------------------------------------------------------------------- run time
