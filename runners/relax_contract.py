"""A rule of Relax that a testcase breaks in its own text: an argument mutated in place is not read again. Pure.

``R.call_tir_inplace`` writes into the arguments that ``inplace_indices`` names; its documentation leaves it to the
caller that none of them is live afterwards. Where the function reads one by its name again, what it reads is what the
kernel wrote. The mended testcase gives the kernel a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from runners.mlir_contract import MOST_CHARS, Breach
from runners.protocol import Testcase, TestcaseKind

OPERATION = "call_tir_inplace"


def find_live_argument(testcase: Testcase) -> Breach | None:
    """The first argument that is mutated in place and read again; None where there is none, or no text to read."""
    if testcase.kind is not TestcaseKind.PYTHON or testcase.toolchain != "tvm":
        return None
    for name, text in testcase.files.items():
        if name.endswith(".py") and OPERATION in text and len(text) <= MOST_CHARS:
            for function in _functions(text):
                for call, mutated in _in_place(function):
                    if _reads_again(function, mutated.id, call):
                        return _breach(testcase, name, call, mutated)
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
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == OPERATION and len(call.args) >= 2):
            continue
        given = call.args[1]
        arguments = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
        for index in _indices(call):
            if 0 <= index < len(arguments) and isinstance(named := arguments[index], ast.Name):
                yield call, named


def _indices(call: ast.Call) -> list[int]:
    listed = next((word.value for word in call.keywords if word.arg == "inplace_indices"), None)
    listed = listed if listed is not None else (call.args[2] if len(call.args) > 2 else None)
    try:
        value = ast.literal_eval(listed) if listed is not None else []
    except (ValueError, TypeError):
        return []
    found = value if isinstance(value, list | tuple) else [value]
    return [index for index in found if isinstance(index, int)]


def _reads_again(function: ast.FunctionDef, name: str, call: ast.Call) -> bool:
    """Whether the name is read below the call's last line, before it is given to something else."""
    uses = sorted(
        (node.lineno, isinstance(node.ctx, ast.Store))
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and node.lineno > (call.end_lineno or call.lineno)
    )
    return bool(uses) and not uses[0][1]


def _breach(testcase: Testcase, file: str, call: ast.Call, mutated: ast.Name) -> Breach:
    namespace = ast.unparse(call.func).rpartition(".")[0]
    copy = f"{namespace}.add({mutated.id}, {namespace}.zeros_like({mutated.id}))"
    lines = testcase.files[file].split("\n")
    line = lines[mutated.lineno - 1].encode()  # offsets of a syntax tree count bytes
    end = mutated.end_col_offset or mutated.col_offset
    lines[mutated.lineno - 1] = (line[: mutated.col_offset] + copy.encode() + line[end:]).decode()
    return Breach(
        operation=OPERATION,
        file=file,
        line=call.lineno,
        words=f"writes into {mutated.id}, which is read again below it: its caller is to make sure that it is not",
        instead=f"a copy of {mutated.id} in its place",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
    )
