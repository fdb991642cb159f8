"""Turn one call of the report into steps: tools by their bare names, inputs and outputs by relative names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from bot.extract.blocks.pieces import Piece
from bot.extract.command_line.reproducers import find_run
from bot.extract.command_line.shell import ToolCall
from bot.extract.command_line.workspace import (
    PLACEHOLDER,
    Workspace,
    add_flag_files,
    make_local,
    pick_input,
    place_input,
    strip_suffixes,
    take_last_name,
)
from bot.extract.python.parse import parse_python
from bot.extract.types import ADD_COMPILE, OPEN_COMMAND, PRINT_PRODUCTS, READ_AGAIN
from runners.core.failure.oracle import READ_BACK
from runners.core.toolchain.reports import CombinedProgram


def add_step(work: Workspace, call: ToolCall) -> None:
    """Add the steps of ``call``, and the files that they need."""
    tool = call.argv[0]
    if call.written != tool:
        work.add_repair("bare-tool", f"{call.written} to {tool}")
    for word in call.ignored:
        if not _UNRELATED.match(word):
            work.add_repair("drop-word", f"left out {word}")
    if call.cut:
        work.add_repair(OPEN_COMMAND, f"the command breaks off: {call.cut}")
    argv = [tool, *(make_local(work, _straighten_word(work, word)) for word in call.argv[1:])]
    combined = work.tools.combined
    if combined is not None and tool == combined.name:
        _add_split_steps(work, argv, call, combined)
    elif tool == "python":
        _add_python_step(work, argv)
    elif work.tools.informs is not None and any(work.tools.informs.match(word) for word in argv[1:]):
        work.steps.append(tuple(argv))
    elif tool in work.tools.compilers:
        work.steps.append(tuple(_make_compile_step(work, argv, call)))
    elif tool in work.tools.importers:
        _add_import_step(work, argv)
    else:
        _add_run_step(work, argv, call)


_UNRELATED = re.compile(
    r"time$|sudo$|env$|nohup$|catchsegv$|gdb$|lldb$|rocgdb$|--args$|--$|\w*(?:VISIBLE_DEVICES|PATH)="
    r"|timeout$|nice$|taskset$|-{1,2}\w[\w-]*(?:=\S*)?$|\d[\d.,]*[smhd]?$"
)
"""Words that do not change the call: timing and its limits, permissions, debuggers, the choice of a device."""


def _straighten_word(work: Workspace, word: str) -> str:
    straight = word.translate({0x2013: "--", 0x2014: "--", 0x201C: '"', 0x201D: '"'})
    if straight != word:
        work.add_repair("straighten-quotes", f"{word} to {straight}")
    opened = straight.count("(") - straight.count(")")
    if _PIPELINE.match(straight) and opened > 0:
        straight += ")" * opened
        work.add_repair("close-pipeline", f"closed {opened} parentheses of the pass pipeline")
    return straight


_PIPELINE = re.compile(r"--?(?:[\w-]+-)?pass-pipeline=")


def _add_python_step(work: Workspace, argv: list[str]) -> None:
    script = argv[1]
    piece = work.scripts.get(script)
    if piece is not None and parse_python(piece.text) is not None:
        work.files[script], work.sources[script] = piece.text, piece
        work.produced.update(take_last_name(name) for name in _FILE_IN_SCRIPT.findall(piece.text))
    if script in work.files:
        work.steps.append(tuple(argv))
    else:
        work.add_missing(script)


_FILE_IN_SCRIPT = re.compile(r"['\"]([\w./-]{1,200}\.[a-z]\w{0,9})['\"]")
"""The name of a file that a script reads or writes."""


def _add_import_step(work: Workspace, argv: list[str]) -> None:
    """Add the call of a program that translates a model, which a script of the report writes, or which is missing."""
    for model in (argv[i] for i in _find_inputs(argv)):
        if model not in work.files and model not in work.produced:
            work.add_missing(model)
    if (target := _find_output(argv)) is not None:
        work.produced.add(target)
    work.steps.append(tuple(argv))


def _add_split_steps(work: Workspace, argv: list[str], call: ToolCall, program: CombinedProgram) -> None:
    """Replace a call of a program that the wheels lack by a compile and a run."""
    places = _find_inputs(argv)
    inputs = [argv[i] for i in places] or ["-"]
    flags = [w for i, w in enumerate(argv[1:], start=1) if i not in places]
    compiling, running = program.split(flags, work.device)
    first = _make_compile_step(work, [*compiling, inputs[0]], replace(call, stdout=""))
    work.steps.append(tuple(first))
    work.steps.append((running[0], f"{work.tools.module_flags[0]}={_find_output(first)}", *running[1:]))
    short = program.name.removeprefix(work.tools.prefix)
    work.add_repair(f"split-{short}", f"{program.name} to {compiling[0]} and {running[0]}")


def _find_positionals(argv: Sequence[str]) -> list[int]:
    """Return the indices of the words that are neither flags nor values of flags."""
    return [
        i
        for i in range(1, len(argv))
        if (not argv[i].startswith("-") or argv[i] == "-") and not _is_flag_value(argv[i - 1], argv[i])
    ]


def _is_flag_value(flag: str, word: str) -> bool:
    """True for ``-o x`` and ``--target cpu``: a word without a dot behind a flag without a value."""
    if word in ("-", "%s"):  # the input
        return flag in ("-o", "--o")
    return flag in ("-o", "--o") or (flag.startswith("--") and "=" not in flag and "." not in word)


_FILE_WORD = re.compile(r"[\w.+@-]{1,200}")


def _find_inputs(argv: Sequence[str]) -> list[int]:
    """Return the indices of the positional arguments that name or replace an input."""
    return [
        i
        for i in _find_positionals(argv)
        if PLACEHOLDER.fullmatch(argv[i]) or _FILE_WORD.fullmatch(argv[i]) or _QUOTED_NAME.fullmatch(argv[i])
    ]


_QUOTED_NAME = re.compile(r"(?=.*\s)[\w.+@ -]{1,80}")
"""A quoted name of a file with a space, such as ``"my .mlir file"``. It means the input."""


def _make_compile_step(work: Workspace, argv: list[str], call: ToolCall) -> list[str]:
    places = _find_inputs(argv)
    if call.stdin == "-" and work.steps:
        # The call reads the output file of the step before it in the pipe.
        _set_input(argv, places, _find_output(work.steps[-1]) or "")
    elif not places or argv[places[0]] == "-":
        why = "the standard input" if places or call.stdin else ""
        if call.cut and len(work.list_programs()) > 1:
            work.add_missing_code("the input of the command, which breaks off")
        elif name := place_input(work, take_last_name(call.stdin), why):
            _set_input(argv, places, name)
    else:
        for i in places:
            argv[i] = place_input(work, argv[i], "")
    if (instead := _run_reproducer(work, argv)) is not None:
        return instead
    add_flag_files(work, argv)
    if call.cut:
        argv = _complete_target(work, argv)
    return _name_output(work, _add_target(work, argv), call)


def _run_reproducer(work: Workspace, argv: Sequence[str]) -> list[str] | None:
    """Return the call that runs a crash reproducer, if one replaces the input of ``argv``."""
    found = ((name, find_run(work, argv, name)) for name in argv[1:] if name in work.files)
    step = next((step for _, step in found if step is not None), None)
    if step is None:
        return None
    work.add_repair("run-reproducer", " ".join(step))
    work.makes_modules = False
    return list(step)


def _add_target(work: Workspace, argv: list[str]) -> list[str]:
    """Name a target in a call that needs one and has none, unless the report is about the refusal of such a call.

    A file that the issue does not show may name a target itself.
    """
    text = "\n".join(work.files[word] for word in argv if word in work.files)
    flag = work.tools.choose_target(argv, text, work.device) if text else None
    if flag is None or (work.tools.no_target and work.tools.no_target in work.output):
        return argv
    given = {word.partition("=")[0] for word in argv}
    added = [flag, *(one for one in work.told if one.partition("=")[0] not in given)]
    work.add_repair("add-target", f"{' '.join(added)}, because the command names no target")
    return [argv[0], *added, *argv[1:]]


def _complete_target(work: Workspace, argv: list[str]) -> list[str]:
    """Add the flags that the target of a call needs, if the call breaks off: they may be in the missing part."""
    added = work.tools.complete_target(argv)
    if added:
        work.add_repair("complete-target", f"{' '.join(added)}, because the command breaks off")
    return [*argv, *added]


def _set_input(argv: list[str], places: Sequence[int], name: str) -> None:
    if places:
        argv[places[0]] = name
    else:
        argv.insert(1, name)


def _name_output(work: Workspace, argv: list[str], call: ToolCall) -> list[str]:
    """Return ``argv`` with a named output file: a later step may read it, and no step may print a module.

    A program of an earlier phase is text. If the call names no file, it is printed, as for the reporter.
    """
    target = _find_output(argv)
    if target == "-":
        target = None
    suffix = work.tools.output_suffix(argv)
    prints = suffix != work.tools.module_suffix.lstrip(".") and not call.stdout
    if target is None and argv[0] == work.tools.compiler and not prints:
        stem = strip_suffixes(next((argv[i] for i in _find_positionals(argv)), "input"))
        given = call.stdout if call.stdout not in ("", "|") else ""
        target = take_last_name(given) or f"{stem}.{suffix}"
        if target in work.files or target in argv:
            target = f"{stem}.out.{suffix}"
        if not given:
            work.add_repair("name-output", f"-o {target}")
        else:
            work.add_repair("redirect", f"> {given} to -o {target}")
        argv = [*(w for w in argv if w not in ("-o", "-o-", "-o=-")), "-o", target]
    elif target is None and call.stdout:
        target = "piped.mlir" if call.stdout == "|" else take_last_name(call.stdout)
        work.add_repair("redirect", f"{call.stdout} to -o {target}")
        argv = [*argv, "-o", target]
    if target:
        work.produced.add(target)
    return argv


def _find_output(argv: Sequence[str]) -> str | None:
    for i, word in enumerate(argv):
        if word in ("-o", "--o"):
            return argv[i + 1] if i + 1 < len(argv) else None
        if found := re.match(r"--?o=(.+)$", word):
            return found[1]
    return None


def _add_run_step(work: Workspace, argv: list[str], call: ToolCall) -> None:
    if not work.makes_modules:
        work.add_repair("drop-command", f"left out `{' '.join(argv)}`: the crash reproducer makes no module")
        return
    flags, suffix = work.tools.module_flags, work.tools.module_suffix
    assigned = re.compile(rf"^(--?(?:{'|'.join(flag.lstrip('-') for flag in flags)})=)(.*)$")
    if call.stdin == "-" and not any(assigned.match(w) for w in argv):
        argv.insert(1, f"{flags[0]}={_find_last_module(work)}")
    for i, word in enumerate(argv):
        found = assigned.match(word)
        if not found and word in flags and i + 1 < len(argv):
            found, i = re.match(r"()(.*)$", argv[i + 1]), i + 1
        if not found:
            continue
        name = found[2]
        if name in ("", "-") or PLACEHOLDER.fullmatch(name):
            name = _find_last_module(work)
            argv[i] = f"{found[1]}{name}"
            work.add_repair("name-input", f"{found[0]} to {argv[i]}")
        if name not in work.produced and (name.endswith((f".{suffix}", ".mlir")) or "." not in name):
            _add_implied_compile(work, name, work.tools.find_called(argv[1:]))
    add_flag_files(work, argv)
    check = work.tools.check
    if check is not None and argv[0] == check.name and work.tests:
        work.steps += [check.run_test(argv, name) for name in work.tests]
    else:
        work.steps.append(tuple(argv))


def _find_last_module(work: Workspace) -> str:
    """Return the module compiled last; if there is none, a name for the module still to be compiled."""
    modules = (_find_output(step) for step in reversed(work.steps) if step[0] == work.tools.compiler)
    return next(modules, None) or f"{_ANONYMOUS}.{work.tools.module_suffix}"


_ANONYMOUS = "input"
"""The stem of a file that no command names."""


def _add_implied_compile(work: Workspace, module: str, called: str | None) -> None:
    """Add the compile step that a run of a module implies. Without an input, report the module as missing.

    A separate program that defines the called function is compiled as the report compiles the other one.
    """
    modules = [name for step in work.steps if step[0] == work.tools.compiler and (name := _find_output(step))]
    if modules and (piece := _find_defining(work, called)) is not None:
        name = f"{strip_suffixes(module)}.mlir"
        work.add_file(name, piece)
        _repeat_compile(work, modules[0], name, module)
        return
    if len(modules) == 1 and not work.files.get(module):
        work.add_repair("name-output", f"{modules[0]} to {module}")
        work.steps = [tuple(module if w == modules[0] else w for w in step) for step in work.steps]
        work.produced.add(module)
        return
    piece = pick_input(work, f"{strip_suffixes(module)}.mlir")
    if piece is None:
        if module == f"{_ANONYMOUS}.{work.tools.module_suffix}":
            work.add_missing_code(work.name_gap())
        else:
            work.add_missing(module)
        return
    name = piece.name if piece.name.endswith(".mlir") else f"{strip_suffixes(module)}.mlir"
    work.add_file(name, piece)
    add_compile_step(work, name, module)
    work.produced.add(module)


def _find_defining(work: Workspace, called: str | None) -> Piece | None:
    """Return the only unused program that defines a function which no program of the steps defines."""
    if called is None or any(_defines(work, text, called) for text in work.files.values()):
        return None
    used = {id(piece) for piece in work.sources.values()}
    free = [piece for piece in work.inputs if id(piece) not in used and _defines(work, piece.text, called)]
    return free[0] if len(free) == 1 else None


def _defines(work: Workspace, text: str, function: str) -> bool:
    return any(name == function for name, _ in work.tools.entry_points(text))


def _repeat_compile(work: Workspace, made: str, name: str, module: str) -> None:
    """Add the compile step that makes ``made``, for another input and another module."""
    step = next(one for one in work.steps if one[0] == work.tools.compiler and _find_output(one) == made)
    inputs = {step[at] for at in _find_inputs(step)}
    work.steps.append(tuple(name if word in inputs else word.replace(made, module) for word in step))
    work.produced.add(module)
    work.add_repair(ADD_COMPILE, " ".join(work.steps[-1]))


def add_compile_step(work: Workspace, name: str, module: str) -> None:
    """Add the compiler's most ordinary call, which compiles ``name`` to ``module``."""
    argv = (*work.tools.compile_input(work.device, name, module), *work.told)
    work.steps.append(argv)
    work.add_repair(ADD_COMPILE, " ".join(argv))


