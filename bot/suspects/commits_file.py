"""``commits.json``: the ranking by a job without permissions, and its check by the job that answers. Pure.

The ranking job reads a repository from the network, so its file is a claim. The answering job finds the changes of
behaviour itself. It takes from the file only the commits of these changes, and shows no sentence of the file except
commits and shared names, quoted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Literal

import msgspec

from bot.suspects.ranges import RankedRanges
from bot.suspects.rank import MAX_SHOWN
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import LikelyFix, VerdictKind
from runners.core.protocol import SCHEMA, Answer, Bisection, CommitRange, Suspect, Wire

FILE = "commits.json"
MOST_COMMITS = 1_000_000


class Unranked(StrEnum):
    """Clause on why the commits of a change are not ranked."""

    FETCH = "the compiler's history could not be fetched within the limits of time and size"
    RANGE = "the compiler's history lacks an end of the range"
    JOB = "the job that ranks them left no usable result"


class RankedChange(Wire, frozen=True, kw_only=True):
    """The range of one change of behaviour, with its most related commits."""

    direction: Literal["introduced", "fixed"]
    commits: CommitRange
    suspects: tuple[Suspect, ...]


class CommitsFile(Wire, frozen=True, kw_only=True):
    """The content of ``commits.json``."""

    schema: int = SCHEMA
    plan_sha256: str
    changes: tuple[RankedChange, ...] = ()
    likely: LikelyFix | None = None
    problem: Unranked | None = None


def make_commits_file(
    plan_sha256: str,
    bisections: Sequence[Bisection] = (),
    likely: LikelyFix | None = None,
    problem: Unranked | None = None,
) -> CommitsFile:
    """Return the ranking of a report's changes as a file for the job that answers."""
    changes = tuple(
        RankedChange(direction=one.direction, commits=one.commits, suspects=one.suspects)
        for one in bisections
        if one.commits is not None and one.suspects
    )
    return CommitsFile(plan_sha256=plan_sha256, changes=changes, likely=likely, problem=problem)


def read_commits_file(data: bytes | None, plan_sha256: str) -> CommitsFile:
    """Return the content of ``commits.json``, or a file with the reason if it does not fit our schema and plan."""
    unusable = make_commits_file(plan_sha256, problem=Unranked.JOB)
    if data is None:
        return unusable
    try:
        file = msgspec.json.decode(data, type=CommitsFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return unusable
    return file if (file.schema, file.plan_sha256) == (SCHEMA, plan_sha256) else unusable


def adopt_ranking(
    file: CommitsFile, evidence: Evidence, kind: VerdictKind, bisections: tuple[Bisection, ...]
) -> RankedRanges:
    """Return the bisections with the suspects that the file has for exactly their ranges, and its likely fix."""
    likely = file.likely if kind is VerdictKind.NOT_REPRODUCED else None
    passing = evidence.find_versions(Answer.GOOD)
    return RankedRanges(
        bisections=tuple(_add_ranking(one, file.changes) for one in bisections),
        likely=likely if likely is not None and _is_possible_fix(likely, passing) else None,
        problem=file.problem or "",
    )


def _add_ranking(bisection: Bisection, changes: Sequence[RankedChange]) -> Bisection:
    commits = bisection.commits
    if commits is None:
        return bisection
    ends = (bisection.direction, commits.start, commits.end)
    found = next((one for one in changes if (one.direction, one.commits.start, one.commits.end) == ends), None)
    if found is None or not _is_possible_count(found.commits.count) or not _are_suspects(found.suspects):
        return bisection
    commits = msgspec.structs.replace(commits, count=found.commits.count or commits.count)
    return msgspec.structs.replace(bisection, commits=commits, suspects=found.suspects)


_REVISION = re.compile(r"[A-Za-z0-9][\w.+-]{0,100}", re.ASCII)


def _is_possible_fix(likely: LikelyFix, passing: Collection[str]) -> bool:
    """True if the fix ends at a release that passed, and names revisions without any other text."""
    commits = likely.commits
    return (
        likely.first_good in passing
        and all(_REVISION.fullmatch(one) for one in (commits.start, commits.end))
        and not commits.compare_url
        and _is_possible_count(commits.count)
        and _are_suspects(likely.suspects)
    )


def _is_possible_count(count: int | None) -> bool:
    return count is None or 0 < count <= MOST_COMMITS


_SPAN = r"`[^`\n]{1,200}`"
_REASON = re.compile(
    r"names the issue|just (?:after|before) the report|\d{1,5} days (?:after|before) the report"
    rf"|in common: {_SPAN}(?:, {_SPAN}){{0,3}}|changes {_SPAN} of [a-z ]{{1,40}}(?: {_SPAN})?",
    re.ASCII,
)
"""The reasons that `bot.suspects.rank` gives: a file can add no sentence of its own."""
_MAX_REASONS = 6


def _are_suspects(suspects: Sequence[Suspect]) -> bool:
    return 0 < len(suspects) <= MAX_SHOWN and all(
        0 <= one.score <= 1 and len(one.why) <= _MAX_REASONS and all(map(_REASON.fullmatch, one.why))
        for one in suspects
    )
