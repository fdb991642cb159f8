"""Tests of an input whose notation the failing release no longer reads."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import CallFault
from runners.core.protocol import Exited, Observation, Outcome, Signature, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.calls import check_call
from runners.toolchains.iree.diagnosis.calls.old_notation import find_old_notation
from tests.support.means import make_means
from tests.support.observed import observe

TEXT = """func.func @f(%x: tensor<1x4xf32>) -> tensor<1x1xf32> {
  %s = tosa.reduce_sum %x {axis = 1 : i32} : (tensor<1x4xf32>) -> tensor<1x1xf32>
  return %s : tensor<1x1xf32>
}
"""
REFUSED = "custom op 'tosa.reduce_sum' expected 'axis'"


def fail(message: str = REFUSED, *, version: str = "3.13.0", text: str = TEXT) -> Failure:
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"f.mlir": text},
        steps=(("iree-compile", "f.mlir", "-o", "f.vmfb"),),
    )
    signature = Signature(type="mlir-error", message=message)
    return Failure(testcase=testcase, seen=observe(version, Outcome.MATCH, ended=Exited(code=1), signature=signature))


def test_an_older_notation_is_written_anew_and_run() -> None:
    ran: list[Testcase] = []

    def run(_version: str, _variant: Variant, testcase: Testcase, _device: str) -> Observation:
        ran.append(testcase)
        return observe("3.13.0", Outcome.PASS)

    (finding,) = check_call(fail(), make_means(run=run)).findings
    assert finding.evidence["call_fault"] == CallFault.NOTATION.value
    assert finding.evidence["line"] == 2
    assert '"tosa.reduce_sum"(%x) {axis = 1 : i32}' in ran[0].files["f.mlir"]


@pytest.mark.parametrize(
    "failure",
    [
        fail(version="3.12.0"),  # it reads this notation
        fail("failed to legalize operation 'tosa.reduce_sum'"),  # it has read the text
        fail(text=TEXT.replace("{axis = 1 : i32}", "axis(1)")),  # today's notation
    ],
)
def test_another_refusal_is_not_explained(failure: Failure) -> None:
    assert find_old_notation(failure) is None
