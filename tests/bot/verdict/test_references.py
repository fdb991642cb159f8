"""A second computation of a value decides who is wrong: the compiler, or the report's expectation."""

from __future__ import annotations

import msgspec
import pytest

from bot.verdict.evidence import Evidence
from bot.verdict.judge import judge
from bot.verdict.verdict import Verdict, VerdictKind
from runners.core.failure.oracle import ASSERTION
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Reason,
    Signature,
    Testcase,
    TestcaseKind,
)
from tests.support.observed import ORDER, PLAN, observe

WRONG_VALUE = msgspec.structs.replace(PLAN, claim=Claim(kind=ClaimKind.WRONG_RESULT))
CHECKED = """
import numpy as np
import tvm
x = np.arange(4)
out = tvm.compile(module)["main"](x).numpy()
np.testing.assert_allclose(out, np.cumsum(x))
"""
COMPARED = Signature(type=ASSERTION, message="Not equal to tolerance")


def judge_agreement(name: str, **seen: object) -> Verdict:
    """Judge a wrong value of all releases that a library computes too."""
    agrees = {"name": name, "vote": "agrees", "version": ORDER[-1]}
    finding = Finding(kind=FindingKind.REFERENCE, summary="s", evidence=agrees)
    testcase = msgspec.structs.replace(WRONG_VALUE.testcase, files={"a.py": CHECKED})
    runs = [observe(one, Outcome.MATCH, attempt=attempt, **seen) for one in ORDER for attempt in (1, 2)]
    plan = msgspec.structs.replace(WRONG_VALUE, testcase=testcase)
    return judge(Evidence(plan=plan, observations=tuple(runs), findings=(finding,)))


@pytest.mark.parametrize("seen", [{"signature": COMPARED}, {"reason": Reason.OTHER_REFERENCE}])
def test_a_library_refutes_a_formula_of_the_testcase(seen: dict[str, object]) -> None:
    for name in ("NumPy", "ONNX"):
        verdict = judge_agreement(name, **seen)
        assert verdict.kind is VerdictKind.INVALID_REPRO
        assert "only the report expects another value" in verdict.headline


def test_numpy_alone_does_not_refute_output_that_the_report_quotes() -> None:
    """The quoted output may be of another build. ONNX's evaluator shares nothing with the compiler."""
    assert judge_agreement("NumPy").kind is VerdictKind.INCONCLUSIVE
    assert judge_agreement("ONNX").kind is VerdictKind.INVALID_REPRO


def test_a_library_refutes_no_value_that_another_reference_calls_wrong() -> None:
    guilty = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "FuseOps", "version": ORDER[-1]})
    agrees = Finding(
        kind=FindingKind.REFERENCE,
        summary="s",
        evidence={"name": "ONNX", "vote": "agrees", "version": ORDER[-1]},
    )
    runs = tuple(observe(one, Outcome.MATCH) for one in ORDER)
    assert (
        judge(Evidence(plan=WRONG_VALUE, observations=runs, findings=(guilty, agrees))).kind
        is VerdictKind.INCONCLUSIVE
    )
    fixed = (*runs[:-1], observe(ORDER[-1], Outcome.PASS))
    assert judge(Evidence(plan=WRONG_VALUE, observations=fixed, findings=(agrees,))).kind is VerdictKind.FIXED
    older = Finding(
        kind=FindingKind.REFERENCE,
        summary="s",
        evidence={"name": "ONNX", "vote": "agrees", "version": ORDER[-2]},
    )
    assert judge(Evidence(plan=WRONG_VALUE, observations=fixed, findings=(older,))).kind is VerdictKind.INCONCLUSIVE


def judge_rounding(by: str) -> Verdict:
    """Judge two arrays that differ by so much, where a pass changes the values and NumPy agrees with the result."""
    guilty = Finding(kind=FindingKind.GUILTY_PASS, summary="s", evidence={"name": "FastMath", "version": ORDER[-1]})
    agrees = {"name": "NumPy", "vote": "agrees", "version": ORDER[-1]}
    reference = Finding(kind=FindingKind.REFERENCE, summary="s", evidence=agrees)
    message = f"Not equal to tolerance rtol=1e-07, atol=0 | Max relative difference among violations: {by}"
    runs = [observe(one, Outcome.MATCH, signature=Signature(type=ASSERTION, message=message)) for one in ORDER]
    return judge(Evidence(plan=WRONG_VALUE, observations=tuple(runs), findings=(guilty, reference)))


