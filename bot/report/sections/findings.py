"""The findings of a diagnosis: one visible sentence each, and their evidence, folded."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from bot.report.quote import cut_end, escape_prose, quote_block
from bot.report.sections.shape import DETAILS, Detail
from bot.verdict.finding_text import describe_finding
from bot.verdict.verdict import Report, VerdictKind
from runners.core.findings.kinds import KINDS, Differ, Moved, PassLevel
from runners.core.findings.questions import clears_passes, get_difference, get_pass
from runners.core.findings.record import read_evidence
from runners.core.findings.types import (
    ByteAccess,
    DeviceEvidence,
    DispatchEvidence,
    FindingEvidence,
    IndexAccess,
    KernelAccess,
    MovedEvidence,
    PassEvidence,
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
    known = read_evidence(finding)
    if not isinstance(known, MovedEvidence) or known.moved not in (Moved.ABSENT, Moved.UNKNOWN):
        return finding
    same = [
        (seen.version, one)
        for seen in report.observations
        for one in seen.findings
        if seen.version in order and _is_of_same_name(read_evidence(one), known)
    ]
    if not same:
        return finding
    newest = max((version for version, _ in same), key=order.index)
    has = [seen.version for seen in report.observations if seen.version in order and seen.answer is not Answer.SKIP]
    if any(order.index(version) < order.index(newest) for version in has):
        return finding
    return next(one for version, one in same if version == newest)


def _is_of_same_name(one: FindingEvidence, other: MovedEvidence) -> bool:
    """True if both state the same of one name."""
    return isinstance(one, MovedEvidence) and (
        (one.name, one.moved, one.added_in) == (other.name, other.moved, other.added_in)
    )


def _select(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Drop findings that clear passes: LLVM's beside any cause, TVM's beside a named pass. The document keeps all."""
    telling = [one for one in findings if not clears_passes(one, PassLevel.LLVM)]
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
    match read_evidence(finding):
        case KernelAccess() as one:
            where = (one.kernel, one.operator, one.access, one.axis, one.extent)
            return repr((*where, one.outside_range, one.testcase_value))
        case IndexAccess() as one:
            return repr((one.operation, one.axis, one.extent, one.value, one.line))
        case ByteAccess() as one:
            return repr((one.extent,))
        case _:
            return ""


def _is_shown(finding: Finding, report: Report) -> bool:
    """True if the table, the headline or a reason says it: devices that differ in outcome, runs that disagree, names.

    A testcase at fault explains results that depend on other conditions.
    """
    match read_evidence(finding):
        case DeviceEvidence(differ=differ):
            return differ is Differ.OUTCOMES
        case MovedEvidence(name=name):
            return f"not have `{name}`" in report.verdict.headline
        case PassEvidence(name=str() as name) | DispatchEvidence(name=str() as name) if _describes_pass(report, name):
            return True
        case _:
            pass
    if clears_passes(finding) or clears_passes(finding, PassLevel.LLVM):
        return _excludes_passes(finding, report)
    flaky = (VerdictKind.FLAKY, VerdictKind.INVALID_REPRO)
    return finding.kind is FindingKind.NONDETERMINISTIC and report.verdict.kind in flaky


def _describes_pass(report: Report, name: str) -> bool:
    """True if another finding states what the pass does, so that its name alone adds nothing."""
    does = _NAME_A_PASS - {FindingKind.GUILTY_PASS}
    return any(one.kind in does and get_pass(read_evidence(one)) == name for one in report.findings)


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
    return clears_passes(finding, PassLevel.LLVM) and report.extraction.claim.kind is ClaimKind.ERROR


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
    refuted = read_evidence(finding).refuted_by
    parts = [
        f"{escape_prose(capitalize(describe_finding(finding)))}.",
        escape_prose(f"This would disprove it: {refuted[:300]}.") if refuted else "",
        quote_block(cut_end(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _render_difference(finding, detail, folds=folds),
    ]
    return "\n\n".join(part for part in parts if part)


_HIDDEN = {
    *("differ", "difference", "level", "refuted_by", "moved", "moved_in", "added_in"),
    *("name", "version", "position", "of", "buffer_argument", "application"),
}
"""Evidence that the sentence states, or that only the program which wrote it understands. The document has all."""


def _select_evidence(finding: Finding) -> dict[str, object]:
    """Return the rows of the record to show, unread: a reader of the comment sees fields that no code knows."""
    known = read_evidence(finding)
    if isinstance(known, MovedEvidence) and known.moved is not None:
        return {}  # the sentence says all of it
    shown = {name: value for name, value in finding.evidence.items() if name not in _HIDDEN}
    summary = {"observed": finding.summary} if finding.summary.strip() else {}
    return {**summary, **{name: value for name, value in shown.items() if value not in (None, "", [], (), {})}}


def _render_difference(finding: Finding, detail: Detail, *, folds: bool) -> str:
    lines = get_difference(read_evidence(finding))
    if not lines:
        return ""
    text = cut_end("\n".join(lines[:80]), 200 + detail.excerpt)
    changed = any(line.startswith(("+", "-")) for line in lines)
    title = KINDS[finding.kind].difference if changed else "The module that the pass received"
    shown = quote_block(text, "diff")
    return f"<details><summary>{title}</summary>\n\n{shown}\n\n</details>" if folds else f"{title}:\n\n{shown}"


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
