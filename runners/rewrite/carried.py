"""Find values that a program makes only to pass them to calls that can be written without them. Pure.

Example: ``s = te.create_schedule(B.op)``, then ``tvm.build(s, [A, B])``. If nothing else uses ``s``, the other
arguments contain all of it. The value is kept if it has a second use, or a part that the other arguments lack.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst import metadata

from runners.core.toolchain.rewriting import CallForm, CarrierForm
from runners.rewrite.scope import ScopedTransformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The calls that make values of one form, and the calls that take these values."""

    makers: frozenset[cst.Call] = frozenset()
    calls: Mapping[cst.Call, CallForm] = field(default_factory=dict)
    prints: frozenset[cst.Call] = frozenset()
    """Calls of ``print`` that show a result with a different text."""
    passed_on: frozenset[cst.Call] = frozenset()
    """Calls whose result is passed to functions that may print it."""


def find_carried(module: cst.Module, form: CarrierForm, scoped: ScopedTransformer) -> Carried:
    """Return all makers and calls of a form. Empty if one value is used in another way."""
    collector = _Collector()
    module.visit(collector)
    makers = frozenset(call for call in collector.calls if scoped.get_full_name(call.func) in form.makers)
    if not makers:
        return Carried()
    return _Search(form, scoped, collector, makers).find()


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.assigned: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
        self.calls: list[cst.Call] = []
        self.alone: set[cst.BaseExpression] = set()
        """Expressions that are statements."""

    def visit_Assign(self, node: cst.Assign) -> None:
        self.assigned += [(target.target, node.value) for target in node.targets]

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)

    def visit_Expr(self, node: cst.Expr) -> None:
        self.alone.add(node.value)


class _Search:
    def __init__(
        self, form: CarrierForm, scoped: ScopedTransformer, program: _Collector, makers: frozenset[cst.Call]
    ) -> None:
        self.scoped, self.program, self.makers, self.part = scoped, program, makers, form.part
        forms = {one.function: one for one in form.calls}
        functions = {call: scoped.get_full_name(call.func) for call in program.calls}
        firsts = {call: call.args[0].value for call in program.calls if call.args and not call.args[0].keyword}
        self.calls = {call: forms[functions[call]] for call in firsts if functions[call] in forms}
        self.firsts = {firsts[call] for call in self.calls}
        self.takers: dict[cst.CSTNode, str] = {
            firsts[call]: functions[call] for call in firsts if not _is_builtin(call.func)
        }
        self.prints = {
            _strip_accesses(call.args[0].value): call
            for call in firsts
            if isinstance(call.func, cst.Name) and call.func.value == "print" and len(call.args) == 1
        }

    def find(self) -> Carried:
        carried: set[cst.Call] = set()
        taken: dict[cst.Call, CallForm] = {}
        silent: set[cst.Call] = set()
        passed_on: set[cst.Call] = set()
        for call, how in self.calls.items():
            made = self._find_makers(call.args[0].value)
            if not made:
                continue
            parts = {part for maker in made for part in _list_parts(maker, self.part)}
            rest = set(_list_names(call.args[1].value, self.program.assigned)) if len(call.args) > 1 else set()
            shown = self._find_prints(call, how)
            if "" in parts or not parts <= rest or shown is None:
                return Carried()
            carried |= made
            taken[call] = how
            silent |= shown[0]
            passed_on |= {call} if shown[1] else set()
        found = Carried(makers=self.makers, calls=taken, prints=frozenset(silent), passed_on=frozenset(passed_on))
        return found if carried == self.makers else Carried()

    def _find_makers(self, value: cst.BaseExpression) -> set[cst.Call]:
        """Return the calls that made an argument. Empty if it may be another value, or has another use."""
        if isinstance(value, cst.Call):
            return {value} & self.makers
        made: set[cst.Call] = set()
        for maker, uses in self._list_assignments(value):
            if not isinstance(maker, cst.Call) or maker not in self.makers or not self.firsts.issuperset(uses):
                return set()
            made.add(maker)
        return made

    def _list_assignments(
        self, name: cst.BaseExpression
    ) -> Iterator[tuple[cst.BaseExpression | None, Sequence[cst.CSTNode]]]:
        """Yield each value that a variable gets, with its uses. Yield None for a value that no assignment states."""
        scope = self.scoped.get_metadata(metadata.ScopeProvider, name, None) if isinstance(name, cst.Name) else None
        if scope is None or not isinstance(name, cst.Name):
            return
        values = {id(target): value for target, value in self.program.assigned}
        for assignment in scope[name.value]:
            target = assignment.node if isinstance(assignment, metadata.Assignment) else None
            yield values.get(id(target)), [access.node for access in assignment.references]

    def _find_prints(self, call: cst.Call, how: CallForm) -> tuple[set[cst.Call], bool] | None:
        """Return the calls that print a result whose text differs, and whether other functions take the result.

        None if the result has any use except as the first argument of a call.
        """
        if not how.takers or call in self.program.alone:
            return set(), False
        target = next((target for target, value in self.program.assigned if value is call), None)
        uses: Sequence[cst.CSTNode] = [call]
        if target is not None:
            known = list(self._list_assignments(target))
            if not known or any(value not in self.calls for value, _ in known):
                return None
            uses = [use for _, found in known for use in found]
        rest = [use for use in uses if use not in self.prints]
        shown = {self.prints[use] for use in uses if use in self.prints}
        if any(use not in self.takers for use in rest):
            return None
        return shown, any(self.takers[use] not in how.takers for use in rest)


def _is_builtin(function: cst.BaseExpression) -> bool:
    """True for a built-in function of Python, such as ``str``. The program may inspect its result."""
    return isinstance(function, cst.Name) and hasattr(builtins, function.value)


def _strip_accesses(value: cst.BaseExpression) -> cst.CSTNode:
    """Return the innermost expression whose attributes, items and methods an expression reads."""
    while True:
        if isinstance(value, cst.Attribute | cst.Subscript):
            value = value.value
        elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and not value.args:
            value = value.func.value
        else:
            return value


def _list_parts(maker: cst.Call, part: str) -> Iterator[str]:
    """Yield the variables of which a value is made. Yield an empty name for a part that is not a variable's."""
    if len(maker.args) != 1 or maker.args[0].star or maker.args[0].keyword:
        yield ""
        return
    value = maker.args[0].value
    for one in [e.value for e in value.elements] if isinstance(value, cst.List | cst.Tuple) else [value]:
        if isinstance(one, cst.Attribute) and one.attr.value == part and isinstance(one.value, cst.Name):
            yield one.value.value
        else:
            yield ""


def _list_names(
    value: cst.BaseExpression, assigned: Sequence[tuple[cst.BaseExpression, cst.BaseExpression]]
) -> Iterator[str]:
    """Yield the variables in a list, and in each list that is assigned to one of them."""
    if isinstance(value, cst.List | cst.Tuple):
        yield from (one.value.value for one in value.elements if isinstance(one.value, cst.Name))
    elif isinstance(value, cst.Name):
        lists = [given for target, given in assigned if isinstance(target, cst.Name) and target.value == value.value]
        found = [set(_list_names(one, ())) for one in lists]
        yield from set.intersection(*found) if found else ()
