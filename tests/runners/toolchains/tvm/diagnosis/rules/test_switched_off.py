"""Tests of the search for arguments that switch a safeguard of the compiler off."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.switched_off import find_switched_off
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

TEXT = """schedule = tvm.s_tir.Schedule(kernel)
(i,) = schedule.get_loops(schedule.get_sblock("ü"))
outer, inner = schedule.split(i, [None, 16], disable_predication=True); schedule.vectorize(inner)
one = schedule.split(outer, [None, 3], disable_predication=True); two = split(a, disable_predication=True)
"""


def test_all_switches_are_left_on_in_the_mended_testcase() -> None:
    rule = find_switched_off(program(TEXT))
    assert rule is not None
    assert (rule.rule, rule.of, rule.operation, rule.line) == (Rule.SAFEGUARD_OFF, "disable_predication", "split", 3)
    assert rule.mended.files["r.py"] == TEXT.replace("disable_predication=True", "disable_predication=False")


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("=True", "=False"),
        TEXT.replace("=True", "=fast"),
        TEXT.replace(", disable_predication=True", ""),
        "disable_predication = True\n",
        TEXT.replace("split(", "split(("),
    ],
    ids=["on", "unknown", "default", "a name", "no Python"],
)
def test_other_calls_are_no_fault(text: str) -> None:
    assert find_switched_off(program(text)) is None
