"""The working directory of a command-line testcase while its steps are assembled: files, repairs, missing parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from bot.extract.blocks.cut import drop_open_resources
from bot.extract.blocks.kinds import is_dump
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection
from bot.extract.command_line.brackets import balance_braces
from bot.extract.types import WRAP, Missing, Repair
from runners.core.toolchain.reports import CheckProgram, CommandLineTools

_DOUBLED_ARROW = re.compile(r"->(?:[ \t]*->)+")
"""A typing error: no type of MLIR has two arrows in a row."""


@dataclass(slots=True)
class Workspace:
    """Files and steps assembled so far."""

    tools: CommandLineTools
    device: str
    """The device that an added compile step compiles for."""
    inputs: list[Piece]
    output: str
    """Output and tracebacks that the issue quotes."""
    has_operations: bool = False
    """True if the issue shows operations without the function around them."""
    told: tuple[str, ...] = ()
    """Flags of an added compile step or target, from the report's sentences."""
    linked: frozenset[str] = frozenset()
    """Names of files that the issue offers behind a link. No other block replaces them."""
    scripts: Mapping[str, Piece] = field(default_factory=dict)
    """The Python of the issue that has the name of a file."""
    files: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Piece] = field(default_factory=dict)
    """File → the piece that it came from."""
    produced: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    """The data files that steps write, by flags such as ``--output=x.irpa``."""
    tests: tuple[str, ...] = ()
    """Functions of the input that were check tests. The rewritten functions return the checked values."""
    repairs: list[Repair] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    known: set[Missing | Repair] = field(default_factory=set)
    """Those of the two lists: a command may name thousands of files."""
    makes_modules: bool = True
    """False if a crash reproducer replaces the input: then no step makes the module that later calls run."""
    steps: list[tuple[str, ...]] = field(default_factory=list)

    def add_file(self, name: str, piece: Piece) -> None:
        text = drop_open_resources(piece.text)
        if text != piece.text:
            self.add_repair("drop-resources", "left out the resources at the end, which break off")
        if name.endswith(".mlir") and (single := _DOUBLED_ARROW.sub("->", text)) != text:
            text = single
            self.add_repair("drop-doubled", f"{name}: `-> ->` to `->`")
        text, balanced = balance_braces(text)
        if balanced:
            self.add_repair("balance-braces", f"{name}: {balanced}")
        for wrapped in (one for one in piece.repairs if one.kind == WRAP):
            self.add_repair(wrapped.kind, wrapped.detail)
        self.files[name], self.sources[name] = text, piece

    def add_repair(self, kind: str, detail: str) -> None:
        entry = Repair(kind=kind, detail=detail[:400])
        if entry not in self.known:
            self.known.add(entry)
            self.repairs.append(entry)

    def add_missing(self, name: str) -> None:
        entry = Missing(kind="file", name=name[:200])
        if entry not in self.known:
            self.known.add(entry)
            self.missing.append(entry)

    def list_programs(self) -> list[Piece]:
        """Return the MLIR that the reporter gives, without dumps and other output."""
        return [p for p in self.inputs if not is_dump(p) and p.cue not in (Cue.OUTPUT, Cue.EXPECTED, Cue.QUOTED)]

    def name_gap(self) -> str:
        """Name the input of a command without a file name."""
        shown = "the function around the MLIR operations shown"
        return shown if self.has_operations else "the MLIR that the command reads"

    def add_missing_code(self, name: str) -> None:
        self.missing.append(Missing(kind="code", name=name[:200]))


