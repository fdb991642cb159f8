"""Find the releases between which the behaviour changes. Pure.

The search is in `runners.core.bisection.releases`, which also chose the runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bot.verdict.evidence import Evidence
from bot.verdict.verdict import VerdictKind
from runners.core.bisection import releases as search
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue, Release
from runners.core.protocol import Bisection, CommitRange, Variant


def find_bisections(evidence: Evidence, kind: VerdictKind, catalogue: Catalogue) -> tuple[Bisection, ...]:
    """Return the changes of behaviour, at most three.

    A change found along builds between releases comes first, then the change among releases that decides the
    verdict. Where runs of one build disagree, releases show no change, and only the search between them counts.
    """
    deep = evidence.narrow_range()
    return (*((deep,) if isinstance(deep, Bisection) else ()), *_find_among_releases(evidence, kind, catalogue))


def _find_among_releases(evidence: Evidence, kind: VerdictKind, catalogue: Catalogue) -> tuple[Bisection, ...]:
    if evidence.find_disagreeing() or evidence.plan.trail is not None:
        return ()
    answers, order = evidence.combine_answers(), evidence.plan.order
    went, came = search.find_fix(order, answers), search.find_introduction(order, answers)
    if went is not None and went.newer is None:
        went = None  # still failing: nothing was fixed
    if came is not None and came.older is None and not came.is_narrowed:
        came = None  # no older release was run to see how far back the failure goes
    found = []
    if came is not None and (came.older is not None or went is not None):
        ends = {"last_good": came.older, "first_bad": came.newer}
        found.append(_make_bisection(evidence, catalogue, came, "introduced", ends))
    if went is not None:
        ends = {"last_bad": went.older, "first_good": went.newer}
        found.append(_make_bisection(evidence, catalogue, went, "fixed", ends))
    return tuple(sorted(found, key=lambda b: (b.direction == "fixed") is not (kind is VerdictKind.FIXED)))


def _make_bisection(
    evidence: Evidence,
    catalogue: Catalogue,
    edge: search.Edge,
    direction: Literal["introduced", "fixed"],
    ends: Mapping[str, str | None],
) -> Bisection:
    return Bisection(
        direction=direction,
        last_good=ends.get("last_good"),
        first_bad=ends.get("first_bad"),
        last_bad=ends.get("last_bad"),
        first_good=ends.get("first_good"),
        skipped=edge.skipped,
        untested=edge.untested,
        confidence=_rate_confidence(evidence, edge),
        probes=_count_runs(evidence),
        commits=_find_commits(evidence, catalogue, edge),
    )


def _count_runs(evidence: Evidence) -> int:
    return sum(seen.variant is Variant.ORIGINAL for seen in evidence.observations)


def _rate_confidence(evidence: Evidence, edge: search.Edge) -> float:
    """Return the confidence, 0 … 1, that the behaviour changes at this edge.

    It is highest if both ends ran twice, and lower if the answers change more than twice over all releases.
    """
    if edge.older is None or edge.newer is None:
        return 0.5
    twice = all(evidence.count_runs(version) > 1 for version in (edge.older, edge.newer))
    unsteady = search.count_changes(evidence.plan.order, evidence.combine_answers()) > 2
    return (0.98 if twice else 0.9) - (0.2 if unsteady else 0.0)


def _find_commits(evidence: Evidence, catalogue: Catalogue, edge: search.Edge) -> CommitRange | None:
    older = _find_release(evidence, catalogue, edge.older)
    newer = _find_release(evidence, catalogue, edge.newer)
    return catalogue.get_commit_range(older, newer) if older is not None and newer is not None else None


def _find_release(evidence: Evidence, catalogue: Catalogue, version: str | None) -> Release | None:
    try:
        return catalogue.find(evidence.plan.testcase.toolchain, version) if version else None
    except UserError:
        return None
