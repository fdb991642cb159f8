"""Tests of the table of findings: every kind has a row, and every finding has a refutation stated by the host."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from runners.core.findings.kinds import KINDS, Blame, ControlEnd, Settles
from runners.core.findings.questions import add_refutation, get_blame, settles_cause
from runners.core.findings.record import MAX_DEPTH
from runners.core.protocol import Finding, FindingKind
from runners.core.toolchain.claims import MAX_FINDINGS, read_findings

STATED_BY_DIAGNOSER = {FindingKind.GUILTY_PASS, FindingKind.DEVICE_SPECIFIC, FindingKind.NONDETERMINISTIC}
"""Their refutation depends on the runs: asserted where they are made."""
FROM_GUEST = sorted(kind for kind, row in KINDS.items() if row.from_guest)


@pytest.mark.parametrize("kind", sorted(FindingKind))
def test_every_kind_has_a_complete_row(kind: FindingKind) -> None:
    """A kind cannot lack a row, and a kind that blames the testcase cannot lack its fault and proof."""
    row = KINDS[kind]
    blames_testcase = row.blames is Blame.TESTCASE
    assert (bool(row.fault), bool(row.proof)) == (blames_testcase, blames_testcase)
    assert row.settles is Settles.NEVER or blames_testcase


@pytest.mark.parametrize("kind", sorted(set(FindingKind) - STATED_BY_DIAGNOSER))
def test_every_kind_has_a_refutation(kind: FindingKind) -> None:
    """A kind cannot be added without a refutation."""
    assert add_refutation(Finding(kind=kind, summary="x")).evidence["refuted_by"]


def test_a_finding_of_unknown_origin_has_no_blame() -> None:
    """An access out of bounds may be the compiler's own; an untraced read does not settle the cause."""
    kind = FindingKind.UNINITIALIZED_READ
    traced, untraced = (Finding(kind=kind, summary="x", evidence={"origin": o}) for o in ("testcase", "unknown"))
    assert [get_blame(traced), get_blame(untraced)] == [Blame.TESTCASE, Blame.NOBODY]
    assert [settles_cause(traced), settles_cause(untraced)] == [True, False]


def line(kind: str, **more: object) -> str:
    return json.dumps({"kind": kind, "summary": "x" * 1000, "evidence": {"axis": 0}, **more})


@pytest.mark.parametrize("kind", sorted(set(FindingKind) - set(FROM_GUEST)))
def test_a_guest_cannot_claim_actions_of_the_host(kind: FindingKind) -> None:
    """Such as a pass that was left out, or an import that was added."""
    assert read_findings(line(kind)) == ()


@pytest.mark.parametrize("kind", FROM_GUEST)
def test_a_guest_cannot_write_the_host_s_evidence(kind: FindingKind) -> None:
    """A guest could otherwise claim a clean control, and suppress the refutation."""
    forged = {
        "refuted_by": "nothing",
        "control": "it runs cleanly",
        "control_end": ControlEnd.FAILURE_GONE,
        "origin": "testcase",
    }
    (found,) = read_findings(line(kind, evidence=forged))
    assert found.evidence == {"origin": "testcase"}
    assert add_refutation(found).evidence["refuted_by"] not in ("", "nothing")


def test_the_lines_of_a_guest_are_bounded_and_of_known_kinds() -> None:
    """Its file is a claim: unknown kinds, foreign fields and too many lines are dropped."""
    forged, extra = line("compiler-is-perfect"), line("input-mutated", verdict="fixed")
    found = read_findings("\n".join([forged, extra, "not json", *[line("out-of-bounds-access")] * 50]))
    assert len(found) == MAX_FINDINGS
    assert {finding.kind for finding in found} == {FindingKind.OUT_OF_BOUNDS_ACCESS}
    assert all(len(finding.summary) <= 400 for finding in found)


@pytest.mark.parametrize("depth", [MAX_DEPTH, 300, 470])
def test_deep_evidence_is_no_finding(depth: int) -> None:
    """A guest cannot end a reader of its findings by a nest."""
    nested: object = 1
    for _ in range(depth):
        nested = {"a": nested}
    assert len(read_findings(line("input-mutated", evidence=nested))) == (depth <= MAX_DEPTH)


@given(st.text(max_size=400))
def test_hostile_claims_are_no_findings(text: str) -> None:
    """Any bytes are read without an exception."""
    read_findings(text)
    read_findings("[" * 5000 + text)
