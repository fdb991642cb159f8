"""Run variants of the testcase (ported to other releases, retargeted to other devices), and compare their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from runners.core.failure.costs import QUANTITIES
from runners.core.protocol import Answer, ClaimKind, Exited, Finding, Observation, Outcome, Testcase, Variant
from runners.core.toolchain.diagnosis import ComparedRun
from runners.investigation.state import DEPENDS_ON_VALUES, Configuration, InvestigationState, Port, bisect_releases


def run_ported(state: InvestigationState) -> None:
    """Run the testcase ported to a release that cannot run it as posted: the API moved, or the build rejects the
    text.

    On each release that fails for another reason, generated data replaces the data that the report leaves out.
    """
    plan = state.plan
    supplied = None if plan.order[-1] in state.list_answered(state.original) else _supply_data(state)
    testcase, given = supplied or (plan.testcase, ())
    moved = {seen.version for seen in state.seen if state.tools.is_rejected(seen)}
    if supplied is not None:
        moved |= {seen.version for seen in state.seen if seen.outcome is Outcome.OTHER_FAILURE}
    absent = {seen.version for seen in state.seen if seen.outcome is Outcome.UNAVAILABLE}
    # If no release runs it as posted, a port to the oldest release shows what a port to the newest one is worth.
    answered = any(seen.answer is not Answer.SKIP and not seen.fork for seen in state.seen)
    oldest = None if answered else next((version for version in plan.order if version in moved), None)
    wanted = dict.fromkeys(
        v for v in (plan.order[-1], plan.answered, plan.reported, plan.order[0], oldest) if v in moved | absent
    )
    configurations = []
    for version in wanted:
        assert version is not None
        ported = state.tools.port(testcase, version) or _port_by_run(state, testcase, version)
        ported = ported or (Port(testcase=testcase, changes=()) if given else None)
        if ported is None or not (ported.prints_all or plan.claim.kind in WITHOUT_VALUES):
            continue
        if version in moved or _list_programs(ported.testcase) != _list_programs(plan.testcase):
            configuration = Configuration(
                variant=Variant.PORTED,
                testcase=ported.testcase,
                device=plan.device,
                changes=tuple(dict.fromkeys([*given, *ported.changes])),
                notation_only=ported.notation_only and not given,
            )
            configurations.append((configuration, version))
    state.run_each(configurations)
    for configuration, version in configurations:
        _port_again(state, testcase, configuration, version)


def _port_by_run(state: InvestigationState, testcase: Testcase, version: str) -> Port | None:
    """Port a testcase only by the messages of the release, if no name has moved."""
    said = "".join(seen.excerpt for seen in state.seen if seen.version == version)
    return state.tools.port_again(testcase, version, said) if said else None


MAX_PORTS = 4
"""Maximum number of ports of a testcase to one release. Each port fixes what the release's last message names."""


def _port_again(state: InvestigationState, testcase: Testcase, configuration: Configuration, version: str) -> None:
    """Port the testcase again while the release names a fault that a port can fix.

    A run of a port that was replaced describes only that port, so it is removed from the runs.
    """
    said = ""
    for _ in range(MAX_PORTS - 1):
        runs = [seen for seen in state.seen if seen.variant is Variant.PORTED and seen.version == version]
        failed = {Outcome.INCOMPATIBLE, Outcome.OTHER_FAILURE}
        if not runs or any(seen.outcome not in failed for seen in runs):
            return
        said += runs[-1].excerpt
        again = state.tools.port_again(testcase, version, said)
        if again is None or again.testcase == configuration.testcase:
            return
        configuration = replace(
            configuration,
            testcase=again.testcase,
            changes=tuple(dict.fromkeys([*configuration.changes, *again.changes])),
            notation_only=configuration.notation_only and again.notation_only,
        )
        state.seen = [seen for seen in state.seen if seen not in runs]
        state.run(configuration, [version])


WITHOUT_VALUES = frozenset({ClaimKind.CRASH, ClaimKind.ERROR, ClaimKind.HANG})
"""Failures that usually occur whatever the constants' values are, and whatever was printed before."""


def _supply_data(state: InvestigationState) -> tuple[Testcase, tuple[str, ...]] | None:
    """Return the testcase with generated data. None if the data could matter, or if its absence is the failure."""
    if state.plan.claim.kind not in WITHOUT_VALUES:
        return None
    supplied = state.tools.supply_data(state.plan.testcase)
    failing = state.find_failing()
    if supplied is None or failing is None:
        return supplied
    testcase, changes = supplied
    configuration = Configuration(
        variant=Variant.PORTED, testcase=testcase, device=state.plan.device, changes=changes
    )
    state.run(configuration, [failing.version])
    return supplied if state.combine_answers(configuration).get(failing.version) is Answer.BAD else None


