"""IREE's diagnosers: which runs show that the program itself is at fault, and which do not."""

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


def test_vmvx_tells_an_access_out_of_bounds_and_blames_nobody() -> None:
    """It may be the compiler's own doing."""
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


def test_an_index_outside_blames_the_repro_when_the_failure_goes_with_it() -> None:
    """The control takes another index and nothing else; its clean run is what the finding rests on."""
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
def test_a_compiler_may_refuse_an_index_outside_and_not_crash_or_hang_on_it(alone: Ended, blamed: bool) -> None:
    """Undefined is what the program does when it runs: the repro is not blamed for a crash of the compiler."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        if "reprobot_mended" in testcase.files["m.mlir"]:
            return observe(version, Outcome.PASS)
        return observe(version, Outcome.MATCH, ended=alone)

    findings = diagnose_once(DIAGNOSERS, failure(INDEXED), make_means(run)).findings
    assert (FindingKind.OUT_OF_BOUNDS_ACCESS in {one.kind for one in findings}) is blamed
    assert ran[0].steps == INDEXED.steps[:1]


def test_an_index_outside_explains_no_failure_that_stays() -> None:
    """Mended and failing still: something else is wrong, and the repro is not blamed."""
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
def test_a_broken_rule_blames_the_repro_when_the_result_hangs_on_it(
    mended: Outcome, ended: Ended, blamed: bool
) -> None:
    """Put right, the testcase is clean or prints another value; one that fails as before was broken elsewhere."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        if '"reduction"' in testcase.files["m.mlir"]:
            return observe(version, mended, ended=ended)
        return observe(version, Outcome.PASS)

    findings = diagnose_once(DIAGNOSERS, failure(SHARED, signature=CHECK_FAILS), make_means(run)).findings
    assert (FindingKind.BROKEN_RULE in {one.kind for one in findings}) is blamed


@pytest.mark.parametrize("ended", [Signalled(code=11), TimedOut(where="step 2"), Exited(code=1)])
def test_an_undefined_value_explains_no_crash_no_hang_and_no_refusal(ended: Ended) -> None:
    """They go when the dimension is reduced, and are the compiler's all the same."""
    means, _ = scripted(Outcome.PASS)
    findings = diagnose_once(DIAGNOSERS, failure(SHARED, ended=ended), means).findings
    assert FindingKind.BROKEN_RULE not in {one.kind for one in findings}
