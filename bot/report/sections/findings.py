"""What a diagnosis found, in our words, with its evidence quoted."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.report.quote import code, cut, fence
from bot.report.sections.shape import DETAILS, Detail
from bot.verdict.verdict import Report
from runners.core.protocol import Finding, FindingKind

FINDINGS = {
    FindingKind.OUT_OF_BOUNDS_ACCESS: "The testcase reads or writes outside its own data",
    FindingKind.NAN_INEQUALITY: "Equal modules compare unequal because of NaN",
    FindingKind.VALUES_REPLACED: "A pass replaced live values by constants",
    FindingKind.DEVICE_SPECIFIC: "Devices differ on the same input",
    FindingKind.SIGNATURE_CHANGED: "A pass changed a function's parameters, and the testcase calls it the old way",
    FindingKind.UNDEFINED_OPERAND: "The testcase gives an operation a value for which it is undefined",
    FindingKind.UNINITIALIZED_READ: "The testcase reads memory that it never wrote",
    FindingKind.BROKEN_RULE: "The testcase breaks a rule of an operation that it uses",
    FindingKind.INPUT_MUTATED: "A pass changed its input module in place",
    FindingKind.NOT_IDEMPOTENT: "Applying the pass a second time gives something else",
    FindingKind.GUILTY_PASS: "Passes left out one after another",
    FindingKind.NONDETERMINISTIC: "The same input gives different results",
    FindingKind.API_MOVED: "The testcase uses a name that this release no longer has",
    FindingKind.MISSING: "The testcase needs something that the issue does not give",
}
LEVELS = {
    "pass": "The pass in which compiling fails",
    "parsing": "Compiling fails before any pass",
    "phase": "The phase in which compiling fails",
    "written": "Passes of the command line left out one after another",
    "llvm-pass": "LLVM's passes left out one after another",
    "dispatch": "The first dispatch that takes the same and gives something else",
}
"""Of a guilty pass by where it was found; without a level it is one of TVM's."""
DIFFERENCE = "difference"
"""Evidence that is a diff, line by line."""
_NAMES = {"refuted_by": "would be refuted by"}
"""Names in the document that would say something else to who reads them alone."""


def found(report: Report) -> tuple[Finding, ...]:
    """What a report's findings say beside its request: what the issue lacks is asked for there."""
    return () if report.extraction.missing else report.findings


def diagnoses(findings: Sequence[Finding], detail: Detail = DETAILS[0], *, folds: bool = True) -> str:
    """Each finding in our words, with the guest's summary and evidence quoted. Folding what is long takes HTML."""
    return "\n\n".join(_finding(one, detail, folds=folds) for one in _telling(findings)[: detail.entries])


def _telling(findings: Sequence[Finding]) -> Sequence[Finding]:
    """That no pass of LLVM's is to blame is worth a reader's time only where nothing else is known of the cause.

    The document keeps it, as all evidence.
    """
    telling = [one for one in findings if not _names_no_pass(one)]
    known = [one for one in telling if one.kind is not FindingKind.API_MOVED]
    return telling if known else findings


def _names_no_pass(finding: Finding) -> bool:
    evidence = finding.evidence
    of_llvm = finding.kind is FindingKind.GUILTY_PASS and evidence.get("level") == "llvm-pass"
    return of_llvm and evidence.get("name") == "none"


def _finding(finding: Finding, detail: Detail, *, folds: bool) -> str:
    about = FINDINGS[finding.kind]
    if finding.kind is FindingKind.GUILTY_PASS:
        about = LEVELS.get(str(finding.evidence.get("level")), about)
    said = f"{about}: {code(finding.summary, 400)}" if finding.summary else about
    shown = _beside_its_summary(finding)
    evidence = "\n".join(f"{_NAMES.get(name, name)}: {_plainly(value)}" for name, value in shown.items())
    parts = [
        said,
        fence(cut(evidence, min(1_500, 200 + detail.excerpt))) if shown else "",
        _difference(finding, detail, folds=folds),
    ]
    return "\n\n".join(part for part in parts if part)


def _beside_its_summary(finding: Finding) -> dict[str, object]:
    """Evidence that neither the heading nor the summary says already; the document has all of it."""
    evidence, of_a_pass = finding.evidence, finding.kind is FindingKind.GUILTY_PASS
    if of_a_pass and evidence.get("name") == "none":
        return {}
    said = f"{evidence.get('level') if of_a_pass else ''} {finding.summary}"
    hidden = {DIFFERENCE, *(["level"] if of_a_pass else [])}
    hidden |= {name for name in ("name", "version") if str(evidence.get(name)) in said}
    return {name: value for name, value in evidence.items() if name not in hidden}


def _difference(finding: Finding, detail: Detail, *, folds: bool) -> str:
    lines = finding.evidence.get(DIFFERENCE)
    if not isinstance(lines, list | tuple) or not lines:
        return ""
    text = cut("\n".join(str(line) for line in lines[:80]), 200 + detail.excerpt)
    changed = any(str(line).startswith(("+", "-")) for line in lines)
    what = "The module before and after" if changed else "The module that it was given"
    if finding.kind is FindingKind.BROKEN_RULE:
        what = "What was put right"
    shown = fence(text, "diff")
    return f"<details><summary>{what}</summary>\n\n{shown}\n\n</details>" if folds else f"{what}:\n\n{shown}"


def _plainly(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
