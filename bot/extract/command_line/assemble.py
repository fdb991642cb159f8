"""MLIR and the command lines that name it → files and plain argv steps, all of it by relative names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.extract.blocks.kinds import is_dump
from bot.extract.blocks.pieces import Piece
from bot.extract.blocks.sections import Cue
from bot.extract.command_line.shell import Command
from bot.extract.command_line.steps import add_compile_step, add_step
from bot.extract.command_line.workspace import Desk, input_candidates, return_checked, stem_of
from bot.extract.types import Missing, Repair
from runners.core.toolchain.command_line import CommandLineTools


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """Files and steps of a command-line testcase."""

    files: dict[str, str]
    steps: tuple[tuple[str, ...], ...]
    sources: dict[str, Piece]
    """Which piece each file came from."""
    repairs: tuple[Repair, ...]
    missing: tuple[Missing, ...]
    requirements: tuple[str, ...] = ()


def assemble_commands(
    commands: Sequence[tuple[Command, Piece | None]],
    ignored: Sequence[str],
    pieces: Sequence[Piece],
    texts: str,
    device: str,
    tools: CommandLineTools,
) -> CommandLine:
    """Files and steps for ``commands`` over the MLIR of ``pieces``; ``device`` decides a compile step to be added."""
    desk = Desk(tools=tools, device=device, inputs=input_candidates(pieces), texts=texts)
    if tools.check is not None and any(c.argv[0] == tools.check.name for c, _ in commands):
        return_checked(desk, tools.check)
    for word in ignored:
        if word in _NOTEWORTHY:
            desk.repair("drop-command", f"left out `{word}`, which is no tool of the compiler")
    for command, _ in _ordered(commands, tools):
        add_step(desk, command)
    return _finished(desk)


def _finished(desk: Desk) -> CommandLine:
    return CommandLine(
        files=desk.files,
        steps=tuple(desk.steps),
        sources=desk.sources,
        repairs=tuple(desk.repairs),
        missing=tuple(desk.missing),
    )


_NOTEWORTHY = {
    "pip",
    "pip3",
    "curl",
    "wget",
    "rm",
    "git",
    "cmake",
    "ninja",
    "make",
    "export",
    "sudo",
    "bash",
    "sh",
    "docker",
    "huggingface-cli",
}


def _ordered(
    commands: Sequence[tuple[Command, Piece | None]], tools: CommandLineTools
) -> list[tuple[Command, Piece | None]]:
    """As written, except that what a run line loads is compiled before it where the report has it the other way."""
    runs = [i for i, (c, _) in enumerate(commands) if c.argv[0] in tools.runners]
    compiles = [i for i, (c, _) in enumerate(commands) if c.argv[0] in tools.compilers]
    if runs and compiles and min(compiles) > min(runs):
        return sorted(commands, key=lambda pair: pair[0].argv[0] in tools.runners)
    return list(commands)


def plain_compile(pieces: Sequence[Piece], device: str, tools: CommandLineTools) -> CommandLine | None:
    """The most ordinary compile of the best MLIR, for a report about compiling that names no command."""
    inputs = [p for p in input_candidates(pieces) if not is_dump(p) and p.cue not in (Cue.WORKS, Cue.EXPECTED)]
    if not inputs:
        return None
    piece = inputs[0]
    name = piece.name if piece.name.endswith(".mlir") else "input.mlir"
    desk = Desk(tools=tools, device=device, inputs=inputs, texts="")
    desk.files[name], desk.sources[name] = piece.text, piece
    add_compile_step(desk, name, f"{stem_of(name)}.{tools.module_suffix}")
    return _finished(desk)
