"""Find a block of a TIR testcase whose declared accesses do not cover its body, if a schedule relies on them.

``T.reads`` and ``T.writes`` declare which elements a block accesses. Schedules and passes trust the declaration and
do not look into the body. Without a declaration, TVM detects the accesses itself. The repaired testcase declares
none.
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
_DECLARATIONS = frozenset({"reads", "writes"})


def check_block_access(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase without the declarations that differ from the body."""
    rule = find_other_access(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_other_access(testcase: Testcase) -> BrokenRule | None:
    """Return the first block that accesses an undeclared element. None without one."""
    for name, tree in parse_programs(testcase, "reads"):
        for block in islice(_list_blocks(tree), MOSTBLOCKS):
            declared = {kind: call for call in _list_declarations(block) for kind in [get_method(call)]}
            if set(declared) != _DECLARATIONS:
                continue
            hidden = _find_hidden_access(block, declared)
            if hidden is not None:
                return _make_rule(testcase, name, block, hidden)
    return None


def _list_blocks(tree: ast.Module) -> Iterator[ast.With]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any(get_method(item.context_expr) in BLOCKS for item in node.items):
            yield node


def _list_declarations(block: ast.With) -> Iterator[ast.Call]:
    for statement in block.body:
        if isinstance(statement, ast.Expr) and get_method(statement.value) in _DECLARATIONS:
            assert isinstance(statement.value, ast.Call)
            yield statement.value


def _find_hidden_access(block: ast.With, declared: dict[str, ast.Call]) -> str | None:
    """Return the text of an undeclared element that the body reads or writes.

    Only single elements are compared, word by word: a declared range may cover any element.
    """
    allowed = {kind: {ast.unparse(one) for one in call.args} for kind, call in declared.items()}
    if any(":" in text for texts in allowed.values() for text in texts):
        return None
    for statement in block.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            buffers = {text.partition("[")[0] for texts in allowed.values() for text in texts}
            read = (node for node in ast.walk(statement.value) if isinstance(node, ast.Subscript))
            for node, kind in (*((one, "reads") for one in read), (statement.targets[0], "writes")):
                text = ast.unparse(node)
                own = kind == "reads" and text == ast.unparse(statement.targets[0])  # a sum also reads what it writes
                if ast.unparse(node.value) in buffers and text not in allowed[kind] and not own:
                    return text
    return None


def _make_rule(testcase: Testcase, file: str, block: ast.With, hidden: str) -> BrokenRule:
    lines = testcase.files[file].split("\n")
    for call in _list_declarations(block):
        last = call.end_lineno or call.lineno
        lines[call.lineno - 1 : last] = [""] * (last - call.lineno + 1)
    alias = ast.unparse(block.items[0].context_expr).partition(".")[0]
    return BrokenRule(
        operation=f"{alias}.{get_method(block.items[0].context_expr)}",
        file=file,
        line=block.lineno,
        rule=Rule.OTHER_ACCESS,
        of=hidden.partition("[")[0],
        words=f"accesses {hidden}, which its T.reads and T.writes do not declare",
        instead="the accesses as the compiler finds them",
        mended=msgspec.structs.replace(testcase, files={**testcase.files, file: "\n".join(lines)}),
    )
