"""Decide whether a testcase compares the compiler's result with a result that it computes without the compiler. Pure.

Such a comparison is a reference that votes: two implementations disagree. A comparison with literals does not vote,
because the literals are the report's own claim. A program may also print both results, and leave the comparison to
readers.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from runners.core.protocol import Testcase

Scope = ast.AST | None
"""The function in which a name is bound; None for the program's own level."""
Place = tuple[int, int]
"""Line and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One place that gives a name a value, or changes its value."""

    value: ast.AST
    """The expression or function that defines the name."""
    end: Place
    """The end of the statement: later reads get the new value."""
    replaces: bool = False
    """True if every later read in the same scope gets this value and no earlier one."""


Definitions = Mapping[tuple[Scope, str], list[Definition]]
"""Scope and name → its definitions, in the order of the text."""

CONSTRUCTORS = frozenset((
    "array", "asarray", "ascontiguousarray", "full", "zeros", "ones", "empty", "arange", "linspace", "eye",
    "identity", "astype", "reshape", "tensor", "copy", "int", "float", "bool", "str", "list", "tuple", "set",
    "dict", "len", "range", "print", "isinstance", "getattr", "float16", "float32", "float64", "int8", "int16",
    "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_", "allclose", "isclose", "array_equal", "all",
    "any", "isnan", "isinf", "abs", "max", "min", "item", "tolist", "numpy",
))  # fmt: skip
"""Calls that build or compare data, and compute no reference from them."""
CONVERSIONS = frozenset(("max", "min", "abs", "all", "any", "isnan", "isinf", "astype", "reshape"))
"""Calls of `CONSTRUCTORS` that compute a reference from data that the compiled program gets too. From other data,
such as the expected values of the report, they do not compute a reference."""
MAX_NODES, MAX_CHECKS = 20_000, 20
"""Limits of a program that is read. Their product limits the work."""


def computes_reference(testcase: Testcase) -> bool:
    """True if a check compares the compiler's result with an independent computation."""
    return any(
        _has_reference(text, testcase.toolchain) for name, text in testcase.files.items() if name.endswith(".py")
    )


def prints_reference(testcase: Testcase) -> bool:
    """True if the last two values that the program prints are a result of the compiler and its reference.

    ``print(out); print(np.sort(x))``, in either order, maybe followed by their difference. The program's own level
    prints both, once, so that they are the last values of its output.
    """
    texts = [text for name, text in testcase.files.items() if name.endswith(".py")]
    return len(texts) == 1 and _prints_pair(texts[0], testcase.toolchain)


def _prints_pair(text: str, toolchain: str) -> bool:
    program = read_program(text, toolchain)
    if program is None:
        return False
    values = _list_printed(program.tree)[-MAX_CHECKS:]
    origins = [program.trace(value, None) for value in values]
    return any(_is_last_pair(program, values, origins, at) for at in range(len(values) - 1))


def _is_last_pair(program: Program, values: Sequence[ast.expr], origins: Sequence[Origin], at: int) -> bool:
    """True if the values from ``at`` on are a result, a reference and values derived only from the two."""
    if not _is_pair(origins[at], origins[at + 1]) or any(isinstance(one, ast.Attribute) for one in values[at:]):
        return False
    if _prints_below_top(program, _find_start(values[at])):
        return False
    reference = at if not origins[at].compiled else at + 1
    computed = program.list_own(values[reference])
    dependent = [bool(one.definitions & computed) and one.compiled for one in origins[at:]]
    return not any(dependent[:2]) and all(dependent[2:])


def _prints_below_top(program: Program, place: Place) -> bool:
    """True if a loop, a branch or a function after ``place`` prints too: the number of times is not known."""
    own = {id(one.value) for one in program.tree.body if isinstance(one, ast.Expr)}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and id(node) not in own
        and _find_start(node) > place
        for _, node in program.nodes
    )


def _list_printed(tree: ast.Module) -> list[ast.expr]:
    """Return the values that calls of ``print`` at the program's own level print, without literal text, in order."""
    values: list[ast.expr] = []
    for statement in tree.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=arguments)):
                for argument in arguments:
                    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
                    shown = (one.value if isinstance(one, ast.FormattedValue) else one for one in parts)
                    values += [one for one in shown if not isinstance(one, ast.Constant)]
            case _:
                pass
    return values


