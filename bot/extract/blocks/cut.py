"""Find a description that breaks off inside its program or command, as over GitHub's limit of length. Pure.

A parser's error about a program that breaks off is not evidence about the reported failure.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.extract.blocks.kinds import IMPORT_ROW
from bot.extract.blocks.markdown import Document, Prose, Shape, find_unclosed_span
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import IssueSection, classify_heading
from bot.extract.command_line.shell import is_command, parse_commands
from bot.extract.python.parse import parse_python
from bot.extract.vocabulary import list_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The place where the description breaks off."""

    line: int
    """The last line of the description that is not blank, 1-based."""
    inside: Literal["program", "command", "output", "sentence"]
    why: str
    """The open end in words: ``2 brackets are open``."""
    piece: Piece | None = None
    """The piece that breaks off; None for a command or a name in a sentence, and for output."""
    word: str = ""
    """The part of a word that is the last line. It is not a name of the program."""


def find_cut(document: Document, pieces: Sequence[Piece]) -> Cut | None:
    """Return where the description breaks off; None if the description ends with a complete piece.

    Only the end of the description counts: an open bracket above is the reporter's own.
    """
    last = next((n for n in range(len(document.source), 0, -1) if document.source[n - 1].strip()), 0)
    at_end = [piece for piece in pieces if not piece.comment and not piece.attachment and piece.lines[1] >= last]
    if at_end:
        if (broken := _find_broken_word(document, pieces, at_end[-1])) is not None:
            piece, word = broken
            return Cut(line=last, inside="program", why="its last line is a part of a word", piece=piece, word=word)
        joined = _join_python(document, pieces, at_end[-1])
        in_code = _find_cut_in_code(joined, last) or _find_open_region(document, joined, last)
        return in_code or _find_cut_in_output(document, at_end[-1], last)
    if _ends_with_imports(document.source[:last]):
        return Cut(line=last, inside="program", why="it ends with its imports")
    return next((_find_cut_in_prose(p, last) for p in document.prose if not p.comment and p.lines[1] >= last), None)


def _ends_with_imports(rows: Sequence[str]) -> bool:
    """True if the text ends with imports of a program without a fence; the last of them may break off.

    A single import must be below the heading of the steps.
    """
    above = next((row for row in reversed(rows[:-1]) if row.strip()), "")
    heading = _HEADING.match(above)
    starts = heading is not None and classify_heading(heading["text"]) is IssueSection.STEPS
    return bool(rows) and bool(_LAST_IMPORT.fullmatch(rows[-1])) and (starts or bool(IMPORT_ROW.match(above)))


_HEADING = re.compile(r" {0,3}#{1,6} (?P<text>[^\n]{1,200})")


_LAST_IMPORT = re.compile(r" {0,8}(?:import|from) [A-Za-z_.][\w.]{0,200}(?: (?:import|as)\b[^\n]{0,300})?\s{0,8}")


def find_open_end(document: Document, pieces: Sequence[Piece]) -> Piece | None:
    """Return the Python at the end of the description that no closing fence follows; None without such a piece.

    Every bug report form has text below its program, or closes the fence. A program that parses may still lack its
    last statements.
    """
    last = next((n for n in range(len(document.source), 0, -1) if document.source[n - 1].strip()), 0)
    own = [piece for piece in pieces if piece.block and not piece.comment and not piece.attachment]
    fences = {block.index for block in document.blocks if block.shape is Shape.FENCE and block.lines[1] >= last}
    return next((piece for piece in own if piece.block in fences and piece.kind in _PYTHON), None)


def is_open_at_end(document: Document, piece: Piece) -> bool:
    """True if the description ends inside the fence of a piece: its last row may be a part of a row."""
    last = next((n for n in range(len(document.source), 0, -1) if document.source[n - 1].strip()), 0)
    if piece.comment or piece.attachment or piece.lines[1] < last:  # nearly all pieces: do not search their blocks
        return False
    block = next((one for one in document.blocks if one.index == piece.block), None)
    return block is not None and block.shape is Shape.FENCE and block.lines[1] >= last


_PYTHON = frozenset({Kind.PYTHON, Kind.DEFINITIONS, Kind.QUOTED})


def _find_broken_word(document: Document, pieces: Sequence[Piece], piece: Piece) -> tuple[Piece, str] | None:
    """Return the program of the last block and its last word if the block has that word nowhere else; else None.

    A lone name on the last line of a notebook is bound above.
    """
    program = next((one for one in pieces if piece.block and one.block == piece.block and one.kind in _PYTHON), None)
    word = piece.text.rstrip().rpartition("\n")[2].strip()
    if program is None or not word.isidentifier() or keyword.iskeyword(word):
        return None
    block = next(block for block in document.blocks if block.index == piece.block)
    return (program, word) if len(re.findall(rf"\b{word}\b", block.text)) == 1 else None


def _find_open_region(document: Document, piece: Piece, last: int) -> Cut | None:
    """Return the cut in a program that ends inside a ``with``, a loop or the name of an attribute.

    The fence has no closing line. Such programs exist, and open fences exist. Both together show that the text was
    cut.
    """
    block = next((one for one in document.blocks if one.index == piece.block), None)
    tree = parse_python(piece.text) if block is not None and block.shape is Shape.FENCE else None
    if piece.kind not in _PYTHON or tree is None or not tree.body:
        return None
    end = tree.body[-1]
    opened = isinstance(end, ast.With | ast.For | ast.While | ast.Try) or (
        isinstance(end, ast.If) and "__name__" not in ast.unparse(end.test)
    )
    if opened:
        return Cut(line=last, inside="program", why="its last line is inside a block", piece=piece)
    halved = _is_part_of_name(end, block.text if block is not None else "")
    why = "its last line is a part of a word"
    return Cut(line=last, inside="program", why=why, piece=piece) if halved else None


