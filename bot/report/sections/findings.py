"""The findings of a diagnosis, with titles from `runners.core.findings` and quoted evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.report.quote import cut_end, quote_block, quote_code
from bot.report.sections.shape import DETAILS, STRANGERS, Detail
from bot.verdict.verdict import Report
from runners.core.findings import DIFFERENCE, KINDS, LEVEL, REFUTED_BY, clears_passes, render_title
from runners.core.protocol import Finding

_LABELS = {REFUTED_BY: "would be refuted by", "successor": "replaced by"}
"""Labels of evidence whose name in the document needs an explanation."""


def list_findings(report: Report) -> tuple[Finding, ...]:
    """The findings to show. A part that the issue lacks is shown with the request for it instead."""
    return () if report.extraction.missing else report.findings


def render_findings(findings: Sequence[Finding], detail: Detail = DETAILS[0], *, folds: bool = True) -> str:
    """Each finding as Markdown. ``folds``: put long parts into ``<details>``, which takes HTML."""
    return "\n\n".join(_render_finding(one, detail, folds=folds) for one in _select(findings)[: detail.entries])


def _select(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Drop findings that clear LLVM's passes, unless no other finding names a cause. The document keeps them."""
    telling = [one for one in findings if not clears_passes(one, "llvm-pass")]
    return telling if any(KINDS[one.kind].is_cause for one in telling) else findings


def _render_finding(finding: Finding, detail: Detail, *, folds: bool) -> str:
    title = render_title(finding)
    headline = f"{title}: {quote_code(finding.summary, 400)}" if finding.summary else title
    shown = _select_evidence(finding)
    evidence = "\n".join(f"{_LABELS.get(name, name)}: {_format_value(value)}" for name, value in shown.items())
    parts = [
        headline,
        quote_block(cut_end(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _render_difference(finding, detail, folds=folds),
    ]
    return "\n\n".join(part for part in parts if part)


def _select_evidence(finding: Finding) -> dict[str, object]:
    """Return the evidence that title and summary do not state. The document has all evidence."""
    evidence, has_levels = finding.evidence, bool(KINDS[finding.kind].titles)
    if has_levels and evidence.get("name") == "none":
        return {}
    stated = f"{evidence.get(LEVEL) if has_levels else ''} {finding.summary}"
    hidden = {DIFFERENCE, *([LEVEL] if has_levels else [])}
    hidden |= {name for name in ("name", "version") if str(evidence.get(name)) in stated}
    return {name: value for name, value in evidence.items() if name not in hidden and value is not None}


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
