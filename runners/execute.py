"""Plan → observations: runs the matrix, follows the search, repeats what the answer rests on, diagnoses a failure.

What is decided here is only what to run next; what it means is the bot's to judge, from the observations alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from runners import search
from runners.differ import device_findings
from runners.dispatches import Side
from runners.narrow import Supply, follow
from runners.progress import Sink
from runners.protocol import (
    SAID_TO_WORK,
    Answer,
    Cell,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Testcase,
    Trail,
    Variant,
    Varied,
)
from runners.retarget import in_words
from runners.varied import COULD_DIFFER, USUAL, of_attempt

HOPELESS = 6
"""After so many builds that answer neither good nor bad, and none that does, more of them teach nothing."""

Runner = Callable[[Cell, int], Observation]
"""Runs one cell, the given attempt (1-based); never raises for what the testcase does."""

Variation = Callable[[Testcase, str], tuple[Testcase, tuple[str, ...]] | None]
"""Testcase and release → the text ported to that release and what was changed, or None where nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """Everything seen. ``observations`` in the order of their runs."""

    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    trail: Trail | None = None
    """Along which builds between releases were searched, where they were."""


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
class _Lane:
    """One text on one device, over the releases: what a search runs along."""

    variant: Variant
    testcase: Testcase
    device: str
    changes: tuple[str, ...] = ()


class _Course:
    """One investigation under way: what was seen, and what may still be spent."""

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self.plan = plan
        self.tools = tools
        self.seen: list[Observation] = []
        self.deadline = tools.clock() + plan.budget.wall_s
        self.original = _Lane(variant=Variant.ORIGINAL, testcase=plan.testcase, device=plan.device)

    @property
    def exhausted(self) -> bool:
        return len(self.seen) >= self.plan.budget.probes or self.tools.clock() > self.deadline

    def answers(self, lane: _Lane) -> dict[str, Answer]:
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
        return self.plan.claim.kind in _VALUES or any(
            seen.outcome is Outcome.MATCH and seen.signature is not None and seen.signature.type in COULD_DIFFER
            for seen in self.seen
        )

    def unsteady(self, lane: _Lane) -> tuple[str, ...]:
        """Builds whose runs disagree, oldest first."""
        answers: dict[str, list[Answer]] = {version: [] for version in self.plan.order}
        for seen in self.seen:
            if seen.variant is lane.variant and seen.device == lane.device and seen.version in answers:
                answers[seen.version].append(seen.answer)
        return tuple(version for version, own in answers.items() if {Answer.GOOD, Answer.BAD} <= set(own))

    def run(self, lane: _Lane, versions: Iterable[str], *, vary: bool = True) -> None:
        """Run cells side by side, as far as the budget reaches; what ran before, under other conditions now."""
        left = 0 if self.exhausted else self.plan.budget.probes - len(self.seen)
        memory = self.could_differ()
        cells = [_cell(self.plan, lane, version) for version in versions][:left]
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


def _cell(plan: Plan, lane: _Lane, version: str) -> Cell:
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


def investigate(plan: Plan, tools: Tools) -> Investigation:
    """Run a plan to its end, or to the end of its budget."""
    course = _Course(plan, tools)
    if plan.trail is not None:
        return _along(course, plan.trail)
    with tools.progress.stage("matrix"):
        course.run(course.original, plan.first)
    with tools.progress.stage("bisection"):
        _search(course, course.original)
    with tools.progress.stage("confirmation"):
        _confirm(course, course.original)
        _insist(course, course.original)
        _contrast(course)
        _port(course)
        _retarget(course)
    with tools.progress.stage("diagnosis"):
        findings = _diagnose(course)
        _settle(course, course.original, findings)
        _elsewhere(course)
        findings = (*findings, *_parting(course))
    found = [*findings, *device_findings(course.seen, plan.order), *_noted(course.seen)]
    with tools.progress.stage("between releases"):
        trail = _deepen(course)
    return Investigation(observations=tuple(course.seen), findings=_distinct(found), trail=trail)


def _along(course: _Course, trail: Trail) -> Investigation:
    """Only the search along a trail, and a look at the failure."""
    with course.tools.progress.stage("bisection"):
        _follow(course, trail)
    with course.tools.progress.stage("diagnosis"):
        findings = _diagnose(course)
    found = _distinct([*findings, *_noted(course.seen)])
    return Investigation(observations=tuple(course.seen), findings=found, trail=trail)


FEW_BUILDS = 4
"""A release candidate or two narrow nothing that is worth the runs of a search; `reprobot bisect` takes them."""


def _deepen(course: _Course) -> Trail | None:
    """From the releases between which the newest change lies to the builds between them, where there are any."""
    plan, deeper = course.plan, course.tools.deeper
    answers = course.answers(course.original)
    edges = (search.fixed(plan.order, answers), search.introduced(plan.order, answers))
    edge = next((e for e in edges if e is not None and e.older is not None and e.newer is not None), None)
    if not plan.deepen or deeper is None or edge is None or edge.older is None or edge.newer is None:
        return None
    came = answers[edge.newer] is Answer.BAD
    good, bad = (edge.older, edge.newer) if came else (edge.newer, edge.older)
    trail = deeper.lay(good, bad)
    if isinstance(trail, str):
        course.tools.progress.say(trail)
        return None
    if len(trail.builds) - 2 <= FEW_BUILDS:
        return None
    _follow(course, trail)
    return trail


