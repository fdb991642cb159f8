"""Decide whether a testcase compares an object with itself after printing and parsing. Pure.

Such a check needs no other reference: text that a compiler prints and parses must give the same object.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from bot.extract.python.parse import walk
from bot.extract.python.reference.own_reference import MAX_NODES
from runners.core.protocol import Testcase

_READS = frozenset(("from_source", "parse", "load_json", "loads", "from_json"))
_PRINTS = frozenset(("script", "save_json", "dumps", "astext", "as_text", "to_json", "str"))
_COMPARES = frozenset(("assert_structural_equal", "structural_equal"))
MAX_DEPTH = 8


def checks_round_trip(testcase: Testcase) -> bool:
    """True if the testcase compares objects, and each comparison is of an object with its printed and parsed text."""
    checks = [check for name, text in testcase.files.items() if name.endswith(".py") for check in _list_checks(text)]
    return bool(checks) and all(checks)


def _list_checks(text: str) -> list[bool]:
    """Return for each comparison of two objects whether one side is the parsed text of the other."""
    try:
        tree = ast.parse(text)
        nodes = list(walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if len(nodes) > MAX_NODES:
        return []
    known = _list_values(nodes)
    return [
        _is_read_from(sides[0], sides[1], known) or _is_read_from(sides[1], sides[0], known)
        for node in nodes
        if isinstance(node, ast.Call) and _name_call(node) in _COMPARES and len(sides := node.args[:2]) == 2
    ]


def _list_values(nodes: Sequence[ast.AST]) -> Mapping[str, ast.expr]:
    """Return the value of each name that is assigned once."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case _:
                pass
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _is_read_from(read: ast.expr, given: ast.expr, known: Mapping[str, ast.expr]) -> bool:
    call = _follow(read, known)
    if not isinstance(call, ast.Call) or _name_call(call) not in _READS or not call.args:
        return False
    text = _follow(call.args[0], known)
    if not isinstance(text, ast.Call) or _name_call(text) not in _PRINTS:
        return False
    printed = text.args[0] if text.args else text.func.value if isinstance(text.func, ast.Attribute) else None
    return printed is not None and ast.dump(_follow(printed, known)) == ast.dump(_follow(given, known))


def _follow(value: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """Return the expression that a name is bound to."""
    for _ in range(MAX_DEPTH):
        if not isinstance(value, ast.Name) or value.id not in known:
            break
        value = known[value.id]
    return value


def _name_call(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
