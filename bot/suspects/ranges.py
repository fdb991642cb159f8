"""Which commits a report shows: those between the ends of a change, or likely fixes of what no build shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

import msgspec

from bot.suspects.rank import Query, suspects
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import LikelyFix, VerdictKind
from runners.core.catalogue import Catalogue
from runners.core.errors import ReprobotError
from runners.core.protocol import Answer, Bisection, Commit, CommitRange


class History(Protocol):
    """A toolchain's history, read elsewhere: revisions are tags, branches or commits.

    Every method raises ReprobotError for what it cannot read.
    """

    def between(self, start: str, end: str) -> Sequence[Commit]: ...

    def resolve(self, revision: str) -> str: ...

    def day(self, revision: str) -> date: ...

    def last_before(self, day: date, end: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """What was found, and what a reader must know when a range could not be read."""

    bisections: tuple[Bisection, ...]
    likely: LikelyFix | None = None
    notes: tuple[str, ...] = ()


def line_up(
    evidence: Evidence,
    kind: VerdictKind,
    bisections: tuple[Bisection, ...],
    query: Query,
    catalogue: Catalogue,
    history: History,
) -> Lineup:
    """``bisections`` with the commits of their ranges ranked, or the likely fix where nothing shows the failure."""
    try:
        return Lineup(
            bisections=tuple(_with_suspects(one, query, history) for one in bisections),
            likely=_likely(evidence, query, catalogue, history) if kind is VerdictKind.NOT_REPRODUCED else None,
        )
    except ReprobotError as error:
        return Lineup(bisections=bisections, notes=(f"the commits could not be ranked: {error}",))


def _with_suspects(bisection: Bisection, query: Query, history: History) -> Bisection:
    """Only a change whose two ends were seen has a range to look into."""
    commits = bisection.commits
    if commits is None:
        return bisection
    between = history.between(commits.start, commits.end)
    return msgspec.structs.replace(
        bisection,
        commits=msgspec.structs.replace(commits, count=len(between)) if between else commits,
        suspects=suspects(query, between, bisection.direction),
    )


def _likely(evidence: Evidence, query: Query, catalogue: Catalogue, history: History) -> LikelyFix | None:
    """The commits from the reported version to the oldest release that passes and is newer than it."""
    for version in evidence.versions(Answer.GOOD):
        release = catalogue.find(evidence.plan.testcase.toolchain, version)
        end = release.commit or release.near or release.tag
        if end is None:
            continue
        for start in _starts(evidence, query, history, end):
            between = history.between(start, end)
            if between and (found := suspects(query, between, "fixed")):
                commits = CommitRange(start=start, end=end, count=len(between))
                return LikelyFix(commits=commits, first_good=version, suspects=found)
    return None


def _starts(evidence: Evidence, query: Query, history: History, end: str) -> Iterator[str]:
    """Where the reported version may stand in the history, the surest reading first."""
    for version in evidence.plan.claim.versions:
        try:
            yield history.resolve(version)
        except ReprobotError:
            continue  # a version without a tag, or words that name none
    if query.day is not None and (start := history.last_before(query.day, end)) is not None:
        yield start
