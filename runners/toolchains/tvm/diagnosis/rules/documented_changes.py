"""Find a pass or a schedule in a testcase that changes values or arguments according to its documentation.

Then a comparison of the values before and after shows no fault of the compiler. The repaired testcase omits the
change. If the failure is gone, that change is its cause.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.tvm.diagnosis.programs import Change, get_method, parse_programs, replace_expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Documented:
    """The documentation of a pass or of a method of schedules."""

    says: str
    where: re.Pattern[str]
    """Text of a testcase in which values may change. In any other testcase, a change is a fault of the compiler."""
    unless: re.Pattern[str] | None = None
    """Text of a testcase that requests the same meaning before and after."""
    error: re.Pattern[str] | None = None
    """The only error that the change explains. None for wrong values."""

    def covers(self, text: str, message: str) -> bool:
        if self.error is not None and not self.error.search(message):
            return False
        return self.where.search(text) is not None and not (self.unless and self.unless.search(text))


_MODE = _Documented(
    # tvm.relax.op.nn.batch_norm: "legalized to the training mode by default"; these passes choose the mode.
    says="the mode of batch_norm",
    where=re.compile(r"\bbatch_norm\("),
    unless=re.compile(r"\btraining\s*="),
)
_PASSES: Mapping[str, _Documented] = {"DecomposeOpsForInference": _MODE, "DecomposeOpsForTraining": _MODE}
# Without FastMathTransform, whose functions are "approximate": no run can distinguish an approximation from a wrong
# value.
_METHODS: Mapping[str, _Documented] = {
    "fuse_reduction_epilogue": _Documented(
        # "Semantic Change for Non-Linear Epilogues": applied in each iteration, "different numerical results". For a
        # bias, "fusion preserves exact numerical equivalence".
        says="the place of a non-linear epilogue",
        where=re.compile(r"\b(?:max|min|maximum|minimum|clip|relu)\("),
    ),
    "transform_layout": _Documented(
        # "If applied to an input buffer, the calling scope is responsible": the caller passes the new layout.
        says="the layout of an argument",
        where=re.compile(r"transform_layout"),
        error=re.compile(r"^Mismatched [\w.\[\]]{1,80} on argument #\d"),
    ),
}
_IDENTITY = "__import__('tvm').transform.Sequential([])"
"""A pass that changes nothing, in every release."""


def check_documented_changes(failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase without its change."""
    signature = failure.seen.signature
    rule = find_documented_change(failure.testcase, "" if signature is None else signature.message)
    return NOTHING_FOUND if rule is None else confirm_broken_rule(rule, failure, means)


def find_documented_change(testcase: Testcase, message: str = "") -> BrokenRule | None:
    """Return the first pass or method that changes values, or explains the error ``message``. None without one.

    The repaired testcase omits each call.
    """
    for name, documented in (*_PASSES.items(), *_METHODS.items()):
        for file, tree in parse_programs(testcase, name):
            changes = list(_list_changes(tree, name)) if documented.covers(testcase.files[file], message) else []
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
                    traps=documented.error is not None,
                )
    return None


def _list_changes(tree: ast.Module, name: str) -> Iterator[Change]:
    """Yield the constructions of a pass, and the calls of a method whose result is not used."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Call() as call) if get_method(call) == name and name in _METHODS:
                yield call, "None"
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)) if called == name in _PASSES:
                yield node, _IDENTITY
