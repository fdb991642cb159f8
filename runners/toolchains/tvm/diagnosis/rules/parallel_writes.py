"""Find a loop of a TIR testcase whose iterations may run concurrently and all write one element. Pure.

Iterations of ``T.vectorized`` and ``T.parallel`` must not depend on each other: the compiler computes all lanes from
the old element, and keeps the last. The repaired testcase runs the loop in order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

import msgspec

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import get_method, parse_programs

MOST_LOOPS, MOST_INNER = 100, 20
_AT_ONCE = ("vectorized", "parallel")


def check_parallel_writes(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with the loop in order."""
    rule = find_parallel_write(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_parallel_write(testcase: Testcase) -> BrokenRule | None:
    """Return the first loop whose iterations write different values to one element. None without one."""
    for kind in _AT_ONCE:
        for name, tree in parse_programs(testcase, f".{kind}("):
            loops = (node for node in ast.walk(tree) if isinstance(node, ast.For) and get_method(node.iter) == kind)
            for loop in islice(loops, MOST_LOOPS):
                written = _find_shared_element(loop)
                if written:
                    return _make_rule(testcase, name, loop, written)
    return None


def _find_shared_element(loop: ast.For) -> str:
    """Return the element that all iterations write, such as ``s[0]``. Empty without one."""
    own = _collect_own_names(loop)
    for target, value in _list_stores(loop):
        element = ast.unparse(target)
        read = {ast.unparse(node) for node in ast.walk(value) if isinstance(node, ast.Subscript)}
        differs = element in read or _list_names(value) & own
        if differs and not _list_names(target) & own:
            return element
    return ""


def _list_stores(loop: ast.For) -> Iterator[tuple[ast.Subscript, ast.expr]]:
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                yield target, value
            case ast.AugAssign(target=ast.Subscript() as target):
                yield target, ast.BinOp(left=target, op=node.op, right=node.value)
            case _:
                continue


def _collect_own_names(loop: ast.For) -> set[str]:
    """Return the names that may differ between iterations: the loop's variable and the names that its body binds.

    The variable of an inner loop is such a name if its range depends on one. Otherwise it takes the same values in
    each iteration.
    """
    own = _list_names(loop.target)
    inner = []
    for node in ast.walk(loop):
        match node:
            case ast.Assign(targets=targets):
                bound = [target for target in targets if not isinstance(target, ast.Subscript)]
            case ast.AnnAssign(target=ast.Name() as target) | ast.NamedExpr(target=target):
                bound = [target]
            case ast.withitem(optional_vars=ast.expr() as target):
                bound = [target]
            case ast.For():
                bound = []
                inner.append(node)
            case _:
                bound = []
        own |= {name for target in bound for name in _list_names(target)}
    if len(inner) > MOST_INNER:
        return own.union(*(_list_names(one.target) for one in inner))  # then no element is shared
    for _ in inner:  # the range of each may depend on the surrounding loop
        own |= {name for one in inner if _list_names(one.iter) & own for name in _list_names(one.target)}
    return own


def _list_names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _make_rule(testcase: Testcase, file: str, loop: ast.For, written: str) -> BrokenRule:
    assert isinstance(loop.iter, ast.Call)
    function = ast.unparse(loop.iter.func)
    lines = testcase.files[file].split("\n")
    row = loop.iter.lineno - 1
    lines[row] = lines[row].replace(f"{function}(", f"{function.rpartition('.')[0]}.serial(", 1)
    variable = ast.unparse(loop.target)
    return BrokenRule(
        operation=function,
        file=file,
        line=loop.lineno,
        rule=Rule.PARALLEL_WRITES,
        of=variable,
        words=f"runs the iterations of {variable} at once, and all of them write {written}",
        instead=f"{variable} in order",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
    )
