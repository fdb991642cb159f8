"""Port the imports of Python code, and add the imports that ported names need. Pure."""

from __future__ import annotations

import libcst as cst
from libcst import metadata

from runners.rewrite.names import Names
from runners.rewrite.scope import ScopedTransformer, dotted_name, get_root, parse_name
from runners.rewrite.text import Unportable


class ImportPorter(ScopedTransformer):
    """Keeps the local name of each import, so that the uses of the name need no change."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self._imports: set[str] = set()
        """Packages to import in all cases."""
        self._named: set[str] = set()
        """Packages that new expressions name. They are imported unless the module already binds their names."""

    def require_package(self, package: str, node: cst.CSTNode) -> None:
        """Import a package unless its name is bound to it at a node."""
        if not self.means_package(package, node):
            self._imports.add(package)

    def name_package(self, package: str) -> None:
        """Import a package that a new expression names, unless the module already binds its name."""
        self._named.add(package)

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import | cst.Pass:
        aliases: list[cst.ImportAlias] = []
        for alias in original_node.names:
            old = dotted_name(alias.name)
            if self.names.find_successor(old, imported=True) is None and self._is_unused(original_node, alias):
                self.record_change(original_node, f"import {old}", "pass", notation=True)
                return cst.Pass()  # an absent module has no effects
            new = self._port_import(old)
            if new == old:
                aliases.append(alias)
                continue
            self.record_change(original_node, old, new)
            if alias.asname is None and get_root(old) != get_root(new):
                aliases += self._keep_package(get_root(old))
            aliases.append(alias.with_changes(name=parse_name(new)))
        return updated_node.with_changes(names=_set_commas(aliases))

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.BaseSmallStatement | cst.FlattenSentinel[cst.BaseSmallStatement]:
        """Port the names that an import takes from a module. Remove a name without a successor if nothing uses it."""
        module = dotted_name(original_node.module)
        if not module or original_node.relative:
            return updated_node
        if isinstance(original_node.names, cst.ImportStar):
            new = self._port_import(module)
            if new == module:
                return updated_node
            self.record_change(original_node, module, new)
            return updated_node.with_changes(module=parse_name(new))
        by_home: dict[str, list[cst.ImportAlias]] = {}
        before = len(self.changes)
        for alias in original_node.names:
            old = f"{module}.{dotted_name(alias.name)}"
            if self.names.find_successor(old, imported=True) is None and self._is_unused_member(original_node, alias):
                self.record_change(original_node, f"import {old}", "pass", notation=True)
                continue
            new = self._port_import(old)
            if new != old:
                self.record_change(original_node, old, new)
            home, _, name = new.rpartition(".")
            by_home.setdefault(home, []).append(_rename_alias(alias, name))
        if len(self.changes) == before:
            return updated_node
        statements = [_import_from_home(updated_node, home, aliases) for home, aliases in by_home.items()]
        if not statements:
            return cst.Pass()
        return statements[0] if len(statements) == 1 else cst.FlattenSentinel(statements)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Import packages that the new names need, after the first import of the testcase."""
        self._imports |= {name for name in self._named if not self.means_package(name, original_node)}
        if not self._imports:
            return updated_node
        added = [cst.parse_statement(f"import {name}") for name in sorted(self._imports)]
        body = list(updated_node.body)
        at = next((i for i, line in enumerate(body) if _accepts_imports_after(line)), -1) + 1
        return updated_node.with_changes(body=[*body[:at], *added, *body[at:]])

    def _is_unused(self, node: cst.Import, alias: cst.ImportAlias) -> bool:
        """True if nothing uses the names that an import binds, except names that another import binds too."""
        scope = self.get_metadata(metadata.ScopeProvider, node, None)
        bound = dotted_name(alias.asname.name if alias.asname else alias.name)
        if scope is None or not bound or len(node.names) > 1:
            return False
        every = [one for one in scope.assignments if isinstance(one, metadata.ImportAssignment)]
        others = {one.name for one in every if one.node is not node}
        return not any(one.references for one in every if one.node is node and one.name not in others)

    def _is_unused_member(self, node: cst.ImportFrom, alias: cst.ImportAlias) -> bool:
        """True if nothing uses the name that ``from module import name`` binds, wherever it is bound."""
        scope = self.get_metadata(metadata.ScopeProvider, node, None)
        bound = dotted_name(alias.asname.name if alias.asname else alias.name)
        return scope is not None and bool(bound) and not any(one.references for one in scope[bound])

    def _keep_package(self, root: str) -> list[cst.ImportAlias]:
        """Bind the package that an import bound before, because something may still use the name. The whole package
        may have moved."""
        new = self.names.find_successor(root, imported=True)
        if new is None:
            return []
        asname = cst.AsName(name=cst.Name(root)) if new != root else None
        return [cst.ImportAlias(name=parse_name(new), asname=asname)]

    def _port_import(self, old: str) -> str:
        new = self.names.find_successor(old, imported=True)
        if new is None:
            raise Unportable(old)
        return new


def _rename_alias(alias: cst.ImportAlias, name: str) -> cst.ImportAlias:
    """Rename an import and keep its local name, so that its uses need no change."""
    if name == dotted_name(alias.name) or alias.asname is not None:
        return alias.with_changes(name=cst.Name(name))
    return alias.with_changes(name=cst.Name(name), asname=cst.AsName(name=cst.Name(dotted_name(alias.name))))


def _import_from_home(node: cst.ImportFrom, home: str, aliases: list[cst.ImportAlias]) -> cst.BaseSmallStatement:
    if not home:  # the name has become a package
        return cst.Import(names=_set_commas(aliases))
    same = len(aliases) == len(node.names) if not isinstance(node.names, cst.ImportStar) else False
    names = aliases if same else _set_commas(aliases)
    return node.with_changes(module=parse_name(home), names=names)


def _set_commas(aliases: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    """Put commas between the names, and none after the last."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        *(alias.with_changes(comma=comma) for alias in aliases[:-1]),
        *(alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in aliases[-1:]),
    ]


def _accepts_imports_after(statement: cst.CSTNode) -> bool:
    """True for a line of imports, except from ``__future__``, which no other import may precede."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(part, cst.Import)
        or (isinstance(part, cst.ImportFrom) and dotted_name(part.module) != "__future__")
        for part in statement.body
    )