def _is_pair(one: Origin, other: Origin) -> bool:
    """True if one of two values comes from the compiler, and the other is computed without the compiler."""
    if one.compiled is other.compiled:
        return False
    result, reference = (one, other) if one.compiled else (other, one)
    return reference.computed or bool(reference.converted & result.definitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A parsed program with the definitions of its names."""

    tree: ast.Module
    nodes: Sequence[tuple[Scope, ast.AST]]
    compilers: set[str]
    defined: Definitions
    loops: Sequence[ast.AST]

    def trace(self, side: ast.expr, scope: Scope) -> Origin:
        return _trace_origin(side, scope, self.defined, self.compilers, self.loops)

    def list_own(self, value: ast.expr) -> set[Definition]:
        """Return the definitions that a bare name, or a method or an item of a bare name, reads directly."""
        while True:
            match value:
                case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in CONSTRUCTORS - CONVERSIONS:
                    value = inner
                case ast.Subscript(value=inner):
                    value = inner
                case ast.Name():
                    return {one for _, one in _find_reaching(value, None, self.defined, self.loops)}
                case _:
                    return set()


def read_program(text: str, toolchain: str) -> Program | None:
    """Return the parsed program; None for text that is not Python, or that is too long."""
    try:
        tree = ast.parse(text)
        nodes = list(islice(walk_scopes(tree), MAX_NODES + 1))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(nodes) > MAX_NODES:
        return None
    return Program(
        tree=tree,
        nodes=nodes,
        compilers={toolchain, *_list_imports((node for _, node in nodes), toolchain)},
        defined=_list_definitions(nodes, _list_unconditional(tree)),
        loops=[node for _, node in nodes if isinstance(node, ast.For | ast.While)],
    )


def _has_reference(text: str, toolchain: str) -> bool:
    program = read_program(text, toolchain)
    return program is not None and any(True for _ in list_references(program))


def list_references(program: Program) -> Iterator[tuple[ast.expr, Origin]]:
    """Yield each side of a check that is computed without the compiler, if another side comes from the compiler."""
    for scope, sides in islice(_list_checks(program.nodes), MAX_CHECKS):
        origins = [program.trace(side, scope) for side in sides]
        given = {one for origin in origins if origin.compiled for one in origin.definitions}
        if any(origin.compiled for origin in origins):
            yield from (
                (side, origin)
                for side, origin in zip(sides, origins, strict=True)
                if not origin.compiled and (origin.computed or origin.converted & given)
            )


def walk_scopes(tree: ast.AST, scope: Scope = None) -> Iterator[tuple[Scope, ast.AST]]:
    """Yield every node below ``tree`` with the innermost function that contains the node."""
    pending = [(scope, tree)]
    while pending:
        scope, node = pending.pop()
        yield scope, node
        inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else scope
        pending += [(inner, child) for child in ast.iter_child_nodes(node) if not _is_key(node, child)]


def _is_key(node: ast.AST, child: ast.AST) -> bool:
    """True for the name in ``ref[key]``: the item does not come from it."""
    return isinstance(node, ast.Subscript) and child is node.slice and isinstance(child, ast.Name)


def _list_imports(nodes: Iterable[ast.AST], toolchain: str) -> Iterator[str]:
    """Yield the names that imports from the toolchain bind."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (one.asname or toolchain for one in names if one.name.partition(".")[0] == toolchain)
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == toolchain:
                yield from (one.asname or one.name for one in names)


def _list_unconditional(tree: ast.Module) -> frozenset[ast.stmt]:
    """Return the statements that run exactly once whenever their scope runs to its end."""
    pending: list[ast.stmt] = [*tree.body]
    found = set()
    while pending:
        statement = pending.pop()
        found.add(statement)
        if isinstance(statement, ast.With):
            pending += statement.body
    return frozenset(found)


def _list_definitions(nodes: Iterable[tuple[Scope, ast.AST]], unconditional: frozenset[ast.stmt]) -> Definitions:
    defined: defaultdict[tuple[Scope, str], list[Definition]] = defaultdict(list)

    def define(scope: Scope, target: ast.expr, value: ast.AST, statement: ast.AST, *, replaces: bool = False) -> None:
        for part, own in _pair_parts(target, value):
            for name in _list_bound(part):
                one = Definition(value=own, end=_find_end(statement), replaces=replaces)
                defined[scope, name].append(one)

    for scope, node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    define(
                        scope, target, value, node, replaces=isinstance(target, ast.Name) and node in unconditional
                    )
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                define(scope, target, value, node)
            case ast.For(target=target, iter=value):
                for part, own in _pair_items(target, value):
                    define(scope, part, own, value)
            case ast.With(items=items):
                for item in items:
                    if item.optional_vars is not None:
                        define(scope, item.optional_vars, item.context_expr, item.optional_vars)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined[scope, name].append(Definition(value=node, end=_find_end(node)))
    return {key: sorted(found, key=lambda one: one.end) for key, found in defined.items()}


def _pair_parts(target: ast.expr, value: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield each name of ``a, b = f(x), g(x)`` with its own value."""
    match target, value:
        case (
            (ast.Tuple(elts=targets) | ast.List(elts=targets)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(targets) == len(values) and not any(isinstance(one, ast.Starred) for one in (*targets, *values)):
            for one, own in zip(targets, values, strict=True):
                yield from _pair_parts(one, own)
        case _:
            yield target, value


def _pair_items(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield each name of a loop with its iterable: ``for a, b in zip(x, y)``, ``in [(x, y), (z, w)]``."""
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    match value:
        case ast.Call(func=ast.Name(id="zip"), args=given) if len(given) == len(parts):
            yield from zip(parts, given, strict=True)
        case ast.Call(func=ast.Attribute(value=given, attr="items"), args=[]) if len(parts) == 2:
            yield parts[0], ast.Constant(value="")  # a key does not show where the items come from
            yield parts[1], given
        case ast.Call(func=ast.Name(id="enumerate"), args=[given]) if len(parts) == 2:
            yield from _pair_items(parts[1], given)
        case ast.Tuple(elts=items) | ast.List(elts=items) if parts and all(
            isinstance(item, ast.Tuple | ast.List) and len(item.elts) == len(parts) for item in items
        ):
            for item in items:
                yield from _pair_parts(target, item)
        case _:
            yield target, value


def _find_end(node: ast.AST) -> Place:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of a value."""

    compiled: bool
    """True if the compiler takes part."""
    computed: bool
    """True if the program computes the value from data."""
    converted: frozenset[Definition]
    """The data that the program only converts."""
    definitions: frozenset[Definition]
    """All data that takes part."""


def _trace_origin(
    side: ast.expr, scope: Scope, defined: Definitions, compilers: set[str], loops: Sequence[ast.AST]
) -> Origin:
    compiled = computed = False
    seen: set[Definition] = set()
    converted: set[Definition] = set()
    pending: list[tuple[Scope, ast.AST]] = [(scope, side)]
    while pending:
        operates = converts = False
        data: set[Definition] = set()
        for inside, node in walk_scopes(pending[-1][1], pending.pop()[0]):
            match node:
                case ast.Name(id=name):
                    compiled |= name in compilers
                    reaching = _find_reaching(node, inside, defined, loops)
                    data.update(one for _, one in reaching)
                    pending += [(at, one.value) for at, one in reaching if one not in seen]
                    seen.update(one for _, one in reaching)
                case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name) as called):
                    own = isinstance(called, ast.Name) or not _is_library(called, inside, defined)
                    known = name in CONSTRUCTORS or (own and ((inside, name) in defined or (None, name) in defined))
                    operates |= not known
                    converts |= name in CONVERSIONS
                case ast.BinOp():
                    operates = True
        computed |= operates and bool(data)
        converted |= data if converts else set()
    return Origin(compiled=compiled, computed=computed, converted=frozenset(converted), definitions=frozenset(seen))


def _is_library(called: ast.expr, scope: Scope, defined: Definitions) -> bool:
    """True for ``np.sort``: the program does not define the name before the dot."""
    match called:
        case ast.Attribute(value=ast.Name(id=name)):
            return (scope, name) not in defined and (None, name) not in defined
        case ast.Attribute(value=inner):
            return _is_library(inner, scope, defined)
        case _:
            return False


def _find_reaching(
    name: ast.Name, scope: Scope, defined: Definitions, loops: Sequence[ast.AST]
) -> list[tuple[Scope, Definition]]:
    """Return the definitions that a read of a name may see, with their scope.

    At the program's own level, outside loops, the order of the text decides. Elsewhere any definition may be seen.
    """
    at = scope if (scope, name.id) in defined else None
    found = defined.get((at, name.id), [])
    place = (name.lineno, name.col_offset)
    in_loop = any(_find_start(loop) <= place < _find_end(loop) for loop in loops)
    earlier = [one for one in found if one.end <= place]
    if scope is not None or in_loop or not earlier:
        return [(at, one) for one in found]
    last = max((number for number, one in enumerate(earlier) if one.replaces), default=0)
    return [(at, one) for one in earlier[last:]]


def _find_start(node: ast.AST) -> Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
