"""The effects that a diagnosis uses: control runs, guest programs, runs under chosen conditions."""

from __future__ import annotations

import msgspec

from runners.core.conditions import USUAL
from runners.core.progress import Sink
from runners.core.protocol import Limits, Observation, Plan, Testcase, Variant, Varied
from runners.core.runs import Execute, RunRequest
from runners.core.toolchain.diagnosis import Means
from runners.diagnosis.nondeterminism import AS_IT_IS, Rerun, Setup, record_rerun
from runners.investigation.state import make_cell
from runners.probe.observe import observe_cell
from runners.rewrite.testcase import retarget_testcase


def make_means(execute: Execute, progress: Sink, plan: Plan, under: Varied = USUAL) -> Means:
    """The means for a diagnosis of this plan, under the conditions in which its failure was seen."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        cell = make_cell(plan, version, variant=variant, testcase=testcase, device=device, under=under)
        progress.cell(cell, None)
        seen = observe_cell(execute, plan, cell, 1)
        progress.cell(cell, seen)
        return seen

    def run_hook(version: str, testcase: Testcase) -> str:
        limits = double_time(plan.limits)
        request = RunRequest(
            version=version, device=plan.device, testcase=testcase, limits=limits, varied=under, hook=True
        )
        return execute(request).hook_file or ""

    return Means(run=run, run_hook=run_hook, retarget=retarget_testcase)


def run_under(execute: Execute, plan: Plan, version: str, testcase: Testcase, setup: Setup) -> Rerun | None:
    """Run a testcase once under chosen conditions; under `AS_IT_IS` with a process and addresses of its own."""
    request = RunRequest(
        version=version,
        device=plan.device,
        testcase=testcase,
        limits=plan.limits,
        varied=setup.varied,
        seed=setup.seed,
        may_fork=setup != AS_IT_IS,
    )
    result = execute(request)
    return record_rerun(setup, result.ended, result.steps)


def double_time(limits: Limits) -> Limits:
    """The limits of an instrumented run, which may take twice as long."""
    cpu_s = None if limits.cpu_s is None else 2 * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=2 * limits.wall_s, cpu_s=cpu_s)
