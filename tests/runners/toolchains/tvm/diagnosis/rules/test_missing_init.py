"""Tests of the search for reductions that add to what the caller passes."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.missing_init import find_missing_init
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

TEXT = """@T.prim_func
def gemv(A: T.Buffer((32, 64), "float32"), x: T.Buffer((64,), "float32"), y: T.Buffer((32,), "float32")):
    for i, k in T.grid(32, 64):
        with T.sblock("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            y[vi] = y[vi] + A[vi, vk] * x[vk]
"""


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("sblock", "block"),
        TEXT.replace("y[vi] + A[vi, vk] * x[vk]", "A[vi, vk] * x[vk] + y[vi]"),
        TEXT.replace('vi, vk = T.axis.remap("SR", [i, k])', "vi = T.axis.spatial(32, i); vk = T.axis.reduce(64, k)"),
    ],
    ids=["sblock", "block", "the other side", "single axes"],
)
def test_the_result_is_set_before_the_reduction(text: str) -> None:
    rule = find_missing_init(program(text))
    assert rule is not None
    assert (rule.rule, rule.of, rule.line) == (Rule.MISSING_INIT, "y", 4)
    at = "            y[vi] ="
    inserted = "            with T.init():\n                y[vi] = T.float32(0)\n"
    assert rule.mended.files["r.py"] == text.replace(at, f"{inserted}{at}", 1)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(
            "            y[vi] =",
            "            with T.init():\n                y[vi] = T.float32(0)\n            y[vi] =",
        ),
        TEXT.replace('"SR"', '"SS"'),
        TEXT.replace("y[vi] + A", "A[vi, 0] + A"),
        TEXT.replace('y: T.Buffer((32,), "float32")', "p: T.handle"),
        TEXT.replace("T.grid(", "T.grid(("),
    ],
    ids=["set", "no reduction", "no sum", "no parameter", "no Python"],
)
def test_other_blocks_are_no_fault(text: str) -> None:
    assert find_missing_init(program(text)) is None
