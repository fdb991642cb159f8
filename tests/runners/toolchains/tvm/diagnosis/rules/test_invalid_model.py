"""Tests of the check of an imported model by ONNX's own rules."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import ControlEnd, Rule
from runners.core.findings.record import read_evidence
from runners.core.findings.types import RuleEvidence
from runners.core.protocol import Answer, Ended, Exited, Observation, Outcome, Signalled, Signature, Testcase, Variant
from runners.core.toolchain.diagnosis import Diagnosis, Failure
from runners.toolchains.tvm.diagnosis.rules.invalid_model import check_model, find_import
from tests.runners.toolchains.tvm.diagnosis.rules.test_dataflow_outputs import program
from tests.support.means import make_means

TEXT = """import onnx
from tvm.relax.frontend.onnx import from_onnx
mod = from_onnx(m)
"""
REFUSAL = (
    "[ShapeInferenceError] Inference error(s): (op_type:Transpose): [TypeInferenceError] Invalid attribute perm"
    " {0, 2, 1}, input shape = {12, 64}"
)
REFUSED = Signature(type="onnx.onnx_cpp2py_export.shape_inference.InferenceError", message=REFUSAL)
FAILED = Exited(code=1)
ERROR = Signature(type="ValueError", message="Transpose: number of axes in perm attribute (3) must equal (2)")


def see(variant: Variant, signature: Signature | None, ended: Ended, excerpt: str = "") -> Observation:
    return Observation(
        toolchain="tvm",
        version="0.27.0",
        device="llvm",
        attempt=1,
        variant=variant,
        outcome=Outcome.OTHER_FAILURE,
        answer=Answer.SKIP,
        ended=ended,
        signature=signature,
        excerpt=excerpt,
    )


STACK = """  File "r.py", line 3, in <module>
  File "a/relax/frontend/onnx/onnx_frontend.py", line 9, in from_onnx
"""


def diagnose(
    control: Signature | None, failing: Signature = ERROR, ended: Ended = FAILED, stack: str = STACK
) -> Diagnosis:
    def run(_version: str, variant: Variant, _changed: Testcase, _device: str) -> Observation:
        return see(variant, control, Exited(code=1 if control else 0))

    failure = Failure(testcase=program(TEXT), seen=see(Variant.ORIGINAL, failing, ended, stack))
    return check_model(failure, make_means(run))


def test_a_model_that_the_checker_refuses_at_the_failing_operator_is_at_fault() -> None:
    (finding,) = diagnose(REFUSED).findings
    evidence = read_evidence(finding)
    assert isinstance(evidence, RuleEvidence)
    assert (evidence.rule, evidence.operation, evidence.line) == (Rule.INVALID_MODEL, "Transpose", 3)
    assert evidence.rule_of == "Invalid attribute perm {0, 2, 1}, input shape = {12, 64}"
    assert evidence.control_end is ControlEnd.REFUSED


@pytest.mark.parametrize(
    ("control", "failing", "ended"),
    [
        pytest.param(None, ERROR, Exited(code=1), id="the model is valid"),
        pytest.param(REFUSED, Signature(type="KeyError", message="Gelu"), Exited(code=1), id="another operator"),
        pytest.param(REFUSED, ERROR, Signalled(code=11), id="a crash"),
        pytest.param(REFUSED, ERROR, Exited(code=0), id="a result"),
        pytest.param(Signature(type="ValueError", message=REFUSAL), ERROR, Exited(code=1), id="no checker"),
        pytest.param(
            Signature(
                type="onnx.onnx_cpp2py_export.shape_inference.InferenceError",
                message="(op_type:Transpose): Inferred shape and existing shape differ in rank",
            ),
            ERROR,
            Exited(code=1),
            id="only a declared extent",
        ),
    ],
)
def test_other_failures_of_an_import_stay_open(control: Signature | None, failing: Signature, ended: Ended) -> None:
    assert not diagnose(control, failing, ended).findings


def test_an_error_after_the_import_is_not_of_the_model() -> None:
    assert not diagnose(REFUSED, stack='  File "r.py", line 4, in <module>\n').findings


def test_the_checked_testcase_checks_each_model_and_imports_it() -> None:
    found = find_import(program(TEXT.replace("from_onnx(m)", "relay.frontend.from_onnx(onnx.load('a.onnx'), s)")))
    assert found is not None
    checked = "(__import__(\"onnx.checker\").checker.check_model(onnx.load('a.onnx'), full_check=True) or onnx.load("
    assert checked in found.checked.files["r.py"]


@pytest.mark.parametrize("text", [TEXT.replace("(m)", "()"), TEXT.replace("(m)", "(make())"), TEXT + "("])
def test_a_model_that_cannot_be_read_twice_is_not_checked(text: str) -> None:
    assert find_import(program(text)) is None
