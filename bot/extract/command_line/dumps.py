"""Run the pass that a printed program names: the report gives the IR before and after the pass, and no command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.extract.blocks.pieces import Kind, Piece, cut_rows
from bot.extract.blocks.sections import Cue
from bot.extract.command_line.find import LocatedCall
from bot.extract.command_line.shell import ToolCall
from runners.core.toolchain.reports import CommandLineTools

_HEADER = re.compile(
    r"\s*(?://\s*-----//|//|\*\*\*)?\s*IR Dump (?P<when>Before|After) (?P<name>[\w:]{1,100})"
    r" \((?P<flag>[\w-]{1,100})(?:\{[^}\n]{0,300}\})?\)(?P<failed> Failed)?"
    r"(?: \('(?P<anchor>[\w.]{1,80})' operation[^)\n]{0,200}\))?"
)
"""The row that MLIR prints above a dump, with ``mlir-print-ir-before`` and ``mlir-print-ir-after``."""
_TOP = "builtin.module"
INPUT = "before.mlir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """A program as a compiler printed it. ``anchor`` is the operation that the pass runs on."""

    before: bool
    flag: str
    anchor: str
    piece: Piece


def run_dumped_pass(pieces: Sequence[Piece], tools: CommandLineTools) -> tuple[list[Piece], list[LocatedCall]] | None:
    """Return the pieces with the first dump as the input and the dump after its pass as the output, and the call.

    Return None without a dump before a pass. Without the dump after the pass, there is no output.
    """
    dumps = [dump for piece in pieces if piece.kind in _SHOWN for dump in _split_dumps(piece)]
    before = next((dump for dump in dumps if dump.before), None)
    if before is None or not tools.optimizer:
        return None
    after = next((dump for dump in dumps if not dump.before and dump.flag == before.flag), None)
    nested = before.anchor not in ("", _TOP)
    flag = f"--pass-pipeline={_TOP}({before.anchor}({before.flag}))" if nested else f"--{before.flag}"
    call = ToolCall(argv=(tools.optimizer, flag, INPUT), written=tools.optimizer)
    used = {dump.piece.block for dump in dumps}
    rest = [piece for piece in pieces if piece.kind not in _SHOWN or piece.block not in used]
    program = replace(before.piece, kind=Kind.MLIR, name=INPUT, cue=Cue.NONE)
    shown = [replace(after.piece, kind=Kind.OUTPUT, cue=Cue.OUTPUT)] if after is not None else []
    return [*rest, program, *shown], [(call, program)]


_SHOWN = (Kind.MLIR, Kind.OUTPUT, Kind.QUOTED)


def _split_dumps(piece: Piece) -> Iterator[Dump]:
    rows = piece.text.split("\n")
    headers = [(at, found) for at, row in enumerate(rows) if (found := _HEADER.match(row))]
    ends = [*(at for at, _ in headers), len(rows)][1:]
    for (at, header), end in zip(headers, ends, strict=True):
        program = cut_rows(piece, at + 1, end, rows=rows)
        if program.text.strip() and header["failed"] is None:
            yield Dump(
                before=header["when"] == "Before",
                flag=header["flag"],
                anchor=header["anchor"] or "",
                piece=program,
            )
