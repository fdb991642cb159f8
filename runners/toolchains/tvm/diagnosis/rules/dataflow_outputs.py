"""Find a variable of a dataflow block that a Relax testcase reads after the block, and that is no output of it. Pure.

Only the variables that ``R.output`` names live on after a block ``with R.dataflow():``. The mended testcase names the
variable there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

import msgspec

from runners.core.findings import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import parse_programs

BLOCK, MOST_BLOCKS = "dataflow", 100


def check_dataflow_outputs(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with a variable that is read after its block named among the outputs."""
    rule = find_hidden_variable(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_hidden_variable(testcase: Testcase) -> BrokenRule | None:
    """Return the first variable that is read after its block and is no output; None without one."""
    for name, tree in parse_programs(testcase, BLOCK):
        for function, block, output in islice(_list_blocks(tree), MOST_BLOCKS):
            hidden = _find_hidden(function, block, output)
            if hidden is not None:
                return _make_rule(testcase, name, block, output, hidden)
    return None


def _list_blocks(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.With, ast.Call]]:
    """Yield each dataflow block with its function and its only call of ``R.output``."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for block in (node for node in function.body if isinstance(node, ast.With)):
            if any(_is_call(item.context_expr, BLOCK) for item in block.items):
                outputs = [
                    node for node in ast.walk(block) if isinstance(node, ast.Call) and _is_call(node, "output")
                ]
                if len(outputs) == 1 and outputs[0].args:
                    yield function, block, outputs[0]


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _find_hidden(function: ast.FunctionDef, block: ast.With, output: ast.Call) -> str | None:
    given_out = {node.id for node in output.args if isinstance(node, ast.Name)}
    before = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    inside: set[str] = set()
    for node in sorted(
        (node for node in ast.walk(function) if isinstance(node, ast.Name)),
        key=lambda node: (node.lineno, isinstance(node.ctx, ast.Store), node.col_offset),
    ):
        if node.lineno < block.lineno:
            before.add(node.id)
        elif node.lineno <= (block.end_lineno or block.lineno):
            if isinstance(node.ctx, ast.Store):
                inside.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            inside.discard(node.id)
        elif node.id in inside - given_out - before:
            return node.id
    return None


def _make_rule(testcase: Testcase, file: str, block: ast.With, output: ast.Call, hidden: str) -> BrokenRule:
    lines = testcase.files[file].split("\n")
    last = output.args[-1]
    line, end = lines[(last.end_lineno or last.lineno) - 1].encode(), last.end_col_offset or 0
    lines[(last.end_lineno or last.lineno) - 1] = (line[:end] + f", {hidden}".encode() + line[end:]).decode()
    return BrokenRule(
        operation=f"R.{BLOCK}",
        file=file,
        line=block.lineno,
        rule=Rule.DATAFLOW_OUTPUT,
        of=hidden,
        words=f"does not give out {hidden}, which is read after the block",
        instead=f"{hidden} among the outputs of the block",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
        traps=True,
    )
