"""The visible reasons below the table: the findings, and the verdict's reasons that the headline does not state."""

from __future__ import annotations

import re

from bot.report.quote import escape_prose
from bot.report.sections.findings import MAX_VISIBLE, capitalize, list_sentences
from bot.verdict.verdict import Report

TO_DECIDE = "to decide: "
"""Start of a reason that names the evidence which would settle the verdict. It belongs to the next step."""
_QUOTED = re.compile(r"`[^`]*`")


def list_reasons(report: Report) -> tuple[str, ...]:
    """Return the reasons that lead to the verdict, unescaped, without those that only quote a run."""
    if not report.observations:
        return ()
    told = [one for one in report.verdict.reasons if not one.startswith(TO_DECIDE) and not _QUOTED.fullmatch(one)]
    if "; with " in report.verdict.headline:  # the headline states the result of the control already
        told = [one for one in told if not one.startswith("the same testcase with")]
    return tuple(f"{capitalize_sentence(one).rstrip('.')}." for one in dict.fromkeys(told))


def render_reasons(report: Report) -> str:
    """Return findings and reasons as a list, one sentence each. Further findings are in the evidence below."""
    sentences = list_sentences(report)
    lines = [*sentences[:MAX_VISIBLE], *list_reasons(report)]
    more = len(sentences) - MAX_VISIBLE
    lines += (
        [f"{more} more {'finding is' if more == 1 else 'findings are'} in the evidence below."] if more > 0 else []
    )
    return "\n".join(f"- {escape_prose(line)}" for line in lines)


def capitalize_sentence(text: str) -> str:
    """Capitalize a sentence, unless it begins with a name in code: ``tvm.script.tir``, ``call_tir``."""
    return text if re.match(r"[\w-]+[._(][\w]", text) else capitalize(text)
