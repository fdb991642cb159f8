"""Decide whether a testcase compares the compiler's result with a result that it computes without the compiler. Pure.

Such a comparison is a reference that votes: two implementations disagree. A comparison with literals is none, because
the literals are the report's own claim.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from runners.core.protocol import Testcase

Scope = ast.AST | None
"""The function in which a name is bound; None for the program's own level."""
Definitions = Mapping[tuple[Scope, str], list[ast.AST]]
"""Scope and name → the expressions and functions that define the name there."""

CONSTRUCTORS = frozenset((
    "array", "asarray", "ascontiguousarray", "full", "zeros", "ones", "empty", "arange", "linspace", "eye",
    "identity", "astype", "reshape", "tensor", "copy", "int", "float", "bool", "str", "list", "tuple", "set",
    "dict", "len", "range", "print", "isinstance", "getattr", "float16", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_", "allclose", "isclose", "array_equal", "all",
    "any", "isnan", "isinf", "abs", "max", "min", "item", "tolist", "numpy",
))  # fmt: skip
"""Calls that build or compare data, and compute no reference from them."""
MAX_NODES, MAX_CHECKS = 20_000, 20
"""Limits of a program that is read: their product bounds the work."""


def computes_reference(testcase: Testcase) -> bool:
    """True if a check compares the compiler's result with an independent computation."""
    return any(
        _has_reference(text, testcase.toolchain) for name, text in testcase.files.items() if name.endswith(".py")
    )


def _has_reference(text: str, toolchain: str) -> bool:
    try:
        tree = ast.parse(text)
        nodes = list(islice(_walk_scopes(tree), MAX_NODES + 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if len(nodes) > MAX_NODES:
        return False
    compilers = {toolchain, *_list_imports((node for _, node in nodes), toolchain)}
    defined = _list_definitions(nodes)
    for scope, sides in islice(_list_checks(nodes), MAX_CHECKS):
        origins = [_trace_origin(side, scope, defined, compilers) for side in sides]
        if any(compiled for compiled, _ in origins) and any(
            computed and not compiled for compiled, computed in origins
        ):
            return True
    return False


def _walk_scopes(tree: ast.AST, scope: Scope = None) -> Iterator[tuple[Scope, ast.AST]]:
    """Yield every node below ``tree`` with the innermost function that contains the node."""
    pending = [(scope, tree)]
    while pending:
        scope, node = pending.pop()
        yield scope, node
        inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else scope
        pending += [(inner, child) for child in ast.iter_child_nodes(node)]


def _list_imports(nodes: Iterable[ast.AST], toolchain: str) -> Iterator[str]:
    """Yield the names that imports from the toolchain bind."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (one.asname or toolchain for one in names if one.name.partition(".")[0] == toolchain)
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == toolchain:
                yield from (one.asname or one.name for one in names)


def _list_definitions(nodes: Iterable[tuple[Scope, ast.AST]]) -> Definitions:
    defined: defaultdict[tuple[Scope, str], list[ast.AST]] = defaultdict(list)
    for scope, node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name in _list_bound(target):
                        defined[scope, name].append(value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
            ):
                for name in _list_bound(target):
                    defined[scope, name].append(value)
            case ast.With(items=items):
                for item in items:
                    for name in _list_bound(item.optional_vars) if item.optional_vars is not None else ():
                        defined[scope, name].append(item.context_expr)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined[scope, name].append(node)
    return defined


def _list_bound(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment changes: ``a``, ``a[i]``, ``a.b``, ``a, b``."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Starred(value=inner):
            yield from _list_bound(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _list_bound(part)


def _list_checks(nodes: Iterable[tuple[Scope, ast.AST]]) -> Iterator[tuple[Scope, list[ast.expr]]]:
    """Yield the sides of each comparison that the program may check, with their scope."""
    for scope, node in nodes:
        match node:
            case ast.Compare(left=left, comparators=others):
                yield scope, [left, *others]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[one, other, *_]) if (
                "assert" in name or name in ("allclose", "isclose", "array_equal")
            ):
                yield scope, [one, other]


def _trace_origin(side: ast.expr, scope: Scope, defined: Definitions, compilers: set[str]) -> tuple[bool, bool]:
    """Return whether the compiler takes part in this value, and whether the program computes the value from data."""
    compiled = computed = False
    seen: set[tuple[Scope, str]] = set()
    pending: list[tuple[Scope, ast.AST]] = [(scope, side)]
    while pending:
        operates = uses_data = False
        for inside, node in _walk_scopes(pending[-1][1], pending.pop()[0]):
            match node:
                case ast.Name(id=name):
                    compiled |= name in compilers
                    key = (inside, name) if (inside, name) in defined else (None, name)
                    uses_data |= key in defined
                    if key not in seen:
                        seen.add(key)
                        pending += [(key[0], one) for one in defined.get(key, ())]
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                    known = name in CONSTRUCTORS or (inside, name) in defined or (None, name) in defined
                    operates |= not known
                case ast.BinOp():
                    operates = True
        computed |= operates and uses_data
    return compiled, computed
