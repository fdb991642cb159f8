"""One command of the report → one step (or several): tools by bare names, inputs and outputs by relative ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.extract.command_line.shell import Command
from bot.extract.command_line.workspace import (
    PLACEHOLDER,
    Desk,
    basename,
    give_flag_files,
    local_word,
    pick_input,
    placed,
    stem_of,
)
from runners.core.toolchain.command_line import CombinedProgram


def add_step(desk: Desk, command: Command) -> None:
    tool = command.argv[0]
    if command.written != tool:
        desk.repair("bare-tool", f"{command.written} to {tool}")
    for word in command.ignored:
        if _SHELL_AFFAIR.match(word):
            continue
        desk.repair("drop-word", f"left out {word}")
    argv = [tool, *(local_word(desk, word) for word in _mended(desk, command.argv[1:]))]
    combined = desk.tools.combined
    if combined is not None and tool == combined.name:
        _split_step(desk, argv, command, combined)
    elif tool == "python":
        _python_step(desk, argv)
    elif tool in desk.tools.compilers:
        argv = _compile_step(desk, argv, command)
        desk.steps.append(tuple(argv))
    else:
        _run_step(desk, argv, command)


_SHELL_AFFAIR = re.compile(
    r"time$|sudo$|env$|nohup$|catchsegv$|gdb$|lldb$|rocgdb$|--args$|--$|\w*(?:VISIBLE_DEVICES|PATH)="
)
"""Words around a call that say nothing of what it does: timing, rights, debuggers, which of several devices."""


def _mended(desk: Desk, words: Sequence[str]) -> Iterator[str]:
    for word in words:
        mended = word.translate({0x2013: "--", 0x2014: "--", 0x201C: '"', 0x201D: '"'})
        if mended != word:
            desk.repair("straighten-quotes", f"{word} to {mended}")
        yield mended


def _python_step(desk: Desk, argv: list[str]) -> None:
    script = argv[1]
    if script in desk.files:
        desk.steps.append(tuple(argv))
    else:
        desk.lack(script)


def _split_step(desk: Desk, argv: list[str], command: Command, program: CombinedProgram) -> None:
    """A program that is not in the wheels: a compile and a run."""
    places = [i for i in _positions(argv) if _is_input(argv[i])]
    inputs = [argv[i] for i in places] or ["-"]
    flags = [w for i, w in enumerate(argv[1:], start=1) if i not in places]
    compiling, running = program.split(flags, desk.device)
    first = _compile_step(desk, [*compiling, inputs[0]], replace(command, stdout=""))
    desk.steps.append(tuple(first))
    desk.steps.append((running[0], f"{desk.tools.module_flags[0]}={_output_of(first)}", *running[1:]))
    short = program.name.removeprefix(desk.tools.prefix)
    desk.repair(f"split-{short}", f"{program.name} to {compiling[0]} and {running[0]}")


_FILE_WORD = re.compile(r"[\w.+@-]{1,200}")


def _positions(argv: Sequence[str]) -> list[int]:
    """Indices of the positional arguments: neither flags nor the value of ``-o``."""
    return [
        i
        for i in range(1, len(argv))
        if (not argv[i].startswith("-") or argv[i] == "-") and not _takes_value(argv[i - 1], argv[i])
    ]


def _takes_value(flag: str, word: str) -> bool:
    """``-o x`` and ``--target cpu``: a word without a dot behind a flag without a value."""
    return flag in ("-o", "--o") or (flag.startswith("--") and "=" not in flag and "." not in word and word != "-")


def _compile_step(desk: Desk, argv: list[str], command: Command) -> list[str]:
    places = [i for i in _positions(argv) if _is_input(argv[i])]
    if command.stdin == "-" and desk.steps:
        argv = _fed(desk, argv, places)
    elif not places or argv[places[0]] == "-":
        name = placed(desk, basename(command.stdin) or "", "the standard input" if places or command.stdin else "")
        if name and places:
            argv[places[0]] = name
        elif name:
            argv.insert(1, name)
    else:
        for i in places:
            argv[i] = placed(desk, argv[i], "")
    give_flag_files(desk, argv)
    return _named_output(desk, argv, command)


def _is_input(word: str) -> bool:
    return word == "-" or bool(PLACEHOLDER.fullmatch(word) or _FILE_WORD.fullmatch(word))


def _fed(desk: Desk, argv: list[str], places: Sequence[int]) -> list[str]:
    """A program fed by the one before it reads that one's output file instead."""
    name = _output_of(desk.steps[-1]) or ""
    if places:
        argv[places[0]] = name
    else:
        argv.insert(1, name)
    return argv


