"""Look for the cause of a failure: reruns, then each diagnoser, cheapest first, until one settles it.

A diagnoser reruns the testcase under instrumentation, or with one known change. The instrumentation shares its
process with the testcase, so its output is a claim. It is bounded and decoded strictly. It can only explain a failure
that the host itself observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from runners.core.findings.questions import add_refutation, settles_cause
from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Diagnoser, Diagnosis, Failure, Means
from runners.diagnosis.forgotten_import import check_forgotten_import
from runners.diagnosis.nondeterminism import EarlierRun, ExpectUnder, RunUnder, check_nondeterminism

Result = TypeVar("Result")

GENERIC: Sequence[Diagnoser] = (Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_forgotten_import),)
"""Diagnosers for every toolchain. They run first."""


def diagnose_failure(
    failure: Failure,
    diagnosers: Sequence[Diagnoser],
    means: Means,
    run_under: RunUnder,
    *,
    expect_under: ExpectUnder = lambda _version, _testcase, _setup: None,
    executor: Executor | None = None,
    native: bool = False,
    list_earlier: Callable[[], Sequence[EarlierRun]] = tuple,
) -> Diagnosis:
    """Return the control runs and findings for one failure.

    ``diagnosers`` are the toolchain's own. ``run_under`` runs the testcase under chosen conditions, in a thread of
    ``executor`` in parallel with the diagnosers, which do not depend on these reruns. ``expect_under`` announces
    reruns. ``native`` and ``list_earlier`` are as in `check_nondeterminism`.
    """
    rerun = partial(check_nondeterminism, failure, run_under, expect_under, native=native, list_earlier=list_earlier)
    get_reruns = _begin(rerun, executor)
    found = _run_diagnosers(failure, diagnosers, means, executor)
    return Diagnosis(controls=found.controls, findings=tuple(map(add_refutation, (*found.findings, *get_reruns()))))


def _run_diagnosers(
    failure: Failure, diagnosers: Sequence[Diagnoser], means: Means, executor: Executor | None = None
) -> Diagnosis:
    """Run the diagnosers in order, up to the first that settles the cause.

    With an ``executor``, a diagnoser that cannot settle the cause runs in parallel with the next ones. The results
    keep the order of the diagnosers.
    """
    begun: list[Callable[[], Diagnosis]] = []
    for diagnoser in (*GENERIC, *diagnosers):
        if not diagnoser.applies_to(failure):
            continue
        beside = None if diagnoser.settles else executor
        begun.append(_begin(partial(diagnoser.diagnose, failure, means), beside))
        if beside is None and any(map(settles_cause, begun[-1]().findings)):
            break
    ended = [get_result() for get_result in begun]
    return Diagnosis(
        controls=tuple(control for one in ended for control in one.controls),
        findings=tuple(finding for one in ended for finding in one.findings),
    )


def _begin(ask: Callable[[], Result], executor: Executor | None) -> Callable[[], Result]:
    """Begin to ask in a thread of ``executor``, or now without one. Return a function that gets the result.

    If no thread becomes free in time, the caller's thread asks, because all threads may be waiting for results.
    """
    if executor is None:
        done = ask()
        return lambda: done
    pending = executor.submit(ask)
    return lambda: ask() if pending.cancel() else pending.result()
