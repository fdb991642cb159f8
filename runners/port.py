"""Mechanical porting: names that moved between releases, put right where the rename is exact. Pure, both directions.

A ported testcase is a text of its own: it is run as such, shown as such, with every substitution, and never takes the
original's place. Names are resolved through the testcase's own imports (libcst), so that strings, comments and other
people's attributes of the same name stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
import msgspec
from libcst import metadata

from runners.protocol import Testcase
from runners.toolchains.facts import DriftEntry

MAX_CODE_CHARS = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """One name put for another in one file (or in the steps, where ``file`` is empty)."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ported:
    testcase: Testcase
    substitutions: tuple[Substitution, ...]


def port(testcase: Testcase, version: str, table: Sequence[DriftEntry]) -> Ported | None:
    """The testcase in the API of ``version``; None when nothing in it is known to have moved, or it can't be read."""
    renames = renames_for(version, table)
    files, done = dict(testcase.files), []
    for name, text in testcase.files.items():
        if name.endswith(".py"):
            files[name], used = _port_python(text, renames)
        elif name.endswith(".mlir"):
            files[name], used = _port_mlir(text, renames)
        else:
            continue
        done += [Substitution(file=name, old=old, new=new) for old, new in used.items()]
    steps, used = _port_steps(testcase.steps, renames)
    done += [Substitution(file="", old=old, new=new) for old, new in used.items()]
    if not done:
        return None
    return Ported(testcase=msgspec.structs.replace(testcase, files=files, steps=steps), substitutions=tuple(done))


@dataclass(frozen=True, slots=True, kw_only=True)
class Renames:
    """What is called otherwise in one release, by kind of name."""

    dotted: Mapping[str, str]
    keywords: Mapping[str, str]
    methods: Mapping[str, str]
    flags: Mapping[str, str]
    words: Mapping[str, str]


def renames_for(version: str, table: Sequence[DriftEntry]) -> Renames:
    """Forward where the old name is gone, backward where the new one isn't there yet; only exact ones."""
    found: dict[str, dict[str, str]] = {"dotted": {}, "keywords": {}, "methods": {}, "flags": {}, "words": {}}
    for entry in table:
        if entry.new is None or not (entry.exact or entry.old in _EXACT_IN_CODE):
            continue
        if entry.affects(version):
            old, new = entry.old, entry.new
        elif entry.too_new(version) and entry.gone_in is not None:
            old, new = entry.new, entry.old
        else:
            continue
        found[_place(entry)].setdefault(old, new)
    return Renames(**found)


_EXACT_IN_CODE = {"tvm.tir", "asnumpy"}
"""Renames that hold for every name a testcase can use, though not for all that the namespace once held.

``tvm.tir`` lost schedules and blocks to ``tvm.s_tir``, which have rows of their own (the longer name wins); a method
``asnumpy`` exists on tensors only.
"""


def _place(entry: DriftEntry) -> str:
    match entry.kind:
        case "keyword":
            return "keywords"
        case "flag":
            return "flags"
        case "op" | "dialect":
            return "words"
        case "module" | "attribute":
            return "dotted" if "." in entry.old else "methods"


# ---------------------------------------------------------------------------------------------- command lines, MLIR


def _port_steps(
    steps: tuple[tuple[str, ...], ...], renames: Renames
) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
    used: dict[str, str] = {}

    def word(text: str) -> str:
        name, equals, value = text.partition("=")
        for old, new in ((text, renames.flags.get(text)), (name, renames.flags.get(name))):
            if new is not None:
                used[old] = new
                return new if old == text else f"{new}{equals}{value}"
        return text

    return tuple((step[0], *(word(text) for text in step[1:])) for step in steps), used


def _port_mlir(text: str, renames: Renames) -> tuple[str, dict[str, str]]:
    """Operations and types as whole words outside comments."""
    used: dict[str, str] = {}
    for old, new in renames.words.items():
        pattern = re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)")
        lines = []
        for line in text.split("\n"):
            code, slashes, comment = line.partition("//")
            changed = pattern.sub(new, code)
            if changed != code:
                used[old] = new
            lines.append(changed + slashes + comment)
        text = "\n".join(lines)
    return text, used


# ---------------------------------------------------------------------------------------------- Python


def _port_python(code: str, renames: Renames) -> tuple[str, dict[str, str]]:
    if len(code) > MAX_CODE_CHARS:
        return code, {}
    try:
        tree = metadata.MetadataWrapper(cst.parse_module(code), unsafe_skip_copy=True)
        rewriter = _Rewriter(renames)
        ported = tree.visit(rewriter)
    except (cst.ParserSyntaxError, RecursionError, cst.CSTValidationError):
        return code, {}
    return (ported.code, rewriter.used) if rewriter.used else (code, {})


