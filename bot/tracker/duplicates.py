"""Find similar issues: the same failure, on the same releases, with the same failing pass. Pure.

Likeness is a suggestion for a maintainer. It closes no issue and posts no comment: two faults may fail alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import msgspec

from bot.tracker.rows import IssueRow
from bot.tracker.summary import BAD, GOOD
from bot.verdict.verdict import VerdictKind
from runners.core.failure.compare import compare_signatures
from runners.core.protocol import Signature
from runners.toolchains import find_toolchain

ANSWERS = frozenset({GOOD, BAD})
MOST_SUGGESTIONS = 3
ALIKE = 0.9
"""Minimum similarity of two failures that count as one. It is higher than for a report and its own runs, because two
issues about one operator have most words of a message in common."""
BARE_LIKENESS = 0.92
"""Likeness of two failures that only their type and a place in the compiler describe."""
SHOWN = frozenset(
    {VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FIXED, VerdictKind.FLAKY, VerdictKind.INVALID_REPRO}
)
"""Verdicts about a failure that was seen."""
BARE = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "timed-out", "output", "AssertionError"})
"""Types of failures whose message rarely distinguishes two faults: the passes or the frames must do so."""


def mark_alike(rows: Sequence[IssueRow]) -> list[IssueRow]:
    """Return the rows, each with the ids of at most three similar issues."""
    groups: dict[tuple[str, ...], list[IssueRow]] = defaultdict(list)
    for row in rows:
        if row.failure is not None and row.verdict in SHOWN:
            groups[row.toolchain, row.device, row.failure.type, row.fixed_in, row.regressed_in].append(row)
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for group in groups.values():
        for one, other in combinations(group, 2):
            if (score := measure_likeness(one, other)) >= ALIKE:
                found[one.issue.id].append((score, other.issue.id))
                found[other.issue.id].append((score, one.issue.id))
    return [msgspec.structs.replace(row, like=_choose_best(row, found[row.issue.id])) for row in rows]


def _choose_best(row: IssueRow, found: Iterable[tuple[float, str]]) -> tuple[str, ...]:
    """Return the ids that runs of both testcases have confirmed, then the most alike."""
    best = (id for _, id in sorted(found, key=lambda pair: (-pair[0], pair[1])))
    return tuple(dict.fromkeys((*row.same, *best)))[:MOST_SUGGESTIONS]


def list_candidates(rows: Sequence[IssueRow]) -> list[tuple[IssueRow, IssueRow]]:
    """Return the pairs that may have one failure, the most alike first. Only runs of both testcases can decide.

    A release that cannot run a testcase, for example because the testcase also uses an API that came later, counts
    neither for the pair nor against it.
    """
    groups: dict[tuple[str, ...], list[IssueRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.issue.id):
        if row.failure is not None and row.verdict in SHOWN:
            groups[row.toolchain, row.device, row.failure.type].append(row)
    scored = [
        (score, one, other)
        for group in groups.values()
        for one, other in combinations(group, 2)
        if (score := measure_likeness(one, other, is_candidate=True)) >= ALIKE
    ]
    return [(one, other) for _, one, other in sorted(scored, key=lambda each: -each[0])]


def measure_likeness(one: IssueRow, other: IssueRow, *, is_candidate: bool = False) -> float:
    """Return how alike two issues behave, 0 … 1. Identical testcases that fail are alike by definition.

    A candidate is compared only on the releases where both testcases passed or failed as reported.
    """
    if one.failure is None or other.failure is None or one.toolchain != other.toolchain:
        return 0.0
    if not _agree_on_releases(one, other, is_candidate=is_candidate):
        return 0.0
    if one.testcase and one.testcase == other.testcase:
        return 1.0
    if VerdictKind.INVALID_REPRO in (one.verdict, other.verdict):
        return 0.0  # a fault belongs to its own testcase, however similar the messages are
    if one.passes and other.passes and not set(one.passes) & set(other.passes):
        return 0.0
    if _is_bare(one) and _is_bare(other):
        return BARE_LIKENESS if _share_a_place(one, other) else 0.0
    if _list_words(one.failure) != _list_words(other.failure):
        return 0.0
    vocabulary = find_toolchain(one.toolchain).FAILURES
    there = compare_signatures(one.failure, other.failure, vocabulary).score
    back = compare_signatures(other.failure, one.failure, vocabulary).score
    return min(there, back)


def _list_words(failure: Signature) -> list[str]:
    """Return the words of a message without numbers. Another operator or parameter means another failure."""
    return re.findall(r"[^\W\d]\w*", failure.message)


def _agree_on_releases(one: IssueRow, other: IssueRow, *, is_candidate: bool) -> bool:
    """True if both fail on a common release, and no common release distinguishes them."""
    common = one.cells.keys() & other.cells.keys()
    if is_candidate:
        common = {version for version in common if {one.cells[version], other.cells[version]} <= ANSWERS}
    if any(one.cells[version] != other.cells[version] for version in common):
        return False
    return any(one.cells[version] == other.cells[version] == BAD for version in common)


def _share_a_place(one: IssueRow, other: IssueRow) -> bool:
    """True if both have a failing pass or a frame in common."""
    assert one.failure is not None
    assert other.failure is not None
    return bool(set(one.passes) & set(other.passes) or set(one.failure.frames) & set(other.failure.frames))


def _is_bare(row: IssueRow) -> bool:
    assert row.failure is not None
    return row.failure.type in BARE or len(row.failure.message.split()) < 4
