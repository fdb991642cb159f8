"""Run one cell of a plan → the observation of it."""

from __future__ import annotations

import msgspec

from runners.core.protocol import Cell, NotRun, Observation, Plan
from runners.hardware import lavapipe
from runners.probe.observe import observed
from runners.probe.task import conditions_of
from runners.workbench.environments import find_environment
from runners.workbench.machine import Machine
from runners.workbench.probes import report_not_run, run_on_device


def run_cell(machine: Machine, plan: Plan, cell: Cell, attempt: int) -> Observation:
    """Run a cell, the given attempt (1-based). Never raises for what the testcase does."""
    environment = find_environment(machine, cell.version, cell.testcase)
    probe = (
        report_not_run(machine.engine, environment)
        if isinstance(environment, NotRun)
        else run_on_device(machine, environment, cell, conditions_of(cell.varied, attempt))
    )
    return msgspec.structs.replace(
        observed(plan, cell, attempt, probe),
        environment="" if isinstance(environment, NotRun) else environment.digest,
        fork=_describe_fork(machine, cell),
        driver=machine.driver.name if machine.driver is not None and cell.device == lavapipe.DEVICE else "",
        image=machine.engine.image if machine.engine.own_system else "",
    )


def _describe_fork(machine: Machine, cell: Cell) -> str:
    """The fork that a build is, and the wheel that carries it; empty for a release or a build of the toolchain."""
    if cell.version in machine.registry:
        return ""
    release = machine.catalogue.find(cell.toolchain, cell.version)
    if release.fork is None:
        return ""
    return f"{release.fork}, carried by {release.distributions[0].replace('==', ' ')}"
