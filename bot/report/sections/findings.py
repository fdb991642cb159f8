"""The findings of a diagnosis: one visible sentence each, and their evidence, folded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from bot.report.quote import cut_end, escape_prose, quote_block
from bot.report.sections.shape import DETAILS, Detail
from bot.verdict.finding_text import describe_finding
from bot.verdict.verdict import Report, VerdictKind
from runners.core.failure.tensor_difference import OUTCOMES
from runners.core.findings import (
    ADDED_IN,
    DIFFERENCE,
    KINDS,
    LEVEL,
    MOVED,
    MOVED_IN,
    REFUTED_BY,
    Moved,
    clears_passes,
)
from runners.core.protocol import Answer, ClaimKind, Finding, FindingKind

MAX_VISIBLE = 3


def list_findings(report: Report) -> tuple[Finding, ...]:
    """The findings to show, each once. A part that the issue lacks is shown with the request for it instead."""
    found = [_find_last_without(one, report) for one in _select(report.findings)]
    once = {describe_finding(one): one for one in reversed(found)}
    return () if report.extraction.missing else tuple(reversed(once.values()))


def _find_last_without(finding: Finding, report: Report) -> Finding:
    """Return the finding on a name for the newest release that lacks it, if all newer ones have it.

    A finding is of one run. The release before the first one with the name says more than an older one.
    """
    order = report.plan.order if report.plan is not None else ()
    states = (str(Moved.ABSENT), str(Moved.UNKNOWN))
    if finding.kind is not FindingKind.API_MOVED or finding.evidence.get(MOVED) not in states:
        return finding
    same = [
        (seen.version, one)
        for seen in report.observations
        for one in seen.findings
        if one.kind is finding.kind
        and seen.version in order
        and all(one.evidence.get(key) == finding.evidence.get(key) for key in ("name", MOVED, ADDED_IN))
    ]
    if not same:
        return finding
    newest = max((version for version, _ in same), key=order.index)
    has = [seen.version for seen in report.observations if seen.version in order and seen.answer is not Answer.SKIP]
    if any(order.index(version) < order.index(newest) for version in has):
        return finding
    return next(one for version, one in same if version == newest)


def _select(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Drop findings that clear passes: LLVM's beside any cause, TVM's beside a named pass. The document keeps all."""
    telling = [one for one in findings if not clears_passes(one, "llvm-pass")]
    shown = telling if any(KINDS[one.kind].is_cause for one in telling) else findings
    named = [one for one in shown if one.kind in _NAME_A_PASS and not clears_passes(one)]
    return [one for one in shown if not clears_passes(one)] if named else shown


_NAME_A_PASS = {
    FindingKind.GUILTY_PASS,
    FindingKind.INPUT_MUTATED,
    FindingKind.VALUES_REPLACED,
}


def list_sentences(report: Report) -> tuple[str, ...]:
    """Return one sentence for each finding that the headline does not state, unescaped."""
    headline = report.verdict.headline
    once: dict[str, str] = {}
    for one in list_findings(report):
        sentence = describe_finding(one)
        if not _is_shown(one, report):
            once.setdefault(_name_access(one) or sentence, sentence)
    told = (one for one in once.values() if one.removeprefix("the testcase ") not in headline)
    return tuple(f"{capitalize(one)}." for one in told)


def _name_access(finding: Finding) -> str:
    """Return the access of a testcase apart from the name of its buffer: passes rename buffers. Empty for others."""
    if finding.kind is not FindingKind.OUT_OF_BOUNDS_ACCESS:
        return ""
    return json.dumps({name: finding.evidence.get(name) for name in _ACCESS}, default=str)


_ACCESS = (
    "kernel",
    "operator",
    "operation",
    "access",
    "axis",
    "extent",
    "outside_range",
    "testcase_value",
    "value",
    "line",
)


def _is_shown(finding: Finding, report: Report) -> bool:
    """True if the table, the headline or a reason says it: devices that differ in outcome, runs that disagree, names.

    A testcase at fault explains results that depend on other conditions.
    """
    if finding.kind is FindingKind.DEVICE_SPECIFIC:
        return finding.evidence.get("differ") == OUTCOMES
    if finding.kind is FindingKind.API_MOVED:
        return f"not have `{finding.evidence.get('name')}`" in report.verdict.headline
    if finding.kind is FindingKind.GUILTY_PASS and _describes_pass(report, str(finding.evidence.get("name"))):
        return True
    if clears_passes(finding) or clears_passes(finding, "llvm-pass"):
        return _excludes_passes(finding, report)
    flaky = (VerdictKind.FLAKY, VerdictKind.INVALID_REPRO)
    return finding.kind is FindingKind.NONDETERMINISTIC and report.verdict.kind in flaky


def _describes_pass(report: Report, name: str) -> bool:
    """True if another finding states what the pass does, so that its name alone adds nothing."""
    does = _NAME_A_PASS - {FindingKind.GUILTY_PASS}
    return any(one.kind in does and one.evidence.get("pass") == name for one in report.findings)


def _excludes_passes(finding: Finding, report: Report) -> bool:
    """True if the comment shows without the finding that no pass is the cause: by the fault of the testcase, in a
    reason, or by the error itself.

    An error comes from a check, not from the code that LLVM makes.
    """
    if report.verdict.kind is VerdictKind.INVALID_REPRO:
        return True
    told = " ".join((report.verdict.headline, *report.verdict.reasons))
    if re.search(r"no pass (?:causes|changes)|comes from a check of the arguments", told, re.IGNORECASE):
        return True
    return finding.evidence.get(LEVEL) == "llvm-pass" and report.extraction.claim.kind is ClaimKind.ERROR


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
        escape_prose(f"This would disprove it: {str(refuted)[:300]}.") if refuted else "",
        quote_block(cut_end(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _render_difference(finding, detail, folds=folds),
    ]
    return "\n\n".join(part for part in parts if part)


_HIDDEN = {
    *("differ", DIFFERENCE, LEVEL, REFUTED_BY, MOVED, MOVED_IN, ADDED_IN),
    *("name", "version", "position", "of", "buffer_argument", "application"),
}
"""Evidence that the sentence states, or that only the program which wrote it understands. The document has all."""


def _select_evidence(finding: Finding) -> dict[str, object]:
    if finding.kind is FindingKind.API_MOVED and MOVED in finding.evidence:
        return {}  # the sentence says all of it
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
    shown = quote_block(text, "diff")
    return f"<details><summary>{title}</summary>\n\n{shown}\n\n</details>" if folds else f"{title}:\n\n{shown}"


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
