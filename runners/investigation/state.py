"""Define the state of an investigation: its effects, the runs so far, and the remaining budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace

import msgspec

from runners.core.bisection import releases
from runners.core.conditions import COULD_DIFFER, USUAL, choose_conditions
from runners.core.failure.costs import mark_costly_runs
from runners.core.failure.printed.marks import mark_printed
from runners.core.progress import Sink
from runners.core.protocol import (
    Answer,
    BuildRange,
    Cell,
    ClaimKind,
    Ended,
    Exited,
    Finding,
    Limits,
    Observation,
    Outcome,
    Plan,
    Signature,
    Testcase,
    TimedOut,
    Variant,
    Varied,
)
from runners.core.runs import Tell
from runners.core.toolchain.diagnosis import NOTHING_FOUND, ComparedRun, Diagnosis, Failure
from runners.investigation.bisect_builds import BuildSupply

HOPELESS = 6
"""Number of builds after which a search stops, if none of them answers good or bad."""
DEPENDS_ON_VALUES = frozenset({ClaimKind.WRONG_RESULT, ClaimKind.CRASH})
"""Failures that may depend on the content of memory or the order of threads, and that often occur on only one
backend. Most error messages come from code before the backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSearch:
    """The effects of a search that continues between releases."""

    list_builds: Callable[[str, str], BuildRange | str]
    """A good and a bad release → the builds between them, or the reason why there are none."""
    supply: BuildSupply


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A testcase ported to another release, and its changes in words."""

    testcase: Testcase
    changes: tuple[str, ...]
    notation_only: bool = False
    """True if it is the same program in another notation."""
    prints_all: bool = True
    """True if it prints everything that the posted testcase prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The effects of an investigation, passed in so that its order can be tested without a compiler."""

    run: Callable[[Cell, int], Observation]
    """Run a cell, the given attempt (1-based). The testcase cannot make it raise."""
    port: Callable[[Testcase, str], Port | None]
    """Testcase and release → the testcase ported to the release. None if no change is needed."""
    port_again: Callable[[Testcase, str, str], Port | None] = lambda _testcase, _version, _said: None
    """Testcase, release and the release's output for the last port → a port that also fixes the named faults."""
    supply_data: Callable[[Testcase], tuple[Testcase, tuple[str, ...]] | None] = lambda _testcase: None
    """Testcase → the testcase with generated data for the data that the report leaves out, and the changes. None if
    no data is missing."""
    retarget: Callable[[Testcase, str], Testcase | None]
    """Testcase and device → the testcase for the device. None if it cannot be retargeted, or need not be."""
    compile_for: Callable[[Testcase, str], Testcase | None] = lambda _testcase, _device: None
    """Testcase and device → the testcase that only compiles for the device. None if it does more."""
    targets: tuple[str, ...] = ()
    """Devices for which every machine can compile."""
    diagnose: Callable[[Failure], Diagnosis]
    ask_references: Callable[[Failure], Diagnosis] = lambda _failure: NOTHING_FOUND
    """A run that ends well → the votes of the references on its values."""
    executor: Executor
    progress: Sink
    expect: Callable[[Cell, int], None] = lambda _cell, _attempt: None
    """Announce a run that will be requested. It may begin now."""
    background: Executor | None = None
    """Threads for work that begins early. None if no work does."""
    tell: Tell | None = None
    """Receives the runs on which the answer rests, before the diagnosis."""
    finish_search: Callable[[], None] = lambda: None
    """Announce that the runs on which the answer rests are complete."""
    compare: Callable[[ComparedRun, ComparedRun], tuple[Finding, ...]] = lambda _bad, _good: ()
    """A run with a wrong result, and a run with another result → findings about their first difference."""
    check_reach: Callable[[str, Testcase], tuple[Finding, ...]] = lambda _version, _testcase: ()
    """A release and a testcase that is clean there → a finding if the run calls nothing that the report suspects."""
    find_younger: Callable[[str], Mapping[str, tuple[str, str]]] = lambda _version: {}
    """A release → the packages of which an installation on the report's day gets a newer version than the release
    had: name → both versions."""
    is_rejected: Callable[[Observation], bool] = lambda seen: seen.outcome is Outcome.INCOMPATIBLE
    """True for a run in which the build rejected the text, or lacks a name that the text uses."""
    stand_ins: tuple[str, ...] = ()
    """Devices of every machine, for a testcase whose own device is absent."""
    between_releases: BuildSearch | None = None
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One text of the testcase on one device. A search runs it on several builds."""

    variant: Variant
    testcase: Testcase
    device: str
    changes: tuple[str, ...] = ()
    notation_only: bool = False
    compile_only: bool = False
    limits: Limits | None = None
    """None: the limits of the plan."""


class InvestigationState:
    """One investigation under way."""

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self.plan = plan
        self.tools = tools
        self.seen: list[Observation] = []
        self.deadline = tools.clock() + plan.budget.wall_s
        self.original = Configuration(variant=Variant.ORIGINAL, testcase=plan.testcase, device=plan.device)
        self._expected: set[tuple[str, int]] = set()

    @property
    def is_late(self) -> bool:
        return self.tools.clock() > self.deadline

    @property
    def is_exhausted(self) -> bool:
        return len(self.seen) >= self.plan.budget.probes or self.is_late

    def combine_answers(self, configuration: Configuration) -> dict[str, Answer]:
        """Return one answer for each build that was run."""
        return releases.combine_answers(self._mark_seen(), configuration.variant, configuration.device)

    def list_answered(self, configuration: Configuration) -> list[str]:
        """Return the releases that answered good or bad, oldest first."""
        answers = self.combine_answers(configuration)
        return [version for version in self.plan.order if answers.get(version) in (Answer.GOOD, Answer.BAD)]

    def find_disagreeing(self, configuration: Configuration) -> tuple[str, ...]:
        """Return the releases whose runs disagree, oldest first."""
        return releases.find_disagreeing(
            self.plan.order, self._mark_seen(), configuration.variant, configuration.device
        )

    def count_failures(self, configuration: Configuration, version: str) -> tuple[int, int]:
        """Return the number of bad runs of a release, and the number of its good or bad runs."""
        grouped = releases.group_answers(self._mark_seen(), configuration.variant, configuration.device)
        answers = grouped.get(version, [])
        return answers.count(Answer.BAD), len(answers) - answers.count(Answer.SKIP)

    def find_unchanged(self, variant: Variant = Variant.ORIGINAL) -> Observation | None:
        """Return a run of the earlier answer's release, if the newest release behaves like that run.

        The newest release is unchanged if the earlier release showed each of its outcomes, and the worst outcome is
        the same. A clean run alone may mean a fix.

        None without an earlier answer. Then the newest release needs its own reruns and its own diagnosis.
        """
        own = [one for one in self._mark_seen() if one.variant is variant and one.device == self.plan.device]
        before = {_get_behaviour(one): one for one in reversed(own) if one.version == self.plan.answered}
        now = {_get_behaviour(one): one for one in reversed(own) if one.version == self.plan.order[-1]}
        if not now or not now.keys() <= before.keys():
            return None
        worst = min(now.values(), key=_rank_end)
        if _rank_end(worst) > min(map(_rank_end, before.values())):
            return None
        return before[_get_behaviour(worst)]

    def find_failing(self) -> Observation | None:
        """Return the failure on the newest release and the testcase's own device, as posted rather than ported."""
        failing = self._find_newest_failing()
        if failing is None or failing.version != self.plan.order[-1]:
            return failing
        return self.find_unchanged(failing.variant) or failing

    def _find_newest_failing(self) -> Observation | None:
        place = self.plan.order.index
        failing = [
            seen
            for seen in self.seen
            if seen.outcome is Outcome.MATCH
            and seen.device == self.plan.device
            and seen.version in self.plan.order  # a build between releases is not one of them
        ]
        return max(failing, key=lambda seen: (seen.variant is Variant.ORIGINAL, place(seen.version)), default=None)

    def find_otherwise_failing(self) -> Observation | None:
        """Return a failure other than the reported one, on the reported or the newest release, as posted.

        A fault of the testcase may show differently in each run. Its cause explains both failures.
        """
        same = self.find_unchanged()
        home = (same.version if same is not None else self.plan.order[-1], self.plan.reported)
        failing = [
            seen
            for seen in self.seen
            if seen.outcome is Outcome.OTHER_FAILURE
            and seen.variant is Variant.ORIGINAL
            and seen.device == self.plan.device
            and seen.version in home
            and not (isinstance(seen.ended, Exited) and seen.ended.code == 0)  # other output needs no cause
        ]
        return min(failing, key=lambda seen: home.index(seen.version), default=None)

    def run(
        self,
        configuration: Configuration,
        versions: Iterable[str],
        *,
        vary: bool = True,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Run builds in parallel, as far as the budget allows. With ``vary``, a rerun has other conditions.

        ``meanwhile`` is called once the runs are submitted. Work that it begins comes after them.
        """
        left = 0 if self.is_exhausted else self.plan.budget.probes - len(self.seen)
        memory = self._depends_on_memory(self.seen)
        cells = [configure_cell(self.plan, configuration, version) for version in versions][:left]
        pending = [
            self.tools.executor.submit(
                self._run_attempt, cell, number, choose_conditions(number, memory=memory) if vary else USUAL
            )
            for cell in cells
            for number in [1 + self._count_cell(cell, self.seen)]
        ]
        meanwhile()
        if configuration is self.original:
            for _ in as_completed(pending):
                running = {cell.version for cell, future in zip(cells, pending, strict=True) if not future.done()}
                self._expect_ahead([future.result() for future in pending if future.done()], running)
        self.seen.extend([future.result() for future in pending])

    def run_each(self, configurations: Sequence[tuple[Configuration, str]], *, vary: bool = True) -> None:
        """Run several configurations, each on its own build, in this order. They may begin together.

        The same configuration and build may occur several times. ``vary`` is as in `run`.
        """
        memory = self._depends_on_memory(self.seen)
        announced = configurations if len(configurations) > 1 and not self.is_exhausted else ()
        for place, (configuration, version) in enumerate(announced):
            before = announced[:place].count((configuration, version))
            number = 1 + self.count_runs(configuration, version) + before
            under = choose_conditions(number, memory=memory) if vary else USUAL
            cell = configure_cell(self.plan, configuration, version)
            self.tools.expect(msgspec.structs.replace(cell, varied=under), number)
        for configuration, version in configurations:
            self.run(configuration, [version], vary=vary)

    def _expect_ahead(self, ended: Sequence[Observation], running: Collection[str]) -> None:
        """Announce the runs that the answers so far make certain: first those of the search, then the reruns.

        Announce none for a hang, because each costs the time limit. Announce no reruns until a build is known to
        fail: they would take the slots of runs that the search needs next.
        """
        if self.is_exhausted or self.plan.claim.kind is ClaimKind.HANG:
            return
        seen = [*self.seen, *ended]
        answers = releases.combine_answers(seen, Variant.ORIGINAL, self.plan.device)
        probes = releases.list_certain_probes(self.plan.order, answers, running) if self.plan.bisect else ()
        for version in probes:
            if (version, 1) not in self._expected:
                self._expected.add((version, 1))
                self.tools.expect(configure_cell(self.plan, self.original, version), 1)
        if running and self.plan.bisect and Answer.BAD not in answers.values():
            return
        memory = self._depends_on_memory(seen)
        for version in releases.list_deciding(self.plan.order, answers, certain=True):
            cell = configure_cell(self.plan, self.original, version)
            number = 1 + self._count_cell(cell, seen)
            if version == self.plan.order[-1] and self.plan.answered is not None:
                continue  # if nothing changed there, the reruns of the earlier answer are still valid
            if number == 2 and (version, number) not in self._expected:
                self._expected.add((version, number))
                under = choose_conditions(number, memory=memory)
                self.tools.expect(msgspec.structs.replace(cell, varied=under), number)

    def _mark_seen(self) -> Sequence[Observation]:
        """Return the runs, marked by what all of them show together. The records themselves do not change."""
        return mark_costly_runs(self.plan, mark_printed(self.plan, self.seen))

    def count_runs(self, configuration: Configuration, version: str) -> int:
        return self._count_cell(configure_cell(self.plan, configuration, version), self.seen)

    def _depends_on_memory(self, seen: Iterable[Observation]) -> bool:
        """True if the reported or the observed failure could depend on the content of memory."""
        return self.plan.claim.kind in DEPENDS_ON_VALUES or any(
            one.outcome is Outcome.MATCH and one.signature is not None and one.signature.type in COULD_DIFFER
            for one in seen
        )

    @staticmethod
    def _count_cell(cell: Cell, seen: Iterable[Observation]) -> int:
        return sum(
            one.version == cell.version and one.device == cell.device and one.variant is cell.variant for one in seen
        )

    def _run_attempt(self, cell: Cell, attempt: int, under: Varied) -> Observation:
        """Run a cell once. An infrastructure failure is retried once before it counts."""
        cell = msgspec.structs.replace(cell, varied=under)
        self.tools.progress.cell(cell, None)
        observation = self.tools.run(cell, attempt)
        if observation.outcome is Outcome.INFRA:
            observation = self.tools.run(cell, attempt)
        self.tools.progress.cell(cell, observation)
        return observation


def _get_behaviour(seen: Observation) -> tuple[Outcome, Answer, Ended, Signature | str | None]:
    """Return the facts that two releases must share to behave the same.

    Only the kind of the reported failure is compared. Its wrong values, or the place of a time-out, may differ
    between runs.
    """
    if seen.outcome is Outcome.MATCH:
        ended = TimedOut() if isinstance(seen.ended, TimedOut) else seen.ended
        return seen.outcome, seen.answer, ended, seen.signature.type if seen.signature is not None else None
    return seen.outcome, seen.answer, seen.ended, seen.signature


def _rank_end(seen: Observation) -> tuple[bool, bool]:
    """Rank the reported failure first, then other failures, then clean runs."""
    return seen.answer is not Answer.BAD, seen.outcome is Outcome.PASS


def configure_cell(plan: Plan, configuration: Configuration, version: str) -> Cell:
    return make_cell(
        plan,
        version,
        variant=configuration.variant,
        testcase=configuration.testcase,
        device=configuration.device,
        changes=configuration.changes,
        notation_only=configuration.notation_only,
        compile_only=configuration.compile_only,
        limits=configuration.limits,
    )


def make_cell(
    plan: Plan,
    version: str,
    *,
    variant: Variant = Variant.ORIGINAL,
    testcase: Testcase | None = None,
    device: str | None = None,
    changes: tuple[str, ...] = (),
    notation_only: bool = False,
    compile_only: bool = False,
    under: Varied = USUAL,
    limits: Limits | None = None,
) -> Cell:
    """Make a cell of the plan. Its id contains our own words and the release's, never the issue's."""
    return Cell(
        id=f"{plan.testcase.toolchain}-{version}-{variant}".lower(),
        toolchain=plan.testcase.toolchain,
        version=version,
        device=device or plan.device,
        variant=variant,
        testcase=testcase or plan.testcase,
        changes=changes,
        notation_only=notation_only,
        compile_only=compile_only,
        varied=under,
        limits=limits or plan.limits,
    )


def bisect_releases(
    state: InvestigationState, configuration: Configuration, *, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Run the releases that the search chooses, until the search ends or no run gives an answer."""
    while state.plan.bisect and not state.is_exhausted:
        answers = state.combine_answers(configuration)
        most = min(state.plan.budget.workers, state.plan.budget.probes - len(state.seen) - _count_reserved(answers))
        if all(answer is Answer.SKIP for answer in answers.values()):
            most = min(most, HOPELESS - len(answers))
        if most <= 0:
            return
        gone = {one.version for one in state.seen if one.outcome is Outcome.INCOMPATIBLE}
        if len(gone) < HOPELESS:  # a testcase may be too new for one end and too old for the other
            gone.clear()
        wanted = releases.choose_probes(state.plan.order, answers, most=most, gone=gone) or _list_gaps(state, answers)
        wanted = _put_first(list_next(state.plan), wanted, answers)[:most]
        if not wanted:
            return
        state.run(_shorten_hangs(state, configuration), wanted, meanwhile=meanwhile)


SHORT_HANG = 0.25
"""Share of the time limit that a run gets after another build of the testcase did not end."""
LONGER = 4
"""Multiple of the longest completed run. A run that takes longer is not just a slower run of the same kind."""


def _shorten_hangs(state: InvestigationState, configuration: Configuration) -> Configuration:
    """Return the configuration with less time, once a run did not end. A reported hang is a match instead.

    A hang gives no answer, and neighbouring builds usually hang too. Ten such runs took twenty minutes.
    """
    own = [s for s in state.seen if (s.variant, s.device) == (configuration.variant, configuration.device)]
    ended = [seen.seconds for seen in own if seen.outcome is not Outcome.TIMEOUT]
    if len(ended) == len(own):
        return configuration
    limits = shorten_limits(state.plan.limits, least_s=LONGER * max(ended, default=0.0))
    return replace(configuration, limits=limits)


def shorten_limits(limits: Limits, *, least_s: float = 0.0) -> Limits:
    """Return limits with a quarter of the time, but at least ``least_s`` seconds if the limits allow it."""
    part = min(1.0, max(SHORT_HANG, least_s / limits.wall_s))
    cpu_s = None if limits.cpu_s is None else part * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=part * limits.wall_s, cpu_s=cpu_s)


def list_next(plan: Plan) -> tuple[str, ...]:
    """Return the build after the one nearest to the report. The report may be about a build between the two."""
    return tuple(
        plan.order[place + 1] for place in map(plan.order.index, plan.first[:1]) if place + 1 < len(plan.order)
    )


def _put_first(next_builds: Sequence[str], wanted: Sequence[str], answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Return the wanted builds, preceded by ``next_builds`` while all answers are clean."""
    if not wanted or Answer.BAD in answers.values() or Answer.GOOD not in answers.values():
        return tuple(wanted)
    return tuple(dict.fromkeys([*(one for one in next_builds if one not in answers), *wanted]))


RESERVED = 6
"""Runs reserved for confirmations and variants. If no build shows the failure, the search would use all runs."""


def _count_reserved(answers: Mapping[str, Answer]) -> int:
    return 0 if Answer.BAD in answers.values() else RESERVED


def _list_gaps(state: InvestigationState, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Return the releases between failing ones. None for a hang, because each run costs the whole time limit."""
    if state.plan.claim.kind is ClaimKind.HANG:
        return ()
    return releases.choose_between_failures(state.plan.order, answers)
