"""Group the Python pieces that belong to one program, and order them."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue, IssueSection
from bot.extract.python.known_names import has_known_import
from bot.extract.python.names import NO_NAMES, ModuleNames, list_imports, read_names
from bot.extract.python.parse import parse_python, walk
from bot.extract.vocabulary import join_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One piece of Python with its names and imports."""

    piece: Piece
    tree: ast.Module | None
    names: ModuleNames
    acts: bool
    """True if a top-level statement is more than an import, a definition or a constant."""
    entries: tuple[str, ...]
    """Functions to call if no statement acts: ``main``, tests."""
    imports: frozenset[str]
    """Imported top-level packages."""

    @property
    def only_imports(self) -> bool:
        return self.tree is not None and all(isinstance(n, ast.Import | ast.ImportFrom) for n in self.tree.body)


def read_unit(piece: Piece) -> Unit:
    tree = parse_python(piece.text)
    if tree is None:
        return Unit(piece=piece, tree=None, names=NO_NAMES, acts=False, entries=(), imports=frozenset())
    return Unit(
        piece=piece,
        tree=tree,
        names=read_names(piece.text),
        acts=any(is_action(node) for node in tree.body),
        entries=list_entries(tree),
        imports=frozenset(module.partition(".")[0] for module, _ in list_imports(tree)),
    )


def is_action(node: ast.stmt) -> bool:
    """True unless the statement is an import, a definition or a constant."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return False
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is not None and any(isinstance(n, ast.Call) for n in walk(value))
        case _:
            return True


def list_entries(tree: ast.Module) -> tuple[str, ...]:
    """Return the functions to call in code that only defines functions."""
    if any(is_action(node) for node in tree.body):
        return ()
    return tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _is_entry(node))


_ENTRY = re.compile(r"(?:main|test\w*|run\w*|repro\w*|reproduce\w*)$")


def _is_entry(node: ast.FunctionDef) -> bool:
    arguments = node.args
    required = len(arguments.args) + len(arguments.posonlyargs) - len(arguments.defaults)
    needed = required or sum(d is None for d in arguments.kw_defaults)
    return not needed and not node.decorator_list and bool(_ENTRY.match(node.name))


DECOY_CUES = {Cue.QUOTED, Cue.OUTPUT, Cue.EXPECTED}


def is_decoy(unit: Unit) -> bool:
    """True for code that is only shown: quoted source, a dump, the expected result."""
    unknown = _list_unknown_names(unit)
    stands_alone = bool(unit.imports) and not unknown
    if unit.piece.section is IssueSection.EXPECTED and (not unit.acts or unknown):
        return True
    if unit.piece.section is IssueSection.CONTEXT and not stands_alone:
        return True
    return unit.piece.cue in DECOY_CUES and not (stands_alone and (unit.acts or unit.entries))


def _is_excerpt(unit: Unit) -> bool:
    """True for a passage of the library's source that does not act. It is not a testcase, even as the only code."""
    if unit.acts or unit.tree is None:
        return False
    if any(isinstance(node, ast.ImportFrom) and node.level for node in unit.tree.body):
        return True  # a relative import has no package to start from in a script
    return unit.piece.cue is Cue.QUOTED and _has_elided_code(unit.tree)


def _has_elided_code(tree: ast.Module) -> bool:
    """True if a function holds ``...`` beside other statements. A function of ``...`` alone is a stub."""
    functions = (node for node in walk(tree) if isinstance(node, ast.FunctionDef) and len(node.body) > 1)
    return any(_is_ellipsis(statement) for function in functions for statement in function.body)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _list_unknown_names(unit: Unit) -> tuple[str, ...]:
    return tuple(name for name in unit.names.free if not has_known_import(name))


def group_units(units: Sequence[Unit]) -> list[tuple[int, ...]]:
    """Return candidate programs as indices into ``units``, in the order of the testcase."""
    whole = [i for i, u in enumerate(units) if not _is_excerpt(u)]
    seeds = [i for i in whole if units[i].acts and not is_decoy(units[i])]
    seeds = seeds or [i for i in whole if not is_decoy(units[i])] or whole
    providers = _index_providers(units)
    groups = dict.fromkeys(_add_followers(_collect_needed(seed, units, providers), units) for seed in seeds)
    return [g for g in groups if not any(set(g) < set(o) and _is_extended_by(g, o, units) for o in groups)]


def _is_extended_by(part: tuple[int, ...], whole: tuple[int, ...], units: Sequence[Unit]) -> bool:
    """True if ``whole`` continues ``part``.

    False if ``whole`` adds the variant that works, or code with names that no unit binds: a passage of printed IR
    may share names with the program that printed it.
    """
    if any(units[i].piece.cue is Cue.WORKS for i in set(whole) - set(part)):
        return False
    return _list_open_names(whole, units) <= _list_open_names(part, units)


def _list_open_names(group: Sequence[int], units: Sequence[Unit]) -> set[str]:
    """Return the names that a program uses and does not bind, well-known ones not counted."""
    bound = set().union(*(units[i].names.bound for i in group))
    return set().union(*(_list_unknown_names(units[i]) for i in group)) - bound


def _index_providers(units: Sequence[Unit]) -> dict[str, list[int]]:
    """Map each name to the units that bind it."""
    providers: dict[str, list[int]] = {}
    for i, unit in enumerate(units):
        for name in unit.names.bound:
            providers.setdefault(name, []).append(i)
    return providers


def _collect_needed(seed: int, units: Sequence[Unit], providers: Mapping[str, list[int]]) -> tuple[int, ...]:
    """Return ``seed`` and the units that bind its names, directly or through each other.

    The units are in document order, except that units below the seed precede the seed, which needs them.
    """
    group = [seed]
    pending = deque(units[seed].names.free)
    bound = set(units[seed].names.bound)
    while pending:
        name = pending.popleft()
        if name in bound:
            continue
        provider = _find_provider(name, seed, units, providers)
        if provider is None or provider in group:
            continue
        group.append(provider)
        bound |= units[provider].names.bound
        pending.extend(units[provider].names.free)
    return (*sorted(i for i in group if i != seed), seed)


def _find_provider(name: str, seed: int, units: Sequence[Unit], providers: Mapping[str, list[int]]) -> int | None:
    """Return the nearest unit above ``seed`` that binds ``name``, else the nearest below.

    For a well-known name, only a unit of imports is joined, not another complete program.
    """
    known = has_known_import(name)
    fit = [i for i in providers.get(name, ()) if i != seed and _can_provide(units[i], known)]
    before = [i for i in fit if i < seed]
    return before[-1] if before else (fit[0] if fit else None)


def _can_provide(unit: Unit, known: bool) -> bool:
    if known:
        return unit.only_imports
    return unit.piece.kind is Kind.DEFINITIONS or unit.piece.cue not in (Cue.WORKS, Cue.QUOTED, Cue.OUTPUT)


def _add_followers(group: tuple[int, ...], units: Sequence[Unit]) -> tuple[int, ...]:
    """Add later units that continue the group: they use its names and import no compiler themselves."""
    members = list(group)
    bound = set().union(*(units[i].names.bound for i in group))
    for i in range(max(group) + 1, len(units)):
        unit = units[i]
        if not unit.acts or is_decoy(unit) or unit.piece.cue is Cue.WORKS or unit.imports & _COMPILERS:
            continue
        unknown = _list_unknown_names(unit)
        if unknown and set(unknown) <= bound:
            members.append(i)
            bound |= unit.names.bound
    return tuple(members)


_COMPILERS = frozenset(join_words(lambda words: words.python.packages))
