"""TVM's diagnosers: what they run further, and how little is believed of what the guest answers."""

from __future__ import annotations

import json

import msgspec
import pytest

from runners.core.protocol import FindingKind, Observation, Outcome, Signature, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Failure, Means
from runners.core.toolchain.guest import is_launch_step, make_launch_step
from runners.toolchains.tvm import DIAGNOSERS
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
def test_an_argument_mutated_and_read_again_blames_the_repro_when_a_copy_mends_it(
    mended: Outcome, blamed: bool
) -> None:
    """With a copy in its place and failing still, something else is wrong."""
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


def test_the_call_that_works_is_made() -> None:
    """Where the testcase then runs cleanly the finding says so."""
    means, ran = scripted(Outcome.PASS, CALL)
    (found,) = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert ran[0].steps[0] == make_launch_step("tvm.diagnose", "repair", "r.py")
    assert "runs cleanly on 1.0" in str(found.evidence["control"])


def test_a_call_that_changes_nothing_refutes_the_finding() -> None:
    """It fails as reported with the new call too: then the old one is not why."""
    means, _ = scripted(Outcome.MATCH, CALL)
    found = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert FindingKind.SIGNATURE_CHANGED not in {one.kind for one in found}


def test_a_guest_cannot_claim_that_its_call_was_made() -> None:
    """Whatever it writes under that name is replaced by what the host saw."""
    forged = json.loads(CALL)
    forged["evidence"]["control"] = "it runs cleanly"
    means, _ = scripted(Outcome.OTHER_FAILURE, json.dumps(forged))
    (found,) = diagnose_once(DIAGNOSERS, failure(), means).findings
    assert "does not fail as reported on 1.0, nor pass" in str(found.evidence["control"])


@pytest.mark.parametrize(
    ("kind", "origin", "sought"),
    [("out-of-bounds-access", "testcase-data", 0), ("input-mutated", "", 1)],
)
def test_no_pass_is_sought_when_the_cause_is_settled(kind: str, origin: str, sought: int) -> None:
    """The search is what costs most: it is made only where nothing cheaper has told whose fault it is."""
    claims = json.dumps({"kind": kind, "summary": "x", "evidence": {"origin": origin}})
    hooked: list[Testcase] = []

    def hook(_version: str, testcase: Testcase) -> str:
        hooked.append(testcase)
        return claims if is_launch_step(testcase.steps[0], "tvm.diagnose") else ""

    diagnose_once(DIAGNOSERS, failure(), make_means(hook=hook))
    assert sum(is_launch_step(one.steps[0], "tvm.pass_bisect.search") for one in hooked) == sought
