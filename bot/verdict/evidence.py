"""Queries over the observations of one investigation. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from runners.core.bisection import releases as search
from runners.core.bisection.commits import narrow_range
from runners.core.failure.oracle import OUTPUT
from runners.core.findings.kinds import CAUSES, Cause
from runners.core.findings.questions import get_cause, get_version
from runners.core.packages.versions import parse_version, read_date
from runners.core.protocol import Answer, Bisection, BuildRange, Finding, Observation, Outcome, Plan, Variant
from runners.toolchains.earlier import find_last_day

NEAR = timedelta(days=45)
"""Longest time between a build and a report, in either order, for which the build represents the reporter's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The unknown parts of a testcase. With such a part, a clean run is weaker evidence, or none."""

    left_out: tuple[str, ...] = ()
    """Parts of the reporter's text that may be code and are not in the testcase."""
    generates_inputs: bool = False
    """True if the inputs of the testcase are generated, because the report gives only their types."""
    assumed_device: str = ""
    """The device of the command, or the assignment of one, that the report leaves out; else empty."""
    has_open_command: bool = False
    """True if the command breaks off, so that flags may be missing."""
    is_wrapped: bool = False
    """True if the function or the module around the operations is not the reporter's."""
    has_open_end: bool = False
    """True if the description ends inside the code block of the program, whose rest may be missing."""
    only_defines: bool = False
    """True if the testcase defines names, and the code that uses them is not in the report."""
    shows_elsewhere: bool = False
    """True if the report has a picture or links a log, which may contain its failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A plan, the runs made for it, and the findings of the diagnosis."""

    plan: Plan
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    trail: BuildRange | None = None
    """The builds between releases that were searched; None without such a search."""
    gaps: Gaps = Gaps()
    followed: str = ""
    """The assumed device, if the failure occurs on another target (`follow_target`); else empty."""
    defences: tuple[str, ...] = ()
    """Sentences of the report which state a promise of the tool: "is documented", "should be accepted"."""

    def combine_answers(self, variant: Variant = Variant.ORIGINAL, device: str | None = None) -> dict[str, Answer]:
        """Return one answer for each release that ran. ``device`` defaults to the testcase's own."""
        return search.combine_answers(self.observations, variant, device or self.plan.device)

    def find_versions(self, answer: Answer, variant: Variant = Variant.ORIGINAL) -> tuple[str, ...]:
        """Return the releases that gave this answer, oldest first."""
        answers = self.combine_answers(variant)
        return tuple(version for version in self.plan.order if answers.get(version) is answer)

    def list_tested(self, variant: Variant = Variant.ORIGINAL, device: str = "") -> tuple[str, ...]:
        """Return the releases on which this variant ran, oldest first. ``device`` defaults to the testcase's own."""
        ran = {
            seen.version
            for seen in self.observations
            if seen.variant is variant and (variant is Variant.CONTROL or seen.device == (device or self.plan.device))
        }
        return (*(version for version in self.plan.order if version in ran), *sorted(ran - set(self.plan.order)))

    def find_disagreeing(self) -> tuple[str, ...]:
        """Return the releases with a good and a bad run, oldest first."""
        return search.find_disagreeing(self.plan.order, self.observations, Variant.ORIGINAL, self.plan.device)

    def find_causes(self) -> dict[str, Cause]:
        """Return by release why its results differ from run to run, where a diagnosis found the cause.

        Of several causes for one release, the most specific counts (the order of ``CAUSES``). The testcase's own
        random numbers count least, because they do not weaken a failure.
        """
        return {get_version(one): cause for cause in CAUSES for one in self.findings if get_cause(one) is cause}

    def count_failures(self, version: str) -> tuple[int, int]:
        """Return how many runs of this release were bad, and how many were good or bad."""
        answers = [seen.answer for seen in self.list_originals() if seen.version == version]
        spoken = [answer for answer in answers if answer is not Answer.SKIP]
        return spoken.count(Answer.BAD), len(spoken)

    def find_indices(self, *versions: str, variants: Collection[Variant] = (Variant.ORIGINAL,)) -> tuple[int, ...]:
        """Return the indices of the runs of these releases and variants, for `Verdict.evidence`."""
        own = self.plan.device
        return tuple(
            i
            for i, seen in enumerate(self.observations)
            if seen.version in versions and seen.variant in variants and _is_on_own_device(seen, own)
        )

    def count_runs(self, version: str, variant: Variant = Variant.ORIGINAL) -> int:
        """Count the good and bad runs of the testcase on this release. A repeated record counts once."""
        return len(
            {
                seen.attempt
                for seen in self.observations
                if seen.version == version
                and seen.variant is variant
                and seen.device == self.plan.device
                and seen.answer is not Answer.SKIP
            }
        )

    def list_originals(self) -> list[Observation]:
        """Return the runs of the posted testcase on its own device, oldest release first.

        Byte-identical records count as one run, because two runs differ in their attempt at least.
        """
        place = {version: i for i, version in enumerate(self.plan.order)}
        own = [s for s in self.observations if s.variant is Variant.ORIGINAL and s.device == self.plan.device]
        once = {msgspec.json.encode(seen): seen for seen in own}
        ordered = sorted(
            once.items(), key=lambda it: (place.get(it[1].version, -1), it[1].attempt, it[1].outcome, it[0])
        )
        return [seen for _, seen in ordered]

    def has_reported_release(self) -> bool:
        """True if the reported version itself is in the catalogue, so that no nearby release represents it."""
        named, reported = self.plan.claim.versions, self.plan.reported
        if not named or reported is None:
            return False
        version = parse_version(named[0].lstrip("vV"))
        return version is not None and version == parse_version(reported)

    def is_dated(self) -> bool:
        """True if the build that represents the reported one was chosen only by the day of the report."""
        return self.plan.reported is not None and not any(re.search(r"\d", name) for name in self.plan.claim.versions)

    def has_build_of_its_time(self) -> bool:
        """True if the reported release is in the catalogue, or the report is younger than the oldest builds in it."""
        plan = self.plan
        of_its_day = self.is_dated() and plan.day is not None and plan.day > find_last_day(plan.testcase.toolchain)
        return of_its_day or self.has_reported_release()

    def has_near_build(self) -> bool:
        """True if the catalogue has a build of the report's time, or a build with a date near to the report."""
        plan = self.plan
        built = None if plan.reported is None else read_date(plan.reported)
        near = built is not None and plan.day is not None and abs(plan.day - built) <= NEAR
        return (self.is_dated() and near) or self.has_build_of_its_time()

    def follow_target(self) -> Evidence:
        """Return the evidence for another target, if the quoted failure occurs only there.

        The report names no target, so the usual one was assumed. Its clean runs are no evidence about another target.
        """
        claim, own = self.plan.claim, self.combine_answers().values()
        quoted = claim.signature is not None and claim.signature.type != OUTPUT
        if not self.gaps.assumed_device or not quoted or Answer.BAD in own or Answer.GOOD not in own:
            return self
        moved = [seen for seen in self.observations if seen.variant is Variant.RETARGETED]
        device = next((seen.device for seen in moved if seen.answer is Answer.BAD), None)
        if device is None:
            return self
        there = {id(seen) for seen in moved if seen.device == device}
        return replace(
            self,
            plan=msgspec.structs.replace(self.plan, device=device),
            observations=tuple(
                msgspec.structs.replace(seen, variant=Variant.ORIGINAL) if id(seen) in there else seen
                for seen in self.observations
            ),
            gaps=replace(self.gaps, assumed_device=""),
            followed=self.plan.device,
        )

    def list_other_targets(self) -> list[Observation]:
        """Return the runs that compiled for other targets than the assumed one, or failed to; newest release last."""
        place = {version: i for i, version in enumerate(self.plan.order)}
        others = [seen for seen in self.observations if seen.variant is Variant.RETARGETED]
        return [] if self.plan.devices else sorted(others, key=lambda seen: place.get(seen.version, -1))

    def narrow_range(self) -> Bisection | str | None:
        """Return the change between releases, or the reason why none can be stated; None without such a search."""
        return None if self.trail is None else narrow_range(self.trail, self.observations, self.plan.device)

    def count_skips(self) -> Counter[Outcome]:
        """Count the runs that were neither good nor bad, by outcome."""
        return Counter(seen.outcome for seen in self.list_originals() if seen.answer is Answer.SKIP)


def _is_on_own_device(seen: Observation, device: str) -> bool:
    """True for a run on the testcase's own device, and for a retargeted run, which has another by definition."""
    return seen.device == device or seen.variant is Variant.RETARGETED
