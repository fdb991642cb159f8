"""Tests of TVM's pass bisection: a claim of the guest counts only if two runs of the host confirm it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.core.protocol import Exited, Finding, Observation, Outcome, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.guest import is_launch_step
from runners.toolchains.tvm.diagnosis.pass_bisect import bisect_passes
from tests.support.means import make_means
from tests.support.observed import observe

TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": ""}, steps=(("python", "r.py", "--size", "4"),)
)
CLAIM: dict[str, Any] = {
    "pass": "FuseOps", "inside": "sequential", "application": 7, "passes_without": 6, "of": 20, "scope": "pipeline",
    "always": ["LegalizeOps"], "outer": ["sequential"], "difference": ["@@ -1 +1 @@", "-a", "+b"], "trials": 9,
}  # fmt: skip


def saw(outcome: Outcome) -> Observation:
    return observe("1.0", outcome, ended=Exited(code=1))


def find(claims: str, *, with_it: Outcome = Outcome.MATCH, without: Outcome = Outcome.PASS) -> tuple[Finding, ...]:
    """Runs with at least as many passes as the claim's have the one outcome, others the other."""

    def run(_version: str, variant: Variant, testcase: Testcase, _device: str) -> Observation:
        assert variant is Variant.CONTROL
        assert is_launch_step(testcase.steps[0], "tvm.pass_bisect.search")
        mode, setting, *rest = testcase.steps[0][3:]
        assert (mode, rest) == ("limit", ["r.py", "--size", "4"])
        return saw(with_it if json.loads(setting)["limit"] >= CLAIM["application"] else without)

    means = make_means(run, hook=lambda _version, _testcase: claims)
    return bisect_passes(Failure(testcase=TESTCASE, seen=saw(Outcome.MATCH)), means).findings


def claimed(**changes: Any) -> str:
    return json.dumps({"kind": "guilty-pass", "summary": "anything", "evidence": {**CLAIM, **changes}})


def test_a_pass_is_named_if_both_sides_are_confirmed() -> None:
    """The failure with the pass and a clean run without it, by the host's oracle."""
    (finding,) = find(claimed())
    assert "pass 7 of the 20 that compiling applies, FuseOps (inside sequential)" in finding.summary
    assert finding.evidence["difference"] == CLAIM["difference"]
    assert finding.evidence["refuted_by"]


@pytest.mark.parametrize(
    ("with_it", "without"),
    [
        (Outcome.MATCH, Outcome.MATCH),
        (Outcome.PASS, Outcome.PASS),
        (Outcome.OTHER_FAILURE, Outcome.PASS),
        (Outcome.MATCH, Outcome.OTHER_FAILURE),
        (Outcome.INFRA, Outcome.INFRA),
    ],
)
def test_an_unconfirmed_claim_is_dropped(with_it: Outcome, without: Outcome) -> None:
    """A testcase can write any claim, but cannot make two runs differ without different passes."""
    assert find(claimed(), with_it=with_it, without=without) == ()


@pytest.mark.parametrize(
    "claims",
    [
        "",
        "not json\n{}",
        '{"kind": "guilty-pass", "evidence": []}',
        claimed(application=-1),
        claimed(application=10**9),
        claimed(scope="everything"),
        claimed(always=["x" * 200]),
        claimed(always=["two words; rm"]),
        claimed(**{"pass": "@everyone"}),
        claimed(difference=["x" * 5000]),
        claimed(difference=["x"] * 5000),
        "[" * 100_000,
    ],
)
def test_a_malformed_claim_is_dropped(claims: str) -> None:
    """Bounded in every field before anything is run for it."""
    assert find(claims) == ()


def test_a_range_is_called_a_range() -> None:
    """If trials between fail in another way, no single pass is named."""
    (finding,) = find(claimed(passes_without=3, **{"pass": ""}))
    assert "passes 4 to 7 of the 20" in finding.summary


def test_a_failure_without_any_pass_names_no_pass() -> None:
    """The failure needs no pass."""
    (finding,) = find(claimed(application=0, **{"pass": ""}))
    assert "every pass left out" in finding.summary


def test_passes_under_way_at_the_failure_are_reported_as_unchecked() -> None:
    """A pass that must run cannot be left out, so the host cannot check it."""
    (finding,) = find(claimed(application=0, under_way=["sequential", "tirx.LowerIntrin"], **{"pass": ""}))
    assert "the search saw it fail while tirx.LowerIntrin ran" in finding.summary
    assert finding.evidence["under_way"] == ["sequential", "tirx.LowerIntrin"]
    assert find(claimed(application=0, under_way=["![](x)"], **{"pass": ""})) == ()
