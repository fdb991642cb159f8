"""Running again: what the answer rests on, what is said to come and go, and where runs disagree."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from runners.core.bisection import releases
from runners.core.protocol import SAID_TO_WORK, Answer, Finding, FindingKind, Variant
from runners.investigation.state import Course, Lane, cell_of

REPEATS = 10
"""Runs of a build whose runs disagree: a failure seen once in two runs may be one of three or nine of ten."""
AGREEING = 5
"""Runs of a build whose answers agree though what it prints does not, or though the report says that the failure is
not always there: two that agree may do so by luck."""


def confirm(course: Course, lane: Lane) -> None:
    """Run once more what the answer rests on: both sides of each change, and the newest build that answered."""
    answers = course.answers(lane)
    order = course.plan.order
    edges = [
        edge for edge in (releases.introduced(order, answers), releases.fixed(order, answers)) if edge is not None
    ]
    spoken = [version for version in order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    ends = [version for edge in edges for version in (edge.older, edge.newer) if version is not None]
    course.run(lane, dict.fromkeys([*ends, *spoken[-1:]]))


def insist(course: Course, lane: Lane) -> None:
    """Where the report says that it comes and goes, two runs that agree are too few on what it is about; of clean
    ones five are, too: they leave room for a failure in two runs of five."""
    answers = course.answers(lane)
    spoken = [version for version in course.plan.order if answers.get(version) in (Answer.GOOD, Answer.BAD)]
    if course.plan.claim.sometimes:
        for version in dict.fromkeys([v for v in (course.plan.reported, *spoken[-1:]) if v in spoken]):
            times = REPEATS if answers[version] is Answer.GOOD else AGREEING
            _run_until(course, lane, version, times, enough=course.unsteady)


def settle(course: Course, lane: Lane, findings: Iterable[Finding]) -> None:
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
    course: Course,
    lane: Lane,
    version: str,
    times: int,
    *,
    vary: bool = True,
    enough: Callable[[Lane], Container[str]] = lambda _lane: (),
) -> None:
    for _ in range(times - course.runs(cell_of(course.plan, lane, version))):
        if version not in enough(lane):
            course.run(lane, [version], vary=vary)


def contrast(course: Course) -> None:
    """What the report says works, on the newest build that fails: a contrast that is not there says much."""
    failing = course.failing()
    if failing is None or failing.variant is not Variant.ORIGINAL:
        return
    for control in course.plan.controls:
        lane = Lane(variant=Variant.CONTROL, testcase=control, device=course.plan.device, changes=(SAID_TO_WORK,))
        course.run(lane, [failing.version])
