"""Wrap MLIR operations that a report gives alone in a function or a module. Pure.

Undefined operands become arguments. The operations give their types: in the generic form
``"d.op"(%a, %b) : (T, U) -> R``, after the operands of a clause (``ins(%a : T)``), or as the single trailing type.
Unused results are returned. A missing type is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from bot.extract.blocks.kinds import is_dump
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.types import WRAP, Repair

MAX_FRAGMENT_CHARS = 20_000
MAX_OPERATIONS = 60
MAX_CLAUSES = 6
"""Clauses with operands and types of one operation: each is read up to its end."""
_VALUE = r"%[A-Za-z0-9_.$-]{1,60}"
_RESULTS = re.compile(rf"\s*(?P<names>{_VALUE}(?::\d{{1,3}})?(?:, ?{_VALUE}(?::\d{{1,3}})?){{0,20}}) = ")
_START = re.compile(
    rf"[ \t]*(?:(?:{_VALUE}(?::\d{{1,3}})?(?:, ?|(?= =))){{1,21}} = )?(?:\"[\w.]+\"\(|[a-z]\w*\.[\w.]+\b)"
)
_GENERIC = re.compile(r"\"[\w.$]{1,120}\"\((?P<operands>[^()]{0,2000})\)")
_ALIAS = re.compile(r"[ \t]*[#!][\w.$]{1,60} = ")
_NOT_WRAPPED = re.compile(
    r"\.{3}|…|@[\w$]|\bfunc\b|^[ \t]*(?:vm|hal|util|flow|stream)\.(?:func|module|executable)|^[ \t]*module\b", re.M
)
"""Text that leaves something out, calls a function, or has a function around it."""
_INSIDE = re.compile(r"[ \t]*[\^)}\]]")
"""The row of a block, or of an end, whose beginning is not in the text."""
_RETURN = re.compile(r"[ \t]*(?:func\.|util\.)?return\b(?P<values>[^:\n]{0,400})(?::(?P<types>[^\n]{1,800}))?$")
_COMMENT = re.compile(r"[ \t]*//[^\n]*")
_CLAUSE = re.compile(rf"\((?P<values>{_VALUE}(?:, ?{_VALUE}){{0,20}}) ?: ?")
_USE = re.compile(rf"{_VALUE}(?:#\d{{1,3}})?")
_OF_VM = re.compile(r"^[ \t]*vm\.(?:func|export|import|rodata|global\.\w+)\b", re.M)


def wrap_only_fragment(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with the only operations of a report as a whole program, if their types are given."""
    parts = [one for one in pieces if one.kind is Kind.FRAGMENT and one.cue not in _SHOWN and not one.attachment]
    programs = [one for one in pieces if one.kind is Kind.MLIR and not is_dump(one) and one.cue not in _SHOWN]
    if len(parts) != 1 or programs or len(parts[0].text) > MAX_FRAGMENT_CHARS:
        return tuple(pieces)
    found = _add_vm_module(parts[0].text) or _add_function(parts[0].text)
    if found is None:
        return tuple(pieces)
    text, detail = found
    whole = replace(parts[0], kind=Kind.MLIR, text=text, repairs=(Repair(kind=WRAP, detail=detail),))
    return tuple(whole if one is parts[0] else one for one in pieces)


_SHOWN = frozenset({Cue.OUTPUT, Cue.EXPECTED, Cue.QUOTED, Cue.WORKS})


def _add_vm_module(text: str) -> tuple[str, str] | None:
    """Put ``vm.module`` around functions of the virtual machine."""
    if not _OF_VM.search(text) or re.search(r"\bvm\.module\b", text):
        return None
    return f"vm.module @module {{\n{text}}}\n", "vm.module @module"