def _is_part_of_name(end: ast.stmt, text: str) -> bool:
    """True if a program ends with an attribute that it does not call, that has no data, and that occurs once."""
    value = getattr(end, "value", None)
    if not isinstance(value, ast.Attribute) or value.attr in _DATA:
        return False
    return len(re.findall(rf"\b{value.attr}\b", text)) == 1


_DATA = frozenset({"T", "shape", "dtype", "size", "ndim", "data", "real", "imag", "device", "grad", "weight", "bias"})
"""Attributes of arrays and layers with which a statement often ends."""


def _join_python(document: Document, pieces: Sequence[Piece], piece: Piece) -> Piece:
    """Return the Python of the block of ``piece`` as one piece. The rows of an open string may look like output."""
    same = [one for one in pieces if piece.block and one.block == piece.block and one.kind in _PYTHON]
    if not same or (piece.kind not in _PYTHON and _count_open(PYTHON_TOKEN, same[-1].text) >= 0):
        return piece
    block = next(block for block in document.blocks if block.index == piece.block)
    rows = block.text.split("\n")[max(0, same[0].lines[0] - block.lines[0]) :]
    return replace(same[-1], text="\n".join(rows))


def _find_cut_in_code(piece: Piece, last: int) -> Cut | None:
    """Return the cut in a piece that reaches the end. A closed fence would have its closing line below the piece."""
    match piece.kind:
        case Kind.MLIR | Kind.FRAGMENT:
            opened = _count_open(MLIR_TOKEN, drop_open_resources(piece.text))
        case kind if kind in _PYTHON:
            opened = _count_open(PYTHON_TOKEN, piece.text)
        case Kind.SHELL if why := _describe_open_command(piece.text):
            return Cut(line=last, inside="command", why=why, piece=piece)
        case _:
            return None
    if opened == 0:
        return None
    brackets = "one bracket is open" if opened == 1 else f"{opened} brackets are open"
    why = "a string is open" if opened < 0 else brackets
    return Cut(line=last, inside="program", why=why, piece=piece)


def drop_open_resources(text: str) -> str:
    """Return MLIR without a section of resources that breaks off behind the program, unless the program reads them.

    Such a section contains the pipeline of a crash reproducer, which a run does not need.
    """
    program, mark, resources = text.partition("{-#")
    return program if mark and "#-}" not in resources and "dense_resource<" not in program else text


MLIR_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|//[^\n]*|(?P<open>[({\[])|(?P<close>[)}\]])')
PYTHON_TOKEN = re.compile(
    r"(?P<quote>'''|\"\"\")(?:[^\\]|\\.)*?(?:(?P=quote)|(?P<unclosed>\Z))"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|#[^\n]*|(?P<open>[({\[])|(?P<close>[)}\]])",
    re.S,
)


def _count_open(token: re.Pattern[str], text: str) -> int:
    """Count the brackets that stay open at the end, outside strings and comments. Return -1 for an open string."""
    depth = 0
    for found in token.finditer(text):
        if found.groupdict().get("unclosed") is not None:
            return -1
        depth = max(0, depth + (found["open"] is not None) - (found["close"] is not None))
    return depth


def _describe_open_command(text: str) -> str:
    """Return the open end of the last command of ``text``; empty for a whole command."""
    if text.rstrip().endswith("\\"):
        return "the last line has a continuation"
    calls, _ = parse_commands(text)
    compilers = {name for tools in list_tools() for name in tools.compilers}
    if not calls or calls[-1].stdin or calls[-1].argv[0] not in compilers:
        return ""
    return "" if calls[-1].names_input else "it names no input"


def _find_cut_in_output(document: Document, piece: Piece, last: int) -> Cut | None:
    """Return the cut in output at the end of the description, in a fence without its closing line.

    Its last row has an open bracket or code span, or is a frame of a stack: an exception would end the stack.
    """
    block = next((one for one in document.blocks if one.index == piece.block), None)
    if block is None or block.shape is not Shape.FENCE or piece.kind not in (Kind.OUTPUT, Kind.TRACEBACK):
        return None
    row = block.text.rstrip().rpartition("\n")[2]
    opened = _count_open(MLIR_TOKEN, row) > 0 or row.count("`") % 2 > 0
    if not opened and not _STACK_ROW.match(row):
        return None
    why = "the last row of its stack is a frame" if not opened else "its last row has an open bracket"
    return Cut(line=last, inside="output", why=why)


_STACK_ROW = re.compile(r"\s*(?:File \"|\^{3,}|[~^]+\s*$|\d{1,4}: |\[bt\]|#\d{1,4} )")


def _find_cut_in_prose(paragraph: Prose, last: int) -> Cut | None:
    open_span = find_unclosed_span(paragraph.text)
    if is_command(open_span):
        return Cut(line=last, inside="command", why="its code span is open")
    # A stray backtick is before the end of its sentence.
    return Cut(line=last, inside="sentence", why="its code span is open") if _NAME.fullmatch(open_span) else None


_NAME = re.compile(r"[\w./-]{1,80}")
