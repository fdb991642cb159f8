"""Python pieces → one testcase: which belong together, in what order, and what it takes to run them.

Nothing is invented. What is added (an import of a well-known name, a call of ``main``) is recorded as a repair; what
cannot be had from the text is recorded as missing.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.extract.names import NO_NAMES, Names, files_read, imported_modules, read_names
from bot.extract.pieces import Kind, Piece
from bot.extract.pytext import parse_python
from bot.extract.requirements import read_imports
from bot.extract.sections import Cue, Section
from bot.extract.types import Missing, Repair
from bot.extract.wellknown import well_known

MAIN_FILE = "repro.py"
MAX_UNITS = 60
"""Code pieces looked at; the joining below costs the square of their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One piece of Python with what it binds, uses and does."""

    piece: Piece
    tree: ast.Module | None
    names: Names
    acts: bool
    """Has top-level statements beyond imports, definitions and constants."""
    imports: frozenset[str]
    """Top-level packages imported."""

    @property
    def only_imports(self) -> bool:
        return self.tree is not None and all(isinstance(n, ast.Import | ast.ImportFrom) for n in self.tree.body)


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


def assemble(
    pieces: Sequence[Piece], toolchain: str, claim_words: frozenset[str], extra: Mapping[str, str] | None = None
) -> tuple[Program | Ambiguous | None, tuple[Program, ...]]:
    """The reporter's program and the ones said to work (controls)."""
    units = [read_unit(p) for p in pieces if p.kind in (Kind.PYTHON, Kind.TVMSCRIPT)][:MAX_UNITS]
    usable = [u for u in units if u.tree is not None] or units
    groups = _groups(usable)
    programs = [_program(g, usable, toolchain, claim_words, extra) for g in groups]
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


def read_unit(piece: Piece) -> Unit:
    tree = parse_python(piece.text)
    if tree is None:
        return Unit(piece=piece, tree=None, names=NO_NAMES, acts=False, imports=frozenset())
    return Unit(
        piece=piece,
        tree=tree,
        names=read_names(piece.text),
        acts=any(_acts(node) for node in tree.body),
        imports=frozenset(module.partition(".")[0] for module, _ in imported_modules(tree)),
    )