def _add_function(text: str) -> tuple[str, str] | None:
    """Put a function around operations; None if they leave something out."""
    if _NOT_WRAPPED.search(text):
        return None
    split = _split_operations(text)
    if split is None:
        return None
    aliases, operations, ending = split
    known: dict[str, str] = {}
    """The type of each value, as far as the operations give it."""
    arguments: dict[str, str] = {}
    used: set[str] = set()
    results: list[str] = []
    for operation in operations:
        names = _list_results(operation)
        types = _list_operand_types(operation)
        for value in dict.fromkeys(_list_operands(operation)):
            base = value.partition("#")[0]
            used.add(value)
            if base in known or value in known or base in arguments:
                continue
            if value not in types or "#" in value:
                return None
            arguments[value] = types[value]
        given = _list_result_types(operation, len(names))
        if given is None and names and ending is None:
            return None
        known.update(dict.fromkeys((name.partition("#")[0] for name in names), ""))
        known.update(zip(names, given or (), strict=False))
        results += names
    shown = [name for name in results if name not in used and known.get(name)]
    values, gives = ", ".join(shown), ", ".join(known[name] for name in shown)
    if ending is not None:
        values, gives = ending
    taken = ", ".join(f"{name}: {kind}" for name, kind in arguments.items())
    head = f"func.func @main({taken}){f' -> ({gives})' if gives else ''}"
    rows = [*aliases, f"{head} {{", *operations]
    rows += [f"  return {values} : {gives}" if gives else "  return", "}", ""]
    return "\n".join(rows), head


def _split_operations(text: str) -> tuple[list[str], list[str], tuple[str, str] | None] | None:
    """Return the aliases, the operations with their continuation rows, and the values and types of a return.

    Return None for text that is not a sequence of complete operations.
    """
    aliases: list[str] = []
    operations: list[str] = []
    ending: tuple[str, str] | None = None
    depth = 0
    for row in text.split("\n"):
        if not row.strip() or _COMMENT.fullmatch(row):
            continue
        if not depth and _ALIAS.match(row):
            aliases.append(row)
            continue
        if not depth and (found := _RETURN.match(row)):
            ending = (found["values"].strip(), (found["types"] or "").strip())
            continue
        if ending is not None or (not depth and _INSIDE.match(row)):
            return None
        if not depth and not operations and not _START.match(row):
            return None
        if not depth and _START.match(row):
            operations.append(row)
        else:
            operations[-1] = f"{operations[-1]}\n{row}"
        bare = _STRING.sub("", row)
        depth += sum(bare.count(one) for one in "({[") - sum(bare.count(one) for one in ")}]")
    whole = not depth and 0 < len(operations) <= MAX_OPERATIONS
    return (aliases, operations, ending) if whole else None


_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')


def _list_results(operation: str) -> list[str]:
    """Return the results of an operation: ``%0#0`` and ``%0#1`` for ``%0:2``."""
    found = _RESULTS.match(operation)
    names: list[str] = []
    for one in found["names"].split(",") if found else ():
        name, _, count = one.strip().partition(":")
        names += [f"{name}#{at}" for at in range(min(int(count), 100))] if count else [name]
    return names


def _get_body(operation: str) -> str:
    found = _RESULTS.match(operation)
    return operation[found.end() if found else 0 :]


def _list_operands(operation: str) -> Iterator[str]:
    """Yield the values that an operation takes from outside, without the values that its regions define."""
    body = _STRING_ALONE.sub("", _get_body(operation))
    own = {name for found in _OWN.finditer(body) for name in _USE.findall(found[0])}
    yield from (value for value in _USE.findall(body) if value.partition("#")[0] not in own)


_STRING_ALONE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"(?!\()')
_OWN = re.compile(
    rf"\^\w+\([^()\n]{{0,2000}}\)|^[ \t]*{_VALUE}(?::\d{{1,3}})?(?:, ?{_VALUE}){{0,20}} = |\bfor {_VALUE} =", re.M
)
"""Values that a region defines: the arguments of its block, the results of its operations."""


