"""What the judge's sentences are made of: which releases, and what was last heard of one."""

from __future__ import annotations

from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from runners.core.bisection import releases as search
from runners.core.protocol import Observation, Plan


def name_newest(evidence: Evidence) -> str:
    return "the newest of the releases asked for" if evidence.plan.chosen else "the newest release"


def list_skipped(edge: search.Edge) -> tuple[str, ...]:
    return (f"between them could not answer: {', '.join(edge.skipped)}",) if edge.skipped else ()


def list_versions(plan: Plan, observations: Sequence[Observation]) -> tuple[str, ...]:
    present = {seen.version for seen in observations}
    return tuple(version for version in plan.order if version in present)


def format_tried(evidence: Evidence) -> str:
    return format_span(list_versions(evidence.plan, evidence.observations))


def find_newest_run(evidence: Evidence) -> str:
    return list_versions(evidence.plan, evidence.observations)[-1]


def find_last_reason(evidence: Evidence, version: str) -> str:
    return next((seen.why for seen in reversed(evidence.list_originals()) if seen.version == version), "")


def format_span(versions: Sequence[str]) -> str:
    """``3.4.0, 3.5.0`` or, of many, ``3.4.0 … 3.11.0 (9 releases)``."""
    if len(versions) <= 3:
        return ", ".join(versions)
    return f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"


def join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
