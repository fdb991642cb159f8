"""A report → its row. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.extract.types import Repro
from bot.report.sections.headline import UNJUDGED
from bot.tracker.rows import Fingerprint, IssueRow, TrackedIssue, Work
from bot.verdict.landing import FixLanding, find_landing
from bot.verdict.verdict import Report, VerdictKind
from runners.core.findings.record import read_evidence
from runners.core.findings.types import PassEvidence
from runners.core.protocol import Answer, Observation, Outcome, Signature, Variant, digest_of

GOOD, BAD, MIXED = "good", "bad", "mixed"
MAX_WORDS = 300


def make_row(
    issue: TrackedIssue, report: Report, fingerprint: Fingerprint, *, page: str, answered: str, work: Work
) -> IssueRow:
    """Return the row of an issue that was answered."""
    verdict = report.verdict
    repro = report.extraction if isinstance(report.extraction, Repro) else None
    device = repro.device if repro is not None else ""
    landing = find_landing(report) or FixLanding()
    unjudged = verdict.kind in UNJUDGED or verdict.kind is VerdictKind.INCONCLUSIVE
    return IssueRow(
        issue=issue,
        fingerprint=fingerprint,
        verdict=str(verdict.kind),
        confidence=verdict.confidence,
        headline=verdict.headline,
        toolchain=repro.testcase.toolchain if repro is not None else "",
        device=device,
        cells=summarize_cells(report.observations, device),
        fixed_in=landing.release
        or next((one.first_good for one in report.bisections if one.direction == "fixed" and one.first_good), ""),
        fixed_by=landing.change,
        not_in=landing.without,
        regressed_in=_find_regression(report),
        why=(verdict.reasons[0] if verdict.reasons else verdict.headline)[:MAX_WORDS] if unjudged else "",
        testcase=digest_of(repro.testcase) if repro is not None else "",
        failure=find_failure(report.observations),
        passes=tuple(_list_passes(report)),
        page=page,
        answered=answered,
        work=work,
    )


def _find_regression(report: Report) -> str:
    """Return the first release with the failure; empty if it fails on the oldest release that was run."""
    introduced = (one for one in report.bisections if one.direction == "introduced" and one.last_good)
    return next((one.first_bad for one in introduced if one.first_bad), "")


def summarize_cells(observations: Iterable[Observation], device: str) -> dict[str, str]:
    """Return release → answer, of the testcase as posted on its own device."""
    seen: dict[str, list[Observation]] = {}
    for one in observations:
        if one.variant is Variant.ORIGINAL and one.device == device:
            seen.setdefault(one.version, []).append(one)
    return {version: _summarize_runs(runs) for version, runs in seen.items()}


def _summarize_runs(runs: list[Observation]) -> str:
    answers = {run.answer for run in runs}
    if {Answer.GOOD, Answer.BAD} <= answers:
        return MIXED
    if Answer.BAD in answers:
        return BAD
    return GOOD if Answer.GOOD in answers else str(runs[-1].outcome)


def find_failure(observations: Iterable[Observation]) -> Signature | None:
    """Return the reported failure, from the first run that shows it."""
    return next((one.signature for one in observations if one.outcome is Outcome.MATCH and one.signature), None)


def _list_passes(report: Report) -> Iterable[str]:
    """Yield the failing passes. A search without a result names ``none``; a search over dispatches names no pass."""
    for finding in report.findings:
        match read_evidence(finding):
            case PassEvidence(name=str() as name, names_none=False) if name:
                yield name[:100]
            case _:
                pass
