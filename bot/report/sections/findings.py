"""The findings of a diagnosis: one visible sentence each, and their evidence, folded."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.report.quote import cut_end, escape_prose, quote_block
from bot.report.sections.shape import DETAILS, STRANGERS, Detail
from bot.verdict.finding_text import ONE_FAILS, describe_finding
from bot.verdict.verdict import Report, VerdictKind
from runners.core.findings import DIFFERENCE, KINDS, LEVEL, REFUTED_BY, clears_passes
from runners.core.protocol import Finding, FindingKind

MAX_VISIBLE = 3


def list_findings(report: Report) -> tuple[Finding, ...]:
    """The findings to show, each once. A part that the issue lacks is shown with the request for it instead."""
    once = {describe_finding(one): one for one in reversed(_select(report.findings))}
    return () if report.extraction.missing else tuple(reversed(once.values()))


def _select(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Drop findings that clear LLVM's passes, unless no other finding names a cause. The document keeps them."""
    telling = [one for one in findings if not clears_passes(one, "llvm-pass")]
    return telling if any(KINDS[one.kind].is_cause for one in telling) else findings


def list_sentences(report: Report) -> tuple[str, ...]:
    """Return one sentence for each finding that the headline does not state already, unescaped."""
    sentences = (describe_finding(one) for one in list_findings(report) if not _is_shown(one, report.verdict.kind))
    headline = report.verdict.headline
    return tuple(f"{capitalize(one)}." for one in sentences if one.removeprefix("the testcase ") not in headline)


def _is_shown(finding: Finding, kind: VerdictKind) -> bool:
    """True if the table or the headline shows the finding: devices that differ in outcome, runs that disagree.

    Where the testcase is at fault, it explains the results that depend on other conditions.
    """
    if finding.kind is FindingKind.DEVICE_SPECIFIC:
        return finding.evidence.get("how") == ONE_FAILS
    return finding.kind is FindingKind.NONDETERMINISTIC and kind in (VerdictKind.FLAKY, VerdictKind.INVALID_REPRO)


def capitalize(text: str) -> str:
    """Return ``text`` with its first letter in upper case; a name in code stays as it is."""
    return text[:1].upper() + text[1:]


def render_evidence(findings: Sequence[Finding], detail: Detail = DETAILS[0], *, folds: bool = True) -> str:
    """Return each finding with its evidence and the observation that would disprove it.

    ``folds``: put differences into ``<details>``, which takes HTML.
    """
    return "\n\n".join(_render_finding(one, detail, folds=folds) for one in findings[: detail.entries])


def _render_finding(finding: Finding, detail: Detail, *, folds: bool) -> str:
    shown = _select_evidence(finding)
    evidence = "\n".join(f"{name.replace('_', ' ')}: {_format_value(value)}" for name, value in shown.items())
    refuted = finding.evidence.get(REFUTED_BY)
    parts = [
        f"{escape_prose(capitalize(describe_finding(finding)))}.",
        escape_prose(f"This would disprove it: `{_make_span(refuted)}`.") if refuted else "",
        quote_block(cut_end(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _render_difference(finding, detail, folds=folds),
    ]
    return "\n\n".join(part for part in parts if part)


def _make_span(value: object) -> str:
    return " ".join(str(value).replace("`", "'").split())[:300] or "-"


_HIDDEN = {DIFFERENCE, LEVEL, REFUTED_BY, "name", "version", "position", "of", "buffer_argument"}
"""Evidence that the sentence states, or that only the program which wrote it understands. The document has all."""


def _select_evidence(finding: Finding) -> dict[str, object]:
    shown = {name: value for name, value in finding.evidence.items() if name not in _HIDDEN}
    summary = {"observed": finding.summary} if finding.summary.strip() else {}
    return {**summary, **{name: value for name, value in shown.items() if value not in (None, "", [], (), {})}}


def _render_difference(finding: Finding, detail: Detail, *, folds: bool) -> str:
    lines = finding.evidence.get(DIFFERENCE)
    if not isinstance(lines, list | tuple) or not lines:
        return ""
    text = cut_end("\n".join(str(line) for line in lines[:80]), 200 + detail.excerpt)
    changed = any(str(line).startswith(("+", "-")) for line in lines)
    title = KINDS[finding.kind].difference if changed else "The module that the pass received"
    shown = f"{STRANGERS}\n\n{quote_block(text, 'diff')}"
    return f"<details><summary>{title}</summary>\n\n{shown}\n\n</details>" if folds else f"{title}:\n\n{shown}"


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
