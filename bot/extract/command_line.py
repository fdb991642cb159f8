"""MLIR and the command lines that name it → files and plain argv steps, all of it by relative names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from bot.extract.check_tests import has_checks, return_checked_values
from bot.extract.commands import COMPILERS
from bot.extract.kinds import is_dump
from bot.extract.pieces import Kind, Piece
from bot.extract.sections import Cue, Section
from bot.extract.shell import Command
from bot.extract.types import Missing, Repair

RUNNERS = {"iree-run-module", "iree-benchmark-module", "iree-check-module"}
BACKENDS = {
    "llvm-cpu": "llvm-cpu",
    "vmvx": "vmvx",
    "vulkan": "vulkan-spirv",
    "cuda": "cuda",
    "hip": "rocm",
    "rocm": "rocm",
    "metal": "metal-spirv",
}
"""Device → the value of ``--iree-hal-target-backends`` that compiles for it."""


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


@dataclass(slots=True)
class _Desk:
    """What is on the table while the steps are put together."""

    inputs: list[Piece]
    texts: str
    files: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Piece] = field(default_factory=dict)
    produced: set[str] = field(default_factory=set)
    tests: tuple[str, ...] = ()
    """Functions of the input that were check tests and now return what they checked."""
    repairs: list[Repair] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    steps: list[tuple[str, ...]] = field(default_factory=list)

    def repair(self, kind: str, detail: str) -> None:
        entry = Repair(kind=kind, detail=detail[:400])
        if entry not in self.repairs:
            self.repairs.append(entry)

    def lack(self, name: str, kind: str = "file") -> None:
        entry = Missing(kind=kind, name=name[:200])
        if entry not in self.missing:
            self.missing.append(entry)


def assemble_commands(
    commands: Sequence[tuple[Command, Piece | None]],
    ignored: Sequence[str],
    pieces: Sequence[Piece],
    texts: str,
    device: str,
    python_files: dict[str, Piece] | None = None,
) -> CommandLine:
    """Files and steps for ``commands`` over the MLIR of ``pieces``; ``device`` decides a compile step to be added."""
    desk = _Desk(inputs=_inputs(pieces), texts=texts)
    if any(c.argv[0] == "iree-check-module" for c, _ in commands):
        _return_checked(desk)
    for word in ignored:
        if word in _NOTEWORTHY:
            desk.repair("drop-command", f"left out `{word}`, which is no tool of the compiler")
    for name, piece in (python_files or {}).items():
        desk.files[name], desk.sources[name] = piece.text, piece
    for command, _ in _ordered(commands):
        _add_step(desk, command, device)
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


def _return_checked(desk: _Desk) -> None:
    """``iree-check-module`` is in no wheel: its tests return what they check, and are run one by one."""
    for at, piece in enumerate(desk.inputs):
        if not has_checks(piece.text):
            continue
        text, names = return_checked_values(piece.text)
        if names:
            desk.inputs[at] = replace(piece, text=text)
            desk.tests = (*desk.tests, *names)
            desk.repair("rewrite-check", f"return the values that {', '.join(names)} checks")


def _ordered(commands: Sequence[tuple[Command, Piece | None]]) -> list[tuple[Command, Piece | None]]:
    """As written, except that what a run line loads is compiled before it where the report has it the other way."""
    runs = [i for i, (c, _) in enumerate(commands) if c.argv[0] in RUNNERS]
    compiles = [i for i, (c, _) in enumerate(commands) if c.argv[0] in COMPILERS]
    if runs and compiles and min(compiles) > min(runs):
        return sorted(commands, key=lambda pair: pair[0].argv[0] in RUNNERS)
    return list(commands)


def _inputs(pieces: Sequence[Piece]) -> list[Piece]:
    """MLIR that may be an input, best first; dumps and fragments last."""
    whole = [p for p in pieces if p.kind is Kind.MLIR]
    return sorted(
        whole,
        key=lambda p: (is_dump(p), p.cue in (Cue.OUTPUT, Cue.QUOTED), p.section is Section.CONTEXT, -_input_score(p)),
    )


def _input_score(piece: Piece) -> int:
    return (
        2 * (piece.cue in (Cue.REPRO, Cue.FAILS))
        + (piece.section is Section.STEPS)
        - 2 * (piece.cue is Cue.WORKS)
        + 2 * bool(piece.name)
    )


def _add_step(desk: _Desk, command: Command, device: str) -> None:
    tool = command.argv[0]
    if command.written != tool:
        desk.repair("bare-tool", f"{command.written} to {tool}")
    for word in command.ignored:
        if _SHELL_AFFAIR.match(word):
            continue
        desk.repair("drop-word", f"left out {word}")
    argv = [tool, *(_local(desk, word) for word in _mended(desk, command.argv[1:]))]
    if tool == "iree-run-mlir":
        _run_mlir(desk, argv, command, device)
    elif tool == "python":
        _python_step(desk, argv)
    elif tool in COMPILERS:
        argv = _compile_step(desk, argv, command)
        desk.steps.append(tuple(argv))
    else:
        _run_step(desk, argv, command, device)


_SHELL_AFFAIR = re.compile(
    r"time$|sudo$|env$|nohup$|catchsegv$|gdb$|lldb$|rocgdb$|--args$|--$|\w*(?:VISIBLE_DEVICES|PATH)="
)
"""Words around a call that say nothing of what it does: timing, rights, debuggers, which of several devices."""


def _mended(desk: _Desk, words: Sequence[str]) -> Iterator[str]:
    for word in words:
        mended = word.translate({0x2013: "--", 0x2014: "--", 0x201C: '"', 0x201D: '"'})
        if mended != word:
            desk.repair("straighten-quotes", f"{word} to {mended}")
        yield mended


_ABSOLUTE = re.compile(
    r"(?<![\w./$~})-])(?:~|\.{1,2}|\$\{?\w{1,60}\}?|[A-Za-z]:)?(?:[\\/][\w.+@~$<>{}-]{1,120}){1,30}"
)
_NULL = ("/dev/null",)


def _local(desk: _Desk, word: str) -> str:
    """``word`` with every path in it cut to its last name: a step sees its working directory only."""
    if "/" not in word or word.startswith(("--pass-pipeline", "-pass-pipeline")):
        return word
    head, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)

    def cut(found: re.Match[str]) -> str:
        path = found[0]
        if path in _NULL:
            return path
        name = re.split(r"[\\/]", path.rstrip("/\\"))[-1]
        desk.repair("rewrite-path", f"{path} to {name}")
        return name

    changed = _ABSOLUTE.sub(cut, value)
    if re.fullmatch(r"@?[\w.+-]+(?:/[\w.+-]+)+", changed) and re.search(r"\.\w{1,8}$", changed):
        name = ("@" if changed.startswith("@") else "") + changed.rpartition("/")[2]
        desk.repair("rewrite-path", f"{changed} to {name}")
        changed = name
    return f"{head}{equals}{changed}"


def _python_step(desk: _Desk, argv: list[str]) -> None:
    script = argv[1]
    if script in desk.files:
        desk.steps.append(tuple(argv))
    else:
        desk.lack(script)


def _run_mlir(desk: _Desk, argv: list[str], command: Command, device: str) -> None:
    """``iree-run-mlir`` is not in the wheels: it is a compile and a run, whose flags differ by their prefix."""
    places = [i for i in _positions(argv) if _is_input(argv[i])]
    inputs = [argv[i] for i in places] or ["-"]
    flags = [w for i, w in enumerate(argv[1:], start=1) if i not in places]
    compiling = [w for w in flags if re.match(r"--?(?:iree|mlir|Xcompiler)[-,]", w)]
    running = [re.sub(r"^--Xruntime[,=]", "", w) for w in flags if w not in compiling]
    if not any("iree-hal-target" in w for w in compiling):
        compiling.insert(0, f"--iree-hal-target-backends={BACKENDS.get(device, 'llvm-cpu')}")
    first = _compile_step(desk, ["iree-compile", *compiling, inputs[0]], replace(command, stdout=""))
    desk.steps.append(tuple(first))
    desk.steps.append(("iree-run-module", f"--module={_output_of(first)}", *running))
    desk.repair("split-run-mlir", "iree-run-mlir to iree-compile and iree-run-module")


# ---------------------------------------------------------------------------------------------- compiling

_PLACEHOLDER = re.compile(r"%s|<[^<>]{1,60}>|\$\{?\w{1,40}\}?|\{[\w-]{1,40}\}|\.{3}|…")
_FILE_WORD = re.compile(r"[\w.+@-]{1,200}")


def _positions(argv: Sequence[str]) -> list[int]:
    """Indices of the positional arguments: neither flags nor the value of ``-o``."""
    return [
        i
        for i in range(1, len(argv))
        if (not argv[i].startswith("-") or argv[i] == "-") and not _takes_value(argv[i - 1], argv[i])
    ]


def _takes_value(flag: str, word: str) -> bool:
    """``-o x`` and ``--iree-hal-target-backends llvm-cpu``: a word without a dot behind a flag without a value."""
    return flag in ("-o", "--o") or (flag.startswith("--") and "=" not in flag and "." not in word and word != "-")


def _compile_step(desk: _Desk, argv: list[str], command: Command) -> list[str]:
    places = [i for i in _positions(argv) if _is_input(argv[i])]
    if command.stdin == "-" and desk.steps:
        argv = _fed(desk, argv, places)
    elif not places or argv[places[0]] == "-":
        name = _placed(desk, _basename(command.stdin) or "", "the standard input" if places or command.stdin else "")
        if name and places:
            argv[places[0]] = name
        elif name:
            argv.insert(1, name)
    else:
        for i in places:
            argv[i] = _placed(desk, argv[i], "")
    _give_flag_files(desk, argv)
    return _named_output(desk, argv, command)


def _is_input(word: str) -> bool:
    return word == "-" or bool(_PLACEHOLDER.fullmatch(word) or _FILE_WORD.fullmatch(word))


def _fed(desk: _Desk, argv: list[str], places: Sequence[int]) -> list[str]:
    """A program fed by the one before it reads that one's output file instead."""
    name = _output_of(desk.steps[-1]) or ""
    if places:
        argv[places[0]] = name
    else:
        argv.insert(1, name)
    return argv