def _list_programs(testcase: Testcase) -> list[str]:
    """Return the programs of the steps. A port that renames a program helps a build that lacks the old name."""
    return [step[0] for step in testcase.steps if step]


def run_retargeted(state: InvestigationState) -> None:
    """Run the testcase on the devices of the plan, or on stand-ins if its own device is absent.

    The first device that shows the failure is bisected. The others run on the releases where its answer changed, for
    comparison. Stand-ins do not run for a report on time or memory: a matrix product that takes a GPU milliseconds
    takes a stand-in minutes, and shows nothing about the GPU.
    """
    plan = state.plan
    if plan.claim.kind in QUANTITIES and not plan.devices:
        return
    answered = any(seen.answer is not Answer.SKIP for seen in state.seen)
    absent = not answered and any(seen.outcome is Outcome.UNAVAILABLE for seen in state.seen)
    versions = plan.first
    for device in plan.devices or (state.tools.stand_ins if absent else ()):
        configuration = _configure_retarget(state, device)
        if configuration is None:
            continue
        state.run(configuration, versions)
        if versions is plan.first and Answer.BAD in state.combine_answers(configuration).values():
            bisect_releases(state, configuration)
            versions = _list_around_changes(plan.order, state.combine_answers(configuration), plan.first)


def _configure_retarget(state: InvestigationState, device: str) -> Configuration | None:
    moved = state.tools.retarget(state.plan.testcase, device)
    if moved is None:
        return None
    from runners.rewrite.testcase import describe_retarget

    return Configuration(variant=Variant.RETARGETED, testcase=moved, device=device, changes=describe_retarget(moved))


def _list_around_changes(
    order: Sequence[str], answers: Mapping[str, Answer], first: Sequence[str]
) -> tuple[str, ...]:
    """Return ``first`` and the releases on either side of each change of the answer."""
    asked = [version for version in order if version in answers]
    pairs = [pair for pair in pairwise(asked) if answers[pair[0]] is not answers[pair[1]]]
    return tuple(dict.fromkeys([*first, *(version for pair in pairs[-3:] for version in pair)]))


def run_on_stand_ins(state: InvestigationState) -> None:
    """Run a wrong result or a crash once on each other device of this machine. It may occur on only one device."""
    failing = state.find_failing()
    if failing is None or state.plan.devices or state.plan.claim.kind not in DEPENDS_ON_VALUES:
        return
    there = {seen.device for seen in state.seen if seen.version == failing.version}
    moved = [_configure_retarget(state, device) for device in state.tools.stand_ins if device not in there]
    state.run_each([(configuration, failing.version) for configuration in moved if configuration is not None])


def compare_results(state: InvestigationState) -> tuple[Finding, ...]:
    """Compare a run that has a wrong result with a run that has another result."""
    pair = _choose_pair(state)
    return () if pair is None or state.is_late else state.tools.compare(*pair)


def _choose_pair(state: InvestigationState) -> tuple[ComparedRun, ComparedRun] | None:
    """Return the newest run with a wrong result, and the nearest run with another: by device, else by release."""
    place = state.plan.order.index
    ran = [
        seen
        for seen in state.seen
        if seen.variant in (Variant.ORIGINAL, Variant.RETARGETED)
        and seen.ended == Exited(code=0)
        and seen.version in state.plan.order
    ]
    wrong = [seen for seen in ran if seen.outcome is Outcome.MATCH]
    if state.plan.claim.kind is not ClaimKind.WRONG_RESULT or not wrong:
        return None
    bad = max(wrong, key=lambda seen: place(seen.version))
    others = [
        seen
        for seen in ran
        if seen.outcome is not Outcome.MATCH and (seen.version == bad.version or seen.device == bad.device)
    ]
    if not others:
        return None
    # A device of another kind may be wrong in its own way, so a run that is known to be right comes first.
    right = [seen for seen in others if seen.outcome is Outcome.PASS] or others
    good = min(right, key=lambda seen: abs(place(seen.version) - place(bad.version)))
    return _with_testcase(state, bad), _with_testcase(state, good)


def _with_testcase(state: InvestigationState, seen: Observation) -> ComparedRun:
    moved = state.tools.retarget(state.plan.testcase, seen.device) if seen.variant is Variant.RETARGETED else None
    return ComparedRun(testcase=moved or state.plan.testcase, seen=seen)
