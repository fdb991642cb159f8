"""Tests of IREE's diagnosers: the runs that prove a fault of the testcase, and the runs that do not."""

from __future__ import annotations

import msgspec
import pytest

from runners.core.findings.kinds import ControlEnd
from runners.core.protocol import (
    Ended,
    Exited,
    FindingKind,
    Observation,
    Outcome,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    TimedOut,
    Variant,
)
from runners.core.toolchain.broken_rule import find_absence
from runners.core.toolchain.diagnosis import Failure, Means
from runners.toolchains.iree.diagnosis import DIAGNOSERS
from tests.support.means import diagnose_once, make_means
from tests.support.observed import observe

COMMANDS = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": ""},
    steps=(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--device=local-task", "--module=m.vmfb"),
    ),
)
OUT_OF_RANGE = (
    "x.c:7: OUT_OF_RANGE; out-of-bounds access detected (offset=400, length=4, alignment=4, buffer length=32); while"
)


def scripted(outcome: Outcome, excerpt: str = "") -> tuple[Means, list[Testcase]]:
    """Runs that all end in one way, and the testcases that were run."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        return observe(version, outcome, device=device, excerpt=excerpt)

    return make_means(run), ran


def failure(testcase: Testcase = COMMANDS, device: str = "vmvx", **more: object) -> Failure:
    return Failure(testcase=testcase, seen=observe("1.0", Outcome.MATCH, device=device, **more))


def test_an_access_out_of_bounds_on_vmvx_has_no_blame() -> None:
    """The access may be the compiler's own."""
    means, ran = scripted(Outcome.OTHER_FAILURE, OUT_OF_RANGE)
    found = diagnose_once(DIAGNOSERS, failure(device="llvm-cpu"), means)
    assert found.findings[0].evidence["offset"] == 400
    assert found.findings[0].evidence["origin"] == "unknown"
    assert "--iree-hal-target-backends=vmvx" in ran[0].steps[0]
    assert found.controls[0].device == "vmvx"


INDEXED = msgspec.structs.replace(
    COMMANDS,
    files={
        "m.mlir": "func.func @at(%t: tensor<8xf32>) -> f32 {\n  %c = arith.constant 8 : index\n"
        "  %v = tensor.extract %t[%c] : tensor<8xf32>\n  return %v : f32\n}\n"
    },
)


def test_an_index_out_of_bounds_blames_the_testcase_if_the_mended_run_is_clean() -> None:
    """The control changes the index only; the finding rests on its clean run."""
    means, ran = scripted(Outcome.PASS)
    found = diagnose_once(DIAGNOSERS, failure(INDEXED), means)
    assert [(f.kind, f.evidence["origin"]) for f in found.findings] == [
        (FindingKind.OUT_OF_BOUNDS_ACCESS, "testcase")
    ]
    assert len(found.controls) == 1
    assert "%t[%reprobot_mended]" in ran[1].files["m.mlir"]


@pytest.mark.parametrize(
    ("alone", "blamed"), [(Exited(code=1), True), (Signalled(code=6), False), (TimedOut(where="step 1"), False)]
)
def test_a_crash_or_hang_of_the_compiler_is_not_blamed_on_the_testcase(alone: Ended, blamed: bool) -> None:
    """Behaviour is undefined at run time: a compiler may refuse such a program, but must not crash or hang."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        if "reprobot_mended" in testcase.files["m.mlir"]:
            return observe(version, Outcome.PASS)
        return observe(version, Outcome.MATCH, ended=alone)

    findings = diagnose_once(DIAGNOSERS, failure(INDEXED), make_means(run)).findings
    assert (FindingKind.OUT_OF_BOUNDS_ACCESS in {one.kind for one in findings}) is blamed
    assert ran[0].steps == INDEXED.steps[:1]


def test_an_index_out_of_bounds_does_not_explain_a_failure_that_stays() -> None:
    """If the mended testcase fails too, the testcase is not blamed."""
    means, _ = scripted(Outcome.MATCH)
    assert diagnose_once(DIAGNOSERS, failure(INDEXED), means).findings == ()


CHECK_FAILS = Signature(type="AssertionError", message="Not equal to tolerance")
SHARED = msgspec.structs.replace(
    COMMANDS,
    files={
        "m.mlir": "func.func @f(%x: tensor<2x2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],"
        ' iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x2xf32>) outs(%z : tensor<2xf32>) {\n'
        "  ^bb0(%a: f32, %b: f32):\n    %s = arith.addf %a, %b : f32\n    linalg.yield %s : f32\n"
        "  } -> tensor<2xf32>\n  return %r : tensor<2xf32>\n}\n"
    },
)


@pytest.mark.parametrize(
    ("mended", "ended", "blamed"),
    [
        (Outcome.PASS, Exited(code=0), True),
        (Outcome.OTHER_FAILURE, Exited(code=0), True),
        (Outcome.OTHER_FAILURE, Exited(code=1), False),
        (Outcome.MATCH, Exited(code=0), False),
    ],
)
def test_a_broken_rule_blames_the_testcase_if_the_mended_result_differs(
    mended: Outcome, ended: Ended, blamed: bool
) -> None:
    """The mended testcase is clean or prints another value. If it fails as before, the cause is elsewhere."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        if '"reduction"' in testcase.files["m.mlir"]:
            return observe(version, mended, ended=ended)
        return observe(version, Outcome.PASS)

    findings = diagnose_once(DIAGNOSERS, failure(SHARED, signature=CHECK_FAILS), make_means(run)).findings
    assert (FindingKind.BROKEN_RULE in {one.kind for one in findings}) is blamed


