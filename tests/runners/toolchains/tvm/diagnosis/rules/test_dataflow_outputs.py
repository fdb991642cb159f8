"""Tests of the search for variables that are read after their dataflow block without being its output."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.tvm.diagnosis.rules.dataflow_outputs import find_hidden_variable

TEXT = """@R.function
def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
    with R.dataflow():
        lv = R.add(x, y)
        gv = R.multiply(lv, y)
        R.output(gv)
    z = R.add(gv, gv)
    return z
"""
HIDDEN = TEXT.replace("R.add(gv, gv)", "R.add(gv, lv)")


def program(text: str) -> Testcase:
    return Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": text}, steps=(("python", "r.py"),))


def test_a_variable_that_is_read_after_its_block_becomes_an_output() -> None:
    rule = find_hidden_variable(program(HIDDEN))
    assert rule is not None
    assert (rule.rule, rule.of, rule.line, rule.operation) == (Rule.DATAFLOW_OUTPUT, "lv", 3, "R.dataflow")
    assert rule.mended.files["r.py"] == HIDDEN.replace("R.output(gv)", "R.output(gv, lv)")


BUILT = """with bb.function("main", [x]):
    with bb.dataflow():
        a = bb.emit(relax.op.add(x, x))
        y = bb.emit(relax.op.exp(a))
    bb.emit_func_output(y)
"""


def test_a_variable_that_a_builder_returns_becomes_an_output() -> None:
    rule = find_hidden_variable(program(BUILT))
    assert rule is not None
    assert (rule.rule, rule.of, rule.line, rule.operation) == (Rule.DATAFLOW_OUTPUT, "y", 2, "bb.dataflow")
    assert rule.mended.files["r.py"] == BUILT.replace("y = bb.emit(", "y = bb.emit_output(")


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        BUILT.replace("y = bb.emit(", "y = bb.emit_output("),
        BUILT.replace("    bb.emit_func", "    y = bb.emit(relax.op.exp(x))\n    bb.emit_func").replace("(y)", "(x)"),
        BUILT.replace("    with bb.dataflow():", "    if True:"),
        HIDDEN.replace("R.output(gv)", "R.output(gv, lv)"),
        HIDDEN.replace("    z =", "    lv = gv\n    z ="),
        HIDDEN.replace("    with", "    lv = x\n    with"),
        HIDDEN.replace("R.dataflow()", "R.dataflow("),
    ],
    ids=[
        "not read",
        "emitted as output",
        "not returned",
        "no block",
        "an output",
        "assigned again",
        "assigned before",
        "no Python",
    ],
)
def test_other_variables_are_no_fault(text: str) -> None:
    assert find_hidden_variable(program(text)) is None
