"""Run one cell of a plan → the observation of it."""

from __future__ import annotations

from runners.core.protocol import Cell, Observation, Plan
from runners.core.runs import Execute, RunRequest
from runners.probe.observe import observed


def run_cell(execute: Execute, plan: Plan, cell: Cell, attempt: int) -> Observation:
    """Run a cell, the given attempt (1-based). Never raises for what the testcase does."""
    request = RunRequest(
        version=cell.version,
        device=cell.device,
        testcase=cell.testcase,
        limits=cell.limits,
        varied=cell.varied,
        attempt=attempt,
    )
    return observed(plan, cell, attempt, execute(request))
