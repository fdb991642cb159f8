"""Resolve names in Python code to the dotted names that imports bind them to, before and after porting. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
from libcst import metadata

from runners.rewrite.names import Names
from runners.rewrite.text import NameChange


@dataclass(frozen=True, slots=True)
class Binding:
    """The dotted name that an import binds a local name to, before and after porting."""

    old: str
    new: str


class ScopedTransformer(cst.CSTTransformer):
    """A transformer that resolves names through imports and records its changes."""

    METADATA_DEPENDENCIES = (metadata.ScopeProvider, metadata.PositionProvider)

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names
        self.changes: list[NameChange] = []

    def resolve_name(self, node: cst.CSTNode) -> tuple[Binding, str, str] | None:
        """Return binding, local name and rest of a dotted name. None unless only imports bind its first part."""
        dotted = dotted_name(node)
        root, _, rest = dotted.partition(".")
        scope = self.get_metadata(metadata.ScopeProvider, first_name(node), None) if dotted else None
        if scope is None:
            return None
        found = {self._find_binding(assignment, root) for assignment in scope[root]}
        binding = found.pop() if len(found) == 1 else None
        return (binding, root, rest) if binding is not None else None

    def _find_binding(self, assignment: metadata.BaseAssignment, name: str) -> Binding | None:
        if not isinstance(assignment, metadata.ImportAssignment):
            return None
        imported = assignment.node
        if isinstance(imported, cst.Import):
            for alias in imported.names:
                if alias.asname is not None and dotted_name(alias.asname.name) == name:
                    return self._make_binding(dotted_name(alias.name))
            return Binding(name, name)  # `import a.b` binds `a`
        if (
            not isinstance(imported, cst.ImportFrom)
            or isinstance(imported.names, cst.ImportStar)
            or imported.relative
        ):
            return None
        for alias in imported.names:
            if dotted_name(alias.asname.name if alias.asname else alias.name) == name:
                return self._make_binding(f"{dotted_name(imported.module)}.{dotted_name(alias.name)}")
        return None

    def _make_binding(self, old: str) -> Binding:
        return Binding(old, self.names.find_successor(old, imported=True) or old)

    def get_full_name(self, node: cst.CSTNode) -> str:
        """Return the dotted name of an expression before porting. Empty if no import binds its first name."""
        resolved = self.resolve_name(node)
        if resolved is None:
            return ""
        binding, _, rest = resolved
        return f"{binding.old}.{rest}" if rest else binding.old

    def record_change(
        self, node: cst.CSTNode, old: str, new: str, *, notation: bool = False, prints: bool = True
    ) -> None:
        start = self.get_metadata(metadata.PositionProvider, node).start
        self.changes.append(NameChange(line=start.line, old=old, new=new, notation=notation, prints=prints))

    def means_package(self, package: str, node: cst.CSTNode) -> bool:
        """True if the name of a package is bound only to that package at a node."""
        scope = self.get_metadata(metadata.ScopeProvider, node, None)
        bound = {self._find_binding(assignment, package) for assignment in scope[package]} if scope else set()
        return bound == {Binding(package, package)}


def dotted_name(node: cst.CSTNode | None) -> str:
    """Return ``a.b.c`` for a name or a chain of attributes. Empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join([node.value, *reversed(parts)]) if isinstance(node, cst.Name) else ""


def first_name(node: cst.CSTNode) -> cst.CSTNode:
    """Return the first node of a chain of attributes, which is a name or another expression."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return node


def parse_name(text: str) -> cst.Name | cst.Attribute:
    """Return the syntax tree of a dotted name."""
    parsed = cst.parse_expression(text)
    assert isinstance(parsed, cst.Name | cst.Attribute)
    return parsed


def get_root(name: str) -> str:
    return name.partition(".")[0]
