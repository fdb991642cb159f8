"""Insert a check into a kernel before each access that is not proven to be in bounds (``diagnoser.py``)."""

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
"""Function that a failing check calls with the site, then index, lower bound and extent of each check, then address
and shape of each source."""
MAX_SOURCES = 4
SERIAL, PARALLEL, VECTORIZED, THREAD_BINDING = 0, 1, 2, 4
PLAIN_DTYPE = re.compile(r"(u?int|float)(8|16|32|64)|bool")


@dataclass(frozen=True)
class Access:
    """One load or store, with its conditions, outermost first."""

    node: Node
    guards: tuple[Node, ...]


@dataclass(frozen=True)
class BoundsCheck:
    """The condition ``low <= index < extent`` on an axis of a buffer."""

    axis: int
    index: Node
    extent: Node
    low: Node


def iterate_accesses(expression: Node, guards: tuple[Node, ...] = ()) -> Iterator[Access]:
    """Yield the loads of an expression in an order that allows their checks to be evaluated: inner indices first."""
    kind = ir.get_kind(expression)
    if kind in ("Select", "And", "Or") or ir.get_operator(expression) == "if_then_else":
        yield from _iterate_lazy_accesses(expression, guards)
    elif ir.get_operator(expression) in ("address_of", "tvm_access_ptr"):
        return  # an address is not an access
    elif kind == "Let":
        yield from iterate_accesses(expression.value, guards)
        yield from iterate_accesses(ir.substitute_variable(expression.body, expression.var, expression.value), guards)
    else:
        for _, child in ir.iterate_operands(expression):
            yield from iterate_accesses(child, guards)
        if kind in ir.LOADS:
            yield Access(expression, guards)


def _iterate_lazy_accesses(expression: Node, guards: tuple[Node, ...]) -> Iterator[Access]:
    """Yield loads of operands that a condition guards. Every later pass of the compiler relies on the guard."""
    match ir.get_kind(expression):
        case "Select":
            first, then, otherwise = expression.condition, expression.true_value, expression.false_value
        case "And":
            first, then, otherwise = expression.a, expression.b, None
        case "Or":
            first, then, otherwise = expression.a, None, expression.b
        case _:
            first, then, otherwise = expression.args
    yield from iterate_accesses(first, guards)
    if then is not None:
        yield from iterate_accesses(then, (*guards, ir.make_condition(first)))
    if otherwise is not None:
        yield from iterate_accesses(otherwise, (*guards, tirx.Not(ir.make_condition(first))))


