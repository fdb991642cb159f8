"""What a failing probe is asked further, and how little is believed of what the guest answers."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.guest_programs import launch
from runners.core.protocol import (
    Claim,
    Ended,
    Exited,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    TimedOut,
    Variant,
)
from runners.diagnosis.diagnose import MAX_FINDINGS, Means, diagnose, read_findings, with_line_first
from tests.support.observed import observe

PYTHON = Testcase(
    kind=TestcaseKind.PYTHON,
    toolchain="tvm",
    files={"r.py": "from __future__ import annotations\nimport tvm\ntvm.relax.frontend.onnx.f()\n"},
    steps=(("python", "r.py"),),
)
COMMANDS = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": ""},
    steps=(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--device=local-task", "--module=m.vmfb"),
    ),
)
NO_SUBMODULE = Signature(type="AttributeError", message="module 'tvm.relax.frontend' has no attribute 'onnx'")
OUT_OF_RANGE = (
    "x.c:7: OUT_OF_RANGE; out-of-bounds access detected (offset=400, length=4, alignment=4, buffer length=32); while"
)


def plan(testcase: Testcase) -> Plan:
    return Plan(testcase=testcase, claim=Claim(), device="llvm", order=("1.0",), first=("1.0",))


def saw(outcome: Outcome, signature: Signature | None = None, excerpt: str = "", device: str = "llvm") -> Observation:
    return observe("1.0", outcome, device=device, signature=signature, excerpt=excerpt)


def means(outcome: Outcome = Outcome.PASS, excerpt: str = "", claims: str = "") -> tuple[Means, list[Testcase]]:
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        return saw(outcome, excerpt=excerpt, device=device)

    return Means(run=run, instrumented=lambda version, testcase, modes: claims), ran


def test_a_forgotten_import_is_proved_by_a_run_with_it() -> None:
    """The control differs by that one line, and is run on the release that failed."""
    tools, ran = means(Outcome.PASS)
    controls, findings = diagnose(plan(PYTHON), saw(Outcome.MATCH, NO_SUBMODULE), tools)
    assert [finding.kind for finding in findings] == [FindingKind.MISSING]
    assert len(controls) == 1
    assert ran[0].files["r.py"].splitlines()[:2] == [
        "from __future__ import annotations",
        "import tvm.relax.frontend.onnx",
    ]


def test_without_proof_there_is_no_finding() -> None:
    """The submodule may really be gone."""
    tools, _ = means(Outcome.OTHER_FAILURE)
    _, findings = diagnose(plan(PYTHON), saw(Outcome.MATCH, NO_SUBMODULE), tools)
    assert findings == ()


def test_vmvx_tells_an_access_out_of_bounds_and_blames_nobody() -> None:
    """It may be the compiler's own doing."""
    tools, ran = means(Outcome.OTHER_FAILURE, excerpt=OUT_OF_RANGE)
    controls, findings = diagnose(plan(COMMANDS), saw(Outcome.MATCH, device="llvm-cpu"), tools)
    assert findings[0].evidence["offset"] == 400
    assert findings[0].evidence["origin"] == "unknown"
    assert "--iree-hal-target-backends=vmvx" in ran[0].steps[0]
    assert controls[0].device == "vmvx"


INDEXED = msgspec.structs.replace(
    COMMANDS,
    files={
        "m.mlir": "func.func @at(%t: tensor<8xf32>) -> f32 {\n  %c = arith.constant 8 : index\n"
        "  %v = tensor.extract %t[%c] : tensor<8xf32>\n  return %v : f32\n}\n"
    },
)


def test_an_index_outside_blames_the_repro_when_the_failure_goes_with_it() -> None:
    """The control takes another index and nothing else; its clean run is what the finding rests on."""
    tools, ran = means(Outcome.PASS)
    controls, findings = diagnose(plan(INDEXED), saw(Outcome.MATCH, device="vmvx"), tools)
    assert [(f.kind, f.evidence["origin"]) for f in findings] == [(FindingKind.OUT_OF_BOUNDS_ACCESS, "testcase")]
    assert len(controls) == 1
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
            return saw(Outcome.PASS)
        return msgspec.structs.replace(saw(Outcome.MATCH), ended=alone)

    tools = Means(run=run, instrumented=lambda version, testcase, modes: "")
    _, findings = diagnose(plan(INDEXED), saw(Outcome.MATCH, device="vmvx"), tools)
    assert (FindingKind.OUT_OF_BOUNDS_ACCESS in {one.kind for one in findings}) is blamed
    assert ran[0].steps == INDEXED.steps[:1]


def test_an_index_outside_explains_no_failure_that_stays() -> None:
    """Mended and failing still: something else is wrong, and the repro is not blamed."""
    tools, _ = means(Outcome.MATCH)
    _, findings = diagnose(plan(INDEXED), saw(Outcome.MATCH, device="vmvx"), tools)
    assert findings == ()


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
            return msgspec.structs.replace(saw(mended), ended=ended)
        return msgspec.structs.replace(saw(Outcome.PASS), ended=Exited(code=0))

    tools = Means(run=run, instrumented=lambda version, testcase, modes: "")
    _, findings = diagnose(plan(SHARED), saw(Outcome.MATCH, CHECK_FAILS, device="vmvx"), tools)
    assert (FindingKind.BROKEN_RULE in {one.kind for one in findings}) is blamed