def test_results_that_differ_by_rounding_alone_are_right() -> None:
    """Four units in the last place of float32 are 4.8e-7. More is the pass's doing."""
    verdict = judge_rounding("1.18e-07")
    assert verdict.kind is VerdictKind.INVALID_REPRO
    assert "rounding alone (1.18e-07, relative)" in verdict.headline
    assert judge_rounding("5.1e-07").kind is VerdictKind.INCONCLUSIVE


ROUND_TRIP = """
import tvm
text = kernel.script()
again = tvm.script.from_source({read})
tvm.ir.assert_structural_equal(kernel, again)
"""


@pytest.mark.parametrize(("read", "kind"), [("text", VerdictKind.CONFIRMED), ("other", VerdictKind.INCONCLUSIVE)])
def test_an_object_that_changes_when_it_is_printed_and_read_needs_no_reference(read: str, kind: VerdictKind) -> None:
    testcase = msgspec.structs.replace(WRONG_VALUE.testcase, files={"a.py": ROUND_TRIP.format(read=read)})
    plan = msgspec.structs.replace(WRONG_VALUE, testcase=testcase)
    runs = tuple(observe(one, Outcome.MATCH, attempt=attempt) for one in ORDER for attempt in (1, 2))
    assert judge(Evidence(plan=plan, observations=runs, findings=())).kind is kind


def compile_twice(*flags: str) -> Plan:
    steps = []
    for at, flag in enumerate(flags):
        steps += [("iree-compile", "a.mlir", flag, "-o", f"{at}.vmfb"), ("iree-run-module", f"--module={at}.vmfb")]
    testcase = Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"a.mlir": ""}, steps=tuple(steps))
    return msgspec.structs.replace(WRONG_VALUE, testcase=testcase, device="vmvx")


def observe_twins(reason: Reason) -> tuple[Observation, ...]:
    return tuple(observe(one, Outcome.MATCH, toolchain="iree", device="vmvx", reason=reason) for one in ORDER)


def test_two_devices_of_the_testcase_that_differ_support_the_report() -> None:
    """At most one of the results is right. Other flags may change what the program means."""
    targets = compile_twice("--iree-hal-target-backends=vmvx", "--iree-hal-target-backends=llvm-cpu")
    assert (
        judge(Evidence(plan=targets, observations=observe_twins(Reason.TWINS_DIFFER), findings=())).kind
        is VerdictKind.CONFIRMED
    )
    assert (
        judge(Evidence(plan=targets, observations=observe_twins(Reason.AS_QUOTED), findings=())).kind
        is VerdictKind.INCONCLUSIVE
    )
    levels = compile_twice("--iree-opt-level=O0", "--iree-opt-level=O3")
    assert (
        judge(Evidence(plan=levels, observations=observe_twins(Reason.TWINS_DIFFER), findings=())).kind
        is VerdictKind.INCONCLUSIVE
    )


UNSHOWN = msgspec.structs.replace(WRONG_VALUE, reported=ORDER[1])


@pytest.mark.parametrize(
    ("votes", "kind"),
    [
        ({ORDER[-1]: "differs"}, VerdictKind.CONFIRMED),
        ({ORDER[1]: "differs", ORDER[-1]: "differs"}, VerdictKind.CONFIRMED),
        ({ORDER[1]: "differs", ORDER[-1]: "agrees"}, VerdictKind.FIXED),
        ({ORDER[1]: "agrees", ORDER[-1]: "differs"}, VerdictKind.INCONCLUSIVE),
        ({ORDER[1]: "agrees", ORDER[-1]: "agrees"}, VerdictKind.INCONCLUSIVE),
        ({ORDER[1]: "differs"}, VerdictKind.INCONCLUSIVE),
        ({}, VerdictKind.INCONCLUSIVE),
    ],
)
def test_a_reference_tells_of_values_that_the_report_does_not_quote(votes: dict[str, str], kind: VerdictKind) -> None:
    runs = tuple(observe(one, Outcome.OTHER_FAILURE, ended=Exited(code=0)) for one in ORDER)
    findings = tuple(
        Finding(kind=FindingKind.REFERENCE, summary="s", evidence={"name": "NumPy", "vote": vote, "version": version})
        for version, vote in votes.items()
    )
    assert judge(Evidence(plan=UNSHOWN, observations=runs, findings=findings)).kind is kind