def _list_operand_types(operation: str) -> dict[str, str]:
    """Return the operand types that an operation gives."""
    body = _get_body(operation)
    types: dict[str, str] = {}
    for found in islice(_CLAUSE.finditer(body), MAX_CLAUSES):
        end = _find_close(body, found.end())
        kinds = split_types(body[found.end() : end])
        values = [one.strip() for one in found["values"].split(",")]
        if len(kinds) == len(values):
            types.update(zip(values, kinds, strict=True))
    takes, _ = _read_trailing(body)
    if takes is None:
        return types
    generic = _GENERIC.match(body.lstrip())
    if not generic:
        indices = {value for found in _INDICES.finditer(body) for value in _USE.findall(found[0])}
        types.update(dict.fromkeys(indices, "index"))
    values = _USE.findall(generic["operands"]) if generic else list(dict.fromkeys(_list_operands(operation)))
    values = [one for one in values if one not in types] if not generic else values
    if len(takes) == len(values):
        types.update(zip(values, takes, strict=True))
    elif len(takes) == 1 and not generic:
        types.update(dict.fromkeys(values, takes[0]))
    return types


_INDICES = re.compile(r"(?<=[\w\]) ])\[[^\[\]\n]{0,400}\]")
"""Offsets and sizes after an operand: ``%t[%i, 0]``."""


def _list_result_types(operation: str, count: int) -> list[str] | None:
    """Return the types of the results; None if the operation gives another number of types."""
    _, gives = _read_trailing(_get_body(operation))
    return gives if gives is not None and len(gives) == count else None


def _read_trailing(body: str) -> tuple[list[str] | None, list[str] | None]:
    """Return the types of operands and results after an operation: ``: (T) -> R``, ``: T to R``, ``: T``."""
    at = _find_last_colon(body)
    text = body[at + 1 :].strip() if at >= 0 else ""
    head, arrow, tail = _split_top(text, "->") if text else ("", "", "")
    if not text:
        _, arrow, tail = _split_top(body, "->")
        return None, split_types(_strip_parentheses(tail)) if arrow else None
    if arrow:
        return split_types(_strip_parentheses(head)), split_types(_strip_parentheses(tail))
    head, into, tail = _split_top(text, " to ")
    head, into, tail = (head, into, tail) if into else _split_top(text, " into ")
    if into:
        return split_types(head), split_types(tail)
    kinds = split_types(text)
    return kinds, kinds[-1:]


def _strip_parentheses(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if bare.startswith("(") and _find_close(bare, 1) == len(bare) - 1 else bare


_PAIR = {"(": ")", "[": "]", "{": "}", "<": ">"}


def _walk(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the offset, the character and the depth of brackets, outside strings and arrows."""
    depth, quoted = 0, False
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        if quoted:
            continue
        if char == ">" and text[at - 1 : at] == "-":
            yield at, char, depth
            continue
        if char in ")]}>":
            depth -= 1
        yield at, char, depth
        if char in _PAIR:
            depth += 1


def _find_close(text: str, begin: int) -> int:
    """Return the offset of the bracket that closes the one before ``begin``, or the end of the text."""
    return next((begin + at for at, char, depth in _walk(text[begin:]) if depth < 0), len(text))


def _find_last_colon(text: str) -> int:
    """Return the offset of the last colon outside brackets; -1 without one."""
    return max((at for at, char, depth in _walk(text) if char == ":" and not depth), default=-1)


def _split_top(text: str, mark: str) -> tuple[str, str, str]:
    """Partition a text at the first ``mark`` outside brackets."""
    at = next((at for at, _, depth in _walk(text) if not depth and text.startswith(mark, at)), -1)
    return (text[:at].strip(), mark, text[at + len(mark) :].strip()) if at >= 0 else (text, "", "")


def split_types(text: str) -> list[str]:
    """Return the types of a list: ``tensor<2x3xf32>, vector<4xi8>``."""
    types, begin = [], 0
    for at, char, depth in _walk(text):
        if char == "," and not depth:
            types.append(text[begin:at].strip())
            begin = at + 1
    return [one for one in (*types, text[begin:].strip()) if one]
