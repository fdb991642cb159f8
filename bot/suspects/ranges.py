"""Choose the ranges whose commits a report shows, and rank their commits.

A range is between the two builds of a change, or leads to the likely fix of a failure that no build shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol

import msgspec

from bot.suspects.observed import Part, locate_parts, read_messages, read_parts
from bot.suspects.rank import ReportQuery, select_suspects
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import LikelyFix, VerdictKind
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import Answer, Bisection, Commit, CommitRange


class CommitHistory(Protocol):
    """A toolchain's history. Revisions are tags, branches or commits.

    Every method raises ReprobotError for a revision or repository that cannot be read.
    """

    def between(self, start: str, end: str) -> Sequence[Commit]: ...

    def resolve(self, revision: str) -> str: ...

    def day(self, revision: str) -> date: ...

    def last_before(self, day: date, end: str) -> str | None: ...

    def list_files(self, revision: str) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRanges:
    """Bisections with ranked commits, and the likely fix."""

    bisections: tuple[Bisection, ...]
    likely: LikelyFix | None = None
    problem: str = ""
    """Clause on why the commits could not be ranked."""


def rank_ranges(
    evidence: Evidence,
    kind: VerdictKind,
    bisections: tuple[Bisection, ...],
    query: ReportQuery,
    catalogue: Catalogue,
    history: CommitHistory,
) -> RankedRanges:
    """Rank the commits of each bisection's range. If no build shows the failure, look for its likely fix."""
    parts = read_parts(evidence)
    observed = replace(query, text="\n".join((read_messages(evidence), query.text)))
    try:
        return RankedRanges(
            bisections=tuple(_add_suspects(one, observed, parts, history) for one in bisections),
            likely=_find_likely_fix(evidence, query, catalogue, history)
            if kind is VerdictKind.NOT_REPRODUCED
            else None,
        )
    except ReprobotError as error:
        return RankedRanges(bisections=bisections, problem=str(error))


def _add_suspects(
    bisection: Bisection, query: ReportQuery, parts: Sequence[Part], history: CommitHistory
) -> Bisection:
    """Return the bisection with its suspects; unchanged if one of its ends was not observed."""
    commits = bisection.commits
    if commits is None:
        return bisection
    between = history.between(commits.start, commits.end)
    failing = commits.start if bisection.direction == "fixed" else commits.end
    query = replace(query, parts=locate_parts(parts, history.list_files(failing))) if parts else query
    return msgspec.structs.replace(
        bisection,
        commits=msgspec.structs.replace(commits, count=len(between)) if between else commits,
        suspects=select_suspects(query, between, bisection.direction),
    )


def _find_likely_fix(
    evidence: Evidence, query: ReportQuery, catalogue: Catalogue, history: CommitHistory
) -> LikelyFix | None:
    """Rank the commits from the reported version to the oldest newer release that passes."""
    for version in evidence.find_versions(Answer.GOOD):
        release = catalogue.find(evidence.plan.testcase.toolchain, version)
        end = release.commit or release.near or release.tag
        if end is None:
            continue
        for start in _list_starts(evidence, query, history, end):
            between = history.between(start, end)
            if between and (likely := select_suspects(query, between, "fixed")):
                commits = CommitRange(start=start, end=end, count=len(between))
                return LikelyFix(commits=commits, first_good=version, suspects=likely)
    return None


def _list_starts(evidence: Evidence, query: ReportQuery, history: CommitHistory, end: str) -> Iterator[str]:
    """Yield revisions that may be the reported version, the most certain first."""
    for version in evidence.plan.claim.versions:
        try:
            yield history.resolve(version)
        except ReprobotError:
            continue  # a version without a tag, or text that is not a version
    if query.day is not None and (start := history.last_before(query.day, end)) is not None:
        yield start
