"""Find a variable of a dataflow block that a Relax testcase reads after the block, although it is not an output.
Pure.

After a block ``with R.dataflow():``, only the variables that ``R.output`` names exist, or those that a builder made
by ``emit_output``. The repaired testcase makes the variable such an output.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import Change, parse_programs, replace_expressions

BLOCK, MOST_BLOCKS = "dataflow", 100


def check_dataflow_outputs(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with a variable that is read after its block added to the outputs."""
    rule = find_hidden_variable(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_hidden_variable(testcase: Testcase) -> BrokenRule | None:
    """Return the first variable that is read after its block and is not an output. None without one."""
    for name, tree in parse_programs(testcase, BLOCK):
        for function, block, output in islice(_list_blocks(tree), MOST_BLOCKS):
            hidden = _find_hidden(function, block, output)
            if hidden is not None:
                given = (output.args[-1], f"{{}}, {hidden}")
                return _make_rule(testcase, name, block, given, hidden)
        for block, after in islice(_list_builder_blocks(tree), MOST_BLOCKS):
            names = [node for one in after for node in ast.walk(one) if isinstance(node, ast.Name)]
            set_again = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            for variable, emit in _list_emitted(block).items():
                if variable not in set_again and any(node.id == variable for node in names):
                    builder = ast.unparse(emit.value)
                    return _make_rule(testcase, name, block, (emit, f"{builder}.{EMITS_OUTPUT}"), variable)
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


def _list_builder_blocks(tree: ast.Module) -> Iterator[tuple[ast.With, list[ast.stmt]]]:
    """Yield each dataflow block inside a builder's function block, with the statements after the dataflow block."""
    for outer in (node for node in ast.walk(tree) if isinstance(node, ast.With)):
        if any(_is_call(item.context_expr, "function") for item in outer.items):
            for at, block in enumerate(outer.body):
                if isinstance(block, ast.With) and any(_is_call(one.context_expr, BLOCK) for one in block.items):
                    yield block, outer.body[at + 1 :]


def _list_emitted(block: ast.With) -> dict[str, ast.Attribute]:
    """Return the variables that a builder emits in a block and that are not outputs, with the emitting method."""
    emitted: dict[str, ast.Attribute] = {}
    for statement in block.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=variable)], value=ast.Call(func=ast.Attribute(attr="emit") as emit)):
                emitted[variable] = emit
            case ast.Assign(targets=[ast.Name(id=variable)]):
                emitted.pop(variable, None)
            case _:
                pass
    return emitted


EMITS_OUTPUT = "emit_output"


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


def _make_rule(testcase: Testcase, file: str, block: ast.With, change: Change, hidden: str) -> BrokenRule:
    return BrokenRule(
        operation=ast.unparse(block.items[0].context_expr).partition("(")[0],
        file=file,
        line=block.lineno,
        rule=Rule.DATAFLOW_OUTPUT,
        of=hidden,
        words=f"does not give out {hidden}, which is read after the block",
        instead=f"{hidden} among the outputs of the block",
        mended=replace_expressions(testcase, file, [change]),
        traps=True,
    )
