"""Every finding says what would show it wrong, in words of the host's."""

from __future__ import annotations

import json

import pytest

from runners.core.failure.oracle import answer_of
from runners.core.protocol import (
    Claim,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.core.refutation import REFUTED_BY, refutable
from runners.diagnosis.diagnose import GUEST_KINDS, Means, diagnose

BY_WHAT_WAS_RUN = {FindingKind.GUILTY_PASS, FindingKind.DEVICE_SPECIFIC, FindingKind.NONDETERMINISTIC}
"""These say it themselves: asserted where they are made."""

TESTCASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": ""}, steps=(("python", "r.py"),))
PLAN = Plan(testcase=TESTCASE, claim=Claim(), device="llvm", order=("1.0",), first=("1.0",))


def observe(outcome: Outcome) -> Observation:
    return Observation(
        toolchain="tvm", version="1.0", device="llvm", attempt=1, variant=Variant.ORIGINAL, outcome=outcome,
        answer=answer_of(outcome), ended=Exited(code=1),
    )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(set(FindingKind) - BY_WHAT_WAS_RUN))
def test_every_kind_says_what_would_refute_it(kind: FindingKind) -> None:
    """None can be added without."""
    assert refutable(Finding(kind=kind, summary="x")).evidence[REFUTED_BY]


@pytest.mark.parametrize("kind", sorted(GUEST_KINDS))
def test_a_guest_cannot_say_what_would_refute_its_finding(kind: FindingKind) -> None:
    """It would say: nothing."""
    claim = json.dumps({"kind": kind, "summary": "x", "evidence": {REFUTED_BY: "nothing", "origin": "testcase"}})

    def run(_version: str, _variant: Variant, _testcase: Testcase, _device: str) -> Observation:
        return observe(Outcome.PASS)

    means = Means(run=run, instrumented=lambda _version, _testcase, _modes: claim)
    _, found = diagnose(PLAN, observe(Outcome.MATCH), means)
    assert all(one.evidence[REFUTED_BY] not in ("", "nothing") for one in found)
    assert kind in {one.kind for one in found} or kind is FindingKind.UNINITIALIZED_READ
