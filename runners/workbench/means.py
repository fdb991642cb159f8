"""Make the effects of one diagnosis from a function that executes runs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from runners.core.conditions import USUAL
from runners.core.progress import Sink
from runners.core.protocol import Cell, Limits, Observation, Plan, Testcase, Variant, Varied
from runners.core.runs import Execute, RunRequest
from runners.core.toolchain.diagnosis import Means
from runners.diagnosis.nondeterminism import AS_IT_IS, Rerun, Setup, record_rerun
from runners.investigation.state import make_cell
from runners.probe.observe import make_request, observe_cell


def retarget(testcase: Testcase, device: str) -> Testcase | None:
    """Return the testcase for another device. None if it names no target, or is for that device already."""
    from runners.rewrite.testcase import retarget_testcase  # its parser takes 0.15 s, which few plans need

    return retarget_testcase(testcase, device)


def make_means(
    execute: Execute,
    progress: Sink,
    plan: Plan,
    under: Varied = USUAL,
    *,
    expect: Callable[[RunRequest], None] = lambda _request: None,
) -> Means:
    """Return the effects for a diagnosis of this plan, under the conditions in which its failure was seen.

    Every run has its own sandbox, because findings rest on single runs.
    """

    def make_run_cell(version: str, variant: Variant, testcase: Testcase, device: str) -> Cell:
        return make_cell(plan, version, variant=variant, testcase=testcase, device=device, under=under)

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        cell = make_run_cell(version, variant, testcase, device)
        progress.cell(cell, None)
        seen = observe_cell(execute, plan, cell, 1, fresh=True)
        progress.cell(cell, seen)
        return seen

    def make_hook_request(version: str, testcase: Testcase) -> RunRequest:
        limits = double_time(plan.limits)
        return RunRequest(
            version=version, device=plan.device, testcase=testcase, limits=limits, varied=under, fresh=True, hook=True
        )

    def run_hook(version: str, testcase: Testcase) -> str:
        return execute(make_hook_request(version, testcase)).hook_file or ""

    def expect_hook(version: str, testcase: Testcase) -> None:
        expect(make_hook_request(version, testcase))

    def expect_run(version: str, variant: Variant, testcase: Testcase, device: str) -> None:
        expect(make_request(make_run_cell(version, variant, testcase, device), 1, fresh=True))

    return Means(run=run, run_hook=run_hook, retarget=retarget, expect=expect_run, expect_hook=expect_hook)


def run_under(execute: Execute, plan: Plan, version: str, testcase: Testcase, setup: Setup) -> Rerun | None:
    """Run a testcase once under chosen conditions. `AS_IT_IS` has new addresses in each run."""
    result = execute(make_rerun_request(plan, version, testcase, setup))
    return record_rerun(setup, result.ended, result.steps)


def make_rerun_request(plan: Plan, version: str, testcase: Testcase, setup: Setup) -> RunRequest:
    return RunRequest(
        version=version,
        device=plan.device,
        testcase=testcase,
        limits=plan.limits,
        varied=setup.varied,
        seed=setup.seed,
        may_fork=setup != AS_IT_IS,
        fresh=setup.fresh,
    )


def double_time(limits: Limits) -> Limits:
    """Return the limits of an instrumented run, which may take twice as long."""
    cpu_s = None if limits.cpu_s is None else 2 * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=2 * limits.wall_s, cpu_s=cpu_s)
