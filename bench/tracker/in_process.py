"""Run the cells of a plan in this process: the product's investigation, reduction and ledger, without sandboxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from bench.proving.replay import Inline
from bot.daemon.steps import RunPlan
from runners.cells.run import run_plan as run_whole_plan
from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.bisection.commits import Prior
from runners.core.job_files import write_result
from runners.core.progress import Silent
from runners.core.protocol import (
    CellResult,
    Claim,
    Investigation,
    JobPlan,
    Observation,
    Plan,
    Smaller,
    Testcase,
    Variant,
)
from runners.core.runs import Execute, Tell
from runners.investigation.investigate import investigate_plan
from runners.investigation.state import make_cell
from runners.minimization.minimize import minimize_testcase
from runners.probe.observe import observe_cell
from runners.toolchains import find_toolchain
from runners.workbench.ahead import NoRunsAhead
from runners.workbench.recorded_runs import RecordedRuns
from runners.workbench.run_ledger import RunLedger, Surroundings
from runners.workbench.tools import make_tools

NOWHERE = Surroundings(environment="", engine="", image="", driver="", guest="recorded")


@dataclass(frozen=True, slots=True)
class InProcessBench:
    """A workbench without sandboxes. ``live`` stands for the compilers."""

    live: Execute
    ledger: RunLedger | None
    conditions: tuple[str, ...] = ()

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        runs = RecordedRuns(self.ledger, self.live, lambda _: NOWHERE)
        stand_ins = find_toolchain(plan.testcase.toolchain).STAND_INS
        tools = make_tools(plan, NoRunsAhead(runs), Inline(), Silent(), stand_ins=stand_ins)
        return msgspec.structs.replace(investigate_plan(plan, replace(tools, tell=tell)), cost=runs.cost)

    def minimize(
        self,
        plan: Plan,
        version: str,
        *,
        control: str = "",
        passing: str = "",
        probes: int = MOST_PROBES,
        seconds: float = MOST_SECONDS,
    ) -> Smaller:
        def run(testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
            asked = msgspec.structs.replace(plan, claim=claim)
            cell = make_cell(asked, version, variant=Variant.CONTROL, testcase=testcase)
            return observe_cell(self.live, asked, cell, 1, fresh=fresh)

        return minimize_testcase(
            plan.testcase,
            plan.claim,
            version,
            run,
            vocabulary=find_toolchain(plan.testcase.toolchain).FAILURES,
            control=control,
            passing=passing,
            probes=probes,
            seconds=seconds,
        )


def make_runner(live: Execute, ledger: RunLedger | None) -> RunPlan:
    """Return a function that runs plans. ``live`` stands for the compilers."""
    bench = InProcessBench(live, ledger)

    def run_plan(folder: Path, plan: JobPlan, sha256: str) -> None:
        for cell in plan.cells:
            seen = run_whole_plan(bench, cell.plan, smaller=cell.minimize)
            write_result(CellResult(cell=cell.id, plan_sha256=sha256, seen=seen), folder / "results")

    return run_plan
