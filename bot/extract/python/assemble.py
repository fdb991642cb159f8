"""Python pieces → one testcase: which belong together, in what order, and what it takes to run them.

Nothing is invented. What is added (an import of a well-known name, a call of ``main``) is recorded as a repair; what
cannot be had from the text is recorded as missing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, Section
from bot.extract.python.complete import add_imports, call_main, needs_of
from bot.extract.python.grouping import DECOY_CUES, Unit, group_units, read_unit
from bot.extract.python.known_names import well_known
from bot.extract.python.names import read_names
from bot.extract.types import Missing, Repair
from bot.extract.vocabulary import join_words
from runners.core.toolchain.reports import Written

MAIN_FILE = "repro.py"


MAX_UNITS = 60
"""Code pieces looked at; the joining below costs the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A testcase in one file, with where each part came from."""

    code: str
    units: tuple[Unit, ...]
    repairs: tuple[Repair, ...]
    missing: tuple[Missing, ...]
    requirements: tuple[str, ...]
    score: float
    extra_files: Mapping[str, Unit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """Two programs that have nothing to do with each other, and nothing says which one is meant."""

    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of the issue before its code is put together."""

    toolchain: str
    claim_words: frozenset[str] = frozenset()
    """Words of the title and of the failure: of two programs, the one that shares them is meant."""
    allowed: Mapping[str, str] | None = None
    """Additions to the allow-list: import name → distribution."""
    written: Written


def assemble(pieces: Sequence[Piece], about: About) -> tuple[Program | Ambiguous | None, tuple[Program, ...]]:
    """The reporter's program and the ones said to work (controls)."""
    units = [read_unit(p) for p in pieces if p.kind in (Kind.PYTHON, Kind.DEFINITIONS)][:MAX_UNITS]
    usable = [u for u in units if u.tree is not None] or units
    groups = group_units(usable)
    programs = [_program(g, usable, about) for g in groups]
    failing = [p for p in programs if not _is_control(p)]
    controls = tuple(p for p in programs if _is_control(p) and failing and not p.missing)
    ranked = sorted(failing or programs, key=lambda p: -p.score)
    if not ranked:
        return None, ()
    if (rivals := _rivals(ranked)) is not None:
        return rivals, ()
    return ranked[0], controls[:2]


def _is_control(program: Program) -> bool:
    return program.units[-1].piece.cue is Cue.WORKS


def _program(
    group: tuple[int, ...],
    units: Sequence[Unit],
    about: About,
) -> Program:
    toolchain = about.toolchain
    members = tuple(units[i] for i in group)
    code = "\n".join(u.piece.text for u in members)
    repairs = [r for u in members for r in u.piece.repairs]
    if len(members) > 1:
        places = [f"block {u.piece.block}" if u.piece.block else f"lines {u.piece.lines[0]} on" for u in members]
        repairs.append(Repair(kind="join-blocks", detail=", ".join(places)))
    names = members[0].names if len(members) == 1 else read_names(code)
    code, added = add_imports(code, names, toolchain, about.written)
    code, called = call_main(code)
    undefined = [n for n in names.free if not well_known(n, toolchain, code)]
    program_missing, requirements, files = needs_of(code, undefined, toolchain, units, about.allowed)
    marks = [r.detail.removeprefix("left out ") for r in repairs if r.kind == "elision"]
    omitted = [Missing(kind="code", name=f"the code that {mark} stands for") for mark in marks]
    program_missing = (*program_missing, *omitted)
    return Program(
        code=code,
        units=members,
        repairs=(*repairs, *added, *called),
        missing=program_missing,
        requirements=requirements,
        score=_score(members, code, program_missing, about),
        extra_files=files,
    )


def _score(members: Sequence[Unit], code: str, missing: Sequence[Missing], about: About) -> float:
    main = members[-1].piece
    words = words_of(code)
    return (
        3.0 * bool(re.search(rf"\b{about.toolchain}\b", code))
        + 2.0 * any(u.acts for u in members)
        + 1.0 * (main.section is Section.STEPS)
        + 2.0 * (main.cue is Cue.REPRO)
        + 1.5 * (main.cue is Cue.FAILS)
        - 3.0 * (main.cue in DECOY_CUES)
        - 3.0 * (main.cue is Cue.WORKS)
        - 2.0 * (main.section in (Section.CONTEXT, Section.EXPECTED))
        + 0.5 * min(6, len(words & about.claim_words))
        - 1.0 * min(4, sum(m.kind in ("name", "code") for m in missing))
        + 0.5 * min(2, len(members) - 1)
        + 0.002 * min(500, code.count("\n"))
    )


_WORD = re.compile(r"[A-Za-z_]\w{3,60}")


_DULL = frozenset(
    {
        *("error", "fails", "failed", "when", "with", "from", "import", "that", "this", "after", "does", "python"),
        *("module", "runtime", "compile", "wrong", "result", "crash", "internal", "check", "function"),
        *("type", "object", "tensor", "float32", "target", "main", "script", "have", "attribute"),
        *join_words(lambda words: words.python.common_words),
    }
)


def words_of(text: str) -> frozenset[str]:
    """Words of at least four letters, lower case, camel case and underscores taken apart as well."""
    found = set()
    for word in _WORD.findall(text[:100_000]):
        found.add(word.lower())
        found.update(part.lower() for part in re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}", word) if len(part) > 3)
    return frozenset(found - _DULL)


def _rivals(ranked: Sequence[Program]) -> Ambiguous | None:
    """The two best when neither is better, both are whole, and they share little."""
    if len(ranked) < 2 or ranked[0].score - ranked[1].score > 1.0:
        return None
    first, second = ranked[0], ranked[1]
    if first.missing or second.missing or set(first.units) & set(second.units):
        return None
    if not all(any(u.acts and u.imports for u in p.units) for p in (first, second)):
        return None
    a, b = ([r.strip() for r in p.code.split("\n") if r.strip()][:300] for p in (first, second))
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    if sum(block.size for block in blocks) > 0.5 * min(len(a), len(b)):  # a shorter version of the same
        return None
    return Ambiguous(lines=tuple(p.units[-1].piece.lines for p in (first, second)))