@pytest.mark.parametrize(("printed", "end"), [("1 0", ControlEnd.OTHER_VALUE), ("1 2", None)])
def test_where_no_output_decides_the_mended_result_has_to_differ(printed: str, end: ControlEnd | None) -> None:
    seen, control = (
        observe("1.0", Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=text) for text in ("1 2", printed)
    )
    assert find_absence(control, seen) is end


@pytest.mark.parametrize("ended", [Signalled(code=11), TimedOut(where="step 2"), Exited(code=1)])
def test_an_undefined_value_explains_no_crash_no_hang_and_no_refusal(ended: Ended) -> None:
    """Such failures are the compiler's, though they go when the rule is kept."""
    means, _ = scripted(Outcome.PASS)
    findings = diagnose_once(DIAGNOSERS, failure(SHARED, ended=ended), means).findings
    assert FindingKind.BROKEN_RULE not in {one.kind for one in findings}


MISCALLED = msgspec.structs.replace(
    COMMANDS,
    files={"m.mlir": "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"},
    steps=(COMMANDS.steps[0], (*COMMANDS.steps[1], "--function=f", "--input=5xf32=1")),
)
REJECTED: dict[str, object] = {
    "ended": Exited(code=1),
    "signature": Signature(type="status:INVALID_ARGUMENT", message="shape mismatch"),
}


def diagnose_call(testcase: Testcase, mended: Outcome, **seen: object) -> list[FindingKind]:
    """The kinds of finding where the mended testcase ends in this way, and any other run fails as reported."""

    def run(version: str, variant: Variant, ran: Testcase, device: str) -> Observation:
        return observe(version, mended if "--input=4xf32=0.5" in ran.steps[-1] else Outcome.MATCH)

    found = diagnose_once(DIAGNOSERS, failure(testcase, "llvm-cpu", **{**REJECTED, **seen}), make_means(run))
    return [one.kind for one in found.findings if one.kind is FindingKind.WRONG_CALL]


def test_a_rejected_call_is_the_testcases_fault_if_it_differs_and_the_mended_call_runs() -> None:
    """The difference alone is no proof: the program may fail with a right call too."""
    assert diagnose_call(MISCALLED, Outcome.PASS) == [FindingKind.WRONG_CALL]
    assert diagnose_call(MISCALLED, Outcome.MATCH) == []
    assert diagnose_call(MISCALLED, Outcome.OTHER_FAILURE) == []


def test_a_wrong_call_comes_with_the_command_that_works() -> None:
    means, _ = scripted(Outcome.PASS)
    (finding,) = diagnose_once(DIAGNOSERS, failure(MISCALLED, "llvm-cpu", **REJECTED), means).findings
    assert finding.evidence["call_that_works"] == (
        "iree-run-module --device=local-task --module=m.vmfb --function=f --input=4xf32=0.5"
    )


def test_a_right_call_that_is_rejected_is_not_the_testcases_fault() -> None:
    """Then the check is wrong, or the compiler gave the function another signature."""
    right = msgspec.structs.replace(
        MISCALLED, steps=(MISCALLED.steps[0], (*MISCALLED.steps[1][:-1], "--input=4xf32=1"))
    )
    assert diagnose_call(right, Outcome.PASS) == []


@pytest.mark.parametrize(
    "seen",
    [
        {"ended": Signalled(code=11)},
        {"ended": TimedOut(where="step 2")},
        {"ended": Exited(code=0)},
        {"signature": Signature(type="unexpected-output", message="element at index 0 (1) does not match")},
    ],
    ids=["crash", "hang", "ends", "wrong value"],
)
def test_a_wrong_call_explains_no_crash_no_hang_and_no_wrong_value(seen: dict[str, object]) -> None:
    """A tool has to reject a wrong call, and must not crash on it."""
    assert diagnose_call(MISCALLED, Outcome.PASS, **seen) == []


def wrong_output(got: str) -> Signature:
    return Signature(type="unexpected-output", message=f"element at index 0 ({got}) does not match the expected (4)")


@pytest.mark.parametrize(
    ("before", "after", "blamed"),
    [
        (wrong_output("0"), wrong_output("1"), True),
        (wrong_output("0"), wrong_output("0"), False),
        (Signature(type="status:OUT_OF_RANGE", message="beyond the buffer"), wrong_output("1"), True),
        (wrong_output("0"), Signature(type="status:OUT_OF_RANGE", message="beyond the buffer"), False),
    ],
)
def test_an_expected_value_that_rests_on_the_fault_does_not_hide_the_fault(
    before: Signature, after: Signature, blamed: bool
) -> None:
    """The command checks for the value that the reporter expects beyond the tensor: no repair prints that value."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        mended = "reprobot_mended" in testcase.files["m.mlir"]
        return observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=1), signature=after if mended else before)

    seen = failure(INDEXED, ended=Exited(code=1), signature=before)
    findings = diagnose_once(DIAGNOSERS, seen, make_means(run)).findings
    assert (FindingKind.OUT_OF_BOUNDS_ACCESS in {one.kind for one in findings}) is blamed
