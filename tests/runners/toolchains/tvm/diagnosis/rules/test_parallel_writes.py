"""Tests of the search for loops whose iterations run at once and write one element."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.parallel_writes import find_parallel_write
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

TEXT = """@T.prim_func
def dot(x: T.Buffer((16,), "float32"), y: T.Buffer((16,), "float32"), s: T.Buffer((1,), "float32")):
    s[0] = T.float32(0)
    for i in T.vectorized(16):
        s[0] = s[0] + x[i] * y[i]
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (TEXT, "s[0]"),
        (TEXT.replace("vectorized", "parallel"), "s[0]"),
        (TEXT.replace("s[0] = s[0] + x[i] * y[i]", "s[0] += x[i]"), "s[0]"),
        (TEXT.replace("s[0] + x[i] * y[i]", "x[i]"), "s[0]"),
        (TEXT.replace("s[0] + x[i] * y[i]", "s[0] + x[3]"), "s[0]"),
    ],
    ids=["vectorized", "parallel", "in place", "the last one", "counts"],
)
def test_the_loop_runs_in_order(text: str, written: str) -> None:
    rule = find_parallel_write(program(text))
    assert rule is not None
    assert (rule.rule, rule.of, rule.line) == (Rule.PARALLEL_WRITES, "i", 4)
    assert written in rule.words
    assert rule.mended.files["r.py"] == text.replace("T.vectorized", "T.serial").replace("T.parallel", "T.serial")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("vectorized", "serial"),
        TEXT.replace("s[0] = s[0] + x[i] * y[i]", "y[i] = x[i] * y[i]"),
        TEXT.replace("s[0] = s[0] + x[i] * y[i]", "k = i // 2\n        y[k] = x[i]"),
        TEXT.replace(
            "s[0] = s[0] + x[i] * y[i]",
            'with T.sblock("b"):\n            v = T.axis.spatial(16, i)\n            y[v] = x[v]',
        ),
        TEXT.replace(
            "s[0] = s[0] + x[i] * y[i]",
            'a = T.alloc_buffer((1,), "float32")\n        a[0] = x[i]\n        y[i] = a[0]',
        ),
        TEXT.replace("s[0] + x[i] * y[i]", "T.float32(1)"),
        TEXT.replace("s[0] = s[0] + x[i] * y[i]", "k: T.int32 = i // 2\n        y[k] = x[i]"),
        TEXT.replace(
            "s[0] = s[0] + x[i] * y[i]",
            "for j in range(i, i + 1):\n            for k in range(j, j + 1):\n                y[k] = x[i]",
        ),
    ],
    ids=[
        "in order",
        "an element each",
        "an index of its own",
        "an axis",
        "a buffer of its own",
        "the same value",
        "a let",
        "a range of its own",
    ],
)
def test_other_loops_are_no_fault(text: str) -> None:
    assert find_parallel_write(program(text)) is None
