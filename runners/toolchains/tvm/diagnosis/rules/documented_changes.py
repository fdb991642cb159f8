"""Find a pass or a schedule of a testcase that changes values by definition, as its documentation says.

A comparison of the values before and after shows no fault of the compiler then. The mended testcase leaves the change
out: if the failure is gone, that change is its cause.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runners.core.findings import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import Change, get_method, parse_programs, replace_expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documented:
    """What the documentation says of a pass or of a method of schedules."""

    says: str
    operator: str = ""
    """The operator whose values change; empty for any."""


_PASSES: Mapping[str, _Documented] = {
    **dict.fromkeys(
        ("DecomposeOpsForInference", "DecomposeOpsForTraining"),
        # tvm.relax.op.nn.batch_norm: "legalized to the training mode by default"; these passes choose the mode.
        _Documented(says="the mode of batch_norm", operator="batch_norm"),
    ),
    # tvm.relax.transform.FastMathTransform: "fast but approximate counterparts".
    "FastMathTransform": _Documented(says="functions to approximate ones"),
}
_METHODS: Mapping[str, _Documented] = {
    # "Semantic Change for Non-Linear Epilogues": applied in each iteration, "different numerical results".
    "fuse_reduction_epilogue": _Documented(says="the place of a non-linear epilogue"),
}
_IDENTITY = "__import__('tvm').transform.Sequential([])"
"""A pass that changes nothing, on each release."""


def check_documented_changes(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase without its change."""
    rule = find_documented_change(failure.testcase)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_documented_change(testcase: Testcase) -> BrokenRule | None:
    """Return the first pass or method that changes values; None without one. The mended testcase leaves out each."""
    for name, documented in (*_PASSES.items(), *_METHODS.items()):
        for file, tree in parse_programs(testcase, name):
            changes = list(_list_changes(tree, name)) if documented.operator in testcase.files[file] else []
            if changes:
                return BrokenRule(
                    operation=name,
                    file=file,
                    line=changes[0][0].lineno,
                    rule=Rule.CHANGES_VALUES,
                    of=name,
                    words=f"changes {documented.says}, as its documentation says",
                    instead="the program as it was before",
                    mended=replace_expressions(testcase, file, changes),
                )
    return None


def _list_changes(tree: ast.Module, name: str) -> Iterator[Change]:
    """Yield the constructions of a pass, and the calls of a method whose result nothing uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Call() as call) if get_method(call) == name and name in _METHODS:
                yield call, "None"
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)) if called == name in _PASSES:
                yield node, _IDENTITY
