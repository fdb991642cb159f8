"""Assemble the Python pieces of an issue into one program.

Added code (an import of a well-known name, a call of ``main``) is recorded as a repair. Parts that the text does not
give are recorded as missing. No other code is ever added.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection
from bot.extract.python.complete import add_imports, bind_defaults, call_main, find_needs, leave_out_imports
from bot.extract.python.grouping import Unit, group_units, is_decoy, read_unit
from bot.extract.python.known_names import find_known_import
from bot.extract.python.names import read_names
from bot.extract.python.parse import parse_python, walk
from bot.extract.split.session import SESSION
from bot.extract.types import Missing, Repair
from bot.extract.vocabulary import join_words
from runners.core.toolchain.reports import ReportAge

MAIN_FILE = "repro.py"
MAX_UNITS = 60
"""Largest number of pieces of code that are read. The cost of grouping is the square of this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A testcase in one file, with the origin of each part."""

    code: str
    units: tuple[Unit, ...]
    repairs: tuple[Repair, ...]
    missing: tuple[Missing, ...]
    requirements: tuple[str, ...]
    score: float
    extra_files: Mapping[str, Unit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """Two unrelated programs. The text does not say which of them shows the failure."""

    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyContext:
    """The facts of an issue that guide the assembly."""

    toolchain: str
    claim_words: frozenset[str] = frozenset()
    """Words of the title and of the failure, which decide between two programs."""
    allowed: Mapping[str, str] | None = None
    """Additions to the allow-list: import name → distribution."""
    age: ReportAge
    prose: str = ""
    """Title and prose. They decide whether the usual device may be assumed."""


def assemble_program(
    pieces: Sequence[Piece], context: AssemblyContext
) -> tuple[Program | Ambiguous | None, tuple[Program, ...]]:
    """Return the reporter's program, and up to two programs that work according to the report (controls)."""
    units = [read_unit(p) for p in pieces if p.kind in (Kind.PYTHON, Kind.DEFINITIONS)][:MAX_UNITS]
    usable = [u for u in units if u.tree is not None] or units
    programs = [_make_program([usable[i] for i in group], usable, context) for group in group_units(usable)]
    failing = [p for p in programs if not _is_control(p)]
    controls = tuple(p for p in programs if _is_control(p) and failing and not p.missing)
    ranked = sorted(failing or programs, key=lambda p: -p.score)
    if not ranked:
        return None, ()
    ranked = _put_writers_first(ranked, context)
    if (rivals := _find_rivals(ranked)) is None:
        return ranked[0], controls[:2]
    # Beside a complete script, an interpreter session shows what its author found out about the script.
    scripts = [program for program in ranked[:2] if not _is_session(program)]
    return (scripts[0], controls[:2]) if len(scripts) == 1 else (rivals, ())


def _put_writers_first(programs: Sequence[Program], context: AssemblyContext) -> list[Program]:
    """Return the programs. A program that reads a file follows the complete program that writes this file."""
    for reader, writer in islice(_list_pairs(programs), MAX_PAIRS):
        units = [*writer.units, *reader.units]
        joined = _make_program(units, units, context)
        if len(joined.missing) < len(reader.missing):
            both = replace(joined, score=max(writer.score, reader.score))
            return [both, *(one for one in programs if one not in (writer, reader))]
    return list(programs)


def _list_pairs(programs: Sequence[Program]) -> Iterator[tuple[Program, Program]]:
    """Yield each program that lacks a file, with each complete program of other parts that names the file."""
    for reader in programs:
        names = [one.name for one in reader.missing if one.kind == "file"]
        for writer in programs if names else ():
            if writer.missing or not any(name in writer.code for name in names):
                continue
            if set(writer.units).isdisjoint(reader.units):  # a shared part would run twice
                yield reader, writer


MAX_PAIRS = 8
"""Pairs of programs that are read as one."""


def _is_session(program: Program) -> bool:
    return any(repair.kind == SESSION for unit in program.units for repair in unit.piece.repairs)


def _is_control(program: Program) -> bool:
    return program.units[-1].piece.cue is Cue.WORKS


