"""What the judge's sentences are made of: which releases, and what was last heard of one."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from runners.core.bisection import releases as search
from runners.core.protocol import Observation, Plan


def the_newest(evidence: Evidence) -> str:
    return "the newest of the releases asked for" if evidence.plan.chosen else "the newest release"


def skipped_between(edge: search.Edge) -> tuple[str, ...]:
    return (f"between them could not answer: {', '.join(edge.skipped)}",) if edge.skipped else ()


def versions_of(plan: Plan, observations: Sequence[Observation]) -> tuple[str, ...]:
    present = {seen.version for seen in observations}
    return tuple(version for version in plan.order if version in present)


def looked_at(evidence: Evidence) -> str:
    return span(versions_of(evidence.plan, evidence.observations))


def newest_run(evidence: Evidence) -> str:
    return versions_of(evidence.plan, evidence.observations)[-1]


def last_words(evidence: Evidence, version: str) -> str:
    return next((seen.why for seen in reversed(evidence.originals()) if seen.version == version), "")


def span(versions: Sequence[str]) -> str:
    """``3.4.0, 3.5.0`` or, of many, ``3.4.0 … 3.11.0 (9 releases)``."""
    if len(versions) <= 3:
        return ", ".join(versions)
    return f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"


def listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
