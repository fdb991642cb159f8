"""Sentences about a testcase whose device is missing: its needs, and its runs on other devices. Pure."""

from __future__ import annotations

import re

from bot.verdict.behaviour import COMPILES
from bot.verdict.evidence import Evidence
from bot.verdict.rules.phrases import count_tried, join_names, list_versions, name_all, name_releases, quote_span
from runners.core.protocol import Answer, NotRun, Outcome, Variant
from runners.toolchains import find_device, find_toolchain


def describe_needs(evidence: Evidence) -> str:
    """Return the needs of the testcase: packages over a limit, or a device, and whether it compiles without that."""
    if forbidden := _describe_forbidden(evidence):
        return forbidden
    without = [
        seen
        for seen in evidence.list_originals()
        if seen.outcome is Outcome.UNAVAILABLE and seen.why.endswith("device or runtime here")
    ]
    device = find_device(find_toolchain(evidence.plan.testcase.toolchain), evidence.plan.device)
    if not without or device is None or device.needs is None:
        return f"No release here can run the testcase as posted ({count_tried(evidence)})."
    words = (word for step in evidence.plan.testcase.steps for word in step)
    chips = list(dict.fromkeys(chip for word in words for chip in _CHIP.findall(word)))[:3]
    needs = f"{device.needs} ({', '.join(chips)})" if chips else device.needs
    compiled = [seen for seen in without if seen.why.startswith(COMPILES)]
    if not compiled:
        return f"Running the testcase needs {needs}, which this machine does not have ({count_tried(evidence)})."
    where = name_all(evidence, list_versions(evidence.plan, compiled))
    return f"The testcase compiles on {where}; running it needs {needs}, which this machine does not have."


def _describe_forbidden(evidence: Evidence) -> str:
    """Return which limit of the operator prevents every run; empty if something else does."""
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
    """Return sentences on the runs changed for other devices: evidence, but not of the reported device."""
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
