"""Bisect the passes of a TVM testcase: search inside the sandbox, and confirm the result outside.

The search (``guest/tvm/pass_bisect``) shares its process with the testcase, so its result is a claim. The host runs
the testcase twice more, with and without the claimed pass, and judges both runs by its own oracle. A finding needs
the failure with the pass, and a clean run without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from runners.core.findings.record import make_finding
from runners.core.findings.types import NO_PASS, PassEvidence
from runners.core.protocol import Finding, FindingKind, Observation, Outcome, Testcase
from runners.core.toolchain.claims import read_claim
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.core.toolchain.guest import make_launch_step

SEARCH_S = 40.0
"""Time limit of the search inside. If the testcase takes one second, the search takes 2 to 20 s."""
MAX_PASSES = 5_000
_PROGRAM = "tvm.pass_bisect.search"
_PassName = Annotated[str, msgspec.Meta(min_length=1, max_length=120, pattern=r"^[\w.:<>-]+$")]


class _Evidence(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """The search's claim. Other fields are ignored."""

    passed: Annotated[str, msgspec.Meta(max_length=120, pattern=r"^[\w.:<>-]*$")]
    application: Annotated[int, msgspec.Meta(ge=0, le=MAX_PASSES)]
    passes_without: Annotated[int, msgspec.Meta(ge=0, le=MAX_PASSES)] = 0
    of: Annotated[int, msgspec.Meta(ge=0, le=MAX_PASSES)] = 0
    scope: Literal["own", "pipeline"] = "own"
    inside: Annotated[str, msgspec.Meta(max_length=120, pattern=r"^[\w.:<> -]*$")] = ""
    always: Annotated[tuple[_PassName, ...], msgspec.Meta(max_length=200)] = ()
    outer: Annotated[tuple[_PassName, ...], msgspec.Meta(max_length=200)] = ()
    under_way: Annotated[tuple[_PassName, ...], msgspec.Meta(max_length=6)] = ()
    """If the testcase fails with all passes left out: the passes that ran at the failure, outermost first."""
    difference: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=200)], ...], msgspec.Meta(max_length=80)] = ()


def bisect_passes(failure: Failure, means: Means) -> Diagnosis:
    """Search inside the sandbox, then confirm outside. Return at most one finding."""
    testcase, failing = failure.testcase, failure.seen
    if len(testcase.steps) > 1:
        return NOTHING_FOUND
    script, *arguments = testcase.steps[0][1:]
    searching = _with_step(testcase, make_launch_step(_PROGRAM, "search", f"{SEARCH_S:g}", script, *arguments))
    claim = read_claim(means.run_hook(failing.version, searching), FindingKind.GUILTY_PASS, _Evidence)
    if claim is None:
        return NOTHING_FOUND
    if claim.application == 0:
        return Diagnosis(findings=(_blame_no_pass(claim, failing),))

    def limit(count: int) -> Testcase:
        setting = {"limit": count, "scope": claim.scope, "always": list(claim.always), "outer": list(claim.outer)}
        step = make_launch_step(_PROGRAM, "limit", msgspec.json.encode(setting).decode(), script, *arguments)
        return _with_step(testcase, step)

    failing_with, passing_without = limit(claim.application), limit(claim.passes_without)
    means.expect_control(failure, passing_without)
    if means.run_control(failure, failing_with).outcome is not Outcome.MATCH:
        return NOTHING_FOUND
    if means.run_control(failure, passing_without).outcome is not Outcome.PASS:
        return NOTHING_FOUND
    return Diagnosis(findings=(_blame_pass(claim, failing),))


def _with_step(testcase: Testcase, step: tuple[str, ...]) -> Testcase:
    return msgspec.structs.replace(testcase, steps=(step,))


_OWNERS = {"own": "that the testcase applies", "pipeline": "that compiling applies"}


def _blame_pass(claim: _Evidence, failing: Observation) -> Finding:
    exact = claim.application - claim.passes_without == 1 and claim.passed
    which = f"pass {claim.application}" if exact else f"passes {claim.passes_without + 1} to {claim.application}"
    name = f", {claim.passed}" if exact else ""
    around = f" (inside {claim.inside})" if exact and claim.inside else ""
    evidence = PassEvidence(
        name=claim.passed if exact else which,
        version=failing.version,
        application=claim.application,
        of=claim.of,
        difference=claim.difference,
        refuted_by="the same failure with that pass left out",
    )
    return make_finding(
        evidence,
        f"on {failing.version} it fails as reported with {which} of the {claim.of} {_OWNERS[claim.scope]}"
        f"{name}{around}, and runs cleanly without it and those after it",
    )


def _blame_no_pass(claim: _Evidence, failing: Observation) -> Finding:
    """Return a finding without a culprit pass. The host has not checked the claim, so the finding is only a hint."""
    while_it = f"; the search saw it fail while {claim.under_way[-1]} ran" if claim.under_way else ""
    evidence = PassEvidence(
        name=NO_PASS,
        version=failing.version,
        application=0,
        refuted_by="a clean run with one of these passes left out",
        under_way=claim.under_way or None,
    )
    return make_finding(
        evidence,
        f"on {failing.version} it fails the same way with every pass left out that can be: the fault lies"
        f" before the passes, in the testcase, or in a pass that must run{while_it}",
    )
