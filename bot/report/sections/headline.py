"""The first line: the title of the verdict, its sentence, and its confidence."""

from __future__ import annotations

from bot.report.quote import escape_prose
from bot.verdict.verdict import Verdict, VerdictKind

TITLES = {
    VerdictKind.REGRESSION: "Regression",
    VerdictKind.CONFIRMED: "Confirmed",
    VerdictKind.FIXED: "Already fixed",
    VerdictKind.NOT_REPRODUCED: "Not reproduced",
    VerdictKind.DIFFERENT_FAILURE: "Different failure",
    VerdictKind.INVALID_REPRO: "The testcase itself is at fault",
    VerdictKind.FLAKY: "Flaky",
    VerdictKind.INCOMPLETE: "Incomplete",
    VerdictKind.UNTESTABLE: "Not testable here",
    VerdictKind.INCONCLUSIVE: "Inconclusive",
    VerdictKind.NO_REPRO: "No repro found",
    VerdictKind.NO_CLAIM: "Nothing to run",
}
UNJUDGED = frozenset({VerdictKind.INCOMPLETE, VerdictKind.UNTESTABLE, VerdictKind.NO_REPRO, VerdictKind.NO_CLAIM})
"""Kinds without a confidence, because no evidence was weighed."""


def render_headline(verdict: Verdict) -> str:
    """Return ``**Regression.** It passes on … Confidence: high.``, without repeating a title in the headline."""
    label, text = TITLES[verdict.kind], escape_prose(verdict.headline)
    if text.casefold().startswith(label.casefold()):
        line = f"**{text[: len(label)]}**{text[len(label) :]}"
    else:
        line = f"**{label}.** {text}".rstrip()
    return line + format_confidence(verdict)


def render_sentence(verdict: Verdict) -> str:
    """Return the headline without the title, for a place that already shows the title."""
    label, text = TITLES[verdict.kind], escape_prose(verdict.headline)
    if text.casefold().startswith(f"{label}: ".casefold()):
        text = text[len(label) + 2 :]
        text = text[:1].upper() + text[1:]
    return text + format_confidence(verdict)


def format_confidence(verdict: Verdict) -> str:
    """Return ``Confidence: high.``, or an empty text for kinds without a confidence."""
    if verdict.kind in UNJUDGED:
        return ""
    word = "high" if verdict.confidence >= 0.9 else "moderate" if verdict.confidence >= 0.6 else "low"
    return f" Confidence: {word}."
