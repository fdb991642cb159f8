"""The answer and everything it rests on: what `bot.verdict.judge` makes, and comment, page and JSON show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.extract.types import Extraction
from bot.issue import Issue
from runners.core.protocol import Bisection, CommitRange, Finding, Observation, Smaller, Suspect


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
    """0 … 1: how sure the evidence makes us of ``kind``."""
    headline: str
    """One sentence of ours. Untrusted words in it are limited to a validated version or identifier."""
    reasons: tuple[str, ...] = ()
    """The steps from observations to verdict, in words."""
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
    """A verdict with the labels of its kind; reasons that are empty are left out."""
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
    """Commits after the reported version that may have fixed what no available build shows. Never evidence."""

    commits: CommitRange
    first_good: str
    """The oldest release that passes and is newer than the reported version."""
    suspects: tuple[Suspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One document: the issue, what was read from it, what was seen, and what that means."""

    issue: Issue
    extraction: Extraction
    observations: tuple[Observation, ...]
    findings: tuple[Finding, ...]
    bisections: tuple[Bisection, ...]
    """At most two, the one that decides the verdict first."""
    verdict: Verdict
    command: str
    """The shell line that repeats this run."""
    notes: tuple[str, ...] = field(default=())
    """What a reader must know of the conditions: engine used, forks instead of releases, limits lowered."""
    likely: LikelyFix | None = None
    smaller: Smaller | None = None
    """The testcase cut down to what its failure needs, when that was asked for."""
