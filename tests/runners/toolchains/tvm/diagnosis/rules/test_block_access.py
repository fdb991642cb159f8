"""Tests of the search for blocks whose declared accesses do not cover their body."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.block_access import find_other_access
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

TEXT = """@T.prim_func(s_tir=True)
def blur(A: T.Buffer((64,), "float32"), C: T.Buffer((62,), "float32")):
    for i in range(62):
        with T.sblock("C"):
            vi = T.axis.spatial(62, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi] + A[vi + 2]
"""


def test_a_block_that_reads_beside_its_declaration_breaks_a_rule() -> None:
    """The mended testcase leaves the accesses to the compiler, and keeps the number of its rows."""
    rule = find_other_access(program(TEXT))
    assert rule is not None
    assert (rule.rule, rule.of, rule.line) == (Rule.OTHER_ACCESS, "A", 4)
    mended = rule.mended.files["r.py"]
    assert "T.reads" not in mended
    assert "T.writes" not in mended
    assert mended.count("\n") == TEXT.count("\n")
    assert "A[vi + 2]" in rule.words


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("A[vi] + A[vi + 2]", "A[vi] * 2.0"),
        TEXT.replace("T.reads(A[vi])", "T.reads(A[vi:vi + 3])"),
        TEXT.replace("T.reads(A[vi])", "T.reads(A[vi], A[vi + 2])"),
        TEXT.replace("            T.writes(C[vi])\n", ""),
        TEXT.replace("A[vi] + A[vi + 2]", "A[vi] + B[vi + 2]"),
        TEXT.replace("A[vi] + A[vi + 2]", "C[vi] + A[vi]"),
        TEXT.replace("T.reads(", "T.reads(("),
    ],
    ids=["covered", "a range", "both", "no writes", "another buffer", "a sum", "no Python"],
)
def test_other_blocks_are_no_fault(text: str) -> None:
    assert find_other_access(program(text)) is None