def rank_inputs(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the MLIR that may be an input, best first. Dumps and parts of files come last."""
    return sorted(
        (p for p in pieces if p.kind is Kind.MLIR),
        key=lambda p: (
            is_dump(p),
            p.text.count("{") != p.text.count("}"),  # an open brace: a part of a file
            p.cue in (Cue.OUTPUT, Cue.QUOTED),
            p.section is IssueSection.CONTEXT,
            -_score_input(p),
        ),
    )


def _score_input(piece: Piece) -> int:
    return (
        2 * (piece.cue in (Cue.REPRO, Cue.FAILS))
        + (piece.section is IssueSection.STEPS)
        - 2 * (piece.cue is Cue.WORKS)
        + 2 * bool(piece.name)
    )


def rewrite_check_tests(work: Workspace, program: CheckProgram) -> None:
    """Make each test in the inputs return the values that it checks: no wheel contains the checking program."""
    for at, piece in enumerate(work.inputs):
        text, names = program.return_checked(piece.text)
        if names:
            work.inputs[at] = replace(piece, text=text)
            work.tests = (*work.tests, *names)
            work.add_repair("rewrite-check", f"return the values that {', '.join(names)} checks")


# ---------------------------------------------------------------------------------------------- names and files

_ABSOLUTE = re.compile(
    r"(?<![\w./$~})-])(?:~|\.{1,2}|\$\{?\w{1,60}\}?|[A-Za-z]:)?(?:[\\/][\w.+@~$<>{}-]{1,120}){1,30}"
)


def make_local(work: Workspace, word: str) -> str:
    """Cut every path in ``word`` to its last name: a step sees only its working directory."""
    if "/" not in word or word.startswith(("--pass-pipeline", "-pass-pipeline")):
        return word
    head, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)

    def cut_path(found: re.Match[str]) -> str:
        path = found[0]
        if path == "/dev/null":
            return path
        name = take_last_name(path.rstrip("/\\"))
        work.add_repair("rewrite-path", f"{path} to {name}")
        return name

    changed = _ABSOLUTE.sub(cut_path, value)
    if re.fullmatch(r"@?[\w.+-]+(?:/[\w.+-]+)+", changed) and re.search(r"\.\w{1,8}$", changed):
        name = ("@" if changed.startswith("@") else "") + changed.rpartition("/")[2]
        work.add_repair("rewrite-path", f"{changed} to {name}")
        changed = name
    return f"{head}{equals}{changed}"


PLACEHOLDER = re.compile(r"%s|<[^<>]{1,60}>|\$\{?\w{1,40}\}?|\{[\w-]{1,40}\}|\.{3}|…")


def take_last_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def strip_suffixes(name: str) -> str:
    return re.sub(r"(?:\.\w+)+$", "", name) or "input"


def place_input(work: Workspace, name: str, why: str) -> str:
    """Add the file that an input argument means, or report it as missing. Return the file's name."""
    if name in work.files or name in work.produced:
        return name
    anonymous = not name or name == "-" or " " in name or PLACEHOLDER.fullmatch(name)
    piece = pick_input(work, "" if anonymous else name)
    if anonymous:
        given = piece.name if piece and piece.name.endswith((".mlir", ".mlirbc")) else "input.mlir"
        work.add_repair("name-input", f"{why or name or 'no input named'}: {given}")
        name = given
        if name in work.files:
            return name
    if piece is not None:
        work.add_file(name, piece)
    elif anonymous:
        work.add_missing_code(work.name_gap())
    else:
        work.add_missing(name)
    return name


def pick_input(work: Workspace, name: str) -> Piece | None:
    """Return the MLIR that ``name`` means: by its name, by a diagnostic that quotes it, else the best unused MLIR."""
    if name and not name.endswith((".mlir", ".ir", ".txt", ".torch", ".stablehlo", ".mlir.bc", ".mlirbc", ".bc")):
        return None
    used = {id(p) for p in work.sources.values()}
    free = [p for p in work.inputs if id(p) not in used]
    if not name:
        return next(iter([*free, *work.inputs]), None)
    named = [p for p in work.inputs if p.name == name]
    if any(not is_dump(p) and not p.name for p in free):
        named = [p for p in named if not is_dump(p)]  # the words above a dump may hold the command with its input
    quotes = [] if named else _find_quotes(work.output, name)
    quoted = named or [p for p in work.inputs if quotes and _has_quoted_row(p, quotes)]
    if quoted or name in work.linked:
        return next(iter(quoted), None)
    free = [p for p in free if not p.name or not p.name.endswith(".mlir") or p.name not in work.output]
    if not free and len(work.inputs) == 1 and not work.sources:
        return work.inputs[0]
    return free[0] if free else None


def _find_quotes(output: str, name: str) -> list[tuple[int, str]]:
    """Return line and row of the first diagnostics ``name:LINE:COL`` in ``output``."""
    if f"{name}:" not in output:
        return []  # a command may name thousands of files
    ends = ((at, line, row) for at, line, row in _list_quotes(output) if at >= len(name))
    return list(islice(((line, row) for at, line, row in ends if output.startswith(name, at - len(name))), 5))


def _has_quoted_row(piece: Piece, quotes: Sequence[tuple[int, str]]) -> bool:
    """True if one of ``quotes`` is the row of the piece at that line."""
    rows = piece.text.split("\n")
    return any(
        0 < line <= len(rows) and row.strip() and rows[line - 1].strip() == row.strip() for line, row in quotes
    )


@lru_cache(maxsize=4)
def _list_quotes(output: str) -> tuple[tuple[int, int, str], ...]:
    """Return each diagnostic above a row: the offset behind its file's name, its line, and the row."""
    return tuple((found.start(), int(found[1]), found[2]) for found in _DIAGNOSTIC.finditer(output))


_DIAGNOSTIC = re.compile(r":(\d{1,6}):\d{1,6}: (?=[^\n]{0,2000}\n([^\n]{1,2000}))")


_FLAG_FILE = re.compile(r"^(--?[\w-]+=(?:[\w.-]+=)?@?)([\w.+-]+\.(\w+))$")
_DATA_SUFFIXES = {"mlir", "npy", "bin", "safetensors", "gguf", "td", "txt", "json"}
_WRITES = re.compile(r"dump|output|export|trace|save|reproducer|instrument|statistics|profile|timing|log|-to=", re.I)


def add_flag_files(work: Workspace, argv: Sequence[str]) -> None:
    """Add the files that flags name (``--parameters=model=x.gguf``, ``--input=@x.npy``), or report them missing."""
    suffixes = _DATA_SUFFIXES.union(work.tools.data_suffixes)
    for word in argv[1:]:
        found = _FLAG_FILE.match(word)
        if not found or found[3] not in suffixes:
            continue
        name = found[2]
        if _WRITES.search(found[1]):
            work.written.add(name)
        if name in work.files or name in work.produced or name in work.written:
            continue
        piece = next((p for p in work.inputs if p.name == name), None)
        if piece is not None:
            work.add_file(name, piece)
        else:
            work.add_missing(name)
