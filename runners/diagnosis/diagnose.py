"""Look for the cause of a failure: reruns, then each diagnoser, cheapest first, until one settles it.

A diagnoser re-runs the testcase under instrumentation, or changed in one known way. The instrumentation shares its
process with the testcase, so its words are a claim: bounded, decoded strictly, and never more than an explanation of
a failure that the host observed for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from runners.core.findings import add_refutation, settles_cause
from runners.core.protocol import Finding, Observation, TestcaseKind
from runners.core.toolchain.diagnosis import Diagnoser, Diagnosis, Failure, Means
from runners.diagnosis.forgotten_import import check_forgotten_import
from runners.diagnosis.nondeterminism import ExpectUnder, RunUnder, check_nondeterminism

GENERIC: Sequence[Diagnoser] = (Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_forgotten_import),)
"""Diagnosers that hold for any toolchain; they come first."""


def diagnose_failure(
    failure: Failure,
    diagnosers: Sequence[Diagnoser],
    means: Means,
    run_under: RunUnder,
    *,
    expect_under: ExpectUnder = lambda _version, _testcase, _setup: None,
    executor: Executor | None = None,
    native: bool = False,
) -> Diagnosis:
    """Return the control runs and findings for one failure.

    ``diagnosers`` are the toolchain's own. ``run_under`` runs the testcase under chosen conditions, in a thread of
    ``executor`` beside the diagnosers, which do not depend on these reruns. ``expect_under`` takes note of reruns
    that follow. ``native`` is as in `check_nondeterminism`.
    """
    if executor is None:
        reruns = check_nondeterminism(failure, run_under, expect_under, native=native)
        return _join_findings(_run_diagnosers(failure, diagnosers, means), reruns)
    pending = executor.submit(check_nondeterminism, failure, run_under, expect_under, native=native)
    found = _run_diagnosers(failure, diagnosers, means)
    return _join_findings(found, pending.result())


def _run_diagnosers(failure: Failure, diagnosers: Sequence[Diagnoser], means: Means) -> Diagnosis:
    controls: list[Observation] = []
    findings: list[Finding] = []
    for diagnoser in (*GENERIC, *diagnosers):
        if diagnoser.applies_to(failure):
            found = diagnoser.diagnose(failure, means)
            controls += found.controls
            findings += found.findings
            if any(map(settles_cause, found.findings)):
                break
    return Diagnosis(controls=tuple(controls), findings=tuple(findings))


def _join_findings(found: Diagnosis, reruns: Sequence[Finding]) -> Diagnosis:
    return Diagnosis(controls=found.controls, findings=tuple(map(add_refutation, (*found.findings, *reruns))))
