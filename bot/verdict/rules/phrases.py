"""Phrases that the sentences of several rules share. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from bot.verdict.evidence import Evidence
from runners.core.bisection import releases as search
from runners.core.failure.normalize import describe_type
from runners.core.protocol import Observation, Plan, Variant


def quote_span(text: str, limit: int = 240) -> str:
    """Return foreign words as one code span for a sentence: the report shows text outside spans as our own."""
    line = " ".join(text.replace("`", "'").split())
    return f"`{line if len(line) <= limit else line[: limit - 1] + '…'}`" if line else ""


def quote_around(text: str, others: Iterable[str], limit: int) -> str:
    """Return foreign words as a code span, cut to the part that differs from the most similar row of ``others``."""
    line = " ".join(text.replace("`", "'").split())
    if len(line) <= limit:
        return quote_span(line)
    at = max((_count_common(line, other) for other in others), default=0)
    start = max(0, min(at - limit // 3, len(line) - limit + 1))
    shown = line[start : start + limit - 2]
    return f"`{'…' * (start > 0)}{shown}{'…' * (start + limit - 2 < len(line))}`"


def _count_common(line: str, other: str) -> int:
    """Return the length of the beginning of ``line`` that stands in ``other``."""
    begin = other.find(line[:MIN_COMMON])
    if begin < 0:
        return 0
    pairs = zip(line, other[begin:], strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(line), len(other) - begin))


MIN_COMMON = 12
"""Characters by which a row begins like another one."""


def name_failure(failure_type: str) -> str:
    """Return a signature's type as words for a sentence. Quote a type that is not a name."""
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
    return (f"between the two, {join_names(edge.skipped)} gave no answer",) if edge.skipped else ()


def list_versions(plan: Plan, observations: Sequence[Observation]) -> tuple[str, ...]:
    """Return the releases of ``observations``, oldest first."""
    present = {seen.version for seen in observations}
    return tuple(version for version in plan.order if version in present)


def find_newest_run(evidence: Evidence) -> str:
    """Return the newest release that ran."""
    return list_versions(evidence.plan, evidence.observations)[-1]


def find_last_reason(evidence: Evidence, version: str) -> str:
    """Return the reason recorded with the last run of a release, quoted; empty without a run.

    A reason may name frames and files of the testcase, and a compromised job may write any reason.
    """
    return next((quote_span(seen.why) for seen in reversed(evidence.list_originals()) if seen.version == version), "")


def name_releases(
    evidence: Evidence, versions: Sequence[str], variant: Variant = Variant.ORIGINAL, device: str = ""
) -> str:
    """Return ``3.4.0, 3.5.0 and 3.7.0``, or ``3.4.0 to 3.11.0 (9 releases run)`` for three or more neighbours.

    A span contains only builds that ran this variant and belong to ``versions``: no build inside it behaved
    differently.
    """
    chosen, ran = set(versions), evidence.list_tested(variant, device)
    neighbours = [list(run) for inside, run in itertools.groupby(ran, key=chosen.__contains__) if inside]
    parts = [part for run in neighbours for part in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]
    if len(parts) > MAX_PARTS:
        return f"{len(chosen)} of the {_count_builds(evidence, ran)} that ran"
    spans = any(len(run) > 2 for run in neighbours)
    return join_names(parts) + (f" ({_count_builds(evidence, versions)} run)" if spans else "")


def _count_builds(evidence: Evidence, versions: Sequence[str]) -> str:
    """Return ``9 releases``; ``9 builds`` with a fork among them, which is not a release."""
    chosen = set(versions)
    noun = "build" if any(seen.fork and seen.version in chosen for seen in evidence.observations) else "release"
    return f"{len(chosen)} {noun}{'s' * (len(chosen) != 1)}"


MAX_PARTS = 5
"""Largest number of names and spans in a sentence. The table shows more."""


def count_tried(evidence: Evidence) -> str:
    """Return ``tried on 3 releases``, for a sentence about releases that may differ from each other."""
    return f"tried on {_count_builds(evidence, evidence.list_tested(Variant.ORIGINAL))}"


def are_all(evidence: Evidence, versions: Sequence[str]) -> bool:
    """True if these are all releases that ran the posted testcase."""
    return set(versions) == set(evidence.list_tested(Variant.ORIGINAL))


def name_all(evidence: Evidence, versions: Sequence[str]) -> str:
    """Return the releases, introduced by ``all 8 releases that were run:`` if no release behaved differently."""
    names = name_releases(evidence, versions)
    if not are_all(evidence, versions) or len(versions) < 2:
        return names
    counted = _count_builds(evidence, versions)
    number = f"both {counted.partition(' ')[2]}" if len(versions) == 2 else f"all {counted}"
    return f"{number} that were run, {names.removesuffix(f' ({counted} run)')}"


def join_names(names: Sequence[str]) -> str:
    """Return ``a, b and c``; empty without names."""
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
