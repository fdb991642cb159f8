"""Run plans, reduce testcases and list builds: the implementation of `runners.core.bench.DeepBench`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import msgspec

from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.bisection.commits import Prior
from runners.core.errors import ReprobotError
from runners.core.protocol import (
    BuildRange,
    Claim,
    ClaimKind,
    Investigation,
    NotRun,
    Observation,
    Plan,
    Smaller,
    Testcase,
    Variant,
)
from runners.core.runs import RunRequest, RunResult, Tell, report_not_run
from runners.core.toolchain.facts import NVIDIA
from runners.environments.config import read_config
from runners.investigation.bisect_builds import BuildSupply
from runners.investigation.investigate import investigate_plan
from runners.investigation.state import BuildSearch, make_cell
from runners.probe.observe import observe_cell
from runners.sandbox.process import handle_stop_signals
from runners.toolchains import find_device, find_toolchain
from runners.workbench.ahead import RunsAhead, Slots
from runners.workbench.environments import find_environment, find_younger_packages, prepare_build
from runners.workbench.machine import Machine
from runners.workbench.probes import get_image, get_stand_in, make_run
from runners.workbench.recorded_runs import RecordedRuns
from runners.workbench.run_ledger import RunLedger, Surroundings, digest_guest
from runners.workbench.stopwatch import Stopwatch
from runners.workbench.tools import make_tools, open_executor

DIAGNOSIS_THREADS = 3
"""Threads for the reruns of a diagnosis, its diagnosers, and one parallel diagnoser, each one run at a time."""
SEARCH_SLOTS = 1
"""A search over releases usually makes one run at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench(Machine):
    """This machine, as commands and jobs use it."""

    ledger: RunLedger | None = None
    """Recorded runs. Without a ledger, every run is made."""

    def run(self, plan: Plan, *, prior: Prior | None = None, tell: Tell | None = None) -> Investigation:
        """Run a plan to its end, or to the end of its budget. The testcase cannot make it raise.

        ``prior`` weighs the commits between two releases, for a search that continues there. ``tell`` receives the
        runs on which the answer rests, before the diagnosis.
        """
        dated = replace(self, day=plan.day)
        watch = Stopwatch()
        runs = RecordedRuns(self.ledger, watch.time_runs(dated.execute), dated.find_surroundings, self.progress.say)
        with (
            handle_stop_signals(),
            self.sessions.serve_plan(),
            open_executor(1) as helper,
            open_executor(plan.budget.workers) as executor,
            open_executor(plan.budget.workers + DIAGNOSIS_THREADS) as background,
        ):
            ahead = RunsAhead(runs, Slots(plan.budget.workers, kept=SEARCH_SLOTS), background)
            tools = make_tools(
                plan,
                ahead,
                executor,
                watch.time_stages(self.progress),
                stand_ins=self.list_stand_ins(find_toolchain(plan.testcase.toolchain)),
                background=background,
            )
            tools = replace(
                tools,
                between_releases=self._search_between_releases(plan, prior, helper),
                tell=tell,
                find_younger=lambda version: find_younger_packages(dated, plan.testcase.toolchain, version),
            )
            try:
                seen = investigate_plan(plan, tools)
                return msgspec.structs.replace(seen, cost=runs.cost, times=watch.times)
            finally:
                ahead.withdraw()

    def execute(self, request: RunRequest) -> RunResult:
        """Make one run on this machine. The testcase cannot make it raise."""
        environment = find_environment(self, request.version, request.testcase)
        if isinstance(environment, NotRun):
            return report_not_run(environment, self.engine.name)
        return make_run(self, environment, request)

    def find_surroundings(self, request: RunRequest) -> Surroundings | RunResult | None:
        """Return the conditions of a run besides its request, or a result if the run is impossible here.

        None for a GPU, because its model and driver affect a run and are not recorded.
        """
        device = find_device(find_toolchain(request.testcase.toolchain), request.device)
        if device is not None and device.hardware is NVIDIA:
            return None
        environment = find_environment(self, request.version, request.testcase)
        if isinstance(environment, NotRun):
            return report_not_run(environment, self.engine.name)
        return Surroundings(
            environment=environment.digest,
            engine=self.engine.name,
            image=get_image(self),
            driver=get_stand_in(self, request),
            guest=digest_guest(request.testcase),
        )

    def _search_between_releases(self, plan: Plan, prior: Prior | None, helper: ThreadPoolExecutor) -> BuildSearch:
        supply = BuildSupply(
            seconds=self.registry.list_expected_s,
            prepare=lambda name: prepare_build(replace(self, day=plan.day), name, plan.testcase),
            helper=helper,
        )
        return BuildSearch(list_builds=lambda good, bad: self._try_listing(plan, good, bad, prior), supply=supply)

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
        """Reduce the plan's testcase on a release where it fails; see ``runners.minimization.minimize``.

        Raises:
            NotReducible: no run shows the reported failure, or a control run is needed and not available.
        """
        from runners.minimization.minimize import minimize_testcase

        limits = plan.limits

        def run(testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
            nonlocal limits
            asked = msgspec.structs.replace(plan, claim=claim, limits=limits)
            cell = make_cell(asked, version, variant=Variant.CONTROL, testcase=testcase)
            seen = observe_cell(replace(self, day=plan.day).execute, asked, cell, 1, fresh=fresh)
            if limits is plan.limits and claim.kind is not ClaimKind.HANG:  # a reduced testcase may loop forever
                limits = msgspec.structs.replace(limits, wall_s=min(limits.wall_s, max(20.0, 5 * seen.seconds)))
            return seen

        with handle_stop_signals(), self.progress.stage(f"cutting the testcase down on {version}"):
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

    def list_builds(self, toolchain: str, good: str, bad: str, prior: Prior | None = None) -> BuildRange:
        """List the builds between two versions, tags or commits, for a plan to search.

        Raises:
            UserError: a version or commit does not exist, or no build between the two is available.
            InfraError: the history or a source cannot be reached.
        """
        from runners.builds.opening import BuildContext, open_range_finder

        around = BuildContext(
            catalogue=self.catalogue,
            config=read_config(),
            store=self.store,
            engine=self.engine,
            run_id=self.run_id,
            say=self.progress.say,
            history=self.history,
        )
        with self.progress.stage("looking for builds between the two"):
            between = open_range_finder(toolchain, around, self.registry, prior=prior, wanted=(good, bad))
            return between.find_range(between.find_end(good), between.find_end(bad))

    def _try_listing(self, plan: Plan, good: str, bad: str, prior: Prior | None) -> BuildRange | str:
        """List the builds between two releases, or return the reason why the search cannot continue there."""
        try:
            return self.list_builds(plan.testcase.toolchain, good, bad, prior)
        except ReprobotError as reason:
            return f"the search ends with releases: {reason}"
