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
from runners.core.mlir.brackets import find_closing, split_list
from runners.core.mlir.operations import VALUE, Operation, split_operations

MAX_FRAGMENT_CHARS = 20_000
MAX_OPERATIONS = 60
MAX_CLAUSES = 6
"""Clauses with operands and types of one operation: each is read up to its end."""
_GENERIC = re.compile(r"\"[\w.$]{1,120}\"\((?P<operands>[^()]{0,2000})\)")
_NOT_WRAPPED = re.compile(
    r"\.{3}|…|@[\w$]|\bfunc\b|^[ \t]*(?:vm|hal|util|flow|stream)\.(?:func|module|executable)|^[ \t]*module\b", re.M
)
"""Text that leaves something out, calls a function, or has a function around it."""
_CLAUSE = re.compile(rf"\((?P<values>{VALUE}(?:, ?{VALUE}){{0,20}}) ?: ?")
_USE = re.compile(rf"{VALUE}(?:#\d{{1,3}})?")
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
        names = operation.results
        types = _list_operand_types(operation)
        for value in dict.fromkeys(_list_operands(operation)):
            base = value.partition("#")[0]
            used.add(value)
            if base in known or value in known or base in arguments:
                continue
            if value not in types or "#" in value:
                return None
            arguments[value] = types[value]
        given = _list_result_types(operation)
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
    shown_rows = (f"  {text[one.at : one.at + len(one.text)]}" for one in operations)
    rows = [*aliases, f"{head} {{", *shown_rows]
    rows += [f"  return {values} : {gives}" if gives else "  return", "}", ""]
    return "\n".join(rows), head


def _split_operations(text: str) -> tuple[list[str], list[Operation], tuple[str, str] | None] | None:
    """Return the aliases, the operations, and the values and types of a return.

    Return None for text that is not a sequence of complete operations.
    """
    aliases: list[str] = []
    operations: list[Operation] = []
    ending: tuple[str, str] | None = None
    for one in split_operations(text):
        if one.text[0] in "#!":
            aliases.append(one.text)
        elif ending is not None or not (one.name in _RETURNS or "." in one.name):
            return None
        elif one.name in _RETURNS:
            ending = ", ".join(one.operands), ", ".join(one.takes or one.types)
        else:
            operations.append(one)
    return (aliases, operations, ending) if 0 < len(operations) <= MAX_OPERATIONS else None


_RETURNS = frozenset({"return", "func.return", "util.return"})


def _get_body(operation: Operation) -> str:
    return operation.text.partition("=")[2] if operation.results else operation.text


def _list_operands(operation: Operation) -> Iterator[str]:
    """Yield the values that an operation takes from outside, without the values that its regions define."""
    body = _STRING_ALONE.sub("", _get_body(operation))
    own = {name for found in _OWN.finditer(body) for name in _USE.findall(found[0])}
    yield from (value for value in _USE.findall(body) if value.partition("#")[0] not in own)


_STRING_ALONE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"(?!\()')
_OWN = re.compile(
    rf"\^\w+\([^()\n]{{0,2000}}\)|^[ \t]*{VALUE}(?::\d{{1,3}})?(?:, ?{VALUE}){{0,20}} = |\bfor {VALUE} =", re.M
)
"""Values that a region defines: the arguments of its block, the results of its operations."""


def _list_operand_types(operation: Operation) -> dict[str, str]:
    """Return the operand types that an operation gives."""
    body = _get_body(operation)
    types: dict[str, str] = {}
    for found in islice(_CLAUSE.finditer(body), MAX_CLAUSES):
        end = find_closing(body, found.start())
        kinds = split_list(body[found.end() : end if end >= 0 else len(body)])
        values = split_list(found["values"])
        if len(kinds) == len(values):
            types.update(zip(values, kinds, strict=True))
    takes = operation.types if operation.takes is None else operation.takes
    if not takes:
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


def _list_result_types(operation: Operation) -> Sequence[str] | None:
    """Return the types of the results; None if the operation gives another number of types.

    Of one list for operands and results, the last type is the result's.
    """
    gives = operation.types[-1:] if operation.takes is None else operation.types
    return gives if len(gives) == len(operation.results) else None