def _basename(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def _placed(desk: _Desk, name: str, why: str) -> str:
    """The file that an input argument means: given before, a block of the issue, or missing."""
    if name in desk.files or name in desk.produced:
        return name
    anonymous = not name or name == "-" or _PLACEHOLDER.fullmatch(name)
    piece = _pick(desk, "" if anonymous else name)
    if anonymous:
        given = piece.name if piece and piece.name.endswith((".mlir", ".mlirbc")) else "input.mlir"
        desk.repair("name-input", f"{why or name or 'no input named'}: {given}")
        name = given
        if name in desk.files:
            return name
    if piece is None:
        desk.lack(name)
    else:
        desk.files[name], desk.sources[name] = piece.text, piece
    return name


def _pick(desk: _Desk, name: str) -> Piece | None:
    """The MLIR that ``name`` stands for: by its name, by the diagnostics that quote it, else the best one unused."""
    if name and not name.endswith((".mlir", ".ir", ".txt", ".torch", ".stablehlo", ".mlir.bc", ".mlirbc", ".bc")):
        return None
    used = {id(p) for p in desk.sources.values()}
    free = [p for p in desk.inputs if id(p) not in used]
    if name:
        named = [p for p in desk.inputs if p.name == name]
        if named:
            return named[0]
        quoted = [p for p in desk.inputs if _is_quoted_by(desk.texts, name, p)]
        if quoted:
            return quoted[0]
        free = [p for p in free if not p.name or not p.name.endswith(".mlir") or p.name not in desk.texts]
        if not free and len(desk.inputs) == 1 and not desk.sources:
            return desk.inputs[0]
    return free[0] if free else (desk.inputs[0] if desk.inputs and not name else None)


def _is_quoted_by(texts: str, name: str, piece: Piece) -> bool:
    """A diagnostic ``name:LINE:COL`` quotes line LINE of this piece below it."""
    rows = piece.text.split("\n")
    for found in list(re.finditer(re.escape(name) + r":(\d{1,6}):\d{1,6}: [^\n]{0,2000}\n([^\n]{1,2000})", texts))[
        :5
    ]:
        line = int(found[1])
        if 0 < line <= len(rows) and rows[line - 1].strip() and rows[line - 1].strip() == found[2].strip():
            return True
    return False


_FLAG_FILE = re.compile(
    r"^(--?[\w-]+=(?:[\w.-]+=)?@?)([\w.+-]+\.(?:mlir|irpa|npy|bin|safetensors|gguf|td|txt|json))$"
)


def _give_flag_files(desk: _Desk, argv: Sequence[str]) -> None:
    """Files named in flags (``--parameters=model=x.irpa``, ``--input=@x.npy``) are given or missing."""
    for word in argv[1:]:
        found = _FLAG_FILE.match(word)
        if not found or found[2] in desk.files or found[2] in desk.produced or _WRITES.search(found[1]):
            continue
        piece = next((p for p in desk.inputs if p.name == found[2]), None)
        if piece is not None:
            desk.files[found[2]], desk.sources[found[2]] = piece.text, piece
        else:
            desk.lack(found[2])


_WRITES = re.compile(r"dump|output|export|trace|save|reproducer|-to=", re.I)


def _named_output(desk: _Desk, argv: list[str], command: Command) -> list[str]:
    """``argv`` that writes to a named file, so that a later step or nobody's terminal gets it."""
    target = _output_of(argv)
    if target == "-":
        target = None
    if target is None and argv[0] == "iree-compile":
        stem = _stem(next((argv[i] for i in _positions(argv)), "input"))
        suffix = "mlir" if any(re.match(r"--?compile-to=(?!vm$|end$)", w) for w in argv) else "vmfb"
        given = command.stdout if command.stdout not in ("", "|") else ""
        target = _basename(given) or f"{stem}.{suffix}"
        if target in desk.files or target in argv:
            target = f"{stem}.out.{suffix}"
        if not given:
            desk.repair("name-output", f"-o {target}")
        else:
            desk.repair("redirect", f"> {given} to -o {target}")
        argv = [*(w for w in argv if w not in ("-o", "-o-", "-o=-")), "-o", target]
    elif target is None and command.stdout:
        target = "piped.mlir" if command.stdout == "|" else _basename(command.stdout)
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


def _stem(name: str) -> str:
    return re.sub(r"(?:\.\w+)+$", "", name) or "input"


# ---------------------------------------------------------------------------------------------- running

_MODULE = re.compile(r"^(--?module(?:_file)?=)(.*)$")


def _run_step(desk: _Desk, argv: list[str], command: Command, device: str) -> None:
    if command.stdin == "-" and not any(_MODULE.match(w) for w in argv):
        argv.insert(1, f"--module={_last_module(desk) or 'input.vmfb'}")
    for i, word in enumerate(argv):
        found = _MODULE.match(word)
        if not found and word in ("--module", "--module_file") and i + 1 < len(argv):
            found, i = re.match(r"()(.*)$", argv[i + 1]), i + 1
        if not found:
            continue
        name = found[2]
        if name in ("", "-") or _PLACEHOLDER.fullmatch(name):
            name = _last_module(desk) or "input.vmfb"
            argv[i] = f"{found[1]}{name}"
            desk.repair("name-input", f"{found[0]} to {argv[i]}")
        if name not in desk.produced and (name.endswith((".vmfb", ".mlir")) or "." not in name):
            _add_compile(desk, name, device)
    _give_flag_files(desk, argv)
    if argv[0] == "iree-check-module" and desk.tests:
        desk.steps += [("iree-run-module", *argv[1:], f"--function={name}") for name in desk.tests]
    else:
        desk.steps.append(tuple(argv))


def _last_module(desk: _Desk) -> str | None:
    return next((_output_of(step) for step in reversed(desk.steps) if step[0] == "iree-compile"), None)


def _add_compile(desk: _Desk, module: str, device: str) -> None:
    """The compile step that a lone run line implies; the module is missing when there is nothing to compile."""
    made = [name for step in desk.steps if step[0] == "iree-compile" and (name := _output_of(step))]
    if len(made) == 1 and not desk.files.get(module):
        desk.repair("name-output", f"{made[0]} to {module}")
        desk.steps = [tuple(module if w == made[0] else w for w in step) for step in desk.steps]
        desk.produced.add(module)
        return
    piece = _pick(desk, f"{_stem(module)}.mlir")
    if piece is None:
        desk.lack(module)
        return
    name = piece.name if piece.name.endswith(".mlir") else f"{_stem(module)}.mlir"
    desk.files[name], desk.sources[name] = piece.text, piece
    add_compile_step(desk.steps, desk.repairs, name, module, device)
    desk.produced.add(module)


def add_compile_step(
    steps: list[tuple[str, ...]], repairs: list[Repair], name: str, module: str, device: str
) -> None:
    argv = ("iree-compile", f"--iree-hal-target-backends={BACKENDS.get(device, 'llvm-cpu')}", name, "-o", module)
    steps.append(argv)
    repairs.append(Repair(kind="add-compile-step", detail=" ".join(argv)))


def plain_compile(pieces: Sequence[Piece], device: str) -> CommandLine | None:
    """The most ordinary compile of the best MLIR, for a report about compiling that names no command."""
    inputs = [p for p in _inputs(pieces) if not is_dump(p) and p.cue not in (Cue.WORKS, Cue.EXPECTED)]
    if not inputs:
        return None
    piece = inputs[0]
    name = piece.name if piece.name.endswith(".mlir") else "input.mlir"
    steps: list[tuple[str, ...]] = []
    repairs: list[Repair] = []
    add_compile_step(steps, repairs, name, f"{_stem(name)}.vmfb", device)
    return CommandLine(
        files={name: piece.text}, steps=tuple(steps), sources={name: piece}, repairs=tuple(repairs), missing=()
    )
