"""Find code in the prose without a fence."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile, zip_longest

from bot.extract.blocks.kinds import IMPORT_ROW
from bot.extract.blocks.markdown import Document, Prose, Shape, find_code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import IssueSection, classify_heading, read_cue
from bot.extract.python.known_names import has_known_import
from bot.extract.python.names import read_names
from bot.extract.python.parse import Statement, iter_statements, parse_python, walk
from bot.extract.python.repair import make_dedent_repair, make_straight_repair, straighten_row
from bot.extract.split.session import read_argument, split_interpreter_session
from bot.extract.split.spans import uncover_spans
from bot.extract.split.statements import is_damaged_code, is_substantive, record_left_out
from bot.extract.types import DROP_CODE, Repair
from bot.extract.vocabulary import any_of, any_word, join_words

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
MAX_UNFENCED_ROWS = 2_000


def find_unfenced_code(document: Document) -> Iterator[Piece]:
    """Yield the programs and the MLIR functions outside fences, in document order.

    A program reaches from an import row to the last statement that parses. Below a heading that announces the steps
    to reproduce, other rows of code begin a program too; and in a text without a fence, rows that call the compiler.
    """
    document = replace(document, source=uncover_spans(document.source))
    context = _Context(document)
    steps = _find_step_rows(document)
    fenced = any(block.shape is Shape.FENCE for block in document.blocks)
    headings = sorted(prose.lines[0] - 1 for prose in document.prose if prose.heading)
    for begin, end in _find_open_ranges(document):
        pieces = list(_read_range(document, steps, begin, end, fenced=fenced))
        for piece, below in zip_longest(pieces, pieces[1:]):
            stop = below.lines[0] - 1 if below else end
            heading = headings[at] if (at := bisect_left(headings, piece.lines[1])) < len(headings) else end
            lost = document.source[piece.lines[1] : min(stop, heading)]
            described = context.describe_piece(_record_lost_rows(piece, lost))
            yield from split_interpreter_session(described) if piece.kind is Kind.OUTPUT else [described]


def find_code_in_sentence(document: Document) -> Piece | None:
    """Return the only code span of the prose that is a complete program: it calls the compiler and needs no other
    name.

    The text around the span may be code as well, so it is recorded as left out.
    """
    spans = ((prose, span) for prose in document.prose for span in find_code_spans(prose.text))
    return _make_only([(prose, span) for prose, span in spans if _is_program(span)])


def find_command_in_sentence(document: Document) -> Piece | None:
    """Return the program that the only ``python -c "…"`` in a sentence gives to Python. It calls the compiler."""
    spans = ((prose, read_argument(span)) for prose in document.prose for span in find_code_spans(prose.text))
    return _make_only([(prose, code) for prose, code in spans if code is not None and _is_program(code)])


def find_mlir_in_sentence(document: Document) -> Piece | None:
    """Return the only code span of the prose that is a complete MLIR function: its braces contain a return."""
    spans = ((prose, span.strip()) for prose in document.prose for span in find_code_spans(prose.text))
    return _make_only([(prose, span) for prose, span in spans if _is_mlir_function(span)], Kind.MLIR)


def _is_mlir_function(span: str) -> bool:
    whole = span.endswith("}") and span.count("{") == span.count("}")
    return (whole and _MLIR_FUNCTION.match(span) is not None) or _EMPTY_MODULE.fullmatch(span) is not None


_EMPTY_MODULE = re.compile(r"(?:builtin\.)?module(?: @\w+)? ?\{\s*\}")


_MLIR_FUNCTION = re.compile(
    rf"(?:module\b[^\n{{]{{0,200}}\{{\s*)?(?:func\.func|func|{_FUNCTION}) (?:p\w+ )?@[\w.$-]+\(.{{0,2000}}\breturn\b",
    re.S,
)


def _make_only(found: Sequence[tuple[Prose, str]], kind: Kind = Kind.PYTHON) -> Piece | None:
    if len(found) != 1:
        return None
    prose, span = found[0]
    piece = replace(_make_piece(kind, [span], prose.lines[0] - 1), comment=prose.comment)
    return replace(piece, repairs=(Repair(kind=DROP_CODE, detail=f"left out the sentence around {span[:80]!r}"),))


def _is_program(span: str) -> bool:
    tree = parse_python(span) if len(span) <= MAX_SPAN_CHARS and _FIELD_NAME.search(span) else None
    calls = tree is not None and any(isinstance(node, ast.Call) and node.args + node.keywords for node in walk(tree))
    return calls and all(has_known_import(name) for name in read_names(span).free)


MAX_SPAN_CHARS = 1_000


def _read_range(document: Document, steps: frozenset[int], begin: int, end: int, *, fenced: bool) -> Iterator[Piece]:
    row = begin
    while row < end:
        line = document.source[row]
        if _PROMPTED.match(line):
            piece, row = _read_session(document, row, end)
        elif IMPORT_ROW.match(line) or (row in steps and _CODE_ROW.match(line)):
            piece, row = _read_python(document, row, end)
        elif not fenced and _CODE_ROW.match(line):
            piece, row = _read_python(document, row, end, calls=MIN_CALLS)
        elif _MLIR_ROW.match(line):
            piece, row = _read_mlir(document, row, end)
        else:
            piece, row = None, row + 1
        if piece is not None:
            yield piece


_PROMPTED = re.compile(r" {0,3}>>> \S")


def _read_session(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    """Return an interpreter session in the prose, unchanged, and the row at which to continue.

    Markdown takes the prompts for nested quotations. A blank row ends the session, unless a prompt follows.
    """
    row = begin
    limit = min(end, begin + MAX_UNFENCED_ROWS)
    while row < limit:
        below = next((line for line in document.source[row:limit] if line.strip()), "")
        if not document.source[row].strip() and not _PROMPTED.match(below):
            break
        row += 1
    session = _make_piece(Kind.OUTPUT, document.source[begin:row], begin)
    code = split_interpreter_session(session)[0]
    return (session if parse_python(code.text) is not None else None), row


def _record_lost_rows(piece: Piece, rows: Sequence[str]) -> Piece:
    """Record code among the ``rows`` below a program: the program may continue after a sentence."""
    if piece.kind is not Kind.PYTHON or not any(row.strip() for row in rows):
        return piece
    statements = list(iter_statements(rows))
    substantive = [s for s in statements if any(is_substantive(node) for node in s.body)]
    adjacent = statements[0] if rows[0].strip() and statements[0].tree is None else None
    damaged = (adjacent,) if adjacent is not None and is_damaged_code(adjacent) else ()
    return record_left_out(piece, (*damaged, *substantive))


def _find_step_rows(document: Document) -> frozenset[int]:
    """Return the rows (0-based) below headings that announce the steps to reproduce.

    A heading of no known section does not end the steps: a comment in unfenced Python looks like a heading.
    """
    rows: set[int] = set()
    begin: int | None = None
    for prose in document.prose:
        section = classify_heading(prose.text) if prose.heading else IssueSection.OTHER
        if section is IssueSection.OTHER:
            continue
        if begin is not None:
            rows.update(range(begin, prose.lines[0] - 1))
        begin = prose.lines[1] if section is IssueSection.STEPS else None
    if begin is not None:
        rows.update(range(begin, len(document.source)))
    return frozenset(rows)


class _Context:
    """The heading and the paragraph above a piece. Needs the pieces in document order, to pass the prose once."""

    def __init__(self, document: Document) -> None:
        self.prose = document.prose
        self.at = 0
        self.heading = self.intro = ""

    def describe_piece(self, piece: Piece) -> Piece:
        while self.at < len(self.prose) and self.prose[self.at].lines[1] < piece.lines[0]:
            prose = self.prose[self.at]
            self.heading, self.intro = (prose.text, "") if prose.heading else (self.heading, prose.text)
            self.at += 1
        return replace(
            piece,
            section=classify_heading(self.heading),
            heading=self.heading,
            intro=self.intro,
            cue=read_cue(self.intro),
            comment=self.prose[0].comment if self.prose else 0,
        )


def _find_open_ranges(document: Document) -> Iterator[tuple[int, int]]:
    """Yield the ranges of rows (0-based, end exclusive) outside fences. Indented code counts as outside."""
    at = 0
    for block in document.blocks:
        if block.shape is Shape.INDENTED:
            continue
        edge = 1 if block.shape is Shape.FENCE else 0
        begin = block.lines[0] - 1
        if begin > at:
            yield at, begin - edge
        at = block.lines[1] + edge
    if at < len(document.source):
        yield at, len(document.source)


MIN_CALLS = 3
"""Minimum number of rows that call the compiler, if nothing else shows that a program begins."""


def _read_python(document: Document, begin: int, end: int, *, calls: int = 1) -> tuple[Piece | None, int]:
    """Return the program that starts at row ``begin``, if there is one, and the row at which to continue.

    A program without an import has at least two statements, and ``calls`` rows that name the compiler.
    """
    margin = len(document.source[begin]) - len(document.source[begin].lstrip(" "))
    window: Sequence[str] = document.source[begin : min(end, begin + MAX_UNFENCED_ROWS)]
    if margin:
        window = [row[margin:] if not row[:margin].strip() else row for row in window]
    window, straightened = _straighten_statements(window)
    kept = list(takewhile(lambda s: s.tree is not None, iter_statements(window)))
    next_row = begin + sum(s.rows for s in kept) if kept else _find_next_start(document, begin, window)
    popped: list[Statement] = []
    while kept and not any(is_substantive(n) for n in kept[-1].body):
        popped.append(kept.pop())
    acts = any(not isinstance(n, ast.Import | ast.ImportFrom) for s in kept for n in s.body)
    rows = list(window[: kept[-1].row + kept[-1].rows]) if kept else []
    while rows and (not rows[-1].strip() or rows[-1].startswith("#")):
        rows.pop()
    imports = IMPORT_ROW.match(window[0])
    if not acts or (not imports and (len(kept) < 2 or sum(map(bool, map(_FIELD_NAME.search, rows))) < calls)):
        return None, next_row
    piece = _make_piece(Kind.PYTHON, rows, begin)
    if margin:
        piece = replace(piece, repairs=(make_dedent_repair(margin),))
    if any(row < len(rows) for row in straightened):
        piece = replace(piece, repairs=(*piece.repairs, make_straight_repair()))
    return record_left_out(piece, popped), begin + len(rows)


def _find_next_start(document: Document, begin: int, window: Sequence[str]) -> int:
    """Return the next row where code may begin, if the statement at row ``begin`` is not Python.

    Rows inside brackets that stay open, or below decorators without a function, do not begin another program. Each of
    them would be read up to the same end again.
    """
    failed = next(iter_statements(window)).rows
    starts = (IMPORT_ROW, _PROMPTED, _MLIR_ROW)
    inner = range(begin + 1, begin + failed)
    return next((row for row in inner if any(one.match(document.source[row]) for one in starts)), begin + failed)


def _straighten_statements(rows: Sequence[str]) -> tuple[Sequence[str], tuple[int, ...]]:
    """Return the rows of a program with plain punctuation in each statement that needs it, and the changed rows.

    The rows are read up to the first statement that is not Python either way.
    """
    done, changed = list(rows), list[int]()
    for statement in iter_statements(rows):
        if statement.tree is not None:
            continue
        own = range(statement.row, statement.row + statement.rows)
        plain = [straighten_row(rows[at]) for at in own]
        tree = parse_python("\n".join(plain) + "\n") if plain != [rows[at] for at in own] else None
        if tree is None or not any(map(is_substantive, tree.body)):
            break
        done[own.start : own.stop] = plain
        changed += own
    return (done, tuple(changed)) if changed else (rows, ())


def _read_mlir(document: Document, begin: int, end: int) -> tuple[Piece | None, int]:
    """Return the MLIR from row ``begin`` to the closing brace, if there is one, and the row at which to continue.

    The aliases in the rows above belong to it. The first row of a quotation has a quotation mark.
    """
    depth = 0
    limit = min(end, begin + MAX_UNFENCED_ROWS)
    for row in range(begin, limit):
        line = document.source[row]
        depth += line.count("{") - line.count("}")
        if depth <= 0 and "}" in line:
            aliases = list(takewhile(lambda found: found is not None, _read_aliases(document, begin)))[::-1]
            rows = [*(alias for alias in aliases if alias is not None), *document.source[begin : row + 1]]
            return _make_piece(Kind.MLIR, rows, begin - len(aliases)), row + 1
    return None, limit


_ALIAS = re.compile(r"\s*(?:> ?)?(?P<alias>[#!]\w+ = \S.*)")


def _read_aliases(document: Document, begin: int) -> Iterator[str | None]:
    """Yield the aliases of attributes and types above a row, the nearest first; None for another row."""
    for row in reversed(document.source[max(0, begin - MAX_ALIASES) : begin]):
        found = _ALIAS.fullmatch(row)
        yield found["alias"] if found else None


MAX_ALIASES = 40


def _make_piece(kind: Kind, rows: Sequence[str], begin: int) -> Piece:
    text = "".join(f"{row}\n" for row in rows)
    return Piece(kind=kind, text=text, lines=(begin + 1, begin + len(rows)), block=0)
