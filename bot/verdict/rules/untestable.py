"""Sentences about a testcase whose device is missing: its needs, and its runs on other devices. Pure."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import count_tried, join_names, list_versions, name_all, name_releases, quote_span
from runners.core.findings.record import read_evidence
from runners.core.findings.types import MovedEvidence
from runners.core.packages.versions import order_version
from runners.core.protocol import Answer, NotRun, Outcome, Reason, Variant
from runners.toolchains import find_device, find_toolchain
from runners.toolchains.earlier import find_earlier_build, find_last_day

WITHOUT_DEVICE = frozenset({Reason.NO_DEVICE, Reason.COMPILES_WITHOUT_DEVICE})
"""Reasons of a run whose device is absent."""


def describe_needs(evidence: Evidence) -> str:
    """Return the needs of the testcase: packages over a limit, or a device, and whether it compiles without them."""
    if forbidden := _describe_forbidden(evidence):
        return forbidden
    without = [seen for seen in evidence.list_originals() if seen.reason in WITHOUT_DEVICE]
    device = find_device(find_toolchain(evidence.plan.testcase.toolchain), evidence.plan.device)
    if not without or device is None or device.needs is None:
        return f"No release here can run the testcase as posted ({count_tried(evidence)})."
    needs = _name_hardware(evidence, device.needs)
    compiled = [seen for seen in without if seen.reason is Reason.COMPILES_WITHOUT_DEVICE]
    if not compiled:
        return f"Running the testcase needs {needs}, which this machine does not have ({count_tried(evidence)})."
    where = name_all(evidence, list_versions(evidence.plan, compiled))
    return f"The testcase compiles on {where}; running it needs {needs}, which this machine does not have."


def describe_hardware(evidence: Evidence) -> str:
    """Return the need of the testcase for hardware, as a sentence. The device may run on software here."""
    device = find_device(find_toolchain(evidence.plan.testcase.toolchain), evidence.plan.device)
    needs = device.needs if device is not None and device.needs is not None else f"the device {evidence.plan.device}"
    return f"Running the testcase needs {_name_hardware(evidence, needs)}, which this machine does not have."


def _name_hardware(evidence: Evidence, needs: str) -> str:
    words = (word for step in evidence.plan.testcase.steps for word in step)
    chips = list(dict.fromkeys(chip for word in words for chip in _CHIP.findall(word)))[:3]
    return f"{needs} ({', '.join(chips)})" if chips else needs


def is_only_for_forks(evidence: Evidence) -> bool:
    """True if only forks gave an answer, as posted or ported, and no release has the API of the testcase.

    A fork represents a release of its time, not of today: a clean testcase may never have failed there, and a failure
    may be fixed.
    """
    forks = {seen.version for seen in evidence.observations if seen.fork}
    ran = [seen for seen in evidence.list_originals() if seen.version not in forks]
    answers = [evidence.combine_answers(variant) for variant in (Variant.ORIGINAL, Variant.PORTED)]
    spoken = {version for one in answers for version, answer in one.items() if answer is not Answer.SKIP}
    return bool(ran) and all(seen.outcome is Outcome.INCOMPATIBLE for seen in ran) and spoken <= forks


def describe_moved(evidence: Evidence) -> str:
    """Return the sentence on a testcase whose API no release has."""
    return f"No release here can run the testcase as posted: its API has moved ({count_tried(evidence)})."


def name_build(evidence: Evidence) -> str:
    """Return the existing build that could run a testcase of an earlier API or notation; empty if none is known.

    The build has every name that the runs miss, and is not younger than the report.
    """
    toolchain, day = evidence.plan.testcase.toolchain, evidence.plan.day
    found = [read_evidence(finding) for seen in evidence.list_originals() for finding in seen.findings]
    moved = {one.name for one in found if isinstance(one, MovedEvidence)}
    gone = {
        order_version(entry.gone_in): entry.old
        for entry in find_toolchain(toolchain).DRIFT
        if entry.old in moved and entry.gone_in is not None and not entry.listed and entry.kind != "registered"
    }
    if gone:
        first = min(gone)
        build = find_earlier_build(toolchain, day, before=str(first)) if _predates_all(evidence, first) else None
        return (
            f"{build.tag} of {build.day} still has {quote_span(gone[first], 60)}, but {_NOT_RUN_HERE}"
            if build
            else ""
        )
    build = find_earlier_build(toolchain, day) if day is not None and day <= find_last_day(toolchain) else None
    if build is None:
        return ""
    return f"{build.tag} of {build.day} is the nearest known build before the report, but {_NOT_RUN_HERE}"


_NOT_RUN_HERE = "is not among the releases that run here"


def _predates_all(evidence: Evidence, gone_in: Version) -> bool:
    """True if a name was gone before the oldest build of the plan."""
    try:
        return gone_in <= order_version(evidence.plan.order[0])
    except InvalidVersion:
        return False


def _describe_forbidden(evidence: Evidence) -> str:
    """Return the operator's limit that prevents every run; empty if something else does."""
    ends = [seen.ended for seen in evidence.list_originals()]
    if not ends or not all(isinstance(end, NotRun) and end.cause == "forbidden" for end in ends):
        return ""
    names = quote_span(", ".join(evidence.plan.testcase.requirements))
    return (
        f"A limit of this installation prevents every run: the testcase requires {names}, which its operator does not"
        f" allow ({count_tried(evidence)})."
    )


_CHIP = re.compile(r"\b(?:gfx[0-9a-f]{3,4}|sm_\d{2,3}a?)\b")
"""An accelerator as target flags name it: ``gfx942``, ``sm_90a``."""


def describe_stand_ins(evidence: Evidence) -> str:
    """Return sentences on the runs changed for other devices. They are evidence, but not of the reported device."""
    alike: dict[str, list[str]] = {}
    for device in sorted({s.device for s in evidence.observations if s.variant is Variant.RETARGETED}):
        if result := _describe_stand_in(evidence, device):
            alike.setdefault(result, []).append(device)
    return "".join(f" Changed to run on {join_names(devices)}, it {result}." for result, devices in alike.items())


def _describe_stand_in(evidence: Evidence, device: str) -> str:
    answers = evidence.combine_answers(Variant.RETARGETED, device)
    bad = [version for version in evidence.plan.order if answers.get(version) is Answer.BAD]
    good = [version for version in evidence.plan.order if answers.get(version) is Answer.GOOD]
    fails = f"fails as reported on {name_releases(evidence, bad, Variant.RETARGETED, device)}" if bad else ""
    runs = f"runs cleanly on {name_releases(evidence, good, Variant.RETARGETED, device)}" if good else ""
    return " and ".join(part for part in (fails, runs) if part)