def read_printed_program(work: Workspace) -> None:
    """Let the program that runs single passes parse its printed program again, if that is the last step."""
    step = work.steps[-1] if work.steps else ()
    target = _find_output(step)
    if not step or step[0] != work.tools.optimizer or any(_PRINTS_NO_PROGRAM.match(word) for word in step):
        return
    if target in (None, "-", "/dev/null"):
        kept = [w for w in step if w not in ("-o", "--o", "-o-", target) and not re.match(r"--?o=", w)]
        target = READ_BACK
        work.steps[-1] = (*kept, "-o", target)
    else:
        work.steps[-1] = tuple(
            READ_BACK if word == target else word.replace(f"o={target}", f"o={READ_BACK}") for word in step
        )
    work.produced.add(READ_BACK)
    work.steps.append((step[0], READ_BACK, *(word for word in step if _READS_TEXT.match(word))))
    work.add_repair(READ_AGAIN, " ".join(work.steps[-1]))


_PRINTS_NO_PROGRAM = re.compile(
    r"--?(?:verify-diagnostics|help|show-dialects|list-passes|emit-bytecode|no-implicit-module)"
)
_READS_TEXT = re.compile(r"--?(?:allow-unregistered-dialect|split-input-file)")
"""Flags that the printed program needs, as the input does."""


def print_products(work: Workspace) -> None:
    """Let the compiler's last call print the program in which things are counted, and leave out the other steps.

    An input that is such a program already, and a call of another program, do not change.
    """
    product, calls = work.tools.product, [step for step in work.steps if step[0] == work.tools.compiler]
    if product is None or not calls or any(product.made.search(text) for text in work.files.values()):
        return
    output = _find_output(calls[-1])
    given = {flag.partition("=")[0].lstrip("-") for flag in product.flags}
    kept = [w for w in calls[-1] if w not in ("-o", "--o", output) and not re.match(r"--?o=", w)]
    kept = [w for w in kept if w.partition("=")[0].lstrip("-") not in given]
    work.steps = [(*kept, *product.flags)]
    work.produced.clear()
    work.add_repair(PRINT_PRODUCTS, " ".join(work.steps[0]))
