"""What is said beside a verdict once it stands: the reporter's control, forks, and what only the report says."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.verdict.evidence import Evidence
from bot.verdict.rules.confidence import UNATTRIBUTED, UNDEFINED_INPUT
from bot.verdict.rules.phrases import format_span, list_versions
from bot.verdict.verdict import Verdict, VerdictKind
from runners.core.findings import clears_passes
from runners.core.protocol import SAID_TO_WORK, Answer, ClaimKind, FindingKind, Variant


def name_forks(verdict: Verdict, evidence: Evidence) -> Verdict:
    """A build that is no release is never named as if it were one."""
    headline = verdict.headline
    for version, fork in {seen.version: seen.fork for seen in evidence.observations if seen.fork}.items():
        headline = headline.replace(version, f"{version} (a fork at {fork.partition(',')[0]}, not a release)", 1)
    return replace(verdict, headline=headline)


def weigh_control(verdict: Verdict, evidence: Evidence) -> Verdict:
    """What the reporter's own control adds: it bears the report out, or takes the contrast away that it rests on."""
    if verdict.kind not in _RESTS_ON_A_FAILURE:
        return verdict
    controls = [
        seen
        for seen in evidence.observations
        if seen.variant is Variant.CONTROL and SAID_TO_WORK in seen.changes and seen.answer is not Answer.SKIP
    ]
    if not controls:
        return verdict
    failing = [seen for seen in controls if seen.answer is not Answer.GOOD]
    where = format_span(list_versions(evidence.plan, failing or controls))
    if not failing:
        said = f"what the report says works does run cleanly on {where}"
        return replace(verdict, reasons=(*verdict.reasons, said))
    said = f"on {where} what the report says works fails in the same way"
    return replace(verdict, reasons=(*verdict.reasons, said), confidence=round(verdict.confidence - 0.15, 2))


_RESTS_ON_A_FAILURE = {VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FIXED}


def weigh_cleared_passes(verdict: Verdict, evidence: Evidence) -> Verdict:
    """A wrong result that no release is free of and no pass brings in may be the testcase's own: seen, not explained.

    An error or a crash is the compiler's doing whoever provoked it; that a value is wrong, only the report says.
    LLVM's passes do not count. The host has not checked that no pass is to blame, so the finding only takes away.
    """
    wrong_value = verdict.kind is VerdictKind.CONFIRMED and evidence.plan.claim.kind is ClaimKind.WRONG_RESULT
    if not wrong_value or not any(map(clears_passes, evidence.findings)):
        return verdict
    why = "no pass brings the wrong result in, so that it is wrong rests on the report, and on nothing that was run"
    return replace(verdict, reasons=(*verdict.reasons, why), confidence=min(verdict.confidence, UNATTRIBUTED))


def weigh_undefined_input(verdict: Verdict, evidence: Evidence) -> Verdict:
    """A wrong value of a testcase that reads what it never wrote: its own, unless it stays once that is mended."""
    wrong_value = verdict.kind in _RESTS_ON_A_FAILURE and evidence.plan.claim.kind is ClaimKind.WRONG_RESULT
    if not wrong_value or not any(one.kind is FindingKind.UNINITIALIZED_READ for one in evidence.findings):
        return verdict
    why = "the testcase reads memory that it never wrote: with that written, it would show whether the failure stays"
    return replace(verdict, reasons=(*verdict.reasons, why), confidence=min(verdict.confidence, UNDEFINED_INPUT))


_CHECKS_ITS_ARGUMENTS = re.compile(
    r"while invoking native function hal\.buffer_view\.assert|\bno function `[^`\n]{1,200}` exported by module"
    r"|ErrorContext\(fn=\w{1,200}, loc=param\[\d+\]"
)
"""Both runtimes' checks of what a compiled function is called with: IREE's on a buffer view, a function's name; TVM's
on a tensor handed to the VM."""


def mention_argument_check(verdict: Verdict, evidence: Evidence) -> Verdict:
    """An error that a check of the arguments raises, on every release: seen as reported, and maybe right."""
    if verdict.kind is not VerdictKind.CONFIRMED or evidence.plan.claim.kind is not ClaimKind.ERROR:
        return verdict
    failing = [seen for seen in evidence.observations if seen.answer is Answer.BAD]
    said_by = [seen.signature.message for seen in failing if seen.signature is not None]
    if not said_by or len(said_by) < len(failing) or not all(map(_CHECKS_ITS_ARGUMENTS.search, said_by)):
        return verdict
    said = "The error is a check of what the testcase passes in: if that is not what the function takes, it is right."
    return replace(verdict, headline=f"{verdict.headline} {said}")
