"""Tests of the search for weights in another order than the parameters of an exported module."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import Rule
from runners.toolchains.tvm.diagnosis.rules.argument_order import find_other_order
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program

TEXT = """module, params = Model().export_tvm(spec)
weights = [tvm.runtime.tensor(saved["é"][name]) for name in sorted(saved["é"])]
vm["forward"](x, *weights)
"""


def test_weights_by_sorted_names_are_listed_by_the_exported_parameters() -> None:
    rule = find_other_order(program(TEXT))
    assert rule is not None
    assert (rule.rule, rule.line) == (Rule.ARGUMENT_ORDER, 2)
    wanted = TEXT.replace('sorted(saved["é"])', "[name_ for name_, value_ in params]")
    assert rule.mended.files["r.py"] == wanted


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace('sorted(saved["é"])', "[one for one, _ in params]"),
        TEXT.replace("[name])", "[0])"),
        TEXT.replace("module, params = Model().export_tvm(spec)", "module = load(); params = []"),
        TEXT.replace("module, params", "module"),
        TEXT.replace("weights = [", "weights = [("),
    ],
    ids=["by parameters", "no name", "no export", "one result", "no Python"],
)
def test_other_lists_are_no_fault(text: str) -> None:
    assert find_other_order(program(text)) is None
