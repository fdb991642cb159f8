"""Find the rows in which a program prints results beside references, or results of its own comparisons. Pure.

Many programs leave the comparison of their results to readers (``print("tvm", a, "numpy", b)``), or print the result
of a comparison (``print(np.array_equal(a, b))``, ``"" if a == b else "<-- BAD"``). The rows are described as data, so
that the runner finds them in any output.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice

from bot.extract.python.reference.own_reference import Program, Scope, read_program
from runners.core.protocol import PartRole, PrintedPart, PrintedRow, Testcase

MAX_ROWS, MAX_PARTS, MAX_WORD, MAX_DEPTH = 20, 24, 200, 16
_EQUAL = frozenset(("allclose", "array_equal", "isclose", "array_equiv", "structural_equal"))


def find_printed_rows(testcase: Testcase) -> tuple[PrintedRow, ...]:
    """Return the rows of a testcase's only Python program that show whether its results are right."""
    texts = [text for name, text in testcase.files.items() if name.endswith(".py")]
    program = read_program(texts[0], testcase.toolchain) if len(texts) == 1 else None
    if program is None:
        return ()
    return tuple(islice(_iterate_rows(program), MAX_ROWS))


def prints_results(testcase: Testcase) -> bool:
    """True if the only Python program of a testcase prints a value that the compiler's code computed."""
    texts = [text for name, text in testcase.files.items() if name.endswith(".py")]
    program = read_program(texts[0], testcase.toolchain) if len(texts) == 1 else None
    if program is None:
        return False
    calls = ((scope, node) for scope, node in program.nodes if isinstance(node, ast.Call))
    prints = ((scope, node) for scope, node in calls if isinstance(node.func, ast.Name) and node.func.id == "print")
    return any(part.role is PartRole.RESULT for scope, node in prints for part in _read_parts(program, node, scope))


@dataclass(frozen=True, slots=True)
class _Check:
    """A comparison, and whether it is true for a right result."""

    holds_if_right: bool


def _iterate_rows(program: Program) -> Iterator[PrintedRow]:
    guarded: dict[int, str] = {}  # a call of print → the meaning of its output
    for scope, node in program.nodes:
        if isinstance(node, ast.If) and (check := _read_check(program, node.test, scope)) is not None:
            for branch, holds in ((node.body, True), (node.orelse, False)):
                for call in (one for statement in branch for one in _list_prints(statement)):
                    guarded[id(call)] = "good" if holds is check.holds_if_right else "bad"
    for scope, node in program.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
            continue
        row = _read_print(program, node, scope, guarded.get(id(node), ""))
        if row is not None:
            yield row
    for printed in _list_neighbours(program):
        yield from _pair_rows(printed)


def _list_neighbours(program: Program) -> Iterator[list[list[PrintedPart]]]:
    """Yield the parts of the calls of print in adjacent statements."""
    scopes = {id(node): scope for scope, node in program.nodes}
    for _, node in program.nodes:
        for body in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            if isinstance(body, list):
                for printing, together in groupby(map(_list_prints, body), bool):
                    calls = [call for one in together for call in one if printing and id(call) in scopes]
                    yield [_read_parts(program, call, scopes[id(call)]) for call in calls]


def _pair_rows(printed: Sequence[list[PrintedPart]]) -> Iterator[PrintedRow]:
    """Yield a result with the reference right below, or the other way round, with the labels in rows of their own.

    ``print("got"); print(out); print("want"); print(ref)``. A row belongs to one pair only.
    """
    roles = [_find_role(parts) for parts in printed]
    at = 0
    while at < len(printed):
        other = _OPPOSITE.get(roles[at] or PartRole.OTHER)
        below = next((n for n in range(at + 1, min(at + 3, len(printed))) if roles[n] is not PartRole.OTHER), None)
        if other is None or below is None or roles[below] is not other:
            at += 1
            continue
        begin = at - 1 if at and roles[at - 1] is PartRole.OTHER else at
        parts = tuple(part for row in printed[begin : below + 1] for part in row)
        if len(parts) <= MAX_PARTS and any(any(map(str.isalpha, part.text)) for part in parts):
            yield PrintedRow(parts=parts, lines=below + 1 - begin)
        at = below + 1


