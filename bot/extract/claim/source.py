"""The parts of an issue that its claim is read from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.extract.blocks.markdown import Document
from bot.extract.blocks.pieces import Kind, Piece

CODE = (Kind.PYTHON, Kind.DEFINITIONS)
"""Kinds of pieces that are a program, and no words about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSource:
    """The parts of an issue that a claim is read from."""

    title: str
    document: Document
    pieces: tuple[Piece, ...]
    code: str
    """The files and commands of the testcase; empty without a testcase."""
    devices: tuple[str, ...]
    toolchain: str | None


def join_prose(source: ClaimSource) -> str:
    """Return the sentences of the issue's body, headings included. A line that an editor wrapped is one line."""
    return "\n".join(_WRAPPED.sub(" ", p.text) for p in source.document.prose)


_WRAPPED = re.compile(r"(?<=[^\n]{60})(?<![.:;!?|])\n(?=[a-z`(])")
"""The end of a long row that continues in the next row. Rows of lists, tables and output begin or end otherwise."""
