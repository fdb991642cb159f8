"""Reduce MLIR: remove functions, operations and regions, return early, or take a value as an argument.

MLIR is read as text: an operation is a line and the text in its brackets. A parser is not needed: if a guess is
wrong, the compiler rejects the text. This is not the reported failure, so the candidate is dropped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runners.core.mlir.brackets import count_opened, remove_comments
from runners.core.mlir.operations import VALUE, split_types
from runners.minimization.ddmin import Pieces, find_kept, remove_pieces

_VALUE = re.compile(VALUE)
_DEFINES = re.compile(rf"^\s*({VALUE})\s*=\s")
_DEFINITION = re.compile(r"(?::\d+)?\s*(?:,\s*%[\w$.-]+(?::\d+)?\s*)*[=:]")
_FUNCTION = re.compile(r"^\s*(?:\w+\.)?func\b.*@")
_RETURN = re.compile(r"^(\s*)((?:\w+\.)?return)\s+%[^\n]*$")
_LOCATION = re.compile(r"(?<!\s)\s*\bloc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*\)")
_MOST_DEPTH = 8
_MOST_GUESSES = 40


def reduce_mlir(source: str, keeps: Callable[[str], bool]) -> str:
    """Return the smallest module found that ``keeps`` accepts, or ``source`` if it cannot be reduced."""
    text = source
    for plain in (remove_comments(text), _LOCATION.sub("", remove_comments(text))):
        tidy = "\n".join(line.rstrip() for line in plain.splitlines() if line.strip()) + "\n"
        text = tidy if tidy != text and keeps(tidy) else text
    before = ""
    while before != text:
        before = text
        for guesses in (_return_early, _take_as_arguments, _forward_operands, _unwrap_module):
            while (found := find_kept(_limit_guesses(guesses(text)), keeps)) is not None:
                text = found
        for depth in range(_MOST_DEPTH):
            nodes = list(_list_operations(text.splitlines(), depth))
            if not nodes:
                break
            text = remove_pieces(_make_pieces(text, nodes), keeps) or text
    return text


def _limit_guesses(texts: Iterator[str]) -> Iterator[str]:
    for _, text in zip(range(_MOST_GUESSES), texts, strict=False):
        yield text


# ------------------------------------------------------------------------------------------ operations


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with its regions: the lines from ``first`` to ``last``, inclusive."""

    first: int
    last: int

    def get_text(self, lines: Sequence[str]) -> str:
        return "\n".join(lines[self.first : self.last + 1])


def _list_operations(lines: Sequence[str], depth: int) -> list[Operation]:
    """Return the operations ``depth`` regions deep, in order.

    A line that does not begin an operation belongs to the previous operation.
    """
    found: list[Operation] = []
    level, start = 0, 0
    for number, line in enumerate(lines):
        before, level = level, max(0, level + count_opened(line))
        if before == depth:
            start = number
        ended = before > depth >= level or before == level == depth
        if not ended or not line.strip() or (before == depth and line.strip() == "}"):
            continue
        if found and found[-1].last == start - 1 and _BEGINS.match(lines[start]) is None:
            found[-1] = Operation(found[-1].first, number)
        else:
            found.append(Operation(start, number))
    return found


_BEGINS = re.compile(r"^\s*(?:[%^\"#!{}]|\w+\.\w|(?:func|return|module|yield|call|br|cond_br)\b)")


def _make_pieces(text: str, nodes: Sequence[Operation]) -> Pieces[str]:
    lines = text.splitlines()

    def build_without(gone: frozenset[int]) -> str | None:
        dropped = {number for i in gone for number in range(nodes[i].first, nodes[i].last + 1)}
        return _check_values([line for number, line in enumerate(lines) if number not in dropped])

    return Pieces(len(nodes), build_without)


def _check_values(lines: Sequence[str]) -> str | None:
    """Return the lines as text. None if the definition of a used value is missing."""
    seen: set[str] = set()
    for line in lines:
        if _FUNCTION.match(line):
            seen = set()
        for found in _VALUE.finditer(line):
            name = found[0].partition("#")[0]
            if name not in seen and not _DEFINITION.match(line[found.end() :]):
                return None
            seen.add(name)
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------ rewriting


