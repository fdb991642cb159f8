"""A rule of Relax that a testcase breaks in its own text: an argument mutated in place is not read again. Pure.

``R.call_tir_inplace`` writes into the arguments that ``inplace_indices`` names; its documentation leaves it to the
caller that none of them is live afterwards. Where the function reads one by its name again, what it reads is what the
kernel wrote. The mended testcase gives the kernel a copy.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import TypeGuard

import msgspec

from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means

OPERATION = "call_tir_inplace"
MOST_CHARS, MOST_CALLS = 100_000, 100


def check_live_argument(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with a copy in the place of an argument that is mutated in place and read again."""
    rule = find_live_argument(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_live_argument(testcase: Testcase) -> BrokenRule | None:
    """The first argument that is mutated in place and read again; None where there is none, or no text to read."""
    for name, text in testcase.files.items():
        # A carriage return alone ends a line for Python: places would not be those of the text.
        if name.endswith(".py") and OPERATION in text and len(text) <= MOST_CHARS and "\r" not in text:
            for function in _functions(text):
                uses = _uses(function)
                for call, mutated in islice(_in_place(function), MOST_CALLS):
                    if _reads_again(uses[mutated.id], call):
                        return _make_rule(testcase, name, call, mutated)
    return None


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return iter(())
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _in_place(function: ast.FunctionDef) -> Iterator[tuple[ast.Call, ast.Name]]:
    """Calls of a function, each with the plain name of an argument that it mutates."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        if not (_is_operation(call.func) and len(call.args) >= 2):
            continue
        given = call.args[1]
        arguments = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
        for index in _indices(call):
            if 0 <= index < len(arguments) and isinstance(named := arguments[index], ast.Name):
                yield call, named


def _is_operation(function: ast.expr) -> TypeGuard[ast.Attribute]:
    """``R.call_tir_inplace``, whatever one short name or two the module has there."""
    if not isinstance(function, ast.Attribute) or function.attr != OPERATION:
        return False
    owner = function.value
    return isinstance(owner.value if isinstance(owner, ast.Attribute) else owner, ast.Name)


def _indices(call: ast.Call) -> list[int]:
    listed = next((word.value for word in call.keywords if word.arg == "inplace_indices"), None)
    listed = listed if listed is not None else (call.args[2] if len(call.args) > 2 else None)
    words = listed.elts if isinstance(listed, ast.List | ast.Tuple) else [listed]
    return [word.value for word in words if isinstance(word, ast.Constant) and type(word.value) is int]


def _uses(function: ast.FunctionDef) -> dict[str, list[tuple[int, bool]]]:
    """Of each name: the lines that use it, in order, and whether they give it to something."""
    found: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found[node.id].append((node.lineno, isinstance(node.ctx, ast.Store)))
    return {name: sorted(lines) for name, lines in found.items()}


def _reads_again(uses: list[tuple[int, bool]], call: ast.Call) -> bool:
    """Whether a name is read below the call's last line, before it is given to something else."""
    below = next((gives for line, gives in uses if line > (call.end_lineno or call.lineno)), True)
    return not below


def _make_rule(testcase: Testcase, file: str, call: ast.Call, mutated: ast.Name) -> BrokenRule:
    namespace = ast.unparse(call.func).rpartition(".")[0]
    copy = f"{namespace}.add({mutated.id}, {namespace}.zeros_like({mutated.id}))"
    lines = testcase.files[file].split("\n")
    line = lines[mutated.lineno - 1].encode()  # offsets of a syntax tree count bytes
    end = mutated.end_col_offset or mutated.col_offset
    lines[mutated.lineno - 1] = (line[: mutated.col_offset] + copy.encode() + line[end:]).decode()
    return BrokenRule(
        operation=OPERATION,
        file=file,
        line=call.lineno,
        words=f"writes into {mutated.id}, which is read again below it: its caller is to make sure that it is not",
        instead=f"a copy of {mutated.id} in its place",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
    )
