"""Smaller Python testcases: without statements, without the block around them, without arguments and comments.

The text is parsed and written with libcst, so what stays is as its author wrote it; TVMScript, which TVM reads from
the source, is Python as far as this goes. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from runners.minimization.ddmin import Pieces, find_kept, remove_pieces

_GIVEN = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}
_MOST_DEPTH = 12


def reduce_python(source: str, keeps: Callable[[str], bool]) -> str:
    """The smallest program found that ``keeps``; ``source`` itself when it cannot be parsed or nothing can go."""
    text = _Reduction(source, keeps).run()
    return text if text.endswith("\n") else text + "\n"


class _Reduction:
    """One program under reduction: what it is by now, and what must not be tried."""

    def __init__(self, source: str, keeps: Callable[[str], bool]) -> None:
        self.text = source
        self.keeps = keeps
        self.unbound = find_unbound_names(source) or frozenset()

    def run(self) -> str:
        try:
            cst.parse_module(self.text)
        except (cst.ParserSyntaxError, RecursionError, ValueError):
            return self.text
        self._take(find_kept([self._checked(_without_comments(self._module()))], self.keeps))
        before = ""
        while before != self.text:
            before = self.text
            for depth in range(_MOST_DEPTH):
                if not self._statements(depth):
                    break
            self._unwrap()
            self._pieces(_is_optional)
        return self.text

    def _module(self) -> cst.Module:
        return cst.parse_module(self.text)

    def _take(self, text: str | None) -> None:
        self.text = text if text is not None else self.text

    def _checked(self, module: cst.Module) -> str | None:
        """The program as text; None when it does not parse, or uses a name that nothing binds any more."""
        text = module.code
        unbound = find_unbound_names(text)
        return None if unbound is None or unbound - self.unbound or text == self.text else text

    def _statements(self, depth: int) -> bool:
        """Drop statements that stand ``depth`` blocks deep; whether there are any."""
        module = self._module()
        found = _Statements(depth)
        module.visit(found)
        self._take(remove_pieces(self._pass(module, found.nodes), self.keeps))
        return bool(found.nodes)

    def _pieces(self, wanted: Callable[[cst.CSTNode], bool]) -> None:
        module = self._module()
        found = _Nodes(wanted)
        module.visit(found)
        self._take(remove_pieces(self._pass(module, found.nodes), self.keeps))

    def _pass(self, module: cst.Module, nodes: Sequence[cst.CSTNode]) -> Pieces[str]:
        def build(gone: frozenset[int]) -> str | None:
            try:
                changed = module.visit(_Drop(frozenset(id(nodes[i]) for i in gone)))
            except cst.CSTValidationError:
                return None  # an import of nothing: the statement itself is another piece
            return self._checked(changed) if isinstance(changed, cst.Module) else None

        return Pieces(len(nodes), build)

    def _unwrap(self) -> None:
        """Put the body of a block in the block's place, outer blocks first, as long as that helps."""
        number = 0
        while True:
            module = self._module()
            found = _Nodes(lambda node: isinstance(node, cst.If | cst.For | cst.While | cst.With | cst.Try))
            module.visit(found)
            if number >= len(found.nodes):
                return
            changed = module.visit(_Unwrap(found.nodes[number]))
            text = self._checked(changed) if isinstance(changed, cst.Module) else None
            if text is not None and self.keeps(text):
                self._take(text)
            else:
                number += 1


# ------------------------------------------------------------------------------------------ what can go


class _Statements(cst.CSTVisitor):
    """The statements at one depth, in order."""

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
    """Every node of a kind, outer ones first."""

    def __init__(self, wanted: Callable[[cst.CSTNode], bool]) -> None:
        self.nodes: list[cst.CSTNode] = []
        self._wanted = wanted

    def on_visit(self, node: cst.CSTNode) -> bool:
        if self._wanted(node):
            self.nodes.append(node)
        return True


def _is_optional(node: cst.CSTNode) -> bool:
    """What a program may do without: keyword arguments, elements, decorators, imported names."""
    match node:
        case cst.Arg(keyword=cst.Name()) | cst.Element() | cst.DictElement() | cst.Decorator() | cst.ImportAlias():
            return True
        case _:
            return False


class _Drop(cst.CSTTransformer):
    """Without some nodes; a block left empty gets a ``pass``."""

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
            *others, last = updated_node.names  # without brackets there is no comma at the end
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


def _without_comments(module: cst.Module) -> cst.Module:
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
    """Names that a program uses and binds nowhere, in any scope; None when it is no program."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return frozenset(used - set(_bound(tree)) - _GIVEN)


def _bound(tree: ast.AST) -> Iterator[str]:
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