_OPPOSITE = {PartRole.RESULT: PartRole.REFERENCE, PartRole.REFERENCE: PartRole.RESULT}


def _find_role(parts: Sequence[PrintedPart]) -> PartRole | None:
    """Return the content of a row: a result, a reference, or only a label (`PartRole.OTHER`); else None."""
    roles = {part.role for part in parts} - {PartRole.OTHER}
    if not roles and any(any(map(str.isalpha, part.text)) for part in parts):
        return PartRole.OTHER
    return roles.pop() if len(roles) == 1 else None


def _list_prints(statement: ast.stmt) -> list[ast.Call]:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call):
            return [call]
        case _:
            return []


def _read_print(program: Program, call: ast.Call, scope: Scope, tells: str) -> PrintedRow | None:
    """Return the row of a call; None if the row does not contain a result, or has no plain form."""
    parts = _read_parts(program, call, scope)
    roles = {part.role for part in parts}
    has_words = any(any(map(str.isalpha, part.text)) for part in parts)
    compares = bool({PartRole.CHECK, PartRole.DIFFERENCE} & roles) or {PartRole.RESULT, PartRole.REFERENCE} <= roles
    if not (compares or (parts and tells and has_words)):
        return None
    return PrintedRow(parts=tuple(parts), tells=tells if has_words else "")


def _read_parts(program: Program, call: ast.Call, scope: Scope) -> list[PrintedPart]:
    """Return the parts of the row that a call prints; none if the row has no plain form."""
    if any(keyword.arg in ("sep", "end", "file") for keyword in call.keywords):
        return []
    parts: list[PrintedPart] = []
    for argument in call.args[:MAX_PARTS]:
        if isinstance(argument, ast.Starred):
            return []
        pieces = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        parts += [_read_part(program, piece, scope) for piece in pieces]
    parts = [part for part in parts if part.text.strip() or part.role is not PartRole.OTHER or not part.text]
    return parts if len(parts) <= MAX_PARTS else []


def _read_part(program: Program, piece: ast.expr, scope: Scope) -> PrintedPart:
    value = piece.value if isinstance(piece, ast.FormattedValue) else piece
    match value:
        case ast.Constant(value=str(text)):
            return PrintedPart(text=text[:MAX_WORD])
        case ast.Constant(value=constant):
            return PrintedPart(text=str(constant)[:MAX_WORD])
        case ast.IfExp(test=test, body=ast.Constant(value=str(body)), orelse=ast.Constant(value=str(other))):
            check = _read_check(program, test, scope)
            if check is None:
                return PrintedPart()
            good, bad = (body, other) if check.holds_if_right else (other, body)
            return PrintedPart(role=PartRole.CHECK, good=good[:MAX_WORD], bad=bad[:MAX_WORD])
        case _:
            pass
    check = _read_check(program, value, scope)
    if check is not None:
        good, bad = ("True", "False") if check.holds_if_right else ("False", "True")
        return PrintedPart(role=PartRole.CHECK, good=good, bad=bad)
    if _is_difference(program, value, scope):
        return PrintedPart(role=PartRole.DIFFERENCE)
    if isinstance(value, ast.Attribute) or _measures(value):
        return PrintedPart()
    origin = program.trace(value, scope)
    if origin.compiled:
        return PrintedPart(role=PartRole.RESULT)
    return PrintedPart(role=PartRole.REFERENCE if origin.computed else PartRole.OTHER)


_OF_DIFFERENCE = frozenset(("abs", "absolute", "max", "amax", "nanmax", "mean", "sum", "norm", "float", "item"))
"""Functions that map zero to zero, and an error to an error."""