def _named_output(desk: Desk, argv: list[str], command: Command) -> list[str]:
    """``argv`` that writes to a named file, so that a later step or nobody's terminal gets it."""
    target = _output_of(argv)
    if target == "-":
        target = None
    if target is None and argv[0] == desk.tools.compiler:
        stem = stem_of(next((argv[i] for i in _positions(argv)), "input"))
        suffix = desk.tools.output_suffix(argv)
        given = command.stdout if command.stdout not in ("", "|") else ""
        target = basename(given) or f"{stem}.{suffix}"
        if target in desk.files or target in argv:
            target = f"{stem}.out.{suffix}"
        if not given:
            desk.repair("name-output", f"-o {target}")
        else:
            desk.repair("redirect", f"> {given} to -o {target}")
        argv = [*(w for w in argv if w not in ("-o", "-o-", "-o=-")), "-o", target]
    elif target is None and command.stdout:
        target = "piped.mlir" if command.stdout == "|" else basename(command.stdout)
        desk.repair("redirect", f"{command.stdout} to -o {target}")
        argv = [*argv, "-o", target]
    if target:
        desk.produced.add(target)
    return argv


def _output_of(argv: Sequence[str]) -> str | None:
    for i, word in enumerate(argv):
        if word in ("-o", "--o"):
            return argv[i + 1] if i + 1 < len(argv) else None
        if found := re.match(r"--?o=(.+)$", word):
            return found[1]
    return None


def _run_step(desk: Desk, argv: list[str], command: Command) -> None:
    flags, suffix = desk.tools.module_flags, desk.tools.module_suffix
    assigned = re.compile(rf"^(--?(?:{'|'.join(flag.lstrip('-') for flag in flags)})=)(.*)$")
    if command.stdin == "-" and not any(assigned.match(w) for w in argv):
        argv.insert(1, f"{flags[0]}={_last_module(desk)}")
    for i, word in enumerate(argv):
        found = assigned.match(word)
        if not found and word in flags and i + 1 < len(argv):
            found, i = re.match(r"()(.*)$", argv[i + 1]), i + 1
        if not found:
            continue
        name = found[2]
        if name in ("", "-") or PLACEHOLDER.fullmatch(name):
            name = _last_module(desk)
            argv[i] = f"{found[1]}{name}"
            desk.repair("name-input", f"{found[0]} to {argv[i]}")
        if name not in desk.produced and (name.endswith((f".{suffix}", ".mlir")) or "." not in name):
            _add_compile(desk, name)
    give_flag_files(desk, argv)
    check = desk.tools.check
    if check is not None and argv[0] == check.name and desk.tests:
        desk.steps += [check.run_test(argv, name) for name in desk.tests]
    else:
        desk.steps.append(tuple(argv))


def _last_module(desk: Desk) -> str:
    """The module compiled last; a name for one still to be compiled when there is none."""
    made = (_output_of(step) for step in reversed(desk.steps) if step[0] == desk.tools.compiler)
    return next(made, None) or f"input.{desk.tools.module_suffix}"


def _add_compile(desk: Desk, module: str) -> None:
    """The compile step that a lone run line implies; the module is missing when there is nothing to compile."""
    made = [name for step in desk.steps if step[0] == desk.tools.compiler and (name := _output_of(step))]
    if len(made) == 1 and not desk.files.get(module):
        desk.repair("name-output", f"{made[0]} to {module}")
        desk.steps = [tuple(module if w == made[0] else w for w in step) for step in desk.steps]
        desk.produced.add(module)
        return
    piece = pick_input(desk, f"{stem_of(module)}.mlir")
    if piece is None:
        desk.lack(module)
        return
    name = piece.name if piece.name.endswith(".mlir") else f"{stem_of(module)}.mlir"
    desk.files[name], desk.sources[name] = piece.text, piece
    add_compile_step(desk, name, module)
    desk.produced.add(module)


def add_compile_step(desk: Desk, name: str, module: str) -> None:
    argv = desk.tools.compile_input(desk.device, name, module)
    desk.steps.append(argv)
    desk.repair("add-compile-step", " ".join(argv))
