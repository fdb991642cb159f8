"""Types of a verdict and of the report about it, which comment, page and JSON show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.extract.types import Extraction
from bot.issue import Issue
from bot.verdict.grounds import Ground, weigh_grounds
from runners.core.packages.catalogue import Release
from runners.core.protocol import Bisection, CommitRange, Finding, Observation, Plan, Smaller, Suspect, Times


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
class Vote:
    """The vote of one reference on a value that the report calls wrong."""

    reference: str
    """The reference as a noun, in the project's own words."""
    wrong: bool
    """True if the reference differs from the failing build as well; False if it computes the same value."""
    version: str = ""
    """The build that the reference was compared with; empty for all builds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    kind: VerdictKind
    confidence: float
    """0 … 1: the probability that ``kind``, or ``leaning`` if set, is right."""
    headline: str
    """The project's own sentence. Its only foreign words are a validated version or identifier."""
    reasons: tuple[str, ...] = ()
    """Sentences that lead from the observations to the verdict."""
    labels: tuple[str, ...] = ()
    evidence: tuple[int, ...] = ()
    """Indices into ``Report.observations``."""
    grounds: tuple[Ground, ...] = ()
    """The evidence that ``confidence`` weighs."""
    measured: float | None = None
    """The probability that a search along builds measured, before ``grounds`` change it."""
    leaning: VerdictKind | None = None
    """The kind that an ``inconclusive`` verdict withholds."""
    votes: tuple[Vote, ...] = ()
    """The references for a value that the report calls wrong."""


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
    kind: VerdictKind,
    grounds: Sequence[Ground],
    headline: str,
    reasons: Sequence[str] = (),
    evidence: Sequence[int] = (),
    *,
    measured: float | None = None,
) -> Verdict:
    """Return a verdict with the labels of its kind and the confidence that its grounds give. Drop empty reasons."""
    return Verdict(
        kind=kind,
        confidence=weigh_grounds(grounds, measured=measured),
        headline=headline,
        reasons=tuple(reason for reason in reasons if reason),
        labels=LABELS[kind],
        evidence=tuple(evidence),
        grounds=tuple(grounds),
        measured=measured,
    )


def add_grounds(verdict: Verdict, *grounds: Ground, reasons: Sequence[str] = ()) -> Verdict:
    """Return the verdict with more grounds and reasons, weighed anew."""
    every = (*verdict.grounds, *grounds)
    return replace(
        verdict,
        confidence=weigh_grounds(every, measured=verdict.measured),
        reasons=(*verdict.reasons, *(reason for reason in reasons if reason)),
        grounds=every,
    )


TO_DECIDE = "to decide: "
"""Start of a reason that names the evidence which would settle the verdict. It belongs to the next step."""
_LEADS = {VerdictKind.FIXED: "Already fixed: ", VerdictKind.NOT_REPRODUCED: "Not reproduced: "}
"""Starts of headlines that state the kind, which an ``inconclusive`` verdict withholds."""


def withhold(verdict: Verdict, *, doubt: str = "", settled_by: str = "") -> Verdict:
    """Return ``inconclusive`` in the place of a verdict for which evidence is missing.

    ``doubt`` is the reason for that, as a clause. ``settled_by`` is the evidence that would settle the case.
    """
    clause = _begin_clause(verdict.headline.removeprefix(_LEADS.get(verdict.kind, "")))
    added = (doubt, f"{TO_DECIDE}{settled_by}" if settled_by else "")
    return replace(
        verdict,
        kind=VerdictKind.INCONCLUSIVE,
        headline=f"Inconclusive: {clause.removesuffix('.')}; {doubt}." if doubt else f"Inconclusive: {clause}",
        reasons=(*verdict.reasons, *filter(None, added)),
        labels=LABELS[VerdictKind.INCONCLUSIVE],
        leaning=verdict.kind,
    )


def _begin_clause(sentence: str) -> str:
    """Return a sentence for the middle of another one. A name keeps its capitals: ``NumPy``, ``IREE``."""
    word = sentence.partition(" ")[0]
    is_name = any(letter.isupper() for letter in word[1:])
    return sentence if is_name else sentence[:1].lower() + sentence[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyFix:
    """Commits after the reported version that may have fixed a failure that no build shows. They are not evidence."""

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
    follows: bool = False
    """True if the bot reads edits of the issue and its author's replies, so that a run starts without a command."""
    unranked: str = ""
    """Clause on why the commits of its changes are not ranked although they should be; else empty."""

    times: Times = field(default_factory=Times)
    """The times of the runs. With several cells, the times of the cell that took longest."""
    sources: tuple[str, ...] = ()
    """Paths of the compiler's repository that the failing runs name, the most certain first."""

    def find_release(self, version: str) -> Release | None:
        """Return the facts about a build; None if the catalogue has none."""
        return next((one for one in self.releases if one.version == version), None)
