"""Tests of IREE's diagnosers: the runs that prove a fault of the testcase, and the runs that do not."""

from __future__ import annotations

import msgspec
import pytest

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
from runners.core.toolchain.diagnosis import Failure, Means
from runners.toolchains.iree import DIAGNOSERS
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


@pytest.mark.parametrize("ended", [Signalled(code=11), TimedOut(where="step 2"), Exited(code=1)])
def test_an_undefined_value_explains_no_crash_no_hang_and_no_refusal(ended: Ended) -> None:
    """Such failures are the compiler's, though they go when the rule is kept."""
    means, _ = scripted(Outcome.PASS)
    findings = diagnose_once(DIAGNOSERS, failure(SHARED, ended=ended), means).findings
    assert FindingKind.BROKEN_RULE not in {one.kind for one in findings}
