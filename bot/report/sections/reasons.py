"""The visible reasons below the table: the findings, and the verdict's reasons that the headline does not state."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.extract.types import Repro
from bot.report.quote import escape_prose
from bot.report.sections.findings import MAX_VISIBLE, capitalize, list_sentences
from bot.verdict.rules.phrases import quote_span
from bot.verdict.rules.untestable import WITHOUT_DEVICE
from bot.verdict.verdict import TO_DECIDE, Report, VerdictKind

_QUOTED = re.compile(r"`[^`]*`")


def list_reasons(report: Report) -> tuple[str, ...]:
    """Return the reasons that lead to the verdict, unescaped, without those that headline or findings state.

    The recorded reason of a run is shown only if no other sentence explains the verdict.
    """
    if not report.observations:
        return ()
    told = [one for one in report.verdict.reasons if not one.startswith(TO_DECIDE) and not _is_stated(one, report)]
    quoted = [one for one in told if _QUOTED.fullmatch(one)]
    told = [one for one in told if one not in quoted]
    named = {quote_span(seen.why) for seen in report.observations if seen.reason in WITHOUT_DEVICE}
    quoted = [one for one in quoted if one not in named]  # the headline names the device
    if not told and not list_sentences(report) and report.verdict.kind in _EXPLAINED_BY_A_RUN:
        told = [f"reason of the last run: {one}" for one in quoted]
    return tuple(f"{capitalize_sentence(one).rstrip('.')}." for one in dict.fromkeys(told))


_EXPLAINED_BY_A_RUN = {VerdictKind.UNTESTABLE, VerdictKind.INCONCLUSIVE, VerdictKind.DIFFERENT_FAILURE}
_TOLD = (
    (r"the same testcase with|with that memory filled", r"; with |decides whether|` works\b"),
    (r"the type of the error and its place are the same", r"at the same place with another message"),
    (r"[\w.]+ does not run it as posted; ported to its API", r""),
)
"""Starts of reasons, and the words by which a headline states the same: the end of a control run, an equal stack. A
row of the table states the result of a ported testcase."""


def _is_stated(reason: str, report: Report) -> bool:
    """True if the headline states it in these or other words, or a finding states the reason of a run."""
    headline = report.verdict.headline
    if reason in headline:
        return True
    if any(re.match(start, reason) and re.search(words, headline) for start, words in _TOLD):
        return True
    quoted = _QUOTED.search(reason)
    return quoted is not None and any(quoted[0].strip("`") == one.summary for one in report.findings)


def render_reasons(report: Report) -> str:
    """Return findings and reasons as a list, one sentence each. The evidence below counts and shows all findings."""
    sentences = list_sentences(report)
    lines = [*sentences[:MAX_VISIBLE], *list_reasons(report), *_name_assumed(report)]
    return "\n".join(f"- {escape_prose(line)}" for line in lines)


MAX_COMMAND = 200
"""Characters of a command that a sentence gives."""


def _name_assumed(report: Report) -> Iterator[str]:
    """Name the commands that the report does not give, if they ran."""
    repro = report.extraction
    if report.observations and isinstance(repro, Repro) and repro.assumed:
        commands = " and ".join(quote_span(one, MAX_COMMAND) for one in repro.assumed)
        inputs = ", with generated inputs" if repro.generates_inputs else ""
        yield f"Assumed, because the report does not give it: {commands}{inputs}."


def capitalize_sentence(text: str) -> str:
    """Capitalize a sentence, unless it begins with a name in code: ``tvm.script.tir``, ``call_tir``."""
    return text if re.match(r"[\w-]+[._(][\w]", text) else capitalize(text)
