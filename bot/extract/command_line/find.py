"""Where a report tells its commands: in blocks, in sentences, in comments of the MLIR, in a stack dump."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from bot.extract.blocks.markdown import Document, code_spans
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.session import is_command
from bot.extract.command_line.shell import TOOL_PREFIX, Command, parse_commands
from runners.core.toolchain.command_line import CommandLineTools

MAX_COMMANDS = 24


def find_commands(
    document: Document, pieces: Sequence[Piece], tools: CommandLineTools
) -> tuple[list[tuple[Command, Piece | None]], list[str]]:
    """The report's calls of known tools, most deliberate source first used, and what was left out."""
    found: list[tuple[Command, Piece | None]] = []
    ignored: list[str] = []
    for piece in pieces:
        if piece.kind is Kind.SHELL:
            commands, left_out = parse_commands(piece.text)
            found += [(c, piece) for c in commands]
            ignored += left_out
    found = _useful(found)
    shown = {c.argv[0] for c, _ in found}
    said = _useful([(c, None) for text in _prose_commands(document) for c in parse_commands(text)[0]])
    found += [(c, p) for c, p in said if c.argv[0] not in shown]
    if not any(c.argv[0] in tools.compilers for c, _ in found):
        texts = [(text, piece) for piece in pieces for text in _hidden_commands(piece, tools)]
        hidden = _useful([(c, piece) for text, piece in texts for c in parse_commands(text)[0]])
        found = [*hidden, *found]
    return found, [w for w in dict.fromkeys(ignored) if w]


def _useful(commands: Iterable[tuple[Command, Piece | None]]) -> list[tuple[Command, Piece | None]]:
    """Calls that do something (not ``--version``), each once."""
    kept: dict[tuple[str, ...], tuple[Command, Piece | None]] = {}
    for command, piece in commands:
        words = command.argv[1:]
        if (
            not words
            or words[0] in ("--version", "--help", "-h", "-V", "-c")
            or "--version" in words
            or "--help" in words
        ):
            continue
        if command.argv[0] == "python" and (words[0] == "-m" or not words[0].endswith(".py")):
            continue
        if command.argv[0] != "python" and not any(_looks_like_argument(w) for w in words):
            continue
        kept.setdefault(command.argv, (command, piece))
    return list(kept.values())[:MAX_COMMANDS]


def _looks_like_argument(word: str) -> bool:
    return word.startswith("-") or "." in word or word in ("%s", "-") or word.startswith(("<", "$"))


_STEP = re.compile(
    rf"^(?:[-*>] |\d{{1,2}}[.)] )?(?:(?:then |and )?(?:run|execute|call|try):? (?=\S*{TOOL_PREFIX}))?", re.I
)
"""What stands before a command in a list of steps."""


def _prose_commands(document: Document) -> Iterator[str]:
    for prose in document.prose:
        for span in code_spans(prose.text):
            if is_command(span):
                yield span
        rows = [_STEP.sub("", row) for row in prose.text.split("\n")]
        begin = next((i for i, row in enumerate(rows) if is_command(row) and "`" not in row[:40]), None)
        if begin is not None:
            yield "\n".join(rows[begin:])


_PROGRAM_ARGUMENTS = re.compile(r"Program arguments: ([^\n]{1,32000})")


_COMMENTED = re.compile(r"^[ \t]*//+[^\n]*$", re.M)


def _hidden_commands(piece: Piece, tools: CommandLineTools) -> Iterator[str]:
    """Commands in a stack dump's "Program arguments:" and in comments of the MLIR."""
    if piece.kind in (Kind.TRACEBACK, Kind.OUTPUT, Kind.SHELL):
        yield from _PROGRAM_ARGUMENTS.findall(piece.text)
    if piece.kind is Kind.MLIR:
        comments = "\n".join(_COMMENTED.findall(piece.text))
        if tools.prefix in comments:
            yield comments
