"""Cut MLIR into operations, in the pretty or in the generic form. Pure.

An operation begins a row, and reaches to the next row outside of its brackets that begins another one. What a dialect
prints between the name and the types of its operations is kept as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase

from runners.core.mlir.brackets import (
    SKIPPED,
    blank_comments,
    find_closing,
    partition,
    rpartition,
    split_list,
    strip_parentheses,
)

VALUE = r"%[A-Za-z0-9_$.-]{1,200}"
"""Pattern of the name of a value, without the number of a result."""
MAX_RESULTS = 100
_USE = re.compile(rf"{VALUE}(?:#\d{{1,3}})?")
_MADE = rf"{VALUE}(?::\d{{1,3}})?"
_WORDS = r"return|yield|call|call_indirect|br|cond_br|func|module|assert"
"""Operations that are written without their dialect."""
_BEGINS = re.compile(
    rf"[ \t]*(?:(?P<results>{_MADE}(?:[ \t]*,[ \t]*{_MADE})*)[ \t]*=[ \t]*)?"
    rf"(?:\"(?P<quoted>[\w.$-]{{1,200}})\"(?=[ \t]*\()"
    rf"|(?P<plain>[a-z_][\w$-]*(?:\.[\w$-]+)+|(?(results)[a-z_]\w*|(?:{_WORDS})))(?![\w.])(?![ \t]*=[^=]))"
)
_LABEL = re.compile(r"[ \t]*(?:\^\w+|[#!][\w.$-]+[ \t]*=)")
_BLOCK = re.compile(r"\s*\^\w+(?:\((?P<arguments>[^()]*)\))?\s*:")
_CUT = re.compile(rf"{SKIPPED}|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<row>\n)")


@dataclass(frozen=True, slots=True)
class Region:
    """The body of an operation."""

    arguments: tuple[str, ...]
    """The arguments of its first block."""
    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``name`` is empty for text that is none."""

    name: str
    """With its dialect, if that is written: ``stablehlo.add``."""
    results: tuple[str, ...]
    """``%0``; for ``%0:2``, ``%0#0`` and ``%0#1``."""
    operands: tuple[str, ...]
    """The values between the name and the types."""
    attributes: str
    """The text between the name and the types, without regions."""
    regions: tuple[Region, ...]
    takes: tuple[str, ...] | None
    """The types of the operands. None if one list has the types of operands and results."""
    types: tuple[str, ...]
    """The types of the results, or that list."""
    text: str
    """The whole operation, without comments."""
    at: int = 0
    """Its offset."""


def split_operations(text: str) -> Iterator[Operation]:
    """Yield the operations of a text. Other text has no name: labels, aliases, and parts with unbalanced brackets."""
    plain = blank_comments(text)
    depth, begin, is_closed = 0, 0, True
    for found in _CUT.finditer(plain):
        if found.lastgroup == "open":
            depth += 1
        elif found.lastgroup == "close":
            depth, is_closed = max(0, depth - 1), is_closed and depth > 0
        elif found.lastgroup == "row" and not depth and _begins(plain, found.end()):
            yield from _read_part(plain, begin, found.end(), is_closed=is_closed)
            begin, is_closed = found.end(), True
    yield from _read_part(plain, begin, len(plain), is_closed=is_closed and not depth)


def _begins(text: str, at: int) -> bool:
    return _BEGINS.match(text, at) is not None or _LABEL.match(text, at) is not None


def _read_part(text: str, begin: int, end: int, *, is_closed: bool) -> Iterator[Operation]:
    part = text[begin:end]
    bare = part.strip()
    if bare:
        at = begin + len(part) - len(part.lstrip())
        found = _BEGINS.match(bare) if is_closed else None
        yield Operation("", (), (), "", (), (), (), bare, at) if found is None else _read_operation(bare, found, at)


def parse_operation(text: str) -> Operation | None:
    """Return the operation that a text is. None for other text, and for several operations."""
    found = list(split_operations(text))
    return found[0] if len(found) == 1 and found[0].name else None


def _read_operation(text: str, begin: re.Match[str], at: int) -> Operation:
    head, regions = _cut_regions(text[begin.end() :])
    head, takes, types = split_types(head)
    return Operation(
        name=begin["quoted"] or begin["plain"],
        results=_list_results(begin["results"] or ""),
        operands=tuple(_USE.findall(head)),
        attributes=head,
        regions=regions,
        takes=takes,
        types=types,
        text=text,
        at=at,
    )


def _list_results(text: str) -> tuple[str, ...]:
    """Return the values that a list of results names: ``%0#0`` and ``%0#1`` for ``%0:2``."""
    names: list[str] = []
    for one in text.split(","):
        name, colon, count = one.strip().partition(":")
        names += [f"{name}#{at}" for at in range(min(int(count), MAX_RESULTS))] if colon else [name] if name else []
    return tuple(names)


def _cut_regions(text: str) -> tuple[str, tuple[Region, ...]]:
    """Return the text without braces that contain operations, and these."""
    kept, regions, at = [], [], 0
    for found in _CUT.finditer(text):
        if found[0] != "{" or found.start() < at:
            continue
        end = find_closing(text, found.start())
        inner = text[found.end() : end]
        if end < 0:
            break
        is_region = "%" in inner or inner.lstrip().startswith("^")
        kept.append(_drop_word(text[at : found.start()]) if is_region else text[at : end + 1])
        at = end + 1
        if is_region:
            block = _BLOCK.match(inner)
            named = _USE.findall(block["arguments"] or "") if block else ()
            regions.append(Region(tuple(named), inner[block.end() if block else 0 :]))
    return "".join((*kept, text[at:])), tuple(regions)


def _drop_word(text: str) -> str:
    """Return the text before a region without the word for the region, such as ``else``."""
    bare = text.rstrip()
    rest = bare.rstrip(ascii_lowercase + "_")
    return rest if rest[-1:].isspace() and bare[len(rest) :] not in ("index", "none") else text


def split_types(text: str) -> tuple[str, tuple[str, ...] | None, tuple[str, ...]]:
    """Return the text before the types of an operation, the types of its operands, and those of its results.

    They are written ``: (T, U) -> R``, ``: T to R``, ``: T into R`` or ``-> R``. For ``: T, U``, one list for both,
    the types of the operands are None.
    """
    head, colon, tail = rpartition(text, ":")
    if not colon:
        head, arrow, tail = rpartition(text, "->")
        return (head, (), tuple(_list_types(tail))) if arrow else (text, (), ())
    for mark in ("->", " to ", " into "):
        before, found, after = partition(tail, mark)
        if found:
            return head, tuple(_list_types(before)), tuple(_list_types(after))
    return head, None, tuple(_list_types(tail))


def _list_types(text: str) -> list[str]:
    return split_list(strip_parentheses(text))