def _acts(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is not None and any(isinstance(n, ast.Call) for n in ast.walk(value))
        case _:
            return True


# ---------------------------------------------------------------------------------------------- which belong together

_DECOY_CUES = {Cue.QUOTED, Cue.OUTPUT, Cue.EXPECTED}


def _is_decoy(unit: Unit) -> bool:
    """Code that is shown, not meant to be run: quoted source, a dump, what should come out."""
    stands_alone = bool(unit.imports) and not _unknown(unit)
    if unit.piece.section is Section.EXPECTED and (not unit.acts or _unknown(unit)):
        return True
    if unit.piece.section is Section.CONTEXT and not stands_alone:
        return True
    return unit.piece.cue in _DECOY_CUES and not (stands_alone and unit.acts)


def _unknown(unit: Unit) -> tuple[str, ...]:
    return tuple(name for name in unit.names.free if not well_known(name, "tvm") and not well_known(name, "iree"))


def _groups(units: Sequence[Unit]) -> list[tuple[int, ...]]:
    """Candidate programs as indices into ``units``, in the order of the testcase."""
    seeds = [i for i, u in enumerate(units) if u.acts and not _is_decoy(u)]
    seeds = seeds or [i for i, u in enumerate(units) if not _is_decoy(u)] or list(range(len(units)))
    providers = _providers(units)
    groups = dict.fromkeys(_followed(_closure(seed, units, providers), units) for seed in seeds)
    return [g for g in groups if not any(set(g) < set(other) and _extends(g, other, units) for other in groups)]


def _extends(part: tuple[int, ...], whole: tuple[int, ...], units: Sequence[Unit]) -> bool:
    """``whole`` is ``part`` and what follows from it, not ``part`` and the variant that works."""
    return not any(units[i].piece.cue is Cue.WORKS for i in set(whole) - set(part))


def _providers(units: Sequence[Unit]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, unit in enumerate(units):
        for name in unit.names.bound:
            found.setdefault(name, []).append(i)
    return found


def _closure(seed: int, units: Sequence[Unit], providers: Mapping[str, list[int]]) -> tuple[int, ...]:
    """``seed`` and the units that bind what it uses, directly or through each other."""
    group = [seed]
    pending = list(units[seed].names.free)
    bound = set(units[seed].names.bound)
    while pending:
        name = pending.pop(0)
        if name in bound:
            continue
        provider = _provider(name, seed, units, providers)
        if provider is None or provider in group:
            continue
        group.append(provider)
        bound |= units[provider].names.bound
        pending.extend(units[provider].names.free)
    return tuple(sorted(group, key=lambda i: _place(i, seed)))


def _place(index: int, seed: int) -> tuple[int, int]:
    """Document order, but what the seed needs from below comes before it."""
    return (0, index) if index < seed else ((1, index) if index > seed else (2, index))


def _provider(name: str, seed: int, units: Sequence[Unit], providers: Mapping[str, list[int]]) -> int | None:
    """The unit that binds ``name``: the nearest above, else the nearest below. A well-known name is worth joining a
    unit of imports, not another whole program."""
    known = bool(well_known(name, "tvm") or well_known(name, "iree"))
    fit = [i for i in providers.get(name, ()) if i != seed and _may_provide(units[i], known)]
    before = [i for i in fit if i < seed]
    return before[-1] if before else (fit[0] if fit else None)


def _may_provide(unit: Unit, known: bool) -> bool:
    if known:
        return unit.only_imports
    return unit.piece.kind is Kind.TVMSCRIPT or unit.piece.cue not in (Cue.WORKS, Cue.QUOTED, Cue.OUTPUT)


def _followed(group: tuple[int, ...], units: Sequence[Unit]) -> tuple[int, ...]:
    """The group with later units that go on where it stops: they use its names and import no compiler themselves."""
    last = max(group)
    members = list(group)
    bound = set().union(*(units[i].names.bound for i in group))
    for i in range(last + 1, len(units)):
        unit = units[i]
        if not unit.acts or _is_decoy(unit) or unit.piece.cue is Cue.WORKS or unit.imports & {"tvm", "iree"}:
            continue
        unknown = _unknown(unit)
        if unknown and set(unknown) <= bound:
            members.append(i)
            bound |= unit.names.bound
    return tuple(members)


# ---------------------------------------------------------------------------------------------- one program


def _program(
    group: tuple[int, ...],
    units: Sequence[Unit],
    toolchain: str,
    claim_words: frozenset[str],
    extra: Mapping[str, str] | None,
) -> Program:
    members = tuple(units[i] for i in group)
    code = "\n".join(u.piece.text for u in members)
    repairs = [r for u in members for r in u.piece.repairs]
    if len(members) > 1:
        places = [f"block {u.piece.block}" if u.piece.block else f"lines {u.piece.lines[0]} on" for u in members]
        repairs.append(Repair(kind="join-blocks", detail=", ".join(places)))
    names = members[0].names if len(members) == 1 else read_names(code)
    code, added = add_imports(code, names, toolchain)
    code, called = call_main(code)
    undefined = [n for n in names.free if not well_known(n, toolchain, code)]
    program_missing, requirements, files = needs_of(code, undefined, toolchain, units, extra)
    return Program(
        code=code,
        units=members,
        repairs=(*repairs, *added, *called),
        missing=program_missing,
        requirements=requirements,
        score=_score(members, code, program_missing, toolchain, claim_words),
        extra_files=files,
    )


def _score(
    members: Sequence[Unit], code: str, missing: Sequence[Missing], toolchain: str, claim_words: frozenset[str]
) -> float:
    main = members[-1].piece
    words = words_of(code)
    return (
        3.0 * bool(re.search(rf"\b{toolchain}\b", code))
        + 2.0 * any(u.acts for u in members)
        + 1.0 * (main.section is Section.STEPS)
        + 2.0 * (main.cue is Cue.REPRO)
        + 1.5 * (main.cue is Cue.FAILS)
        - 3.0 * (main.cue in _DECOY_CUES)
        - 3.0 * (main.cue is Cue.WORKS)
        - 2.0 * (main.section in (Section.CONTEXT, Section.EXPECTED))
        + 0.5 * min(6, len(words & claim_words))
        - 1.0 * min(4, sum(m.kind in ("name", "code") for m in missing))
        + 0.5 * min(2, len(members) - 1)
        + 0.002 * min(500, code.count("\n"))
    )


_WORD = re.compile(r"[A-Za-z_]\w{3,60}")
_DULL = frozenset(
    {
        *("error", "fails", "failed", "when", "with", "from", "import", "that", "this", "after", "does", "python"),
        *("module", "relax", "runtime", "compile", "wrong", "result", "crash", "internal", "check", "function"),
        *("type", "object", "tensor", "float32", "target", "main", "script", "have", "attribute"),
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
    common = difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
    if common > 0.5:
        return None
    return Ambiguous(lines=tuple(p.units[-1].piece.lines for p in (first, second)))


# ---------------------------------------------------------------------------------------------- repairs


def add_imports(code: str, names: Names, toolchain: str) -> tuple[str, tuple[Repair, ...]]:
    """``code`` with imports of the well-known names that it uses and nobody binds, and a repair for each."""
    lines = list(dict.fromkeys(line for line in well_known_lines(names.free, toolchain, code)))
    if not lines:
        return code, ()
    at = _after_header(code)
    rows = code.split("\n")
    fixed = "\n".join([*rows[:at], *lines, *rows[at:]])
    return fixed, tuple(Repair(kind="add-import", detail=line) for line in lines)


def well_known_lines(free: Iterable[str], toolchain: str, code: str) -> list[str]:
    found = [(known, name) for name in free if (known := well_known(name, toolchain, code))]
    return [known.line for known, _ in sorted(found, key=lambda pair: pair[0].order)]


def _after_header(code: str) -> int:
    """The row behind the docstring and ``from __future__`` imports."""
    tree = parse_python(code)
    row = 0
    for node in tree.body if tree else ():
        docstring = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        row = node.end_lineno or row
    return row


def call_main(code: str) -> tuple[str, tuple[Repair, ...]]:
    """``code`` with calls of its entry functions when it defines some and calls nothing at all."""
    tree = parse_python(code)
    if tree is None or any(_acts(n) for n in tree.body):
        return code, ()
    entries = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and _is_entry(n)]
    if not entries:
        return code, ()
    calls = "".join(f"{name}()\n" for name in entries)
    return f"{code.rstrip()}\n\n{calls}", tuple(Repair(kind="call-main", detail=f"{name}()") for name in entries)


_ENTRY = re.compile(r"(?:main|test\w*|run\w*|repro\w*|reproduce\w*)$")


def _is_entry(node: ast.FunctionDef) -> bool:
    arguments = node.args
    required = len(arguments.args) + len(arguments.posonlyargs) - len(arguments.defaults)
    needed = required or sum(d is None for d in arguments.kw_defaults)
    return not needed and not node.decorator_list and bool(_ENTRY.match(node.name))


# ---------------------------------------------------------------------------------------------- what is missing


def needs_of(
    code: str, undefined: Iterable[str], toolchain: str, units: Sequence[Unit], extra: Mapping[str, str] | None
) -> tuple[tuple[Missing, ...], tuple[str, ...], dict[str, Unit]]:
    """What the program lacks, what has to be installed for it, and the other files of the issue that it imports."""
    tree = parse_python(code)
    if tree is None:
        return (Missing(kind="code", name="the code does not parse as Python"),), (), {}
    imports = read_imports(tree, toolchain, extra)
    by_name = {u.piece.name.removesuffix(".py"): u for u in units if u.piece.name.endswith(".py")}
    given = {m.strip("."): by_name[m.strip(".")] for m in imports.unknown if m.strip(".") in by_name}
    missing = [
        *(Missing(kind="module", name=m) for m in imports.unknown if m.strip(".") not in given),
        *(Missing(kind="file", name=f) for f in files_read(tree)),
        *_missing_code(tree),
    ]
    missing += [Missing(kind="name", name=n) for n in undefined if n != "metadata"]
    files = {f"{name}.py": unit for name, unit in given.items()}
    return tuple(dict.fromkeys(missing)), imports.requirements, files


def _missing_code(tree: ast.Module) -> Iterable[Missing]:
    """Constants that TVMScript leaves out, and bodies elided to ``...``."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=str() as key)):
                yield Missing(kind="code", name=f'metadata["{key}"]')
            case ast.FunctionDef(name=name, body=[*_, ast.Expr(value=ast.Constant(value=value))]) if (
                value is Ellipsis
            ):
                if not _may_be_empty(node):
                    yield Missing(kind="code", name=f"the body of {name}")
            case ast.Assign(value=ast.Constant(value=value), targets=[ast.Name(id=name)]) if value is Ellipsis:
                yield Missing(kind="code", name=f"the value of {name}")
            case _:
                continue


def _may_be_empty(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name | ast.Attribute) and "overload" in ast.dump(d) for d in node.decorator_list)
