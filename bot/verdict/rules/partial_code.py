"""Withhold verdicts that rest on clean runs when the testcase is only a part of the reporter's code."""

from __future__ import annotations

from dataclasses import replace

from bot.verdict.evidence import Evidence
from bot.verdict.rules.confidence import THRESHOLD
from bot.verdict.verdict import Verdict, VerdictKind

_REST_ON_CLEAN_RUNS = {VerdictKind.NOT_REPRODUCED, VerdictKind.FIXED}


def distrust_clean_runs(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Lower a verdict on clean runs below the threshold if code was left out: that code may be what fails."""
    if not evidence.left_out or verdict.kind not in _REST_ON_CLEAN_RUNS:
        return verdict
    why = "text that may be code was left out of the testcase, so a clean run does not show that the failure is gone"
    reasons = (*verdict.reasons, why, "the program alone, in one code block, would settle it")
    return replace(verdict, reasons=reasons, confidence=min(verdict.confidence, THRESHOLD - 0.1))
