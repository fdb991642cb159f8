"""The one entry that runs a plan on this machine: engine, store and toolchains put together.

``bot`` hands a `Plan` in and gets an `Investigation` out; everything between is on this side of the trust boundary.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from runners.builds.commit_range import BuildRegistry, RangeFinder
from runners.builds.opening import BuildContext, open_range_finder
from runners.builds.source import Unbuildable
from runners.core import conditions as varied
from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.bisection.commits import Prior
from runners.core.catalogue import Catalogue, Release
from runners.core.errors import InfraError, ReprobotError
from runners.core.failure.oracle import last_output
from runners.core.guest_programs import launch
from runners.core.progress import Sink
from runners.core.protocol import (
    Cell,
    Claim,
    ClaimKind,
    Exited,
    Investigation,
    Limits,
    NotRun,
    Observation,
    Plan,
    Smaller,
    Testcase,
    Trail,
    Variant,
    Varied,
)
from runners.core.toolchain.hardware import NVIDIA
from runners.diagnosis.diagnose import Means, diagnose, instrumented_limits
from runners.diagnosis.nondeterminism import AS_IT_IS, Run, Way, make_run
from runners.environments.config import read_config
from runners.environments.resolve import Unresolvable
from runners.environments.store import Environment, Store, default_root, open_store
from runners.hardware import gpu, lavapipe
from runners.hardware.detect import Absent, detect_hardware
from runners.hardware.lavapipe import Driver
from runners.investigation.bisect_builds import Supply
from runners.investigation.investigate import investigate
from runners.investigation.state import Deeper, Tools, make_cell
from runners.minimization.minimize import minimize
from runners.probe.canary import Canaries, canary_name, why_not
from runners.probe.layout import layout_of, task_of
from runners.probe.observe import observed
from runners.probe.run import run_probe
from runners.probe.sessions import Rooms
from runners.probe.task import PLAIN, Conditions, Probe, conditions_of
from runners.rewrite.port import port
from runners.rewrite.retarget import retarget
from runners.sandbox.contract import Engine
from runners.sandbox.owner import make_name
from runners.sandbox.process import Stopped, handle_stop_signals
from runners.sandbox.select import remove_leftovers, select_engine
from runners.toolchains import Toolchain, canary_testcase, find_device, find_toolchain
from runners.toolchains.iree.dispatches import compare_dispatches

FINDINGS_FILE = "/tmp/reprobot-findings.jsonl"
"""A path inside the sandbox, whose /tmp is its own."""
INSTRUMENTED = {"REPROBOT_FINDINGS": FINDINGS_FILE}
STAND_INS = {"iree": ("vmvx", "llvm-cpu"), "tvm": ("llvm",)}
"""Backends whose programs run on any machine; vmvx first: it also checks bounds (facts of the wheels)."""
GPU_WAIT_S = 900.0
"""How long a cell waits for others that use the same GPU."""
CANARY_LIMITS = Limits(wall_s=120)


def open_workbench(
    sandbox: str,
    catalogue: Catalogue,
    progress: Sink,
    *,
    also_allowed: frozenset[str] = frozenset(),
    history: str = "",
) -> Workbench:
    """Everything a run on this machine needs; first clears away what killed runs left.

    ``history`` is a clone of the toolchain's repository that is used in place of the configured one.

    Raises:
        UserError: the sandbox asked for, or any with ``auto``, does not work here.
    """
    for leftover in remove_leftovers():
        progress.say(f"removed what a killed run left: {leftover}")
    with progress.stage("choosing a sandbox"):
        engine = select_engine(sandbox)
    for loss in engine.limitations:
        progress.say(f"{engine.name} gives up: {loss}")
    store = open_store(default_root(), say=progress.say, also_allowed=also_allowed)
    if freed := store.keep_within(int(read_config().store_gib * 2**30)):
        progress.say(f"removed environments unused for longest: {freed / 2**20:.0f} MiB")
    driver = lavapipe.get_image_driver() if engine.own_system else lavapipe.find_driver(default_root())
    return Workbench(
        engine=engine,
        store=store,
        catalogue=catalogue,
        progress=progress,
        run_id=make_name(),
        canaries=Canaries(store.root),
        driver=None if isinstance(driver, str) else driver,
        history=history,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What running needs of this machine. ``run_id`` labels everything that the engine creates."""

    engine: Engine
    store: Store
    catalogue: Catalogue
    progress: Sink
    run_id: str
    canaries: Canaries = field(default_factory=Canaries)
    rooms: Rooms = field(default_factory=Rooms)
    driver: Driver | None = None
    """The software Vulkan driver, where the machine has one."""
    history: str = ""
    """A clone of the toolchain's repository that is used in place of the configured one."""
    registry: BuildRegistry = field(default_factory=BuildRegistry)
    """Builds between releases that were laid out as a trail."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What a reader of the verdict must know of how it was run."""
        image = (f"the system inside is the image {self.engine.image[:19]}",) if self.engine.own_system else ()
        return (*(f"the sandbox gives up: {loss}" for loss in self.engine.limitations), *image)

    def lay(self, toolchain: str, good: str, bad: str, prior: Prior | None = None) -> Trail:
        """The builds between two versions, tags or commits: what a plan can search along.

        Raises:
            UserError: there is no such version or commit, or nothing between the two can be had.
            InfraError: the history or a source cannot be reached.
        """
        with self.progress.stage("looking for builds between the two"):
            between = self._between(toolchain, prior, (good, bad))
            return between.find_range(between.find_end(good), between.find_end(bad))

    def _between(self, toolchain: str, prior: Prior | None, wanted: tuple[str, ...]) -> RangeFinder:
        return open_range_finder(
            toolchain,
            BuildContext(
                catalogue=self.catalogue,
                config=read_config(),
                store=self.store,
                engine=self.engine,
                run_id=self.run_id,
                say=self.progress.say,
                history=self.history,
            ),
            self.registry,
            prior=prior,
            wanted=wanted,
        )

    def _lay(self, plan: Plan, good: str, bad: str, prior: Prior | None) -> Trail | str:
        """For a search that goes on from releases: without builds between them it just ends there."""
        try:
            return self.lay(plan.testcase.toolchain, good, bad, prior)
        except ReprobotError as reason:
            return f"the search ends with releases: {reason}"

    def run(self, plan: Plan, *, prior: Prior | None = None) -> Investigation:
        """Run a plan to its end, or to the end of its budget. Never raises for what a testcase does.

        ``prior`` weighs the commits between two releases, for a search that goes on there.
        """
        toolchain = find_toolchain(plan.testcase.toolchain)
        with (
            handle_stop_signals(),
            closing(self.rooms),
            _executor(1) as helper,
            _executor(plan.budget.workers) as executor,
        ):
            return investigate(
                plan,
                Tools(
                    run=lambda cell, attempt: self._observe(plan, cell, attempt),
                    port=lambda testcase, version: _ported(testcase, version, toolchain),
                    retarget=retarget,
                    diagnose=lambda plan, failing, clean: diagnose(
                        plan, failing, self.means(plan, failing.varied), clean=clean
                    ),
                    dispatches=lambda bad, good: compare_dispatches(bad, good, self.means(plan).search),
                    executor=executor,
                    progress=self.progress,
                    stand_ins=self._stand_ins(toolchain),
                    deeper=Deeper(
                        lay=lambda good, bad: self._lay(plan, good, bad, prior),
                        supply=Supply(
                            seconds=self.registry.list_expected_s,
                            prepare=lambda name: self._prepare(name, plan.testcase),
                            helper=helper,
                        ),
                    ),
                ),
            )

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
        """Cut the plan's testcase down on a release where it fails; see ``runners.minimization.minimize``.

        Raises:
            NotReducible: it does not fail there as reported, or only a control could tell a smaller one from a wrong.
        """
        limits = plan.limits

        def run(testcase: Testcase, claim: Claim, version: str) -> Observation:
            nonlocal limits
            asked = msgspec.structs.replace(plan, claim=claim, limits=limits)
            cell = make_cell(asked, version, variant=Variant.CONTROL, testcase=testcase)
            seen = self._observe(asked, cell, 1)
            if limits is plan.limits and claim.kind is not ClaimKind.HANG:  # cutting may make an endless loop
                limits = msgspec.structs.replace(limits, wall_s=min(limits.wall_s, max(20.0, 5 * seen.seconds)))
            return seen

        with handle_stop_signals(), self.progress.stage(f"cutting the testcase down on {version}"):
            return minimize(
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

    def _stand_ins(self, toolchain: Toolchain) -> tuple[str, ...]:
        software = (lavapipe.DEVICE,) if self.driver is not None and toolchain.NAME == "iree" else ()
        return (*STAND_INS.get(toolchain.NAME, ()), *software)

    # ------------------------------------------------------------------------------------------ one cell

    def _observe(self, plan: Plan, cell: Cell, attempt: int) -> Observation:
        environment = self._environment(cell.version, cell.testcase)
        probe = (
            _not_run(self.engine, environment)
            if isinstance(environment, NotRun)
            else self._probe_on_device(environment, cell, conditions_of(cell.varied, attempt))
        )
        release = self._known(cell.toolchain, cell.version)
        software = self.driver is not None and cell.device == lavapipe.DEVICE
        return msgspec.structs.replace(
            observed(plan, cell, attempt, probe),
            environment="" if isinstance(environment, NotRun) else environment.digest,
            fork="" if release is None or release.fork is None else _fork(release),
            driver=self.driver.name if self.driver is not None and software else "",
            image=self.engine.image if self.engine.own_system else "",
        )

    def _environment(self, version: str, testcase: Testcase) -> Environment | NotRun:
        """The environment of a release, canary passed; or why the testcase cannot be run on it."""
        try:
            release = self._release(testcase.toolchain, version)
            environment = self.store.get_environment(release, testcase.requirements)
        except (Unresolvable, Unbuildable) as reason:
            return NotRun(why=str(reason), cause="unavailable")
        except InfraError as reason:
            return NotRun(why=str(reason), cause="infra")
        toolchain = find_toolchain(environment.toolchain)
        program = canary_testcase(toolchain, environment.version)
        name = canary_name(environment, self.engine, program, toolchain.VARIABLES)
        return self.canaries.ask(name, lambda: self.canary(environment, program)) or environment

    def _release(self, toolchain: str, version: str) -> Release:
        """A build of the trail, provided; else the catalogue's.

        Raises:
            Unbuildable: the build cannot be had.
            InfraError: it cannot be had just now.
        """
        if version in self.registry:
            return self.registry.provide_release(version)
        return self.catalogue.find(toolchain, version)

    def _known(self, toolchain: str, version: str) -> Release | None:
        """The same, as far as it is known without doing anything."""
        return None if version in self.registry else self.catalogue.find(toolchain, version)

    def _prepare(self, name: str, testcase: Testcase) -> None:
        """Have a build of the trail and its environment ready; what goes wrong is seen when it is run."""
        with contextlib.suppress(ReprobotError):
            self.store.get_environment(self.registry.provide_release(name), testcase.requirements)

    def canary(self, environment: Environment, program: Testcase) -> NotRun | None:
        """None when a program of a few lines runs there; else why nothing may be blamed on a testcase."""
        toolchain = find_toolchain(environment.toolchain)
        probe = self._probe(environment, program, CANARY_LIMITS, PLAIN)
        if isinstance(probe.ended, NotRun):
            return probe.ended
        if probe.ended == Exited(code=0) and toolchain.CANARY.prints in probe.steps[-1].stdout:
            return None
        said = last_output(probe.steps).strip().splitlines()[-1:]
        return why_not(f"{toolchain.TITLE} {environment.version}", probe.ended, said[0] if said else "")

    def _probe_on_device(self, environment: Environment, cell: Cell, conditions: Conditions) -> Probe:
        """One probe, alone on the GPU if its device is one that is here; a GPU that it leaves ill is our failure."""
        device = find_device(find_toolchain(cell.toolchain), cell.device)
        if device is None or device.hardware is not NVIDIA or isinstance(detect_hardware(NVIDIA), Absent):
            return self._probe(environment, cell.testcase, cell.limits, conditions)
        if unfit := gpu.find_gpu_problems(os.environ, containers=self.engine.name in ("docker", "podman")):
            return _not_run(self.engine, NotRun(why="; ".join(unfit)[:2000], cause="unavailable"))
        try:
            card = gpu.choose_gpu(os.environ)
            with gpu.lock_gpu(card, default_root() / "gpus", GPU_WAIT_S):
                before = gpu.read_health(card)
                alone = conditions_of(cell.varied, 2)
                probe = self._probe(environment, cell.testcase, cell.limits, alone, devices=card.nodes)
                ill = gpu.find_fault(before, gpu.read_health(card))
        except InfraError as reason:
            return _not_run(self.engine, NotRun(why=str(reason)))
        return probe if ill is None else _not_run(self.engine, NotRun(why=ill))

    def _probe(
        self,
        environment: Environment,
        testcase: Testcase,
        limits: Limits,
        conditions: Conditions,
        *,
        instrumented: bool = False,
        devices: tuple[str, ...] = (),
    ) -> Probe:
        """In a room, forked where possible. What is run again in order to be sure, without a record of the script,
        has a sandbox of its own: forks share the layout of their address space, which new processes do not.
        """
        run = self.rooms.probe if conditions.scripts else partial(run_probe, devices=devices)
        driver = self.driver
        task = task_of(
            environment,
            testcase,
            limits,
            conditions=conditions,
            more_variables=({} if driver is None else driver.environment) | (INSTRUMENTED if instrumented else {}),
            probe_file=FINDINGS_FILE if instrumented else None,
        )
        layout = layout_of(environment, extra=() if driver is None else driver.mounts)
        try:
            return run(self.engine, layout, task, run_id=self.run_id)
        except Stopped:
            raise
        except InfraError as reason:
            return _not_run(self.engine, NotRun(why=str(reason)))

    # ------------------------------------------------------------------------------------------ diagnosis

    def means(self, plan: Plan, under: Varied = varied.USUAL) -> Means:
        """What a diagnosis of this plan may do, under the conditions in which its failure was seen."""
        return Means(
            run=lambda version, variant, testcase, device: self._control(
                plan, version, variant, testcase, device, under
            ),
            instrumented=lambda version, testcase, modes: self._instrumented(plan, version, testcase, modes, under),
            search=lambda version, testcase: self._hooked(plan, version, testcase, under),
            vary=lambda version, testcase, way: self._varied(plan, version, testcase, way),
        )

    def _control(
        self, plan: Plan, version: str, variant: Variant, testcase: Testcase, device: str, under: Varied
    ) -> Observation:
        cell = make_cell(plan, version, variant=variant, testcase=testcase, device=device, under=under)
        self.progress.cell(cell, None)
        seen = self._observe(plan, cell, 1)
        self.progress.cell(cell, seen)
        return seen

    def _instrumented(
        self, plan: Plan, version: str, testcase: Testcase, modes: tuple[str, ...], under: Varied
    ) -> str:
        (_, script, *arguments) = testcase.steps[0]
        step = launch("tvm.diagnose", ",".join(modes), script, *arguments)
        return self._hooked(plan, version, msgspec.structs.replace(testcase, steps=(step,)), under)

    def _hooked(self, plan: Plan, version: str, testcase: Testcase, under: Varied) -> str:
        """What one of our hooks wrote while the testcase ran under it: a claim."""
        environment = self._environment(version, testcase)
        if isinstance(environment, NotRun):
            return ""
        limits = instrumented_limits(plan.limits)
        probe = self._probe(environment, testcase, limits, conditions_of(under, 1), instrumented=True)
        return probe.probe_file or ""

    def _varied(self, plan: Plan, version: str, testcase: Testcase, way: Way) -> Run | None:
        """One run under chosen conditions. As it is, it has a process of its own, with addresses of its own."""
        environment = self._environment(version, testcase)
        if isinstance(environment, NotRun):
            return None
        conditions = replace(conditions_of(way.varied, 1), seed=way.seed)
        if way == AS_IT_IS:
            conditions = replace(conditions, fork=False)
        probe = self._probe(environment, testcase, plan.limits, conditions)
        return make_run(way, probe.ended, probe.steps)


def _fork(release: Release) -> str:
    return f"{release.fork}, carried by {release.distributions[0].replace('==', ' ')}"


def _ported(testcase: Testcase, version: str, toolchain: Toolchain) -> tuple[Testcase, tuple[str, ...]] | None:
    ported = port(testcase, version, toolchain)
    if ported is None:
        return None
    changes = dict.fromkeys(f"{change.old} → {change.new}"[:500] for change in ported.substitutions)
    return ported.testcase, tuple(changes)


@contextmanager
def _executor(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads around sandbox processes; an interrupt drops what has not begun."""
    executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="probe")
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


# ---------------------------------------------------------------------------------------------- shapes


def _not_run(engine: Engine, reason: NotRun) -> Probe:
    return Probe(steps=(), ended=reason, seconds=0.0, peak_bytes=0, engine=engine.name)
