"""Run a crash reproducer with its recorded passes. The reporter's call would ignore them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.extract.blocks.pieces import Piece
from bot.extract.command_line.workspace import Workspace
from runners.core.toolchain.guest import Step
from runners.core.toolchain.reports import CommandLineTools


def is_reproducer(piece: Piece, tools: CommandLineTools) -> bool:
    """True for MLIR that records the passes that crashed on it."""
    return tools.reproducers is not None and tools.reproducers.run(piece.text, piece.name) is not None


def runs_reproducer(argv: Sequence[str], tools: CommandLineTools) -> bool:
    """True for a call that asks for the passes recorded in its input."""
    flag = tools.reproducers.flag.lstrip("-") if tools.reproducers is not None else ""
    return bool(flag) and any(word.startswith("-") and word.lstrip("-") == flag for word in argv)


def find_run(work: Workspace, argv: Sequence[str], name: str) -> Step | None:
    """Return the call that replaces ``argv``, whose input is the file ``name``; None to keep ``argv``.

    A reproducer replaces an input that the report does not give: the compiler wrote the reproducer while it compiled
    that input. A reproducer that the report gives under this name, or to another program, does not change.
    """
    formats, piece = work.tools.reproducers, work.sources.get(name)
    step = formats.run(piece.text, name) if formats is not None and piece is not None else None
    if formats is None or piece is None or step is None:
        return None
    if runs_reproducer(argv, work.tools):
        return None if formats.flag in step else step
    return step if argv[0] != step[0] and not _is_named(piece, name) else None


_COMMAND_SPAN = re.compile(r"`[^`\n]{0,2000}\s[^`\n]{0,2000}`")


def _is_named(piece: Piece, name: str) -> bool:
    """True if the report calls the piece ``name``. A command in the words above the piece names its own input."""
    return piece.name == name and (name not in piece.intro or name in _COMMAND_SPAN.sub("", piece.intro))
