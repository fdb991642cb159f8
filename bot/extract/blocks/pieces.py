"""A part of an issue that is of one kind, with its location and the words around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.extract.blocks.sections import Cue, IssueSection
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
    """Text labelled as code that is not a program: an excerpt, a sketch."""
    TRACEBACK = "traceback"
    OUTPUT = "output"
    DIFF = "diff"
    CONFIG = "config"
    NATIVE = "c++"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of one kind. ``lines`` are 1-based and inclusive, in the body (of comment n if ``comment`` is n)."""

    kind: Kind
    text: str
    lines: tuple[int, int]
    block: int
    section: IssueSection = IssueSection.OTHER
    heading: str = ""
    intro: str = ""
    cue: Cue = Cue.NONE
    name: str = ""
    """The file name that the text gives to the piece, if any."""
    repairs: tuple[Repair, ...] = ()
    comment: int = 0
    attachment: str = ""
    """The linked file that contains the piece, as in ``Span``; ``lines`` are then lines of that file."""


def cut_rows(piece: Piece, begin: int, end: int, kind: Kind | None = None, rows: Sequence[str] = ()) -> Piece:
    """Return rows ``begin`` to ``end`` (0-based, end exclusive) of ``piece``, without blank rows at the edges.

    ``rows`` are the rows of the piece; callers with many cuts pass them, so that the text is split once.
    """
    rows = rows or piece.text.split("\n")
    while begin < end and not rows[begin].strip():
        begin += 1
    while begin < end and not rows[end - 1].strip():
        end -= 1
    text = "".join(f"{row}\n" for row in rows[begin:end])
    first = piece.lines[0] + begin
    return replace(piece, text=text, lines=(first, max(first, first + end - begin - 1)), kind=kind or piece.kind)
