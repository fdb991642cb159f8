"""Read code between single backticks, over several rows or row by row, and code in a quotation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from bot.extract.blocks.kinds import IMPORT_ROW
from bot.extract.python.parse import parse_python

_OPENING = re.compile(r" {0,3}(?P<ticks>`{1,2})(?P<code>[^`]*)")
_CLOSING = re.compile(r"(?P<code>[^`]*)(?P<ticks>`{1,2})\s*[.,;:]?\s*")
_WHOLE = re.compile(r" {0,3}`(?P<code>[^`]+)`\s*")
_QUOTED = re.compile(r" {0,3}>(?: (?P<code>.*)|\s*)")
MAX_SPAN_ROWS = 300
MAX_FAILED = 100
"""Largest number of candidates that are not Python: each row of a hostile text may begin one."""


def uncover_spans(source: Sequence[str]) -> tuple[str, ...]:
    """Return the rows of a text without the backticks around Python, or the marks of a quotation; as many as before.

    A blank row ends a code span on the page, but not for the author. With its backtick, the last row would not parse,
    and the program would run without its last call.
    """
    rows = list(source)
    at = failed = 0
    while at < len(rows) and failed < MAX_FAILED:
        inner = _read_span(source, at) or _read_rows(source, at) or _read_quotation(source, at)
        if len(inner) > 1 and parse_python("\n".join(inner)) is not None:
            rows[at : at + len(inner)] = inner
            at += len(inner)
        else:
            failed += len(inner) > 1
            at += 1
    return tuple(rows)


def _read_span(source: Sequence[str], begin: int) -> list[str]:
    """Return the rows of the span that begins at row ``begin``, without its backticks; empty if none begins there."""
    opening = _OPENING.fullmatch(source[begin])
    if opening is None:
        return []
    inner = [opening["code"]]
    for row in source[begin + 1 : begin + MAX_SPAN_ROWS]:
        if "`" not in row:
            inner.append(row)
            continue
        closing = _CLOSING.fullmatch(row)
        return [*inner, closing["code"]] if closing is not None and closing["ticks"] == opening["ticks"] else []
    return []


def _read_rows(source: Sequence[str], begin: int) -> list[str]:
    """Return the code of the adjacent rows from ``begin`` that are one span each. Blank rows between them belong."""
    inner: list[str] = []
    blank = 0
    for row in source[begin : begin + MAX_SPAN_ROWS]:
        if (found := _WHOLE.fullmatch(row)) is not None:
            inner += [*[""] * blank, found["code"]]
            blank = 0
        elif inner and not row.strip():
            blank += 1
        else:
            break
    return inner


def _read_quotation(source: Sequence[str], begin: int) -> list[str]:
    """Return the rows of a quotation from an import on, without their marks; empty without an import."""
    found = [_QUOTED.fullmatch(row) for row in source[begin : begin + MAX_SPAN_ROWS]] if ">" in source[begin] else []
    inner = [row["code"] or "" for row in takewhile(lambda row: row is not None, found) if row is not None]
    return inner if inner and IMPORT_ROW.match(inner[0]) else []
