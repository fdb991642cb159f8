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

Definitions = Mapping[str, list[ast.AST]]
"""Name → the expressions and functions that define the name anywhere in the program."""

CONSTRUCTORS = frozenset((
    "array", "asarray", "ascontiguousarray", "full", "zeros", "ones", "empty", "arange", "linspace", "eye",
    "identity", "astype", "reshape", "tensor", "copy", "int", "float", "bool", "str", "list", "tuple", "set",
    "dict", "len", "range", "print", "isinstance", "getattr", "float16", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_", "allclose", "isclose", "array_equal", "all",
    "any", "isnan", "isinf", "abs", "max", "min", "item", "tolist", "numpy",
))  # fmt: skip
"""Calls that build or compare data, and compute no reference from them."""
MAX_NODES, MAX_CHECKS = 20_000, 100
"""Limits of a program that is read: their product bounds the work."""


def computes_reference(testcase: Testcase) -> bool:
    """True if a check compares the compiler's result with an independent computation."""
    return any(
        _has_reference(text, testcase.toolchain) for name, text in testcase.files.items() if name.endswith(".py")
    )


def _has_reference(text: str, toolchain: str) -> bool:
    try:
        tree = ast.parse(text)
        nodes = list(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if len(nodes) > MAX_NODES:
        return False
    compilers = {toolchain, *_list_imports(nodes, toolchain)}
    defined = _list_definitions(nodes)
    for sides in islice(_list_checks(nodes), MAX_CHECKS):
        origins = [_trace_origin(side, defined, compilers) for side in sides]
        if any(compiled for compiled, _ in origins) and any(
            computed and not compiled for compiled, computed in origins
        ):
            return True
    return False


def _list_imports(nodes: Iterable[ast.AST], toolchain: str) -> Iterator[str]:
    """Yield the names that imports from the toolchain bind."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (one.asname or toolchain for one in names if one.name.partition(".")[0] == toolchain)
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == toolchain:
                yield from (one.asname or one.name for one in names)


def _list_definitions(nodes: Iterable[ast.AST]) -> Definitions:
    defined: defaultdict[str, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    for name in _list_bound(target):
                        defined[name].append(value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
            ):
                for name in _list_bound(target):
                    defined[name].append(value)
            case ast.With(items=items):
                for item in items:
                    for name in _list_bound(item.optional_vars) if item.optional_vars is not None else ():
                        defined[name].append(item.context_expr)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined[name].append(node)
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


def _list_checks(nodes: Iterable[ast.AST]) -> Iterator[list[ast.expr]]:
    """Yield the sides of each comparison that the program may check."""
    for node in nodes:
        match node:
            case ast.Compare(left=left, comparators=others):
                yield [left, *others]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[one, other, *_]) if (
                "assert" in name or name in ("allclose", "isclose", "array_equal")
            ):
                yield [one, other]


def _trace_origin(side: ast.expr, defined: Definitions, compilers: set[str]) -> tuple[bool, bool]:
    """Return whether the compiler takes part in this value, and whether the program computes the value from data."""
    compiled = computed = False
    seen: set[str] = set()
    pending: list[ast.AST] = [side]
    while pending:
        for node in ast.walk(pending.pop()):
            match node:
                case ast.Name(id=name):
                    compiled |= name in compilers
                    if name not in seen:
                        seen.add(name)
                        pending += defined.get(name, ())
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                    computed |= name not in CONSTRUCTORS and name not in defined and _uses_data(node, defined)
                case ast.BinOp():
                    computed |= _uses_data(node, defined)
    return compiled, computed


def _uses_data(node: ast.AST, defined: Definitions) -> bool:
    return any(isinstance(one, ast.Name) and one.id in defined for one in ast.walk(node))
