"""Compare verdicts with the later fate of the issues. Pure.

A closed issue is decided: its maintainers hold that no fault is left. An open issue decides nothing: it may be
fixed without anybody having closed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bot.tracker.rows import IssueRow
from bot.verdict.verdict import VerdictKind

TRUTH_NOTE = (
    "A closed issue counts as decided: a verdict agrees if the failure is fixed, is not reproduced, or lies in the "
    "testcase, and disagrees if the newest release still fails. A closed issue that still fails may also be one that "
    "was closed without a fix."
)
AGREES = frozenset({VerdictKind.FIXED, VerdictKind.NOT_REPRODUCED, VerdictKind.INVALID_REPRO})
DISAGREES = frozenset({VerdictKind.REGRESSION, VerdictKind.CONFIRMED})
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """How many issues with a verdict are open and closed."""

    verdict: str
    open: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """The decided issues whose verdict has a confidence in a range, and how many verdicts agree."""

    low: float
    high: float
    known: int
    right: int


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


def measure_reliability(rows: Sequence[IssueRow]) -> list[ReliabilityBin]:
    """Return the reliability curve: confidence against the share of decided issues whose verdict agrees."""
    decided = [row for row in rows if not row.issue.open and row.verdict in AGREES | DISAGREES]
    curve = []
    for low, high in pairwise(BINS):
        inside = [row for row in decided if low <= row.confidence < high or row.confidence == high == BINS[-1]]
        right = sum(row.verdict in AGREES for row in inside)
        curve.append(ReliabilityBin(low=low, high=high, known=len(inside), right=right))
    return curve
