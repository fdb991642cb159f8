"""Decide whether a testcase checks its own result, so that running to its end is evidence. Parsed, never run.

A check is an assertion, the status with which a script ends, or an exception that is raised where results differ. No
other exception is a check: a helper without a body raises an exception too, and so does a function that refuses an
argument.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from bot.extract.python.names import read_dotted_name
from bot.extract.python.parse import parse_python
from runners.core.protocol import Testcase, TestcaseKind

_COMPARISONS = frozenset(
    ("allclose", "isclose", "array_equal", "array_equiv", "equal", "structural_equal", "isnan", "isinf", "isfinite")
)
"""Calls that compare results, or ask whether a result is a number."""
_TEXTS = frozenset(("str", "repr", "script", "astext"))
"""Calls that give the text of a result."""
_EXITS = frozenset({"exit", "_exit", "quit", "SystemExit"})
_REFUSALS = frozenset(
    ("NotImplementedError", "TypeError", "ImportError", "ModuleNotFoundError", "AttributeError", "FileNotFoundError")
)
"""Exceptions about a caller or a machine, whatever the condition."""
_SURROUNDINGS = frozenset(("__name__", "__version__", "argv", "environ", "platform", "version_info"))
_KINDS = frozenset(("shape", "dtype", "ndim", "size", "len", "type"))
"""Properties of arguments that a function checks before it computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a statement stands in its function, or in the program."""

    below_comparison: bool = False
    """True below an ``if`` that compares results."""
    parameters: frozenset[str] = frozenset()


def has_own_check(testcase: Testcase) -> bool:
    """True if the testcase checks its result, so that running to its end is evidence."""
    match testcase.kind:
        case TestcaseKind.PYTHON:
            return any(_checks_result(text) for name, text in testcase.files.items() if name.endswith(".py"))
        case TestcaseKind.COMMAND_LINE:
            return any(word.startswith("--expected_output") for step in testcase.steps for word in step)


def _checks_result(code: str) -> bool:
    if (tree := parse_python(code)) is None:
        return False
    flags = frozenset(name for node in ast.walk(tree) for name in _list_flags(node))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(
        isinstance(node, ast.Assert)
        or _is_assertion(node)
        or _tells_result(node, functions)
        or _raises_for_result(node, place)
        for node, place in _walk(tree, flags)
    )


def _walk(tree: ast.Module, flags: Collection[str]) -> Iterator[tuple[ast.AST, _Place]]:
    """Yield each node with its place."""
    open_nodes: list[tuple[ast.AST, _Place]] = [(tree, _Place())]
    while open_nodes:
        node, place = open_nodes.pop()
        yield node, place
        match node:
            case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
                own = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
                place = _Place(parameters=place.parameters | own)
            case ast.If(test=test) if not place.below_comparison:
                compares = any(_is_comparison(part, place.parameters, flags) for part in ast.walk(test))
                place = replace(place, below_comparison=compares)
            case _:
                pass
        open_nodes += ((child, place) for child in ast.iter_child_nodes(node))


def _is_assertion(node: ast.AST) -> bool:
    """True for a call of ``assert_…`` (NumPy, compilers), ``self.assert…`` (unittest), or pytest's ``raises``."""
    if not isinstance(node, ast.Call):
        return False
    called = read_dotted_name(node.func)
    return called.rpartition(".")[2].startswith("assert") or called in _ASSERTIONS


_ASSERTIONS = frozenset({"raises", "pytest.raises", "pytest.fail", "self.fail"})


def _raises_for_result(node: ast.AST, place: _Place) -> bool:
    """True for an ``AssertionError``, and for another exception below a condition that compares results.

    The status decides of a ``SystemExit``, see `_tells_result`. An exception that is passed on is no check.
    """
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    name = read_dotted_name(raised).rpartition(".")[2]
    return name == "AssertionError" or (place.below_comparison and name not in _REFUSALS | _EXITS)


def _list_flags(node: ast.AST) -> Iterator[str]:
    """Yield the names that an assignment gives the answer of a comparison: ``ok = np.allclose(a, b)``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            if not isinstance(node.value, ast.IfExp) and any(map(_is_comparison, ast.walk(node.value))):
                yield name
        case _:
            pass


def _is_comparison(node: ast.AST, parameters: Set[str] = frozenset(), flags: Collection[str] = ()) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="any" | "all")):
            return True
        case ast.Call(func=called):
            return read_dotted_name(called).rpartition(".")[2] in _COMPARISONS
        case ast.Name(id=name):
            return name in flags
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Call(func=called)]):
            return read_dotted_name(called).rpartition(".")[2] in _TEXTS
        case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn(), *_]):
            return False
        case ast.Compare():
            return _compares_values(node, parameters)
        case _:
            return False


def _compares_values(comparison: ast.Compare, parameters: Set[str]) -> bool:
    """False for a question about the machine or the program, and for one that a function asks of its arguments.

    Of its arguments alone, a function compares two (``got != want``), or one with a tolerance: a check that the
    program calls. To compare one with a whole number or a text, or their shapes, refuses an argument.
    """
    parts = tuple(ast.walk(comparison))
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    parted = names | {one.attr for one in parts if isinstance(one, ast.Attribute)}
    if parted & _SURROUNDINGS:
        return False
    if not names - _KINDS <= parameters:
        return True
    sides = (comparison.left, *comparison.comparators)
    fixed = any(isinstance(one, ast.Constant) and not isinstance(one.value, float) for one in sides)
    return not fixed and not parted & _KINDS


def _tells_result(node: ast.AST, functions: Sequence[ast.FunctionDef]) -> bool:
    """True if the program ends itself with a status that tells a failure: ``sys.exit(0 if close else 1)``.

    ``sys.exit(main())`` tells one if ``main`` returns something.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[status, *_]) if name in _EXITS:
            match status:
                case ast.Constant(value=value):
                    return value not in (0, None)
                case ast.Call(func=ast.Name(id=called)):
                    return all(map(_returns_value, (one for one in functions if one.name == called)))
                case _:
                    return True
        case _:
            return False


def _returns_value(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
