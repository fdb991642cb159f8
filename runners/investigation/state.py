"""An investigation under way: what it may use, what was seen, and what may still be spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import msgspec

from runners.core.bisection import releases as search
from runners.core.conditions import COULD_DIFFER, USUAL, of_attempt
from runners.core.progress import Sink
from runners.core.protocol import (
    Answer,
    Cell,
    ClaimKind,
    Finding,
    Observation,
    Outcome,
    Plan,
    Testcase,
    Trail,
    Variant,
    Varied,
)
from runners.investigation.bisect_builds import Supply
from runners.toolchains.iree.dispatches import Side

HOPELESS = 6
"""After so many builds that answer neither good nor bad, and none that does, more of them teach nothing."""
Runner = Callable[[Cell, int], Observation]
"""Runs one cell, the given attempt (1-based); never raises for what the testcase does."""
Variation = Callable[[Testcase, str], tuple[Testcase, tuple[str, ...]] | None]
"""Testcase and release → the text ported to that release and what was changed, or None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeper:
    """The effects of going on between releases."""

    lay: Callable[[str, str], Trail | str]
    """A good release and a bad one → the builds between them; or, in words, why there are none."""
    supply: Supply


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The effects that an investigation uses, passed in so that its course can be tested without a compiler."""

    run: Runner
    port: Variation
    retarget: Callable[[Testcase, str], Testcase | None]
    diagnose: Callable[[Plan, Observation, Observation | None], tuple[tuple[Observation, ...], tuple[Finding, ...]]]
    """One failing observation, and a clean one of its build if there is any → control runs and findings."""
    executor: Executor
    progress: Sink
    dispatches: Callable[[Side, Side], tuple[Finding, ...]] = lambda _bad, _good: ()
    """A run with a wrong result and one with another result → the dispatch at which they part."""
    stand_ins: tuple[str, ...] = ()
    """Devices that any machine has, to run a testcase on whose own device is not here."""
    deeper: Deeper | None = None
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One text on one device, over the releases: what a search runs along."""

    variant: Variant
    testcase: Testcase
    device: str
    changes: tuple[str, ...] = ()


OF_VALUES = frozenset({ClaimKind.WRONG_RESULT, ClaimKind.CRASH})
"""What memory, and the order in which threads come, may decide; and what is often of one backend alone. An error
message mostly comes from before the backends part."""


class Course:
    """One investigation under way: what was seen, and what may still be spent."""

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self.plan = plan
        self.tools = tools
        self.seen: list[Observation] = []
        self.deadline = tools.clock() + plan.budget.wall_s
        self.original = Lane(variant=Variant.ORIGINAL, testcase=plan.testcase, device=plan.device)

    @property
    def exhausted(self) -> bool:
        return len(self.seen) >= self.plan.budget.probes or self.tools.clock() > self.deadline

    def answers(self, lane: Lane) -> dict[str, Answer]:
        by_version: dict[str, list[Answer]] = {}
        for seen in self.seen:
            if seen.variant is lane.variant and seen.device == lane.device:
                by_version.setdefault(seen.version, []).append(seen.answer)
        return {version: search.combine(answers) for version, answers in by_version.items()}

    def failing(self) -> Observation | None:
        """The newest build that shows the failure on the testcase's own device, as posted rather than ported."""
        place = self.plan.order.index
        failing = [
            seen
            for seen in self.seen
            if seen.outcome is Outcome.MATCH
            and seen.device == self.plan.device
            and seen.version in self.plan.order  # a build between releases has no place among them
        ]
        return max(failing, key=lambda seen: (seen.variant is Variant.ORIGINAL, place(seen.version)), default=None)

    def could_differ(self) -> bool:
        """Whether what is reported, or what was seen, could depend on what memory holds."""
        return self.plan.claim.kind in OF_VALUES or any(
            seen.outcome is Outcome.MATCH and seen.signature is not None and seen.signature.type in COULD_DIFFER
            for seen in self.seen
        )

    def unsteady(self, lane: Lane) -> tuple[str, ...]:
        """Builds whose runs disagree, oldest first."""
        answers: dict[str, list[Answer]] = {version: [] for version in self.plan.order}
        for seen in self.seen:
            if seen.variant is lane.variant and seen.device == lane.device and seen.version in answers:
                answers[seen.version].append(seen.answer)
        return tuple(version for version, own in answers.items() if {Answer.GOOD, Answer.BAD} <= set(own))

    def run(self, lane: Lane, versions: Iterable[str], *, vary: bool = True) -> None:
        """Run cells side by side, as far as the budget reaches; what ran before, under other conditions now."""
        left = 0 if self.exhausted else self.plan.budget.probes - len(self.seen)
        memory = self.could_differ()
        cells = [cell_of(self.plan, lane, version) for version in versions][:left]
        pending = [
            self.tools.executor.submit(
                self._attempt, cell, number, of_attempt(number, memory=memory) if vary else USUAL
            )
            for cell in cells
            for number in [1 + self.runs(cell)]
        ]
        self.seen.extend([future.result() for future in pending])

    def runs(self, cell: Cell) -> int:
        """How often this cell has been run."""
        return sum(
            seen.version == cell.version and seen.device == cell.device and seen.variant is cell.variant
            for seen in self.seen
        )

    def _attempt(self, cell: Cell, attempt: int, under: Varied) -> Observation:
        """One attempt; a failure of our own is tried once more before it counts."""
        cell = msgspec.structs.replace(cell, varied=under)
        self.tools.progress.cell(cell, None)
        observation = self.tools.run(cell, attempt)
        if observation.outcome is Outcome.INFRA:
            observation = self.tools.run(cell, attempt)
        self.tools.progress.cell(cell, observation)
        return observation


def cell_of(plan: Plan, lane: Lane, version: str) -> Cell:
    return make_cell(
        plan, version, variant=lane.variant, testcase=lane.testcase, device=lane.device, changes=lane.changes
    )


def make_cell(
    plan: Plan,
    version: str,
    *,
    variant: Variant = Variant.ORIGINAL,
    testcase: Testcase | None = None,
    device: str | None = None,
    changes: tuple[str, ...] = (),
    under: Varied = USUAL,
) -> Cell:
    """A cell of the plan; its id is made of our own words and the release's, never of the issue's."""
    return Cell(
        id=f"{plan.testcase.toolchain}-{version}-{variant}".lower(),
        toolchain=plan.testcase.toolchain,
        version=version,
        device=device or plan.device,
        variant=variant,
        testcase=testcase or plan.testcase,
        changes=changes,
        varied=under,
        limits=plan.limits,
    )


def search_along(course: Course, lane: Lane) -> None:
    """Probe what the search asks for until it asks for nothing more, or nothing can be learned."""
    while course.plan.bisect and not course.exhausted:
        answers = course.answers(lane)
        if len(answers) >= HOPELESS and all(answer is Answer.SKIP for answer in answers.values()):
            return
        wanted = search.next_probes(course.plan.order, answers) or _in_between(course, answers)
        if not wanted:
            return
        course.run(lane, wanted)


def _in_between(course: Course, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """A look between releases that all fail; not at a hang, each of which costs all the time that there is."""
    if course.plan.claim.kind is ClaimKind.HANG:
        return ()
    return search.between_failures(course.plan.order, answers)
