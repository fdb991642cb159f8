"""Find a reduction of a TIR testcase that never initializes its result, and so adds to the caller's values. Pure.

A block with a reduction axis begins with the statements below ``with T.init():``. Without them, the block continues
from the old content of its result, and a second call adds to the first. The repaired testcase sets the result there.
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
from runners.toolchains.tvm.diagnosis.programs import BLOCKS, get_method, parse_programs

MOSTBLOCKS = 100


def check_missing_init(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with the result of a reduction initialized."""
    rule = find_missing_init(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_missing_init(testcase: Testcase) -> BrokenRule | None:
    """Return the first sum over a reduction axis into an uninitialized parameter. None without one."""
    for name, tree in parse_programs(testcase, "axis"):
        for function, block in islice(_list_blocks(tree), MOSTBLOCKS):
            update = _find_update(block)
            if update is None or not _has_reduction(block) or _sets_result(block):
                continue
            dtype = _find_dtype(function, update)
            if dtype is not None:
                return _make_rule(testcase, name, block, update, dtype)
    return None


def _list_blocks(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.With]]:
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.With) and any(get_method(item.context_expr) in BLOCKS for item in node.items):
                yield function, node


def _has_reduction(block: ast.With) -> bool:
    """True for ``T.axis.reduce(…)``, and for ``T.axis.remap("SR", …)``."""
    for node in ast.walk(block):
        match node:
            case ast.Call(func=ast.Attribute(attr="reduce")):
                return True
            case ast.Call(func=ast.Attribute(attr="remap"), args=[ast.Constant(value=str() as kinds), *_]):
                if "R" in kinds:
                    return True
            case _:
                continue
    return False


def _sets_result(block: ast.With) -> bool:
    calls = (node.func for node in ast.walk(block) if isinstance(node, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr == "init" for one in calls)


def _find_update(block: ast.With) -> ast.Assign | None:
    """Return the only statement of a block, if it adds to the element that it writes: ``y[i] = y[i] + …``."""
    stores = [
        node for node in block.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    ]
    if len(stores) != 1 or not isinstance(stores[0].value, ast.BinOp) or not isinstance(stores[0].value.op, ast.Add):
        return None
    written = ast.unparse(stores[0].targets[0])
    sides = (stores[0].value.left, stores[0].value.right)
    return stores[0] if any(ast.unparse(side) == written for side in sides) else None


def _find_dtype(function: ast.FunctionDef, update: ast.Assign) -> str | None:
    """Return the element type of the parameter that is written: ``T.Buffer((32,), "float32")``."""
    target = update.targets[0]
    assert isinstance(target, ast.Subscript)
    for one in function.args.args:
        match one.annotation:
            case ast.Call(args=[_, ast.Constant(value=str() as dtype), *_]) if (
                isinstance(target.value, ast.Name) and one.arg == target.value.id and dtype.isalnum()
            ):
                return dtype
            case _:
                continue
    return None


def _make_rule(testcase: Testcase, file: str, block: ast.With, update: ast.Assign, dtype: str) -> BrokenRule:
    lines = testcase.files[file].split("\n")
    written = ast.unparse(update.targets[0])
    alias = ast.unparse(block.items[0].context_expr).partition(".")[0]
    margin = " " * update.col_offset
    lines[update.lineno - 1 : update.lineno - 1] = [
        f"{margin}with {alias}.init():",
        f"{margin}    {written} = {alias}.{dtype}(0)",
    ]
    return BrokenRule(
        operation=f"{alias}.{get_method(block.items[0].context_expr)}",
        file=file,
        line=block.lineno,
        rule=Rule.MISSING_INIT,
        of=written.partition("[")[0],
        words=f"adds to {written} over a reduction axis, and never sets it",
        instead=f"{written} set to zero before the reduction",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
    )
