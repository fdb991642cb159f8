"""A pass or a schedule that changes values or arguments is left out, to see whether the failure rests on it."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.documented_changes import find_documented_change
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

PASSED = """y = relax.op.nn.batch_norm(x, gamma, beta, mean, var, axis=1)
one = relax.transform.DecomposeOpsForInference()(module)
two = tvm.transform.Sequential([DecomposeOpsForInference("main"), relax.transform.LegalizeOps()])(module)
"""
SCHEDULED = """D = te.compute((4,), lambda i: te.max(C[i], 0.0), "D")
schedule = tvm.s_tir.Schedule(kernel)
schedule.fuse_reduction_epilogue(
    "ü", "D"); print(schedule.mod)
"""
NOTHING = "__import__('tvm').transform.Sequential([])"


def test_each_pass_is_left_out_of_the_mended_testcase() -> None:
    rule = find_documented_change(program(PASSED))
    assert rule is not None
    assert (rule.rule, rule.operation, rule.line) == (Rule.CHANGES_VALUES, "DecomposeOpsForInference", 2)
    mended = rule.mended.files["r.py"]
    assert f"one = {NOTHING}(module)" in mended
    assert f"Sequential([{NOTHING}, relax.transform.LegalizeOps()])" in mended


def test_a_step_of_a_schedule_is_left_out_of_the_mended_testcase() -> None:
    rule = find_documented_change(program(SCHEDULED))
    assert rule is not None
    assert (rule.operation, rule.line) == ("fuse_reduction_epilogue", 3)
    assert "\nNone; print(schedule.mod)" in rule.mended.files["r.py"]


LAYOUT = """schedule.transform_layout("C", ("read", 1), lambda i, j: (j, i))
"""
MISMATCH = "Mismatched B.ndim on argument #1 when calling:"


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (MISMATCH, True),
        ("Mismatched elements: 1 / 2 (50%)", False),
        ("Check failed: the map is not injective", False),
    ],
)
def test_a_new_layout_explains_only_an_argument_of_the_old_one(message: str, found: bool) -> None:
    rule = find_documented_change(program(LAYOUT), message)
    assert (rule is not None) is found
    assert rule is None or rule.traps


@pytest.mark.parametrize(
    "text",
    [
        PASSED.replace("batch_norm", "layer_norm"),
        PASSED.replace("axis=1", "axis=1, training=False"),
        SCHEDULED.replace("te.max(", "te.exp("),
        "exp = relax.transform.FastMathTransform()(module)\n",
        PASSED.replace("DecomposeOpsForInference", "LegalizeOps"),
        SCHEDULED.replace("schedule.fuse", "made = schedule.fuse"),
        SCHEDULED.replace("fuse_reduction_epilogue", "compute_inline"),
    ],
    ids=[
        *("another operator", "a chosen mode", "a linear epilogue", "an approximation"),
        *("another pass", "a result that is used", "another step"),
    ],
)
def test_other_passes_and_steps_keep_values(text: str) -> None:
    assert find_documented_change(program(text)) is None
