"""A stretch of the issue of one kind, with its place and what the words around it say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.extract.blocks.sections import Cue, Section
from bot.extract.types import Repair


class Kind(StrEnum):
    PYTHON = "python"
    DEFINITIONS = "definitions"
    """Only definitions in a compiler's own language embedded in Python: a module to be used, or a dump."""
    MLIR = "mlir"
    FRAGMENT = "mlir-fragment"
    """MLIR operations without the function around them."""
    SHELL = "shell"
    QUOTED = "quoted-code"
    """Labelled as code, and no program: an excerpt, a sketch."""
    TRACEBACK = "traceback"
    OUTPUT = "output"
    DIFF = "diff"
    CONFIG = "config"
    NATIVE = "c++"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of one kind. ``lines`` are 1-based, inclusive, in the body (of comment n when ``comment`` is n)."""

    kind: Kind
    text: str
    lines: tuple[int, int]
    block: int
    section: Section = Section.OTHER
    heading: str = ""
    intro: str = ""
    cue: Cue = Cue.NONE
    name: str = ""
    """The file name that the text gives it, if any."""
    repairs: tuple[Repair, ...] = ()
    comment: int = 0
    attachment: str = ""
    """The linked file that this is the text of, as ``Span`` has it; ``lines`` are then its own."""


def rows_of(piece: Piece, begin: int, end: int, kind: Kind | None = None) -> Piece:
    """The part of ``piece`` from row ``begin`` to before row ``end`` (0-based), blank edges cut."""
    return part_of(piece, piece.text.split("\n"), begin, end, kind)


def part_of(piece: Piece, rows: Sequence[str], begin: int, end: int, kind: Kind | None = None) -> Piece:
    while begin < end and not rows[begin].strip():
        begin += 1
    while begin < end and not rows[end - 1].strip():
        end -= 1
    text = "".join(f"{row}\n" for row in rows[begin:end])
    first = piece.lines[0] + begin
    return replace(piece, text=text, lines=(first, max(first, first + end - begin - 1)), kind=kind or piece.kind)
