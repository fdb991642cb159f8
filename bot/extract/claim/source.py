"""The parts of an issue that its claim is read from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.extract.blocks.markdown import Document
from bot.extract.blocks.pieces import Kind, Piece
from runners.core.protocol import Signature
from runners.core.toolchain.facts import USUAL_PYTHON

CODE = (Kind.PYTHON, Kind.DEFINITIONS)
"""Kinds of pieces that are a program, not a text about one."""


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
    quoted: Signature | None
    """The failure that the issue quotes."""


def join_prose(source: ClaimSource) -> str:
    """Return the sentences of the issue's body, headings included. A line that an editor wrapped is one line."""
    return "\n".join(_WRAPPED.sub(" ", p.text) for p in source.document.prose)


_WRAPPED = re.compile(r"(?<=[^\n]{60})(?<![.:;!?|])\n(?=[a-z`(])")
"""The end of a long row that continues in the next row. Rows of lists, tables and output begin or end otherwise."""


def find_other_system(source: ClaimSource, failure: str) -> str:
    """Return the system that the report is about, if no release runs on it here; else the empty string.

    Systems are operating systems other than Linux, and versions of Python that the title names. The title or the
    quoted ``failure`` names the system, or a sentence states that Linux works. A machine that only the environment
    names is not evidence: most failures are the same everywhere.
    """
    prose = join_prose(source)
    fine = _LINUX_IS_FINE.search(prose) is not None
    for name, pattern in _SYSTEMS:
        if pattern.search(source.title) or pattern.search(failure) or (fine and pattern.search(prose)):
            return name
    python = _ON_PYTHON.search(source.title)
    return f"Python {python[1]}" if python is not None and python[1] != USUAL_PYTHON else ""


_ON_PYTHON = re.compile(r"\b(?:on|with|under|in|for) (?:C?Python|py) ?v?(3\.\d{1,2})\b", re.I)
_SYSTEMS = (
    (
        "macOS",
        re.compile(r"\b(?i:mac ?os(?: ?x)?|macbooks?|mach-o|darwin|apple silicon|osx)\b|\bMacs?\b|\.dylib\b|-apple-"),
    ),
    (
        "Windows",
        re.compile(
            r"\bWindows (?:1[01]|[78]|Server|x64|machines?|builds?|laptops?|hosts?)\b|\b(?:on|under) Windows\b"
            r"|\[Windows\]|\bWinError\b|\bMSVC\b|\.dll\b|-pc-windows-"
        ),
    ),
)
"""Systems on which no release runs here. ``Windows`` alone may mean the windows of a pooling."""
_LINUX = r"(?:linux|ubuntu|debian|fedora|arch|rhel|centos)\b"
_FINE = (
    r"(?:works?|fine|ok(?:ay)?|pass(?:es)?|right|correct|good|unaffected|not affected|prints?"
    r"|no (?:problem|issue|crash)|not happen|cannot reproduce|can['’]t reproduce)\b"
)
_LINUX_IS_FINE = re.compile(
    rf"\b{_LINUX}[^.\n]{{0,80}}\b{_FINE}|\b{_FINE}[^.\n]{{0,40}}\b{_LINUX}|\bnot on {_LINUX}", re.I
)
