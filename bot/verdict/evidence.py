"""The observations of one investigation, put in order once for everyone who asks questions of them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

import msgspec
from packaging.version import InvalidVersion, Version

from runners.core.bisection import releases as search
from runners.core.bisection.commits import narrow_range
from runners.core.protocol import (
    Answer,
    Bisection,
    BuildRange,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Variant,
)

CAUSES = ("randomness", "unknown", "race", "hashes", "threads", "memory")
"""What a finding may name as deciding a result, the most telling last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The observations, put in order once for all the questions below."""

    plan: Plan
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    trail: BuildRange | None = None
    """Builds between releases along which was searched, where there were any."""
    left_out: tuple[str, ...] = ()
    """What the testcase leaves out of the reporter's text although it may be code."""
    only_defines: bool = False
    """True if the testcase defines names, and the code that uses them is not in the report."""

    def combine_answers(self, variant: Variant = Variant.ORIGINAL, device: str | None = None) -> dict[str, Answer]:
        """One answer for each release that was probed, on the testcase's own device unless another is named."""
        return search.combine_answers(self.observations, variant, device or self.plan.device)

    def find_versions(self, answer: Answer, variant: Variant = Variant.ORIGINAL) -> tuple[str, ...]:
        """Releases that gave this answer, oldest first."""
        answers = self.combine_answers(variant)
        return tuple(version for version in self.plan.order if answers.get(version) is answer)

    def find_disagreeing(self) -> tuple[str, ...]:
        """Releases on which one run was good and another bad."""
        return search.find_disagreeing(self.plan.order, self.observations, Variant.ORIGINAL, self.plan.device)

    def find_causes(self) -> dict[str, str]:
        """Why results differ from run to run, by release, where a diagnosis found out. Of several for one release the
        one that tells most; random numbers of the testcase's own come last, as they take nothing from a failure."""
        found = [f.evidence for f in self.findings if f.kind is FindingKind.NONDETERMINISTIC]
        return {str(one.get("version")): cause for cause in CAUSES for one in found if one.get("cause") == cause}

    def count_failures(self, version: str) -> tuple[int, int]:
        """How many of a release's runs that answered were bad, and how many there were."""
        answers = [seen.answer for seen in self.list_originals() if seen.version == version]
        spoken = [answer for answer in answers if answer is not Answer.SKIP]
        return spoken.count(Answer.BAD), len(spoken)

    def find_indices(self, *versions: str, variants: Collection[Variant] = (Variant.ORIGINAL,)) -> tuple[int, ...]:
        """Which runs on these releases a verdict rests on: of the text as posted, unless it rests on others too."""
        own = self.plan.device
        return tuple(
            i
            for i, seen in enumerate(self.observations)
            if seen.version in versions and seen.variant in variants and _is_on_own_device(seen, own)
        )

    def count_runs(self, version: str) -> int:
        """How many runs of the original on this release answered; one that is told of twice is one run."""
        return len(
            {
                seen.attempt
                for seen in self.list_originals()
                if seen.version == version and seen.answer is not Answer.SKIP
            }
        )

    def list_originals(self) -> list[Observation]:
        """Runs of the text as posted on its own device, oldest release first: however they came in.

        A record that comes twice, equal to the last byte, is one run: two runs differ in their attempt at least.
        """
        place = {version: i for i, version in enumerate(self.plan.order)}
        own = [s for s in self.observations if s.variant is Variant.ORIGINAL and s.device == self.plan.device]
        once = {msgspec.json.encode(seen): seen for seen in own}
        ordered = sorted(
            once.items(), key=lambda it: (place.get(it[1].version, -1), it[1].attempt, it[1].outcome, it[0])
        )
        return [seen for _, seen in ordered]

    def has_reported_release(self) -> bool:
        """Whether the first version that the report names is the release that stands for it, not one near it."""
        named, reported = self.plan.claim.versions, self.plan.reported
        try:
            return bool(named) and reported is not None and Version(named[0].lstrip("vV")) == Version(reported)
        except InvalidVersion:
            return False

    def is_dated(self) -> bool:
        """True if the build that stands for the reported one was chosen by the day of the report alone."""
        return self.plan.reported is not None and not any(re.search(r"\d", name) for name in self.plan.claim.versions)

    def narrow_range(self) -> Bisection | str | None:
        """Where it changes between releases, or why that cannot be told; None without such a search."""
        return None if self.trail is None else narrow_range(self.trail, self.observations, self.plan.device)

    def count_skips(self) -> Counter[Outcome]:
        """Why the releases that answered nothing did not."""
        return Counter(seen.outcome for seen in self.list_originals() if seen.answer is Answer.SKIP)


def _is_on_own_device(seen: Observation, device: str) -> bool:
    """On the testcase's own device, which only a retargeted run is not."""
    return seen.device == device or seen.variant is Variant.RETARGETED