@dataclass(frozen=True, slots=True)
class _Function:
    """A function: the line of its header, the operations of its body, the line of its return."""

    header: int
    body: tuple[Operation, ...]
    back: int


def _list_functions(lines: Sequence[str]) -> Iterator[_Function]:
    for depth in range(3):
        for node in _list_operations(lines, depth):
            if _FUNCTION.match(lines[node.first]) and node.last > node.first:
                body = tuple(one for one in _list_operations(lines, depth + 1) if node.first < one.first <= node.last)
                back = next((one.first for one in reversed(body) if _RETURN.match(lines[one.first])), None)
                if back is not None:
                    yield _Function(node.first, body, back)


def _list_results(lines: Sequence[str], function: _Function) -> Iterator[tuple[Operation, str, str]]:
    """Yield the operations with one result, the value and its type, if the text states the type."""
    for node in function.body:
        defined = _DEFINES.match(lines[node.first])
        kind = _read_type(node.get_text(lines))
        if defined and kind:
            yield node, defined[1], kind


def _read_type(operation: str) -> str:
    """Return the type of the only result. Empty for several results, and without a type."""
    _, takes, types = split_types(operation)
    return types[-1] if types and (takes is None or len(types) == 1) else ""


def _return_early(text: str) -> Iterator[str]:
    """Return the result of an earlier operation, the earliest first, and remove the operations after it."""
    lines = text.splitlines()
    for function in _list_functions(lines):
        header = re.sub(
            r"(\))\s*->\s*(?:\([^{]*\)|[^{]*?)(\s*(?:attributes\s*\{.*\}\s*)?\{)\s*$",
            r"\1 -> @@\2",
            lines[function.header],
        )
        back = _RETURN.match(lines[function.back])
        if "@@" not in header or back is None:
            continue
        for node, value, kind in _list_results(lines, function):
            rest = lines[node.last + 1 : function.back]
            if not rest:
                continue
            changed = [
                *lines[: function.header],
                header.replace("@@", kind),
                *lines[function.header + 1 : node.last + 1],
                f"{back[1]}{back[2]} {value} : {kind}",
                *lines[function.back + 1 :],
            ]
            if (done := _check_values(changed)) is not None:
                yield done


def _take_as_arguments(text: str) -> Iterator[str]:
    """Turn a value into an argument, the latest first. Operations that only computed it become removable."""
    lines = text.splitlines()
    for function in _list_functions(lines):
        header = lines[function.header]
        opening = re.search(r"@[\w$.\"-]+\(", header)
        if opening is None:
            continue
        for node, value, kind in reversed(list(_list_results(lines, function))):
            comma = "" if header[opening.end() :].lstrip().startswith(")") else ", "
            taking = f"{header[: opening.end()]}{value}: {kind}{comma}{header[opening.end() :]}"
            changed = [
                *lines[: function.header],
                taking,
                *lines[function.header + 1 : node.first],
                *lines[node.last + 1 :],
            ]
            done = _check_values(changed)
            if done is not None and len(done) < len(text):
                yield done


def _forward_operands(text: str) -> Iterator[str]:
    """Remove an operation and use one of its operands as its result."""
    lines = text.splitlines()
    for function in _list_functions(lines):
        for node, value, _ in reversed(list(_list_results(lines, function))):
            operands = dict.fromkeys(name for name in _VALUE.findall(node.get_text(lines)) if name != value)
            for operand in list(operands)[:3]:
                use = re.compile(re.escape(value) + r"(?![\w$.-])")
                after = [use.sub(operand.replace("\\", ""), line) for line in lines[node.last + 1 :]]
                done = _check_values([*lines[: node.first], *after])
                if done is not None:
                    yield done


def _unwrap_module(text: str) -> Iterator[str]:
    """Remove the ``module`` around the functions."""
    lines = text.splitlines()
    for node in _list_operations(lines, 0):
        if re.match(r"^\s*(?:builtin\.)?module\b", lines[node.first]) and node.last > node.first:
            inside = textwrap.dedent("\n".join(lines[node.first + 1 : node.last]))
            yield "\n".join([*lines[: node.first], inside, *lines[node.last + 1 :]]) + "\n"
