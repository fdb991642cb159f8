"""Types of a verdict and of the report about it, which comment, page and JSON show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.extract.types import Extraction
from bot.issue import Issue
from runners.core.catalogue import Release
from runners.core.protocol import Bisection, CommitRange, Finding, Observation, Plan, Smaller, Suspect


class VerdictKind(StrEnum):
    REGRESSION = "regression"
    CONFIRMED = "confirmed"
    FIXED = "fixed"
    NOT_REPRODUCED = "not-reproduced"
    DIFFERENT_FAILURE = "different-failure"
    INVALID_REPRO = "invalid-repro"
    FLAKY = "flaky"
    INCOMPLETE = "incomplete"
    UNTESTABLE = "untestable"
    INCONCLUSIVE = "inconclusive"
    NO_REPRO = "no-repro"
    NO_CLAIM = "no-claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    kind: VerdictKind
    confidence: float
    """0 … 1: how well the evidence supports ``kind``."""
    headline: str
    """The project's own sentence. Foreign words in it are limited to a validated version or identifier."""
    reasons: tuple[str, ...] = ()
    """Sentences that lead from the observations to the verdict."""
    labels: tuple[str, ...] = ()
    evidence: tuple[int, ...] = ()
    """Indices into ``Report.observations``."""


LABELS = {
    VerdictKind.REGRESSION: ("repro: confirmed", "regression"),
    VerdictKind.CONFIRMED: ("repro: confirmed",),
    VerdictKind.FIXED: ("repro: fixed",),
    VerdictKind.NOT_REPRODUCED: ("repro: not reproduced",),
    VerdictKind.DIFFERENT_FAILURE: ("repro: different failure",),
    VerdictKind.INVALID_REPRO: ("repro: invalid",),
    VerdictKind.FLAKY: ("repro: flaky",),
    VerdictKind.INCOMPLETE: ("repro: incomplete",),
    VerdictKind.UNTESTABLE: ("repro: untestable",),
    VerdictKind.INCONCLUSIVE: ("repro: inconclusive",),
    VerdictKind.NO_REPRO: (),
    VerdictKind.NO_CLAIM: (),
}


def make_verdict(
    kind: VerdictKind, confidence: float, headline: str, reasons: Sequence[str] = (), evidence: Sequence[int] = ()
) -> Verdict:
    """Return a verdict with the labels of its kind. Drop empty reasons."""
    return Verdict(
        kind=kind,
        confidence=round(confidence, 2),
        headline=headline,
        reasons=tuple(reason for reason in reasons if reason),
        labels=LABELS[kind],
        evidence=tuple(evidence),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyFix:
    """Commits after the reported version that may have fixed a failure that no available build shows. No evidence."""

    commits: CommitRange
    first_good: str
    """The oldest release that passes and is newer than the reported version."""
    suspects: tuple[Suspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The issue, its extraction, the runs, and the verdict on them."""

    issue: Issue
    extraction: Extraction
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    bisections: tuple[Bisection, ...]
    """The changes of behaviour, the one that decides the verdict first."""
    verdict: Verdict
    command: str
    """The shell line that repeats this run."""
    notes: tuple[str, ...] = field(default=())
    """Conditions that a reader must know: the engine used, forks instead of releases, lowered limits."""
    likely: LikelyFix | None = None
    smaller: Smaller | None = None
    """The minimized testcase, when it was requested."""
    plan: Plan | None = None
    """The plan of the runs; None without a run."""
    releases: tuple[Release, ...] = ()
    """The facts about the builds that ran, as far as the catalogue has them."""
    repository: str = ""
    """``owner/name`` of the toolchain's repository on GitHub; empty if there is none."""
    log: str = ""
    """Address of the run's log; empty if there is none."""

    def find_release(self, version: str) -> Release | None:
        """Return the facts about a build; None if the catalogue has none."""
        return next((one for one in self.releases if one.version == version), None)
