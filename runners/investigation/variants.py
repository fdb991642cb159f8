"""The testcase in other words or on other devices: ported, retargeted, and beside a run that ended otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from runners.core.protocol import Answer, ClaimKind, Exited, Finding, Observation, Outcome, Variant
from runners.investigation.state import OF_VALUES, Course, Lane, search_along
from runners.rewrite.retarget import in_words
from runners.toolchains.iree.dispatches import Side


def run_ported(course: Course) -> None:
    """Where a build cannot run the text as posted because the API moved, run it ported to that build."""
    plan = course.plan
    moved = {seen.version for seen in course.seen if seen.outcome is Outcome.INCOMPATIBLE}
    wanted = dict.fromkeys(v for v in (plan.order[-1], plan.reported, plan.order[0]) if v in moved)
    for version in wanted:
        assert version is not None
        ported = course.tools.port(plan.testcase, version)
        if ported is not None:
            testcase, changes = ported
            lane = Lane(variant=Variant.PORTED, testcase=testcase, device=plan.device, changes=changes)
            course.run(lane, [version])


def run_retargeted(course: Course) -> None:
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
            search_along(course, lane)
            telling = _around_changes(plan.order, course.answers(lane), plan.first)


def _on(course: Course, device: str) -> Lane | None:
    moved = course.tools.retarget(course.plan.testcase, device)
    if moved is None:
        return None
    return Lane(variant=Variant.RETARGETED, testcase=moved, device=device, changes=in_words(moved))


def _around_changes(order: Sequence[str], answers: Mapping[str, Answer], first: Sequence[str]) -> tuple[str, ...]:
    """``first`` and the builds on either side of each change of the answer."""
    asked = [version for version in order if version in answers]
    pairs = [pair for pair in pairwise(asked) if answers[pair[0]] is not answers[pair[1]]]
    return tuple(dict.fromkeys([*first, *(version for pair in pairs[-3:] for version in pair)]))


def on_other_devices(course: Course) -> None:
    """A wrong result or a crash, once on each other device of this machine: is it of the one device alone?"""
    failing = course.failing()
    if failing is None or course.plan.devices or course.plan.claim.kind not in OF_VALUES:
        return
    there = {seen.device for seen in course.seen if seen.version == failing.version}
    for device in course.tools.stand_ins:
        if device not in there and (lane := _on(course, device)) is not None:
            course.run(lane, [failing.version])


def parting(course: Course) -> tuple[Finding, ...]:
    """The dispatch at which a wrong result comes about, beside a run that ended with another."""
    sides = _sides(course)
    if sides is None or course.tools.clock() > course.deadline:
        return ()
    return course.tools.dispatches(*sides)


def _sides(course: Course) -> tuple[Side, Side] | None:
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


def _side(course: Course, seen: Observation) -> Side:
    moved = course.tools.retarget(course.plan.testcase, seen.device) if seen.variant is Variant.RETARGETED else None
    return Side(testcase=moved or course.plan.testcase, seen=seen)
