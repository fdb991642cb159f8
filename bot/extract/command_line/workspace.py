"""What is on the table while the steps of a command line are put together: files, their sources, repairs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.extract.blocks.kinds import is_dump
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, Section
from bot.extract.types import Missing, Repair
from runners.core.toolchain.command_line import CheckProgram, CommandLineTools


@dataclass(slots=True)
class Desk:
    """What is on the table while the steps are put together."""

    tools: CommandLineTools
    device: str
    """The device that an added compile step compiles for."""
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


def input_candidates(pieces: Sequence[Piece]) -> list[Piece]:
    """MLIR that may be an input, best first; dumps and fragments last."""
    whole = [p for p in pieces if p.kind is Kind.MLIR]
    return sorted(
        whole,
        key=lambda p: (
            is_dump(p),
            not _is_balanced(p),
            p.cue in (Cue.OUTPUT, Cue.QUOTED),
            p.section is Section.CONTEXT,
            -_input_score(p),
        ),
    )


def _is_balanced(piece: Piece) -> bool:
    """Every brace closed: else a part of a file."""
    return piece.text.count("{") == piece.text.count("}")


def _input_score(piece: Piece) -> int:
    return (
        2 * (piece.cue in (Cue.REPRO, Cue.FAILS))
        + (piece.section is Section.STEPS)
        - 2 * (piece.cue is Cue.WORKS)
        + 2 * bool(piece.name)
    )


def return_checked(desk: Desk, program: CheckProgram) -> None:
    """Rewrite the tests of a program that no wheel has: they return what they check, and are run one by one."""
    for at, piece in enumerate(desk.inputs):
        text, names = program.return_checked(piece.text)
        if names:
            desk.inputs[at] = replace(piece, text=text)
            desk.tests = (*desk.tests, *names)
            desk.repair("rewrite-check", f"return the values that {', '.join(names)} checks")


# ---------------------------------------------------------------------------------------------- names and files

_ABSOLUTE = re.compile(
    r"(?<![\w./$~})-])(?:~|\.{1,2}|\$\{?\w{1,60}\}?|[A-Za-z]:)?(?:[\\/][\w.+@~$<>{}-]{1,120}){1,30}"
)


_NULL = ("/dev/null",)


def local_word(desk: Desk, word: str) -> str:
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


PLACEHOLDER = re.compile(r"%s|<[^<>]{1,60}>|\$\{?\w{1,40}\}?|\{[\w-]{1,40}\}|\.{3}|…")


def basename(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def stem_of(name: str) -> str:
    return re.sub(r"(?:\.\w+)+$", "", name) or "input"


def placed(desk: Desk, name: str, why: str) -> str:
    """The file that an input argument means: given before, a block of the issue, or missing."""
    if name in desk.files or name in desk.produced:
        return name
    anonymous = not name or name == "-" or PLACEHOLDER.fullmatch(name)
    piece = pick_input(desk, "" if anonymous else name)
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


def pick_input(desk: Desk, name: str) -> Piece | None:
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


_FLAG_FILE = re.compile(r"^(--?[\w-]+=(?:[\w.-]+=)?@?)([\w.+-]+\.(\w+))$")
_DATA_SUFFIXES = {"mlir", "npy", "bin", "safetensors", "gguf", "td", "txt", "json"}


def give_flag_files(desk: Desk, argv: Sequence[str]) -> None:
    """Files named in flags (``--parameters=model=x.gguf``, ``--input=@x.npy``) are given or missing."""
    suffixes = _DATA_SUFFIXES.union(desk.tools.data_suffixes)
    for word in argv[1:]:
        found = _FLAG_FILE.match(word)
        if not found or found[3] not in suffixes or _WRITES.search(found[1]):
            continue
        if found[2] in desk.files or found[2] in desk.produced:
            continue
        piece = next((p for p in desk.inputs if p.name == found[2]), None)
        if piece is not None:
            desk.files[found[2]], desk.sources[found[2]] = piece.text, piece
        else:
            desk.lack(found[2])


_WRITES = re.compile(r"dump|output|export|trace|save|reproducer|-to=", re.I)
