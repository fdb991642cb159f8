"""Code that stands in the prose without a fence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from bot.extract.blocks.markdown import Document, Shape
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Section, cue_of, section_of
from bot.extract.python.indentation import dedent_repair
from bot.extract.python.parse import iter_statements
from bot.extract.python.statements import body_of, is_substantive
from bot.extract.vocabulary import any_of, any_word, join_words

_IMPORT_ROW = re.compile(
    r"^ {0,3}(?:import [A-Za-z_][\w.]*(?: as \w+)?(?:, ?[A-Za-z_][\w.]*(?: as \w+)?)*"
    r"|from [A-Za-z_.][\w.]* import [\w*(][^\n]{0,300})\s*(?:#.*)?$"
)

_CODE_ROW = re.compile(
    r"^ {0,3}(?:[A-Za-z_][\w.]*(?:, ?[A-Za-z_]\w*){0,8} ?= ?[\w(\[{'\"-]|@[A-Za-z]|with [\w.]+\(|def \w+\("
    r"|class \w+[(:]|[A-Za-z_][\w.]*\()"
)

_FIELD_NAME = re.compile(rf"\b(?:onnx|torch|np|{any_word(lambda words: words.python.namespaces)})\.\w")

_FUNCTION = any_of(map(re.escape, join_words(lambda words: words.mlir_functions)))
_MLIR_ROW = re.compile(
    rf"^ {{0,3}}(?:func\.func|{_FUNCTION}|module)\b[^\n]{{0,1000}}\{{\s*$"
    rf"|^ {{0,3}}(?:func(?:\.func)?|{_FUNCTION}) (?:p\w+ )?@\w+\("
)


def bare_code(document: Document) -> Iterator[Piece]:
    """Code that stands in the text without a fence: from an import row to the last statement that parses."""
    above = _Above(document)
    steps = _rows_of_steps(document)
    for begin, end in _open_ranges(document):
        row = begin
        while row < end:
            line = document.source[row]
            if _IMPORT_ROW.match(line) or (row in steps and _CODE_ROW.match(line)):
                piece, row = _bare_python(document, row, end)
            elif _MLIR_ROW.match(line):
                piece, row = _bare_mlir(document, row, end)
            else:
                piece, row = None, row + 1
            if piece is not None:
                yield above.describe(piece)


def _rows_of_steps(document: Document) -> frozenset[int]:
    """Rows (0-based) under a heading that announces how to reproduce; there, code needs no import to be seen as code.

    A heading of no known sort does not end them: a comment in unfenced Python looks like one.
    """
    rows: set[int] = set()
    begin: int | None = None
    for prose in document.prose:
        section = section_of(prose.text) if prose.heading else Section.OTHER
        if section is Section.OTHER:
            continue
        if begin is not None:
            rows.update(range(begin, prose.lines[0] - 1))
        begin = prose.lines[1] if section is Section.STEPS else None
    if begin is not None:
        rows.update(range(begin, len(document.source)))
    return frozenset(rows)


class _Above:
    """The heading and paragraph above a piece; asked in document order, so that one pass serves all."""

    def __init__(self, document: Document) -> None:
        self.prose = document.prose
        self.at = 0
        self.heading = self.intro = ""

    def describe(self, piece: Piece) -> Piece:
        while self.at < len(self.prose) and self.prose[self.at].lines[1] < piece.lines[0]:
            prose = self.prose[self.at]
            self.heading, self.intro = (prose.text, "") if prose.heading else (self.heading, prose.text)
            self.at += 1
        return replace(
            piece,
            section=section_of(self.heading),
            heading=self.heading,
            intro=self.intro,
            cue=cue_of(self.intro),
            comment=self.prose[0].comment if self.prose else 0,
        )


def _open_ranges(document: Document) -> Iterator[tuple[int, int]]:
    """Stretches of the body (0-based, end exclusive) outside fences; indented code belongs to them."""
    at = 0
    for block in document.blocks:
        if block.shape is Shape.INDENTED:
            continue
        begin = block.lines[0] - 1
        if begin > at:
            yield at, begin - (1 if block.shape is Shape.FENCE else 0)
        at = block.lines[1] + (1 if block.shape is Shape.FENCE else 0)
    if at < len(document.source):
        yield at, len(document.source)


MAX_BARE_ROWS = 2_000


def _bare_python(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    """The program that starts at row ``begin``, if one does, and the row to go on from."""
    margin = len(document.source[begin]) - len(document.source[begin].lstrip(" "))
    window: Sequence[str] = document.source[begin : min(end, begin + MAX_BARE_ROWS)]
    if margin:
        window = [_outdented(row, margin) for row in window]
    kept = list(takewhile(lambda s: s.tree is not None, iter_statements(window)))
    looked_at = begin + max(1, sum(s.rows for s in kept))
    while kept and not any(is_substantive(n) for n in body_of(kept[-1])):
        kept.pop()
    acts = [s for s in kept if s.tree and any(not isinstance(n, ast.Import | ast.ImportFrom) for n in s.tree.body)]
    rows = list(window[: kept[-1].row + kept[-1].rows]) if kept else []
    while rows and (not rows[-1].strip() or rows[-1].startswith("#")):
        rows.pop()
    imports = _IMPORT_ROW.match(window[0])
    if not acts or (not imports and (len(kept) < 2 or not _FIELD_NAME.search("\n".join(rows)))):
        return None, looked_at
    piece = _bare_piece(Kind.PYTHON, rows, begin)
    if margin:
        piece = replace(piece, repairs=(dedent_repair(margin),))
    return piece, begin + len(rows)


def _outdented(row: str, margin: int) -> str:
    return row[margin:] if not row[:margin].strip() else row


def _bare_mlir(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    depth = 0
    for row in range(begin, min(end, begin + MAX_BARE_ROWS)):
        line = document.source[row]
        depth += line.count("{") - line.count("}")
        if depth <= 0 and "}" in line:
            return _bare_piece(Kind.MLIR, document.source[begin : row + 1], begin), row + 1
    return None, min(end, begin + MAX_BARE_ROWS)


def _bare_piece(kind: Kind, rows: Sequence[str], begin: int) -> Piece:
    text = "".join(f"{row}\n" for row in rows)
    return Piece(kind=kind, text=text, lines=(begin + 1, begin + len(rows)), block=0)
