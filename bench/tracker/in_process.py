"""Run the cells of a plan in this process: the product's investigation and ledger, without sandboxes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.proving.replay import Inline
from bot.daemon.steps import RunPlan
from runners.core.job_files import write_result
from runners.core.progress import Silent
from runners.core.protocol import CellResult, JobPlan
from runners.core.runs import Execute
from runners.investigation.investigate import investigate_plan
from runners.toolchains import find_toolchain
from runners.workbench.recorded_runs import RecordedRuns
from runners.workbench.run_ledger import RunLedger, Surroundings
from runners.workbench.tools import make_tools

NOWHERE = Surroundings(environment="", engine="", image="", driver="", guest="recorded")


def make_runner(live: Execute, ledger: RunLedger | None) -> RunPlan:
    """Return a function that runs plans. ``live`` stands for the compilers."""

    def run_plan(folder: Path, plan: JobPlan, sha256: str) -> None:
        for cell in plan.cells:
            runs = RecordedRuns(ledger, live, lambda _: NOWHERE)
            stand_ins = find_toolchain(cell.plan.testcase.toolchain).STAND_INS
            tools = make_tools(cell.plan, runs, Inline(), Silent(), stand_ins=stand_ins)
            seen = msgspec.structs.replace(investigate_plan(cell.plan, tools), cost=runs.cost)
            write_result(CellResult(cell=cell.id, plan_sha256=sha256, seen=seen), folder / "results")

    return run_plan
