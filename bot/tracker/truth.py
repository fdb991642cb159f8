"""The truth ledger: each verdict beside the later state of its issue. Pure.

A later fact decides whether a verdict was right: a maintainer's void, a commit that closed the issue, a label "no
bug", the closing itself. An open issue decides nothing: it may be fixed without anybody having closed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from bot.tracker.rows import Answer, Fate, IssueRow
from bot.verdict.verdict import VerdictKind

TRUTH_NOTE = (
    "A later fact decides a verdict: a maintainer voided the verdict, a commit closed the issue, a label says that "
    "there is no bug, or the issue was closed. A failure that was seen is right if a commit closed the issue after "
    "the answer. It counts as wrong if the issue was closed before the answer and the newest release still fails, "
    "although an issue may also be closed without a fix. Open issues and duplicates decide nothing."
)
SEEN = frozenset({VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FLAKY})
"""Verdicts with the meaning: the newest release has this failure."""
ABSENT = frozenset({VerdictKind.FIXED, VerdictKind.NOT_REPRODUCED, VerdictKind.INVALID_REPRO})
"""Verdicts with the meaning: there is nothing to fix."""
DECIDABLE = SEEN | ABSENT
NO_BUG = frozenset({"invalid", "not a bug", "question", "support", "by design", "works as intended", "user error"})
"""Labels, without a prefix such as ``type:``, which mean that a report is not a bug."""
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """How many issues with a verdict are open and closed."""

    verdict: str
    open: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """The decided verdicts whose confidence is in a range, and how many agree."""

    low: float
    high: float
    known: int
    right: int
    mean: float
    """The mean confidence of these verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthEntry:
    """A verdict, and the later fact about its issue. ``agrees`` is None if the fact decides nothing."""

    id: str
    verdict: str
    confidence: float
    answered: str
    agrees: bool | None
    fact: str
    commit: str = ""


def count_states(rows: Sequence[IssueRow]) -> list[StateCount]:
    """Return one count for each verdict that occurs, in the order of the verdicts."""
    order = [*map(str, VerdictKind), *sorted({row.verdict for row in rows} - set(map(str, VerdictKind)))]
    counts = [
        StateCount(
            verdict=kind,
            open=sum(row.verdict == kind and row.issue.open for row in rows),
            closed=sum(row.verdict == kind and not row.issue.open for row in rows),
        )
        for kind in order
    ]
    return [one for one in counts if one.open or one.closed]


def list_truth(
    answers: Iterable[Answer], rows: Mapping[str, IssueRow], fates: Mapping[str, Fate]
) -> list[TruthEntry]:
    """Return an entry for each verdict that an issue was given; of equal verdicts on one issue, the last."""
    last = {(answer.id, answer.verdict): answer for answer in answers if answer.id in rows}
    entries = (
        _make_entry(answer, rows[answer.id], fates.get(answer.id, Fate(id=answer.id))) for answer in last.values()
    )
    return sorted(entries, key=lambda one: (one.answered, one.id), reverse=True)


def _make_entry(answer: Answer, row: IssueRow, fate: Fate) -> TruthEntry:
    agrees, fact = compare_verdict(answer, row, fate)
    return TruthEntry(
        id=answer.id,
        verdict=answer.verdict,
        confidence=answer.confidence,
        answered=answer.answered,
        agrees=agrees,
        fact=fact,
        commit=fate.commit,
    )


def compare_verdict(answer: Answer, row: IssueRow, fate: Fate) -> tuple[bool | None, str]:
    """Return whether the later facts agree with a verdict, and the fact that decides."""
    issue, kind = row.issue, answer.verdict
    if fate.voided and fate.voided == kind:
        return False, "voided by a maintainer"
    if kind not in DECIDABLE:
        return None, "says nothing about the failure"
    if issue.open:
        return None, "still open"
    if issue.closed_as == "duplicate":
        return None, "closed as a duplicate"
    if label := next((name for name in issue.labels if _strip_prefix(name) in NO_BUG), ""):
        return (None if kind == VerdictKind.FIXED else kind not in SEEN), f"labelled {label}"
    if issue.closed_as == "not_planned":
        return (None if kind in SEEN or kind == VerdictKind.FIXED else True), "closed as not planned"
    if issue.closed is None or datetime.fromisoformat(answer.answered) >= issue.closed:
        return kind in ABSENT, "closed before this answer"
    if fate.commit and fate.closed == issue.closed:
        return kind in SEEN, "closed by a commit after this answer"
    return (True if kind in ABSENT else None), "closed after this answer"


def _strip_prefix(label: str) -> str:
    """Return ``not a bug`` for ``type: Not-a-bug``."""
    return re.sub(r"[-_\s]+", " ", label.casefold().rpartition(":")[2]).strip()


def measure_reliability(entries: Sequence[TruthEntry]) -> list[ReliabilityBin]:
    """Return the reliability curve: confidence against the share of decided verdicts that agree."""
    decided = [one for one in entries if one.agrees is not None]
    curve = []
    for low, high in pairwise(BINS):
        inside = [one for one in decided if low <= one.confidence < high or one.confidence == high == BINS[-1]]
        mean = sum(one.confidence for one in inside) / len(inside) if inside else 0.0
        right = sum(one.agrees is True for one in inside)
        curve.append(ReliabilityBin(low=low, high=high, known=len(inside), right=right, mean=round(mean, 3)))
    return curve
