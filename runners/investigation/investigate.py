"""Plan → observations: runs the matrix, follows the search, repeats what the answer rests on, diagnoses a failure.

What is decided here is only what to run next; what it means is the bot's to judge, from the observations alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from runners.core.bisection import releases as search
from runners.core.failure.tensor_difference import device_findings
from runners.core.protocol import Answer, Finding, Investigation, Observation, Plan, Trail, Variant
from runners.investigation.bisect_builds import follow
from runners.investigation.rerun import confirm, contrast, insist, settle
from runners.investigation.state import Course, Tools, make_cell, search_along
from runners.investigation.variants import on_other_devices, parting, run_ported, run_retargeted


def investigate(plan: Plan, tools: Tools) -> Investigation:
    """Run a plan to its end, or to the end of its budget."""
    course = Course(plan, tools)
    if plan.trail is not None:
        return _along(course, plan.trail)
    with tools.progress.stage("matrix"):
        course.run(course.original, plan.first)
    with tools.progress.stage("bisection"):
        search_along(course, course.original)
    with tools.progress.stage("confirmation"):
        confirm(course, course.original)
        insist(course, course.original)
        contrast(course)
        run_ported(course)
        run_retargeted(course)
    with tools.progress.stage("diagnosis"):
        findings = _diagnose(course)
        settle(course, course.original, findings)
        on_other_devices(course)
        findings = (*findings, *parting(course))
    found = [*findings, *device_findings(course.seen, plan.order), *_noted(course.seen)]
    with tools.progress.stage("between releases"):
        trail = _deepen(course)
    return Investigation(observations=tuple(course.seen), findings=_distinct(found), trail=trail)


def _along(course: Course, trail: Trail) -> Investigation:
    """Only the search along a trail, and a look at the failure."""
    with course.tools.progress.stage("bisection"):
        _follow(course, trail)
    with course.tools.progress.stage("diagnosis"):
        findings = _diagnose(course)
    found = _distinct([*findings, *_noted(course.seen)])
    return Investigation(observations=tuple(course.seen), findings=found, trail=trail)


FEW_BUILDS = 4
"""A release candidate or two narrow nothing that is worth the runs of a search; `reprobot bisect` takes them."""


def _deepen(course: Course) -> Trail | None:
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


def _follow(course: Course, trail: Trail) -> None:
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


def _diagnose(course: Course) -> tuple[Finding, ...]:
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


def _noted(seen: Iterable[Observation]) -> Iterable[Finding]:
    """What single probes found out by the way: names that have moved."""
    return (finding for observation in seen for finding in observation.findings)


def _distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding of each kind about each name."""
    # A guest may have put anything where a name belongs, lists and all: as a key it is text.
    by_name = {(finding.kind, str(finding.evidence.get("name", finding.summary))): finding for finding in findings}
    return tuple(by_name.values())