class _Rewriter(cst.CSTTransformer):
    """Rewrites names by what they are bound to: ``relax.X`` after ``from tvm import relax`` is ``tvm.relax.X``."""

    METADATA_DEPENDENCIES = (metadata.QualifiedNameProvider,)

    def __init__(self, renames: Renames) -> None:
        super().__init__()
        self.renames = renames
        self.used: dict[str, str] = {}
        self.imports: set[str] = set()

    # ---- imports

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Packages that the new names come from and the testcase does not import."""
        added = [cst.parse_statement(f"import {name}") for name in sorted(self.imports)]
        at = next((i for i, line in enumerate(updated_node.body) if not _stays_first(line)), len(updated_node.body))
        return updated_node.with_changes(body=[*updated_node.body[:at], *added, *updated_node.body[at:]])

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        module = _dotted(original_node.module)
        if not module or original_node.relative or isinstance(updated_node.names, cst.ImportStar):
            return updated_node
        moved = {alias: self._target(f"{module}.{_dotted(alias.name)}") for alias in updated_node.names}
        parents = {(new or f"{module}.{_dotted(alias.name)}").rpartition(".")[0] for alias, new in moved.items()}
        if len(parents) != 1:
            return updated_node  # would have to become two statements: left to say that it can't be ported
        aliases = [
            alias if new is None else self._renamed(alias, f"{module}.{_dotted(alias.name)}", new)
            for alias, new in moved.items()
        ]
        parent = parents.pop()
        if parent == module:
            return updated_node.with_changes(names=aliases)
        return updated_node.with_changes(module=_expression(parent), names=aliases)

    def _renamed(self, alias: cst.ImportAlias, old: str, new: str) -> cst.ImportAlias:
        """The import under its new name, bound to the old one, so that its uses stay as they are."""
        self.used[old] = new
        name = new.rpartition(".")[2]
        if alias.asname is not None or name == _dotted(alias.name):
            return alias.with_changes(name=cst.Name(name))
        bound = cst.AsName(name=cst.Name(_dotted(alias.name)))
        return alias.with_changes(name=cst.Name(name), asname=bound)

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        aliases = []
        for alias in updated_node.names:
            old = _dotted(alias.name)
            new = self._target(old)
            if new is not None:
                self.used[old] = new
                alias = alias.with_changes(name=_expression(new))
            aliases.append(alias)
        return updated_node.with_changes(names=aliases)

    # ---- uses

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if _dotted(original_node).partition(".")[0] == "":  # on the value of an expression: a method
            return self._method(updated_node)
        for name in self.get_metadata(metadata.QualifiedNameProvider, original_node, ()):
            if name.source is not metadata.QualifiedNameSource.IMPORT:
                continue
            new = self.renames.dotted.get(name.name)
            if new is not None:
                return self._moved(original_node, updated_node, name.name, new)
        return self._method(updated_node)

    def _moved(self, original: cst.Attribute, updated: cst.Attribute, old: str, new: str) -> cst.BaseExpression:
        self.used[old] = new
        if old.rpartition(".")[0] == new.rpartition(".")[0]:  # the same owner, however it is bound here
            return updated.with_changes(attr=cst.Name(new.rpartition(".")[2]))
        root = new.partition(".")[0]
        if root == _dotted(original).partition(".")[0]:
            return _expression(new)
        self.imports.add(root)
        return _expression(new)

    def _method(self, node: cst.Attribute) -> cst.Attribute:
        new = self.renames.methods.get(node.attr.value)
        if new is None:
            return node
        self.used[node.attr.value] = new
        return node.with_changes(attr=cst.Name(new))

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        new = self.renames.keywords.get(original_node.keyword.value) if original_node.keyword else None
        if new is None or original_node.keyword is None:
            return updated_node
        self.used[original_node.keyword.value] = new
        return updated_node.with_changes(keyword=cst.Name(new))

    def _target(self, name: str) -> str | None:
        """The new name of ``name``, or of the namespace that holds it: the longest known one."""
        for prefix in _prefixes(name):
            new = self.renames.dotted.get(prefix)
            if new is not None:
                return new + name[len(prefix) :]
        return None


def _stays_first(statement: cst.CSTNode) -> bool:
    """A docstring, or an import from ``__future__``."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
        case cst.SimpleStatementLine(body=[cst.ImportFrom(module=cst.Name(value="__future__"))]):
            return True
        case _:
            return False


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


def _dotted(node: cst.CSTNode | None) -> str:
    """``a.b.c`` of a name or a chain of attributes; empty for anything else."""
    match node:
        case cst.Name(value=value):
            return value
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            return f"{_dotted(owner)}.{name}" if _dotted(owner) else ""
        case _:
            return ""


def _expression(text: str) -> cst.Name | cst.Attribute:
    parsed = cst.parse_expression(text)
    assert isinstance(parsed, cst.Name | cst.Attribute)
    return parsed
