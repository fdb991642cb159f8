"""Which pieces of Python belong to one program, and in what order."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, Section
from bot.extract.python.known_names import is_well_known
from bot.extract.python.names import NO_NAMES, Names, imported_modules, read_names
from bot.extract.python.parse import parse_python
from bot.extract.vocabulary import join_words


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


def read_unit(piece: Piece) -> Unit:
    tree = parse_python(piece.text)
    if tree is None:
        return Unit(piece=piece, tree=None, names=NO_NAMES, acts=False, imports=frozenset())
    return Unit(
        piece=piece,
        tree=tree,
        names=read_names(piece.text),
        acts=any(acts(node) for node in tree.body),
        imports=frozenset(module.partition(".")[0] for module, _ in imported_modules(tree)),
    )


def acts(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is not None and any(isinstance(n, ast.Call) for n in ast.walk(value))
        case _:
            return True


DECOY_CUES = {Cue.QUOTED, Cue.OUTPUT, Cue.EXPECTED}


def _is_decoy(unit: Unit) -> bool:
    """Code that is shown, not meant to be run: quoted source, a dump, what should come out."""
    stands_alone = bool(unit.imports) and not _unknown(unit)
    if unit.piece.section is Section.EXPECTED and (not unit.acts or _unknown(unit)):
        return True
    if unit.piece.section is Section.CONTEXT and not stands_alone:
        return True
    return unit.piece.cue in DECOY_CUES and not (stands_alone and unit.acts)


def _is_excerpt(unit: Unit) -> bool:
    """A passage of the library's own source, which does nothing by itself: no testcase, even if nothing else is."""
    if unit.acts or unit.tree is None:
        return False
    if any(isinstance(node, ast.ImportFrom) and node.level for node in unit.tree.body):
        return True  # a relative import has no package to start from in a script
    return unit.piece.cue is Cue.QUOTED and _leaves_out(unit.tree)


def _leaves_out(tree: ast.Module) -> bool:
    """A function that says more and then goes on with ``...``; alone it would be a stub."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and len(node.body) > 1)
    return any(_is_dots(statement) for function in functions for statement in function.body)


def _is_dots(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _unknown(unit: Unit) -> tuple[str, ...]:
    return tuple(name for name in unit.names.free if not is_well_known(name))


def group_units(units: Sequence[Unit]) -> list[tuple[int, ...]]:
    """Candidate programs as indices into ``units``, in the order of the testcase."""
    whole = [i for i, u in enumerate(units) if not _is_excerpt(u)]
    seeds = [i for i in whole if units[i].acts and not _is_decoy(units[i])]
    seeds = seeds or [i for i in whole if not _is_decoy(units[i])] or whole
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
    pending = deque(units[seed].names.free)
    bound = set(units[seed].names.bound)
    while pending:
        name = pending.popleft()
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
    known = is_well_known(name)
    fit = [i for i in providers.get(name, ()) if i != seed and _may_provide(units[i], known)]
    before = [i for i in fit if i < seed]
    return before[-1] if before else (fit[0] if fit else None)


def _may_provide(unit: Unit, known: bool) -> bool:
    if known:
        return unit.only_imports
    return unit.piece.kind is Kind.DEFINITIONS or unit.piece.cue not in (Cue.WORKS, Cue.QUOTED, Cue.OUTPUT)


def _followed(group: tuple[int, ...], units: Sequence[Unit]) -> tuple[int, ...]:
    """The group with later units that go on where it stops: they use its names and import no compiler themselves."""
    last = max(group)
    members = list(group)
    bound = set().union(*(units[i].names.bound for i in group))
    for i in range(last + 1, len(units)):
        unit = units[i]
        if not unit.acts or _is_decoy(unit) or unit.piece.cue is Cue.WORKS or unit.imports & _COMPILERS:
            continue
        unknown = _unknown(unit)
        if unknown and set(unknown) <= bound:
            members.append(i)
            bound |= unit.names.bound
    return tuple(members)


_COMPILERS = frozenset(join_words(lambda words: words.python.packages))