@pytest.mark.parametrize("ended", [Signalled(code=11), TimedOut(where="step 2"), Exited(code=1)])
def test_an_undefined_value_explains_no_crash_no_hang_and_no_refusal(ended: Ended) -> None:
    """They go when the dimension is reduced, and are the compiler's all the same."""
    tools, _ = means(Outcome.PASS)
    failing = msgspec.structs.replace(saw(Outcome.MATCH, device="vmvx"), ended=ended)
    _, findings = diagnose(plan(SHARED), failing, tools)
    assert FindingKind.BROKEN_RULE not in {one.kind for one in findings}


LIVE = msgspec.structs.replace(
    PYTHON,
    files={"r.py": "def f(y):\n    c = R.call_tir_inplace(g, (y,), inplace_indices=0)\n    return R.add(c, y)\n"},
)


@pytest.mark.parametrize(("mended", "blamed"), [(Outcome.PASS, True), (Outcome.MATCH, False)])
def test_an_argument_mutated_and_read_again_blames_the_repro_when_a_copy_mends_it(
    mended: Outcome, blamed: bool
) -> None:
    """With a copy in its place and failing still, something else is wrong."""
    tools, ran = means(mended)
    controls, findings = diagnose(plan(LIVE), saw(Outcome.MATCH, CHECK_FAILS), tools)
    assert (FindingKind.BROKEN_RULE in {one.kind for one in findings}) is blamed
    assert controls
    assert "R.add(y, R.zeros_like(y))" in ran[0].files["r.py"]


CALL = json.dumps(
    {
        "kind": "signature-changed",
        "summary": "the old way",
        "evidence": {"call_that_works": 'vm["main"](x, *prepared)'},
    }
)


def test_the_call_that_works_is_made() -> None:
    """Where the testcase then runs cleanly the finding says so."""
    tools, ran = means(Outcome.PASS, claims=CALL)
    _, (found,) = diagnose(plan(PYTHON), saw(Outcome.MATCH), tools)
    assert ran[0].steps[0] == launch("tvm.diagnose", "repair", "r.py")
    assert "runs cleanly on 1.0" in str(found.evidence["control"])


def test_a_call_that_changes_nothing_refutes_the_finding() -> None:
    """It fails as reported with the new call too: then the old one is not why."""
    tools, _ = means(Outcome.MATCH, claims=CALL)
    _, found = diagnose(plan(PYTHON), saw(Outcome.MATCH), tools)
    assert FindingKind.SIGNATURE_CHANGED not in {one.kind for one in found}


def test_a_guest_cannot_claim_that_its_call_was_made() -> None:
    """Whatever it writes under that name is replaced by what the host saw."""
    forged = json.loads(CALL)
    forged["evidence"]["control"] = "it runs cleanly"
    tools, _ = means(Outcome.OTHER_FAILURE, claims=json.dumps(forged))
    _, (found,) = diagnose(plan(PYTHON), saw(Outcome.MATCH), tools)
    assert "does not fail as reported on 1.0, nor pass" in str(found.evidence["control"])


@pytest.mark.parametrize(
    ("kind", "origin", "sought"),
    [("out-of-bounds-access", "testcase-data", 0), ("input-mutated", "", 1)],
)
def test_no_pass_is_sought_when_the_cause_is_settled(kind: str, origin: str, sought: int) -> None:
    """The search is what costs most: it is made only where nothing cheaper has told whose fault it is."""
    claims = json.dumps({"kind": kind, "summary": "x", "evidence": {"origin": origin}})
    searched: list[Testcase] = []

    def search(_version: str, testcase: Testcase) -> str:
        searched.append(testcase)
        return ""

    tools = dataclasses.replace(means(claims=claims)[0], search=search)
    diagnose(plan(PYTHON), saw(Outcome.MATCH), tools)
    assert len(searched) == sought


def test_a_line_is_put_behind_the_future_imports() -> None:
    """Python refuses them anywhere else."""
    assert (
        with_line_first(PYTHON, "import x").files["r.py"].startswith("from __future__ import annotations\nimport x\n")
    )


def test_what_the_guest_writes_is_bounded_and_of_known_kinds() -> None:
    """Its file is a claim: unknown kinds, foreign fields and too many lines are dropped."""
    line = json.dumps({"kind": "out-of-bounds-access", "summary": "x" * 1000, "evidence": {"axis": 0}})
    forged = json.dumps({"kind": "compiler-is-perfect", "summary": "trust me"})
    hosts_own = json.dumps({"kind": "missing", "summary": "forged", "evidence": {}})
    extra = json.dumps({"kind": "missing", "summary": "x", "verdict": "fixed"})
    found = read_findings("\n".join([forged, hosts_own, extra, "not json", *[line] * 50]))
    assert len(found) == MAX_FINDINGS
    assert {finding.kind for finding in found} == {FindingKind.OUT_OF_BOUNDS_ACCESS}
    assert all(len(finding.summary) <= 400 for finding in found)


@given(st.text(max_size=400))
def test_any_claim_is_read_without_failing(text: str) -> None:
    """Hostile bytes are no findings."""
    read_findings(text)
    read_findings("[" * 5000 + text)
