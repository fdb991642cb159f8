"""The effects that a diagnosis uses: control runs, guest programs, runs under chosen conditions."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from runners.core.conditions import USUAL
from runners.core.protocol import Limits, NotRun, Observation, Plan, Testcase, Variant, Varied
from runners.core.toolchain.diagnosis import Means
from runners.diagnosis.nondeterminism import AS_IT_IS, Rerun, Setup, record_rerun
from runners.investigation.state import make_cell
from runners.probe.task import conditions_of
from runners.rewrite.retarget import retarget
from runners.workbench.cells import run_cell
from runners.workbench.environments import find_environment
from runners.workbench.machine import Machine
from runners.workbench.probes import run_once


def make_means(machine: Machine, plan: Plan, under: Varied = USUAL) -> Means:
    """The means for a diagnosis of this plan, under the conditions in which its failure was seen."""

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        cell = make_cell(plan, version, variant=variant, testcase=testcase, device=device, under=under)
        machine.progress.cell(cell, None)
        seen = run_cell(machine, plan, cell, 1)
        machine.progress.cell(cell, seen)
        return seen

    def run_hook(version: str, testcase: Testcase) -> str:
        environment = find_environment(machine, version, testcase)
        if isinstance(environment, NotRun):
            return ""
        conditions = conditions_of(under, 1)
        limits = double_time(plan.limits)
        return run_once(machine, environment, testcase, limits, conditions, with_hook=True).probe_file or ""

    return Means(run=run, run_hook=run_hook, retarget=retarget)


def run_under(machine: Machine, plan: Plan, version: str, testcase: Testcase, setup: Setup) -> Rerun | None:
    """Run a testcase once under chosen conditions; under `AS_IT_IS` with a process and addresses of its own."""
    environment = find_environment(machine, version, testcase)
    if isinstance(environment, NotRun):
        return None
    conditions = replace(conditions_of(setup.varied, 1), seed=setup.seed)
    if setup == AS_IT_IS:
        conditions = replace(conditions, fork=False)
    probe = run_once(machine, environment, testcase, plan.limits, conditions)
    return record_rerun(setup, probe.ended, probe.steps)


def double_time(limits: Limits) -> Limits:
    """The limits of an instrumented run, which may take twice as long."""
    cpu_s = None if limits.cpu_s is None else 2 * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=2 * limits.wall_s, cpu_s=cpu_s)