def _follow(course: _Course, trail: Trail) -> None:
    tools, plan = course.tools, course.plan
    assert tools.deeper is not None

    def attempt(name: str, number: int) -> Observation:
        cell = make_cell(plan, name)
        tools.progress.cell(cell, None)
        seen = tools.run(cell, number)
        tools.progress.cell(cell, seen)
        return seen

    course.seen += follow(
        trail,
        device=plan.device,
        known=course.seen,
        attempt=attempt,
        supply=tools.deeper.supply,
        executor=tools.executor,
        workers=plan.budget.workers,
        expired=lambda: tools.clock() > course.deadline,
    )


def _search(course: _Course, lane: _Lane) -> None:
    """Probe what the search asks for until it asks for nothing more, or nothing can be learned."""
    while course.plan.bisect and not course.exhausted:
        answers = course.answers(lane)
        if len(answers) >= HOPELESS and all(answer is Answer.SKIP for answer in answers.values()):
            return
        wanted = search.next_probes(course.plan.order, answers) or _in_between(course, answers)
        if not wanted:
            return
        course.run(lane, wanted)


def _in_between(course: _Course, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """A look between releases that all fail; not at a hang, each of which costs all the time that there is."""
    if course.plan.claim.kind is ClaimKind.HANG:
        return ()
    return search.between_failures(course.plan.order, answers)


def _confirm(course: _Course, lane: _Lane) -> None:
    """Run once more what the answer rests on: both sides of each change, and the newest build that answered."""
    answers = course.answers(lane)
    order = course.plan.order
    edges = [edge for edge in (search.introduced(order, answers), search.fixed(order, answers)) if edge is not None]
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    ends = [version for edge in edges for version in (edge.older, edge.newer) if version is not None]
    course.run(lane, dict.fromkeys([*ends, *spoken[-1:]]))


REPEATS = 10
"""Runs of a build whose runs disagree: a failure seen once in two runs may be one of three or nine of ten."""
AGREEING = 5
"""Runs of a build whose answers agree though what it prints does not, or though the report says that the failure is
not always there: two that agree may do so by luck."""


def _insist(course: _Course, lane: _Lane) -> None:
    """Where the report says that it comes and goes, two runs that agree are too few on what it is about; of clean
    ones five are, too: they leave room for a failure in two runs of five."""
    answers = course.answers(lane)
    spoken = [version for version in course.plan.order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    if course.plan.claim.sometimes:
        for version in dict.fromkeys([v for v in (course.plan.reported, *spoken[-1:]) if v in spoken]):
            times = REPEATS if answers[version] is Answer.GOOD else AGREEING
            _run_until(course, lane, version, times, enough=course.unsteady)


def _settle(course: _Course, lane: _Lane, findings: Iterable[Finding]) -> None:
    """Where runs of one build disagree, run it until its rate can be told: the newest of those for which it is known
    why, or else the newest. Where they agree though results differ, a few more.

    Random numbers that the testcase draws come anew under any conditions: then only they vary.
    """
    causes = {
        str(one.evidence.get("version")): one.evidence.get("cause")
        for one in findings
        if one.kind is FindingKind.NONDETERMINISTIC
    }
    for version, cause in causes.items():
        _run_until(course, lane, version, AGREEING, vary=cause != "randomness")
    unsteady = course.unsteady(lane)
    for version in ([v for v in unsteady if v in causes] or unsteady)[-1:]:
        _run_until(course, lane, version, REPEATS, vary=causes.get(version) != "randomness")


def _run_until(
    course: _Course,
    lane: _Lane,
    version: str,
    times: int,
    *,
    vary: bool = True,
    enough: Callable[[_Lane], Container[str]] = lambda _lane: (),
) -> None:
    for _ in range(times - course.runs(_cell(course.plan, lane, version))):
        if version not in enough(lane):
            course.run(lane, [version], vary=vary)


def _contrast(course: _Course) -> None:
    """What the report says works, on the newest build that fails: a contrast that is not there says much."""
    failing = course.failing()
    if failing is None or failing.variant is not Variant.ORIGINAL:
        return
    for control in course.plan.controls:
        lane = _Lane(variant=Variant.CONTROL, testcase=control, device=course.plan.device, changes=(SAID_TO_WORK,))
        course.run(lane, [failing.version])


def _port(course: _Course) -> None:
    """Where a build cannot run the text as posted because the API moved, run it ported to that build."""
    plan = course.plan
    moved = {seen.version for seen in course.seen if seen.outcome is Outcome.INCOMPATIBLE}
    wanted = dict.fromkeys(v for v in (plan.order[-1], plan.reported, plan.order[0]) if v in moved)
    for version in wanted:
        assert version is not None
        ported = course.tools.port(plan.testcase, version)
        if ported is not None:
            testcase, changes = ported
            lane = _Lane(variant=Variant.PORTED, testcase=testcase, device=plan.device, changes=changes)
            course.run(lane, [version])


def _retarget(course: _Course) -> None:
    """The same testcase on the devices asked for, or on those of any machine when its own is not here.

    The first device that shows the failure is searched along; the others run where that one changed its answer, so
    that they can be compared.
    """
    plan = course.plan
    answered = any(seen.answer is not Answer.SKIP for seen in course.seen)
    absent = not answered and any(seen.outcome is Outcome.UNAVAILABLE for seen in course.seen)
    telling = plan.first
    for device in plan.devices or (course.tools.stand_ins if absent else ()):
        lane = _on(course, device)
        if lane is None:
            continue
        course.run(lane, telling)
        if telling is plan.first and Answer.BAD in course.answers(lane).values():
            _search(course, lane)
            telling = _around_changes(plan.order, course.answers(lane), plan.first)


def _on(course: _Course, device: str) -> _Lane | None:
    moved = course.tools.retarget(course.plan.testcase, device)
    if moved is None:
        return None
    return _Lane(variant=Variant.RETARGETED, testcase=moved, device=device, changes=in_words(moved))


def _around_changes(order: Sequence[str], answers: Mapping[str, Answer], first: Sequence[str]) -> tuple[str, ...]:
    """``first`` and the builds on either side of each change of the answer."""
    asked = [version for version in order if version in answers]
    pairs = [pair for pair in pairwise(asked) if answers[pair[0]] is not answers[pair[1]]]
    return tuple(dict.fromkeys([*first, *(version for pair in pairs[-3:] for version in pair)]))


_VALUES = frozenset({ClaimKind.WRONG_RESULT, ClaimKind.CRASH})
"""What memory, and the order in which threads come, may decide; and what is often of one backend alone. An error
message mostly comes from before the backends part."""


def _elsewhere(course: _Course) -> None:
    """A wrong result or a crash, once on each other device of this machine: is it of the one device alone?"""
    failing = course.failing()
    if failing is None or course.plan.devices or course.plan.claim.kind not in _VALUES:
        return
    there = {seen.device for seen in course.seen if seen.version == failing.version}
    for device in course.tools.stand_ins:
        if device not in there and (lane := _on(course, device)) is not None:
            course.run(lane, [failing.version])


def _diagnose(course: _Course) -> tuple[Finding, ...]:
    """Look for the cause on the newest build that shows the failure."""
    newest = course.failing()
    if newest is None or course.tools.clock() > course.deadline:
        return ()
    same = [one for one in course.seen if (one.version, one.variant, one.device) == _build(newest)]
    clean = next((one for one in same if one.answer is Answer.GOOD), None)
    controls, findings = course.tools.diagnose(course.plan, newest, clean)
    course.seen.extend(controls)
    return findings


def _build(seen: Observation) -> tuple[str, Variant, str]:
    return seen.version, seen.variant, seen.device


def _parting(course: _Course) -> tuple[Finding, ...]:
    """The dispatch at which a wrong result comes about, beside a run that ended with another."""
    sides = _sides(course)
    if sides is None or course.tools.clock() > course.deadline:
        return ()
    return course.tools.dispatches(*sides)


def _sides(course: _Course) -> tuple[Side, Side] | None:
    """The newest run with a wrong result, and the nearest to it with another: on another device, else release."""
    place = course.plan.order.index
    ran = [
        seen
        for seen in course.seen
        if seen.variant in (Variant.ORIGINAL, Variant.RETARGETED)
        and seen.ended == Exited(code=0)
        and seen.version in course.plan.order
    ]
    wrong = [seen for seen in ran if seen.outcome is Outcome.MATCH]
    if course.plan.claim.kind is not ClaimKind.WRONG_RESULT or not wrong:
        return None
    bad = max(wrong, key=lambda seen: place(seen.version))
    others = [
        seen
        for seen in ran
        if seen.outcome is not Outcome.MATCH and (seen.version == bad.version or seen.device == bad.device)
    ]
    if not others:
        return None
    # A device of another kind may be wrong in its own way: what is known to be right comes first.
    right = [seen for seen in others if seen.outcome is Outcome.PASS] or others
    good = min(right, key=lambda seen: abs(place(seen.version) - place(bad.version)))
    return _side(course, bad), _side(course, good)


def _side(course: _Course, seen: Observation) -> Side:
    moved = course.tools.retarget(course.plan.testcase, seen.device) if seen.variant is Variant.RETARGETED else None
    return Side(testcase=moved or course.plan.testcase, seen=seen)


def _noted(seen: Iterable[Observation]) -> Iterable[Finding]:
    """What single probes found out by the way: names that have moved."""
    return (finding for observation in seen for finding in observation.findings)


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding of each kind about each name."""
    # A guest may have put anything where a name belongs, lists and all: as a key it is text.
    by_name = {(finding.kind, str(finding.evidence.get("name", finding.summary))): finding for finding in findings}
    return tuple(by_name.values())
