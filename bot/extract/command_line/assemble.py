"""Assemble MLIR and the commands that name it into files and steps. All names are relative."""

from __future__ import annotations

from collections.abc import Sequence

from bot.extract.blocks.kinds import is_dump
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.command_line.find import LocatedCall
from bot.extract.command_line.reproducers import is_reproducer, runs_reproducer
from bot.extract.command_line.steps import add_compile_step, add_step
from bot.extract.command_line.workspace import Workspace, rank_inputs, rewrite_check_tests, strip_suffixes
from runners.core.toolchain.reports import CommandLineTools


def assemble_commands(
    calls: Sequence[LocatedCall],
    ignored: Sequence[str],
    pieces: Sequence[Piece],
    output: str,
    device: str,
    tools: CommandLineTools,
    linked: frozenset[str] = frozenset(),
    chip: tuple[str, ...] = (),
) -> Workspace:
    """Return files and steps for ``calls`` over the MLIR of ``pieces``.

    An added compile step, or an added target, is for ``device`` and has the flags ``chip``.
    """
    inputs = rank_inputs(pieces)
    first = bool(calls) and all(runs_reproducer(call.argv, tools) for call, _ in calls)
    inputs.sort(key=lambda piece: is_reproducer(piece, tools) is not first)
    work = Workspace(tools=tools, device=device, inputs=inputs, output=output, linked=linked, told=chip)
    work.has_operations = any(piece.kind is Kind.FRAGMENT for piece in pieces)
    work.scripts = {piece.name: piece for piece in pieces if piece.kind is Kind.PYTHON and piece.name}
    if tools.check is not None and any(call.argv[0] == tools.check.name for call, _ in calls):
        rewrite_check_tests(work, tools.check)
    for word in ignored:
        if word in _NOTEWORTHY:
            work.add_repair("drop-command", f"left out `{word}`, which is no tool of the compiler")
    for call, _ in _order_calls(calls, tools):
        add_step(work, call)
    return work


_NOTEWORTHY = {
    *("pip", "pip3", "curl", "wget", "rm", "git", "cmake", "ninja", "make", "export", "sudo", "bash", "sh", "docker"),
    "huggingface-cli",
}


def _order_calls(calls: Sequence[LocatedCall], tools: CommandLineTools) -> Sequence[LocatedCall]:
    """Keep the order of the report. If no compile is above the first run, move the runs to the end."""
    runs = [i for i, (call, _) in enumerate(calls) if call.argv[0] in tools.runners]
    compiles = [i for i, (call, _) in enumerate(calls) if call.argv[0] in tools.compilers]
    if runs and compiles and min(compiles) > min(runs):
        return sorted(calls, key=lambda located: located[0].argv[0] in tools.runners)
    return calls


def assemble_plain_compile(
    pieces: Sequence[Piece],
    device: str,
    tools: CommandLineTools,
    told: tuple[str, ...] = (),
    named: Sequence[str] = (),
) -> Workspace | None:
    """Return the compiler's most ordinary call on the best MLIR, for a report about compiling without a command.

    ``told`` are the flags in the report's sentences, ``named`` the operations in its title. The only MLIR of a report
    is its testcase if it uses one of these operations, even below words such as "should be".
    """
    given = [p for p in rank_inputs(pieces) if not is_dump(p) and p.cue is not Cue.WORKS]
    inputs = [p for p in given if p.cue is not Cue.EXPECTED]
    if len(given) == 1 and any(name in given[0].text for name in named):
        inputs = given
    if not inputs:
        return None
    piece = min(inputs, key=lambda one: is_reproducer(one, tools))
    name = piece.name if piece.name.endswith(".mlir") else "input.mlir"
    work = Workspace(tools=tools, device=device, inputs=inputs, output="", told=told)
    work.add_file(name, piece)
    if tools.reproducers is not None and (step := tools.reproducers.run(piece.text, name)) is not None:
        work.add_repair("run-reproducer", " ".join(step))
        work.steps.append(step)
        return work
    module = f"{strip_suffixes(name)}.{tools.module_suffix}"
    add_compile_step(work, name, module)
    work.produced.add(module)
    return work