class KernelChecker:
    """Rewrites one kernel. Appends each checked access to ``sites``; its index identifies the access at run time."""

    def __init__(self, function: Node, name: str, sites: list[Site]) -> None:
        self._name = name
        self._sites = sites
        self._analyzer = ir.make_analyzer()
        self._buffers = ir.list_buffers(function)
        self._function = function
        self.unchecked = 0

    def rewrite_function(self) -> Node:
        """Return the function with its checks. The same function if all accesses are proven."""
        before = len(self._sites)
        body = self._rewrite_statement(self._function.body)
        return self._function if len(self._sites) == before else self._function.with_body(_make_sequence(body))

    # ------------------------------------------------------------------------------------------ statements

    def _rewrite_statement(self, node: Node) -> list[Node]:
        match ir.get_kind(node):
            case "SeqStmt":
                return [out for child in node.seq for out in self._rewrite_statement(child)]
            case "For":
                return self._rewrite_loop(node)
            case "IfThenElse":
                return self._rewrite_branch(node)
            case "While":
                return self._rewrite_while(node)
            case "Bind":
                return self._rewrite_bind(node)
            case "BufferStore":
                found = [*iterate_accesses(node.value)]
                found += [access for index in node.indices for access in iterate_accesses(index)]
                return self._guard_statement([*found, Access(node, ())], node)
            case "AttrStmt":
                return [ir.rebuild_node(node, body=_make_sequence(self._rewrite_statement(node.body)))]
            case "Evaluate":
                return self._guard_statement([*iterate_accesses(node.value)], node)
        return [node]

    def _rewrite_loop(self, node: Node) -> list[Node]:
        if int(node.kind) == THREAD_BINDING:
            raise NotImplementedError("a loop bound to device threads")
        before = len(self._sites)
        self._analyzer.bind(node.loop_var, tvm.ir.Range.from_min_extent(node.min, node.extent))
        body = self._rewrite_statement(node.body)
        if len(self._sites) != before:
            kind = SERIAL if int(node.kind) in (PARALLEL, VECTORIZED) else int(node.kind)
            node = ir.rebuild_node(node, body=_make_sequence(body), kind=kind)
        return self._guard_statement([*iterate_accesses(node.min), *iterate_accesses(node.extent)], node)

    def _rewrite_branch(self, node: Node) -> list[Node]:
        condition = ir.make_condition(node.condition)
        with self._analyzer.constraint_scope(condition):
            then = _make_sequence(self._rewrite_statement(node.then_case))
        otherwise = node.else_case
        if otherwise is not None:
            with self._analyzer.constraint_scope(tirx.Not(condition)):
                otherwise = _make_sequence(self._rewrite_statement(otherwise))
        return self._guard_statement(
            [*iterate_accesses(node.condition)], ir.rebuild_node(node, then_case=then, else_case=otherwise)
        )

    def _rewrite_while(self, node: Node) -> list[Node]:
        """End the loop if its condition cannot be evaluated. The check after the loop then reports the access."""
        body = _make_sequence(self._rewrite_statement(node.body))
        found = [*iterate_accesses(node.condition)]
        inside = self._combine_checks(found)
        if inside is None:
            return [ir.rebuild_node(node, body=body)]
        condition = tirx.if_then_else(inside, ir.make_condition(node.condition), tirx.Not(ir.make_true()))
        return [
            ir.rebuild_node(node, body=body, condition=condition),
            *self._guard_statement(found, tirx.Evaluate(ir.make_constant(0))),
        ]

    def _rewrite_bind(self, node: Node) -> list[Node]:
        """Replace the value by zero if an access is outside. Later statements need the variable."""
        found = [*iterate_accesses(node.value)]
        if not found and ir.get_dtype(node.value) in ("int32", "int64"):
            self._analyzer.bind(node.var, node.value)
        inside = self._combine_checks(found)
        if inside is None or ir.get_dtype(node.value) == "handle":
            return [node]
        value = tirx.if_then_else(inside, node.value, tirx.Cast(ir.get_dtype(node.value), tirx.IntImm("int32", 0)))
        return [*self._guard_statement(found, tirx.Evaluate(ir.make_constant(0))), ir.rebuild_node(node, value=value)]

    # ------------------------------------------------------------------------------------------ checks

    def _guard_statement(self, found: list[Access], statement: Node) -> list[Node]:
        """Return ``statement`` guarded by the checks of its unproven accesses. The first one outside is reported."""
        statements = [statement]
        for access in reversed(found):
            if checks := self._find_unproven(access):
                report = tirx.Evaluate(self._make_report(access, checks))
                statements = [
                    tirx.IfThenElse(_make_condition(access.guards, checks), _make_sequence(statements), report)
                ]
            if hidden := self._find_hidden(access):
                report = tirx.Evaluate(self._make_report(access, hidden))
                statements.insert(0, tirx.IfThenElse(tirx.Not(_make_condition((), hidden)), report, None))
        return statements

    def _combine_checks(self, found: list[Access]) -> Node | None:
        """Return one lazily evaluated condition for all accesses. None if all are proven."""
        condition = None
        for access in reversed(found):
            if checks := self._find_unproven(access):
                own = _make_condition(access.guards, checks)
                condition = own if condition is None else tirx.if_then_else(own, condition, tirx.Not(ir.make_true()))
        return condition

    def _find_unproven(self, access: Access) -> list[BoundsCheck]:
        checks = []
        node = access.node
        buffer = ir.get_buffer(node)
        for axis, (index, extent) in enumerate(zip(node.indices, buffer.shape, strict=False)):
            for at in _split_lanes(index):
                if at is None:
                    self.unchecked += 1
                elif not self._can_prove(access.guards, tirx.And(at >= 0, at < extent)):
                    checks.append(BoundsCheck(axis, ir.cast_int64(at), ir.cast_int64(extent), ir.make_constant(0)))
        return checks

    def _find_hidden(self, access: Access) -> list[BoundsCheck]:
        """Return checks of axis bounds that flattening hides. Such an access is reported and still executed.

        The generated scatter kernels compute a flat position and split it again (``x // n`` rows on, column ``x %
        n``). Then an index beyond its axis is still inside the tensor, but reaches another row.
        """
        if "scatter_elements" not in self._name or ir.get_kind(access.node) != "BufferStore":
            return []
        checks = []
        for axis, index in enumerate(access.node.indices):
            if ir.get_kind(index) == "FloorMod" and _is_element(index.a):
                extent = ir.cast_int64(index.b)
                checks.append(BoundsCheck(axis, ir.cast_int64(index.a), extent, ir.make_constant(0) - extent))
        return checks

    def _can_prove(self, guards: tuple[Node, ...], condition: Node) -> bool:
        if not guards:
            return bool(self._analyzer.can_prove(condition))
        with self._analyzer.constraint_scope(guards[0]):
            return self._can_prove(guards[1:], condition)

    def _make_report(self, access: Access, checks: list[BoundsCheck]) -> Node:
        sources = self._find_sources(checks)
        buffer = ir.get_buffer(access.node)
        site = Site(
            kernel=self._name,
            buffer=str(buffer.name),
            argument=self._find_argument(buffer),
            store=ir.get_kind(access.node) == "BufferStore",
            checks=tuple((check.axis, str(check.index), _is_element(check.index)) for check in checks),
            sources=tuple(source for source, _ in sources),
        )
        self._sites.append(site)
        arguments = [ir.make_constant(len(self._sites) - 1)]
        for check in checks:
            arguments += [check.index, check.low, check.extent]
        for _, node in sources:
            first = tirx.BufferLoad(node, [tirx.IntImm(ir.get_dtype(extent), 0) for extent in node.shape])
            arguments += [tirx.address_of(first), *map(ir.cast_int64, node.shape)]
        return tirx.call_packed(REPORT, *arguments)

    def _find_sources(self, checks: list[BoundsCheck]) -> list[tuple[Source, Node]]:
        """Return the integer buffers of the indices. If the kernel fills one, add the kernel's integer arguments."""
        nodes: list[Node] = []
        for check in checks:
            nodes += [ir.get_buffer(load) for load in ir.iterate_loads(check.index)]
        if any(self._find_argument(node) is None for node in nodes):
            nodes += [node for node in self._buffers.values() if str(node.dtype).startswith(("int", "uint"))]
        known: list[tuple[Source, Node]] = []
        for node in nodes:
            plain = len(getattr(node, "strides", None) or ()) == 0 and PLAIN_DTYPE.fullmatch(str(node.dtype))
            if plain and not any(ir.get_memory(node).same_as(ir.get_memory(other)) for _, other in known):
                known.append(
                    (Source(str(node.name), str(node.dtype), len(node.shape), self._find_argument(node)), node)
                )
        return known[:MAX_SOURCES]

    def _find_argument(self, buffer: Node) -> int | None:
        for position, parameter in self._buffers.items():
            if ir.get_memory(parameter).same_as(ir.get_memory(buffer)):
                return position
        return None


def _make_condition(guards: tuple[Node, ...], checks: list[BoundsCheck]) -> Node:
    """Return ``every check holds, or a guard is false``, evaluated lazily: guards make an index safe to compute."""
    condition = None
    for check in checks:
        own = tirx.And(check.index >= check.low, check.index < check.extent)
        condition = own if condition is None else tirx.And(condition, own)
    for guard in reversed(guards):
        condition = tirx.if_then_else(guard, condition, ir.make_true())
    return condition


def _split_lanes(index: Node) -> list[Node | None]:
    """Return scalars with the same bounds as ``index``. None is a vector that cannot be split."""
    if ir.get_kind(index) == "Ramp":
        lanes = getattr(index.lanes, "value", None)
        return [None] if lanes is None else [index.base, index.base + index.stride * (int(lanes) - 1)]
    if ir.get_kind(index) == "Broadcast":
        return [index.value]
    return [None if "x" in ir.get_dtype(index) else index]


def _is_element(index: Node) -> bool:
    while ir.get_kind(index) == "Cast":
        index = index.value
    return ir.get_kind(index) in ir.LOADS


def _make_sequence(statements: list[Node]) -> Node:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)