def _is_difference(program: Program, value: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True for the distance of a result of the compiler from a reference: ``np.abs(out - want).max()``."""
    deeper = partial(_is_difference, program, scope=scope, depth=depth + 1)
    match value:
        case _ if depth > MAX_DEPTH:
            return False
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _is_pair(program, left, right, scope)
        case ast.Call(func=ast.Attribute(attr=name, value=inner), args=[]) if name in _OF_DIFFERENCE:
            return deeper(inner)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[inner]) if name in _OF_DIFFERENCE:
            return deeper(inner)
        case ast.Call(func=ast.Attribute(attr="astype", value=inner)):
            return deeper(inner)
        case ast.Name(id=name):
            at = scope if (scope, name) in program.defined else None
            values = [one.value for one in program.defined.get((at, name), [])]
            only = values[0] if len(values) == 1 else None
            return isinstance(only, ast.BinOp | ast.Call) and _is_difference(program, only, at, depth + 1)
        case _:
            return False


def _measures(value: ast.expr, depth: int = 0) -> bool:
    """True for a difference, a shape or a count, which is not a result."""
    if depth > MAX_DEPTH:
        return True
    deeper = partial(_measures, depth=depth + 1)
    match value:
        case ast.BinOp(op=ast.Sub()) | ast.Compare() | ast.BoolOp() | ast.IfExp():
            return True
        case ast.Call(func=ast.Name(id="type" | "len")):
            return True
        case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=arguments):
            return any(map(deeper, arguments))
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=arguments):
            return name in ("argmax", "argmin", "nonzero", "where") or any(map(deeper, (inner, *arguments)))
        case ast.Subscript(value=inner):
            return deeper(inner)
        case _:
            return False


def _read_check(program: Program, node: ast.expr, scope: Scope, depth: int = 0) -> _Check | None:
    """Return the comparison of an expression: a result of the compiler with a value made without the compiler."""
    if depth > MAX_DEPTH:
        return None  # ``ok = not ok`` is defined by itself
    read = partial(_read_check, program, depth=depth + 1)
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            check = read(node=inner, scope=scope)
            return None if check is None else _Check(not check.holds_if_right)
        case ast.Call(func=ast.Name(id="bool" | "all"), args=[inner]):
            return read(node=inner, scope=scope)
        case ast.Call(func=ast.Name(id="any"), args=[inner]):
            return _only_unequal(read(node=inner, scope=scope))
        case ast.Call(func=ast.Attribute(attr="all", value=inner), args=[]) if not isinstance(inner, ast.Name):
            return read(node=inner, scope=scope)
        case ast.Call(func=ast.Attribute(attr="all"), args=[inner]):
            return read(node=inner, scope=scope)
        case ast.Call(func=ast.Attribute(attr="any", value=inner), args=[]) if not isinstance(inner, ast.Name):
            return _only_unequal(read(node=inner, scope=scope))
        case ast.Call(func=ast.Attribute(attr="any"), args=[inner]):
            return _only_unequal(read(node=inner, scope=scope))
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[one, other, *_]) if name in _EQUAL:
            return _Check(True) if _is_pair(program, one, other, scope) else None
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as operator], comparators=[right]):
            return _Check(isinstance(operator, ast.Eq)) if _is_pair(program, left, right, scope) else None
        case ast.Name(id=name):
            at = scope if (scope, name) in program.defined else None
            values = [one.value for one in program.defined.get((at, name), [])]
            match values:
                case [ast.expr() as only] if not isinstance(only, ast.Name):
                    return read(node=only, scope=at)
                case _:
                    return None
        case _:
            return None


def _only_unequal(check: _Check | None) -> _Check | None:
    """Return the check of ``any`` over unequal elements. Return None over equal elements, which show no fault."""
    return None if check is None or check.holds_if_right else check


def _is_pair(program: Program, one: ast.expr, other: ast.expr, scope: Scope) -> bool:
    """True for a result of the compiler and values made without the compiler that are not shapes or names."""
    if any(isinstance(side, ast.Attribute) or _measures(side) for side in (one, other)):
        return False
    compiled = [program.trace(side, scope).compiled for side in (one, other)]
    return compiled.count(True) == 1
