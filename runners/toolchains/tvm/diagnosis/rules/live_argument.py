"""Find an argument that a Relax testcase lets a kernel mutate in place and then reads again. Pure.

``R.call_tir_inplace`` writes into the arguments that ``inplace_indices`` names. By its documentation, the caller
ensures that none of them is live afterwards. A later read of the same name gets the values that the kernel wrote. The
repaired testcase passes a copy to the kernel.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import TypeGuard

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import parse_programs, replace_expressions

OPERATION = "call_tir_inplace"
MOST_CALLS = 100


def check_live_argument(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with a copy of an argument that is mutated in place and read again."""
    rule = find_live_argument(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_live_argument(testcase: Testcase) -> BrokenRule | None:
    """Return the first argument that is mutated in place and read again. None without one, or if no file can be
    parsed."""
    for name, tree in parse_programs(testcase, OPERATION):
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            uses = _list_uses(function)
            for call, mutated in islice(_find_mutated_arguments(function), MOST_CALLS):
                if _reads_again(uses[mutated.id], call):
                    return _make_rule(testcase, name, call, mutated)
    return None


def _find_mutated_arguments(function: ast.FunctionDef) -> Iterator[tuple[ast.Call, ast.Name]]:
    """Find the calls that mutate an argument in place. Return each call with the plain name of that argument."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if not (_is_operation(call.func) and len(call.args) >= 2):
            continue
        given = call.args[1]
        arguments = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
        for index in _read_indices(call):
            if 0 <= index < len(arguments) and isinstance(named := arguments[index], ast.Name):
                yield call, named


def _is_operation(function: ast.expr) -> TypeGuard[ast.Attribute]:
    """True for ``R.call_tir_inplace``, also under another name or dotted name of the module."""
    if not isinstance(function, ast.Attribute) or function.attr != OPERATION:
        return False
    owner = function.value
    return isinstance(owner.value if isinstance(owner, ast.Attribute) else owner, ast.Name)


def _read_indices(call: ast.Call) -> list[int]:
    listed = next((word.value for word in call.keywords if word.arg == "inplace_indices"), None)
    listed = listed if listed is not None else (call.args[2] if len(call.args) > 2 else None)
    words = listed.elts if isinstance(listed, ast.List | ast.Tuple) else [listed]
    return [word.value for word in words if isinstance(word, ast.Constant) and type(word.value) is int]


def _list_uses(function: ast.FunctionDef) -> dict[str, list[tuple[int, bool]]]:
    """Return the uses of each name: their lines in order, and True if the line assigns to the name."""
    found: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found[node.id].append((node.lineno, isinstance(node.ctx, ast.Store)))
    return {name: sorted(lines) for name, lines in found.items()}


def _reads_again(uses: list[tuple[int, bool]], call: ast.Call) -> bool:
    """True if a name is read below the call's last line, before it is assigned again."""
    assigned_first = next((assigns for line, assigns in uses if line > (call.end_lineno or call.lineno)), True)
    return not assigned_first


def _make_rule(testcase: Testcase, file: str, call: ast.Call, mutated: ast.Name) -> BrokenRule:
    namespace = ast.unparse(call.func).rpartition(".")[0]
    copy = f"{namespace}.add({mutated.id}, {namespace}.zeros_like({mutated.id}))"
    return BrokenRule(
        operation=OPERATION,
        file=file,
        line=call.lineno,
        rule=Rule.LIVE_ARGUMENT,
        of=mutated.id,
        words=f"writes into {mutated.id}, which is read again below it: its caller is to make sure that it is not",
        instead=f"a copy of {mutated.id} in its place",
        mended=replace_expressions(testcase, file, [(mutated, copy)]),
    )
