"""Render a report as the comment for the issue: the answer, its reasons and the next step, then folded details.

GitHub rejects a comment over 65,536 characters; ``MAX_BYTES`` leaves room for text that a workflow adds around it.
Words of the issue and of a testcase pass `bot.report.quote`, so that they appear only inside fences and code spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.report.matrix import sort_versions
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.failures import render_comparison, render_failure, render_outputs
from bot.report.sections.findings import list_findings, render_evidence
from bot.report.sections.headline import render_headline
from bot.report.sections.next_step import render_next_step
from bot.report.sections.ranges import render_changes, render_deep_change, render_landing, render_likely_fix
from bot.report.sections.reasons import capitalize_sentence, render_reasons
from bot.report.sections.request import render_request
from bot.report.sections.shape import DETAILS, STRANGERS, Detail, Section
from bot.report.sections.table import render_all_runs, render_summary
from bot.report.sections.testcase import render_reproduction, render_smaller
from bot.report.sections.timeline import render_timeline
from bot.verdict.forks import label_forks, list_forks
from bot.verdict.verdict import Report, VerdictKind
from runners.core.protocol import Finding

MAX_BYTES = 60_000
_MARKER = "<!-- reprobot:1 verdict={verdict} issue={issue} -->"
_MARKER_PATTERN = re.compile(_MARKER.format(verdict="([a-z-]+)", issue="([0-9a-f]{0,64})"), re.ASCII)


def render_comment(report: Report, limit: int = MAX_BYTES) -> str:
    """Return the comment: Markdown of at most ``limit`` bytes in UTF-8 that ends with the hidden marker."""
    for detail in DETAILS:
        sections = list(list_sections(report, detail))
        first = next((i for i, one in enumerate(sections) if one.folded and one.quotes), None)
        parts = [
            render_headline(report.verdict),
            *(_render_section(one, marks=i == first) for i, one in enumerate(sections)),
            render_footer(report),
            render_marker(report),
        ]
        text = "\n\n".join(parts) + "\n"
        if len(text.encode()) <= limit:
            return text
    return f"{render_headline(report.verdict)}\n\n{render_marker(report)}\n"


def _render_section(section: Section, *, marks: bool) -> str:
    """Return the section. ``marks``: it is the first of those that quote at length, and says so for all of them."""
    if section.folded:
        body = f"{STRANGERS}\n\n{section.body}" if marks else section.body
        return f"<details><summary>{section.title}</summary>\n\n{body}\n\n</details>"
    return f"**{section.title}**\n\n{section.body}" if section.title else section.body


def render_marker(report: Report) -> str:
    """Return the hidden last line by which the bot finds its own comment."""
    sha256 = report.issue.sha256.lower()
    return format_marker(report.verdict.kind, sha256 if _is_hex(sha256) else "")


def format_marker(verdict: str, issue: str) -> str:
    """Return the marker of a verdict. ``issue`` is the sha256 of the issue's text, or empty."""
    return _MARKER.format(verdict=verdict, issue=issue)


def _is_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", text, re.ASCII) is not None


def read_marker(comment: str) -> tuple[str, str] | None:
    """Return verdict and issue digest from the marker of a comment; None for text without a marker.

    Only the last line counts. Output of a testcase is above that line, and `quote_text` breaks markers in it.
    """
    found = _MARKER_PATTERN.fullmatch(comment.rstrip().rpartition("\n")[2])
    return (found[1], found[2]) if found else None


def list_sections(report: Report, detail: Detail = DETAILS[0]) -> Iterator[Section]:
    """Yield the sections below the headline, in the order of a reader's questions. Skip empty sections.

    The reasons of the verdict and the next step are never folded.
    """
    findings = list_findings(report)
    deciding = report.verdict.kind is not VerdictKind.INVALID_REPRO
    candidates = (
        render_request(report, detail),
        Section("", render_summary(report)),
        Section("", render_timeline(report)),
        Section("", _label(render_failure(report), report)),
        Section("", _label(render_reasons(report), report)),
        Section("", render_deep_change(report)),
        Section("", _label(render_landing(report), report)),
        Section("", _label(render_next_step(report), report)),
        _fold(_name_evidence(findings), _label(render_evidence(findings, detail), report), quotes=True),
        _fold("Changes of behaviour and related commits", _render_ranges(report) if deciding else ""),
        render_reproduction(report, detail),
        render_smaller(report.smaller, detail),
        render_all_runs(report, detail),
        _fold("Reported and observed failures, with the output", _render_failures(report, detail), quotes=True),
        _fold("How this was decided", _render_decision(report, detail)),
    )
    return (section for section in candidates if section.body)


def _label(text: str, report: Report) -> str:
    """Return ``text`` in which no fork has the name of a release."""
    return label_forks(text, list_forks(report.observations))


def _fold(title: str, body: str, *, quotes: bool = False) -> Section:
    return Section(title, body, folded=True, quotes=quotes)


def _name_evidence(findings: Sequence[Finding]) -> str:
    return "Evidence of the finding" if len(findings) == 1 else f"Evidence of the {len(findings)} findings"


def _render_ranges(report: Report) -> str:
    """Return the changes of behaviour; empty if the table and the next step show all of them."""
    listed = bool(report.sources) and report.verdict.kind is not VerdictKind.REGRESSION
    told = (one.suspects or one.untested or (listed and one.commits) for one in report.bisections)
    if report.likely is None and not any(told):
        return ""
    return "\n\n".join(filter(None, (*render_changes(report), render_likely_fix(report.likely))))


def _render_failures(report: Report, detail: Detail) -> str:
    parts = (render_comparison(report, detail), render_outputs(report.observations, detail))
    return "\n\n".join(filter(None, parts))


def _render_decision(report: Report, detail: Detail) -> str:
    lines = [escape_prose(text) for text in list_decision_notes(report)[: detail.entries]]
    built = {f"{seen.toolchain} {seen.version}": seen.environment for seen in report.observations if seen.environment}
    digests = [
        f"{quote_code(build)} {quote_code(built[build][:19])}" for build in sort_versions(built)[: detail.entries]
    ]
    lines += [f"Environments: {', '.join(digests)}"] if digests else []
    return "\n".join(f"- {line}" for line in lines)


def list_decision_notes(report: Report) -> tuple[str, ...]:
    """Return the verdict's reasons and the conditions of the runs, each once, unescaped; empty without a run."""
    if not report.observations:
        return ()
    engines = dict.fromkeys(f"sandbox: {seen.engine}" for seen in report.observations if seen.engine)
    notes = dict.fromkeys((*report.verdict.reasons, *report.notes, *engines))
    return tuple(capitalize_sentence(text) for text in notes)


def render_footer(report: Report) -> str:
    """Return the last visible line: the author, the commands, and how to contest the verdict."""
    log = f" [Log and full page](<{report.log}>)." if is_plain_url(report.log) else ""
    return f"<sub>{_FOOTER}{log}</sub>"


_FOOTER = (
    "Reprobot, a bot: `/repro rerun` repeats this, `/repro void REASON` withdraws it (maintainers), `/repro help`."
)


def is_plain_url(url: str) -> bool:
    """True for an address without characters that have a meaning in Markdown."""
    return re.fullmatch(r"https?://[\w.:-]+/[\w./-]*(?:#[\w-]*)?", url, re.ASCII) is not None