def _make_program(members: Sequence[Unit], units: Sequence[Unit], context: AssemblyContext) -> Program:
    toolchain = context.toolchain
    code = "\n".join(u.piece.text for u in members)
    repairs = [r for u in members for r in u.piece.repairs]
    if len(members) > 1:
        places = [f"block {u.piece.block}" if u.piece.block else f"lines {u.piece.lines[0]} on" for u in members]
        repairs.append(Repair(kind="join-blocks", detail=", ".join(places)))
    names = members[0].names if len(members) == 1 else read_names(code)
    code, dropped = leave_out_imports(code, context.claim_words)
    code, imported = add_imports(code, names, toolchain, context.age)
    code, called = call_main(code)
    code, assumed = bind_defaults(code, names, toolchain, context.prose)
    undefined = [n for n in names.free if n not in assumed and not find_known_import(n, toolchain, code)]
    missing, requirements, files = find_needs(code, undefined, toolchain, units, context.allowed)
    marks = [r.detail.removeprefix("left out ") for r in repairs if r.kind == "elision"]
    missing = (*missing, *(Missing(kind="code", name=f"the code that {mark} stands for") for mark in marks))
    return Program(
        code=code,
        units=tuple(members),
        repairs=(*repairs, *dropped, *imported, *called, *assumed.values()),
        missing=missing,
        requirements=requirements,
        score=_score_program(members, code, missing, context),
        extra_files=files,
    )


def _score_program(members: Sequence[Unit], code: str, missing: Sequence[Missing], context: AssemblyContext) -> float:
    main = members[-1].piece
    words = collect_words(code)
    return (
        3.0 * bool(re.search(rf"\b{context.toolchain}\b", code))
        + 2.0 * any(u.acts or u.entries for u in members)
        + 1.0 * (main.section is IssueSection.STEPS)
        + 2.0 * (main.cue is Cue.REPRO)
        + 1.5 * (main.cue is Cue.FAILS)
        - 3.0 * is_decoy(members[-1])
        - 3.0 * (main.cue is Cue.WORKS)
        - 2.0 * (main.section in (IssueSection.CONTEXT, IssueSection.EXPECTED))
        + 0.5 * min(6, len(words & context.claim_words))
        - 1.0 * min(4, sum(m.kind in ("name", "code") for m in missing))
        + 0.5 * min(2, len(members) - 1)
        + 0.002 * min(500, code.count("\n"))
    )


_WORD = re.compile(r"[A-Za-z_]\w{3,60}")
_COMMON_WORDS = frozenset(
    {
        *("error", "fails", "failed", "when", "with", "from", "import", "that", "this", "after", "does", "python"),
        *("module", "runtime", "compile", "wrong", "result", "crash", "internal", "check", "function"),
        *("type", "object", "tensor", "float32", "target", "main", "script", "have", "attribute"),
        *join_words(lambda words: words.python.common_words),
    }
)


def collect_words(text: str) -> frozenset[str]:
    """Return the words of at least four letters in lower case, and the parts of camel case and of underscores."""
    found = set()
    for word in _WORD.findall(text[:100_000]):
        found.add(word.lower())
        found.update(part.lower() for part in re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", word) if len(part) > 3)
    return frozenset(found - _COMMON_WORDS)


def _list_asked(code: str) -> frozenset[str]:
    """Return the names that a program uses from its packages, dotted, and its texts."""
    tree = parse_python(code)
    nodes = list(walk(tree)) if tree is not None else []
    dotted = (ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute) and _is_dotted(node))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    asked = (name for name in dotted if not name.endswith(".__version__"))
    return frozenset(asked) | frozenset(text for text in texts if _WORD.search(text))


def _is_dotted(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node.value))


def _find_rivals(ranked: Sequence[Program]) -> Ambiguous | None:
    """Return the two best programs if neither is better, both are complete, and they share little."""
    if len(ranked) < 2 or ranked[0].score - ranked[1].score > 1.0:
        return None
    first, second = ranked[0], ranked[1]
    if first.missing or second.missing or set(first.units) & set(second.units):
        return None
    if not all(any(u.acts and u.imports for u in p.units) for p in (first, second)):
        return None
    a, b = ([r.strip() for r in p.code.split("\n") if r.strip()][:300] for p in (first, second))
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    if sum(block.size for block in blocks) > 0.5 * min(len(a), len(b)):  # a shorter version of the same program
        return None
    asked = sorted((_list_asked(first.code), _list_asked(second.code)), key=len)
    if asked[0] and asked[0] <= asked[1]:  # the same questions in other words: a session, and the same as a script
        return None
    return Ambiguous(lines=tuple(p.units[-1].piece.lines for p in (first, second)))
