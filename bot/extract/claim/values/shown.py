"""List the rows of values that a report shows outside its code, in tables, code spans, blocks and sentences. Pure.

The role of a row often depends on headings and words that no pattern knows: ``IREE``, ``good``, ``Out[3]:``. So no
role is read here. A run of the reported build decides which rows are printed (`mark_by_shown_values`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from bot.extract.blocks.markdown import Document
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.claim.values.sentences import SCALAR, VALUE_ROW
from bot.extract.claim.values.tables import list_cells

MAX_ROWS = 40
MAX_VALUES = 64
MAX_CHARS = 20_000
"""Characters of prose, and of blocks, that are read."""

_VALUE = re.compile(rf"(?<![\w.]){SCALAR}(?![\w.]*\w)", re.I)
_SPAN = re.compile(r"`([^`\n]{3,2000})`")
_ROW = re.compile(rf"(?<![\w.%/-]){VALUE_ROW}", re.I)
_CODE = (Kind.PYTHON, Kind.DEFINITIONS, Kind.SHELL)


def list_shown_values(document: Document, pieces: Sequence[Piece]) -> tuple[str, ...]:
    """Return each row of at least two different values once, with a space between the values."""
    rows: dict[str, None] = {}
    for values in _list_rows(document, pieces):
        row = " ".join(values)
        if 1 < len(values) <= MAX_VALUES and len(set(values)) > 1:
            rows.setdefault(row[:500])
    return tuple(rows)[:MAX_ROWS]


def _list_rows(document: Document, pieces: Sequence[Piece]) -> Iterator[list[str]]:
    left = MAX_CHARS
    for prose in document.prose:
        text, left = prose.text[:left], max(0, left - len(prose.text))
        yield from _list_columns(text)
        lines = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("|"))
        for span in _SPAN.findall(lines):
            yield _VALUE.findall(span)
        for found in _ROW.finditer(_SPAN.sub(" ; ", lines)):
            yield _VALUE.findall(found[0])
    left = MAX_CHARS
    for piece in pieces:
        if piece.kind not in _CODE:
            text, left = piece.text[:left], max(0, left - len(piece.text))
            yield from (_VALUE.findall(line) for line in text.split("\n"))


def _list_columns(text: str) -> Iterator[list[str]]:
    """Yield the columns of a table whose cells are single values, and the cells with several values."""
    body = list_cells(text)[1:]
    for column in zip_longest(*body, fillvalue=""):
        if column and all(_VALUE.fullmatch(cell) for cell in column):
            yield list(column)
    for cell in (cell for row in body for cell in row):
        yield _VALUE.findall(cell)
