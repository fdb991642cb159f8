"""Reduce a Python testcase: remove statements, blocks around statements, arguments and comments.

libcst parses and writes the text, so the rest keeps its author's format. TVMScript, which TVM reads from the source,
has Python's syntax. No code is imported or run here.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from runners.core.hostile.syntax import is_shallow
from runners.minimization.ddmin import Pieces, find_kept, remove_pieces

_PREDEFINED = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}
_MOST_DEPTH = 12


def reduce_python(source: str, keeps: Callable[[str], bool]) -> str:
    """Return the smallest program found that ``keeps`` accepts, or ``source`` if it cannot be parsed or reduced."""
    text = _PythonReduction(source, keeps).reduce()
    return text if text.endswith("\n") else text + "\n"


class _PythonReduction:
    """A program under reduction. ``unbound`` contains the names that the original does not bind either."""

    def __init__(self, source: str, keeps: Callable[[str], bool]) -> None:
        self.text = source
        self.keeps = keeps
        self.unbound = find_unbound_names(source) or frozenset()

    def reduce(self) -> str:
        if not is_shallow(self.text):
            return self.text
        with contextlib.suppress(RecursionError):  # of a walk: texts accepted before fail as the original does
            self._reduce_parsed()
        return self.text

    def _reduce_parsed(self) -> None:
        try:
            cst.parse_module(self.text)
        except (cst.ParserSyntaxError, ValueError):
            return
        self._accept(find_kept([self._check_names(_remove_comments(self._parse_module()))], self.keeps))
        before = ""
        while before != self.text:
            before = self.text
            for depth in range(_MOST_DEPTH):
                if not self._remove_statements(depth):
                    break
            self._unwrap_blocks()
            self._remove_nodes(_is_optional)

    def _parse_module(self) -> cst.Module:
        return cst.parse_module(self.text)

    def _accept(self, text: str | None) -> None:
        self.text = text if text is not None else self.text

    def _check_names(self, module: cst.Module) -> str | None:
        """Return the program as text. None if it is unchanged, does not parse, or uses an unbound name."""
        text = module.code
        unbound = find_unbound_names(text)
        return None if unbound is None or unbound - self.unbound or text == self.text else text

    def _remove_statements(self, depth: int) -> bool:
        """Remove statements that are ``depth`` blocks deep. Return False if none exist."""
        module = self._parse_module()
        found = _Statements(depth)
        module.visit(found)
        self._accept(remove_pieces(self._make_pieces(module, found.nodes), self.keeps))
        return bool(found.nodes)

    def _remove_nodes(self, matches: Callable[[cst.CSTNode], bool]) -> None:
        module = self._parse_module()
        found = _Nodes(matches)
        module.visit(found)
        self._accept(remove_pieces(self._make_pieces(module, found.nodes), self.keeps))

    def _make_pieces(self, module: cst.Module, nodes: Sequence[cst.CSTNode]) -> Pieces[str]:
        def build_without(gone: frozenset[int]) -> str | None:
            try:
                changed = module.visit(_Drop(frozenset(id(nodes[i]) for i in gone)))
            except cst.CSTValidationError:
                return None  # an import without names; the whole statement is a separate piece
            return self._check_names(changed) if isinstance(changed, cst.Module) else None

        return Pieces(len(nodes), build_without)

    def _unwrap_blocks(self) -> None:
        """Replace blocks by their bodies, outer blocks first, while the failure remains."""
        number = 0
        while True:
            module = self._parse_module()
            found = _Nodes(lambda node: isinstance(node, cst.If | cst.For | cst.While | cst.With | cst.Try))
            module.visit(found)
            if number >= len(found.nodes):
                return
            changed = module.visit(_Unwrap(found.nodes[number]))
            text = self._check_names(changed) if isinstance(changed, cst.Module) else None
            if text is not None and self.keeps(text):
                self._accept(text)
            else:
                number += 1


# ------------------------------------------------------------------------------------------ pieces


class _Statements(cst.CSTVisitor):
    """Collect the statements at one depth, in order."""

    def __init__(self, depth: int) -> None:
        self.nodes: list[cst.CSTNode] = []
        self._left = depth

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.IndentedBlock):
            self._left -= 1
        elif isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement) and self._left == 0:
            self.nodes.append(node)
            return False
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.IndentedBlock):
            self._left += 1


class _Nodes(cst.CSTVisitor):
    """Collect the nodes that match, outer nodes first."""

    def __init__(self, matches: Callable[[cst.CSTNode], bool]) -> None:
        self.nodes: list[cst.CSTNode] = []
        self._matches = matches

    def on_visit(self, node: cst.CSTNode) -> bool:
        if self._matches(node):
            self.nodes.append(node)
        return True


def _is_optional(node: cst.CSTNode) -> bool:
    """True for nodes that may be removable: keyword arguments, elements, decorators, imported names."""
    match node:
        case cst.Arg(keyword=cst.Name()) | cst.Element() | cst.DictElement() | cst.Decorator() | cst.ImportAlias():
            return True
        case _:
            return False


class _Drop(cst.CSTTransformer):
    """Remove nodes. An empty block gets a ``pass``."""

    def __init__(self, gone: frozenset[int]) -> None:
        self._gone = gone

    def on_leave(  # type: ignore[override]  # any node may go, which libcst's own signature cannot say
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel:
        if id(original_node) in self._gone:
            return cst.RemoveFromParent()
        if isinstance(updated_node, cst.Import | cst.ImportFrom) and not isinstance(
            updated_node.names, cst.ImportStar
        ):
            *others, last = updated_node.names  # without brackets, a comma at the end is not allowed
            names = (*others, last.with_changes(comma=cst.MaybeSentinel.DEFAULT))
            return updated_node.with_changes(names=names)
        if isinstance(updated_node, cst.Call) and updated_node.args and updated_node != original_node:
            *before, end = updated_node.args
            return updated_node.with_changes(args=(*before, end.with_changes(comma=cst.MaybeSentinel.DEFAULT)))
        return updated_node


class _Unwrap(cst.CSTTransformer):
    def __init__(self, target: cst.CSTNode) -> None:
        self._target = target

    def on_leave(  # type: ignore[override]  # as in _Drop
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
        if original_node is not self._target:
            return updated_node
        body = getattr(updated_node, "body", None)
        return cst.FlattenSentinel(body.body) if isinstance(body, cst.IndentedBlock) else updated_node


def _remove_comments(module: cst.Module) -> cst.Module:
    class Plain(cst.CSTTransformer):
        def leave_EmptyLine(
            self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
        ) -> cst.EmptyLine | cst.RemovalSentinel:
            return cst.RemoveFromParent()

        def leave_TrailingWhitespace(
            self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
        ) -> cst.TrailingWhitespace:
            return updated_node.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))

    changed = module.visit(Plain())
    assert isinstance(changed, cst.Module)
    return changed


def find_unbound_names(source: str) -> frozenset[str] | None:
    """Return the names that a program uses and binds in no scope. None if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return frozenset(used - set(_list_bound(tree)) - _PREDEFINED)


def _list_bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ClassDef(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case _:
                pass
