"""Repair a statement that lacks one closing bracket or has one too many, if only one place is possible. Pure.

The statement must be code of the program: it calls something, and every name in it is bound above, built in or well
known. So prose and output, which do not parse either, do not change.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from itertools import islice

from bot.extract.blocks.cut import PYTHON_TOKEN
from bot.extract.python.known_names import has_known_import
from bot.extract.python.parse import parse_python, split_statements, walk
from bot.extract.types import Repair

MAX_MENDED = 3
"""Largest number of statements in one text. A longer text is not a program with a typing error."""
MAX_CHARS = 2_000
"""A longer statement is not repaired."""
MAX_TRIES = 300
"""Changes that are tried for one text. Long output may look like many damaged statements."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def mend_brackets(text: str, first: int = 1) -> tuple[str, tuple[Repair, ...]]:
    """Return ``text`` with the brackets of damaged statements repaired, and a repair for each; else ``text`` itself.

    ``first`` is the number of its first line.
    """
    bound = set(dir(builtins))
    parts, repairs = [], []
    tries = MAX_TRIES
    for statement in split_statements(text):
        changes = [] if statement.tree is not None else list(islice(_list_changes(statement.text, first), tries + 1))
        tries -= len(changes)
        mended = _choose_change(changes, bound) if tries >= 0 else None
        first += statement.rows
        tree = statement.tree if mended is None else parse_python(mended[0])
        parts.append(statement.text if mended is None else mended[0])
        repairs += [] if mended is None else [Repair(kind="balance-brackets", detail=mended[1])]
        bound |= set(_list_bound(tree)) if tree is not None else set()
    return ("".join(parts), tuple(repairs)) if 0 < len(repairs) <= MAX_MENDED else (text, ())


def _choose_change(changes: Iterable[tuple[str, str]], bound: set[str]) -> tuple[str, str] | None:
    """Return the repaired text of a statement and the change in words; None unless exactly one program results."""
    found: dict[str, tuple[str, str]] = {}
    for text, words in changes:
        tree = parse_python(text)
        if tree is not None and _is_used(tree, bound):
            found.setdefault(ast.dump(tree), (text, words))
    only = found.popitem()[1] if len(found) == 1 else ("", "")
    return only if only[1] else None


def _list_changes(text: str, first: int) -> Iterator[tuple[str, str]]:
    """Yield ``text`` with one closing bracket left out, or added at the end of a row; and the change in words.

    The words are empty for a bracket after a comma: more arguments followed, and they are not in the text.
    """
    if len(text) > MAX_CHARS:
        return
    opened: list[str] = []
    ends: dict[int, tuple[int, str]] = {}  # row → position after its code, and the bracket that is open there
    row = place = 0
    for found in (*PYTHON_TOKEN.finditer(text), None):
        until = found.start() if found is not None else len(text)
        for at in (at for at in range(place, until) if text[at] == "\n"):
            ends.setdefault(row, (at, opened[-1] if opened else ""))
            row += 1
        if found is None:
            break
        place = found.end()
        if found[0].startswith("#"):
            ends.setdefault(row, (found.start(), opened[-1] if opened else ""))
        elif found["open"]:
            opened.append(found["open"])
        elif found["close"]:
            if opened and _CLOSING[opened[-1]] == found["close"]:
                opened.pop()
            yield text[: found.start()] + text[place:], f"left out a '{found['close']}' in line {first + row}"
        row += found[0].count("\n")
    for at_row, (at, bracket) in ends.items():
        if closing := _CLOSING.get(bracket):
            code = text[:at].rstrip()
            goes_on = code.endswith(",")
            words = "" if goes_on else f"added a '{closing}' at the end of line {first + at_row}"
            yield f"{code}{closing}{text[len(code) :]}", words


def _is_used(tree: ast.Module, bound: set[str]) -> bool:
    """True if the statement calls something, and all its names are known."""
    nodes = list(walk(tree))
    if not any(isinstance(node, ast.Call) for node in nodes):
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return all(has_known_import(name) for name in names - bound - set(_list_bound(tree)))


def _list_bound(tree: ast.Module) -> Iterable[str]:
    """Yield the names that a tree binds, in any scope."""
    for node in walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
