"""Tests of TVM's diagnosers: their further runs, and the checks of the guest's claims."""

from __future__ import annotations

import json

import msgspec
import pytest

from runners.core.findings.kinds import ControlEnd
from runners.core.protocol import FindingKind, Observation, Outcome, Signature, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Failure, Means
from runners.core.toolchain.guest import is_launch_step, make_launch_step
from runners.toolchains.tvm.diagnosis import DIAGNOSERS
from tests.support.means import diagnose_once, make_means
from tests.support.observed import observe

PYTHON = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": "import tvm\n"}, steps=(("python", "r.py"),)
)
CHECK_FAILS = Signature(type="AssertionError", message="Not equal to tolerance")


def scripted(outcome: Outcome, claims: str = "") -> tuple[Means, list[Testcase]]:
    """Runs that all end in one way, a guest that writes ``claims``, and the testcases that were run outside."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        return observe(version, outcome, device=device)

    return make_means(run, hook=lambda _version, _testcase: claims), ran


def failure(testcase: Testcase = PYTHON, signature: Signature | None = None) -> Failure:
    return Failure(testcase=testcase, seen=observe("1.0", Outcome.MATCH, signature=signature))


LIVE = msgspec.structs.replace(
    PYTHON,
    files={"r.py": "def f(y):\n    c = R.call_tir_inplace(g, (y,), inplace_indices=0)\n    return R.add(c, y)\n"},
)


@pytest.mark.parametrize(("mended", "blamed"), [(Outcome.PASS, True), (Outcome.MATCH, False)])
def test_a_live_argument_blames_the_testcase_if_a_copy_mends_it(mended: Outcome, blamed: bool) -> None:
    """If the testcase fails with a copy too, the cause is elsewhere."""
    means, ran = scripted(mended)
    found = diagnose_once(DIAGNOSERS, failure(LIVE, CHECK_FAILS), means)
    assert (FindingKind.BROKEN_RULE in {one.kind for one in found.findings}) is blamed
    assert found.controls
    assert "R.add(y, R.zeros_like(y))" in ran[0].files["r.py"]


CALL = json.dumps(
    {
        "kind": "signature-changed",
        "summary": "the old way",
        "evidence": {"call_that_works": 'vm["main"](x, *prepared)'},
    }
)


def test_a_claimed_call_is_run() -> None:
    """A clean run is added to the finding."""
    means, ran = scripted(Outcome.PASS, CALL)
    (found,) = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert ran[0].steps[0] == make_launch_step("tvm.diagnose", "repair", "r.py")
    assert found.evidence["control_end"] == ControlEnd.FAILURE_GONE
    assert "runs cleanly on 1.0" in str(found.evidence["control"])


def test_a_call_without_effect_refutes_the_finding() -> None:
    """The testcase fails as reported with the new call too, so the old call is not the cause."""
    means, _ = scripted(Outcome.MATCH, CALL)
    found = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert FindingKind.SIGNATURE_CHANGED not in {one.kind for one in found}


def test_a_guest_cannot_claim_a_control_run() -> None:
    """The host replaces such a claim with its own observation."""
    forged = json.loads(CALL)
    forged["evidence"] |= {"control": "it runs cleanly", "control_end": "failure-gone"}
    means, _ = scripted(Outcome.OTHER_FAILURE, json.dumps(forged))
    (found,) = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert found.evidence["control_end"] == ControlEnd.NOT_CLEAN
    assert "does not fail as reported on 1.0, nor pass" in str(found.evidence["control"])


@pytest.mark.parametrize(
    ("kind", "origin", "sought"),
    [("out-of-bounds-access", "testcase-data", 0), ("input-mutated", "", 1)],
)
def test_passes_are_not_bisected_if_the_cause_is_settled(kind: str, origin: str, sought: int) -> None:
    """The search is the most expensive diagnoser."""
    claims = json.dumps({"kind": kind, "summary": "x", "evidence": {"origin": origin}})
    hooked: list[Testcase] = []

    def hook(_version: str, testcase: Testcase) -> str:
        hooked.append(testcase)
        return claims if is_launch_step(testcase.steps[0], "tvm.diagnose") else ""

    diagnose_once(DIAGNOSERS, failure(), make_means(hook=hook))
    assert sum(is_launch_step(one.steps[0], "tvm.pass_bisect.search") for one in hooked) == sought


@pytest.mark.parametrize(
    ("operator", "text", "origin"),
    [
        ("relax.take", "import tvm\n", "testcase-data"),
        ("relax.grad.take_backward", "import tvm\n", "unknown"),
        ("relax.grad.take_backward", "R.grad.take_backward(g, x, i)\n", "testcase-data"),
    ],
    ids=["an operator of the testcase", "an operator that a pass makes", "an adjoint in the testcase"],
)
def test_an_access_of_an_adjoint_that_a_pass_makes_is_nobodys_fault(operator: str, text: str, origin: str) -> None:
    """The testcase gives the indices, and the pass decides what they index."""
    evidence = {"origin": "testcase-data", "operator": operator}
    claims = json.dumps({"kind": "out-of-bounds-access", "summary": "x", "evidence": evidence})

    def hook(_version: str, testcase: Testcase) -> str:
        return claims if is_launch_step(testcase.steps[0], "tvm.diagnose") else ""

    found = diagnose_once(
        DIAGNOSERS, failure(msgspec.structs.replace(PYTHON, files={"r.py": text})), make_means(hook=hook)
    )
    assert [one.evidence["origin"] for one in found.findings] == [origin]
