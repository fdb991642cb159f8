"""Phrases that the sentences of several rules share. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.verdict.evidence import Evidence
from runners.core.bisection import releases as search
from runners.core.failure.normalize import describe_type
from runners.core.protocol import Observation, Plan


def quote_span(text: str, limit: int = 240) -> str:
    """Return foreign words as one code span for a sentence: the report shows text outside spans as our own."""
    line = " ".join(text.replace("`", "'").split())
    return f"`{line if len(line) <= limit else line[: limit - 1] + '…'}`" if line else ""


def name_failure(failure_type: str) -> str:
    """Return a signature's type as words for a sentence. Quote a type that is no name: a stranger's sentence."""
    words = describe_type(failure_type)
    return (
        words if (words != failure_type and ":" not in failure_type) or _NAME.fullmatch(words) else quote_span(words)
    )


_NAME = re.compile(r"(?:status )?[A-Za-z_][\w.:-]{0,79}|exit code -?\d{1,9}")


def name_newest(evidence: Evidence) -> str:
    """Return the phrase for the newest release of the plan."""
    return "the newest of the requested releases" if evidence.plan.chosen else "the newest release"


def list_skipped(edge: search.Edge) -> tuple[str, ...]:
    """Return one sentence with the releases inside the range that are neither good nor bad; empty without any."""
    return (f"neither good nor bad between them: {', '.join(edge.skipped)}",) if edge.skipped else ()


def list_versions(plan: Plan, observations: Sequence[Observation]) -> tuple[str, ...]:
    """Return the releases of ``observations``, oldest first."""
    present = {seen.version for seen in observations}
    return tuple(version for version in plan.order if version in present)


def format_tried(evidence: Evidence) -> str:
    """Return the releases that ran, as in `format_span`."""
    return format_span(list_versions(evidence.plan, evidence.observations))


def find_newest_run(evidence: Evidence) -> str:
    """Return the newest release that ran."""
    return list_versions(evidence.plan, evidence.observations)[-1]


def find_last_reason(evidence: Evidence, version: str) -> str:
    """Return the reason recorded with the last run of a release, quoted; empty without a run.

    A reason may name frames and files of the testcase, and a job that was taken over may write any reason.
    """
    return next((quote_span(seen.why) for seen in reversed(evidence.list_originals()) if seen.version == version), "")


def format_span(versions: Sequence[str]) -> str:
    """Return ``3.4.0, 3.5.0``, or ``3.4.0 … 3.11.0 (9 releases)`` for more than three."""
    if len(versions) <= 3:
        return ", ".join(versions)
    return f"{versions[0]} … {versions[-1]} ({len(versions)} releases)"


def join_names(names: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
