"""Render a report as the comment for the issue: the verdict first, then the evidence, then folded details.

GitHub rejects a comment over 65,536 characters; ``MAX_BYTES`` leaves room for text that a workflow adds around it.
Words of the issue and of a testcase pass `bot.report.quote`, so that they appear only inside fences and code spans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.report.matrix import sort_versions
from bot.report.quote import cut_end, escape_prose, quote_block, quote_code
from bot.report.run_again import list_shell_lines
from bot.report.sections.failures import render_comparison, render_outputs
from bot.report.sections.findings import list_findings, render_findings
from bot.report.sections.headline import render_headline
from bot.report.sections.ranges import render_changes, render_likely_fix
from bot.report.sections.request import render_request
from bot.report.sections.shape import DETAILS, STRANGERS, Detail, Section
from bot.report.sections.table import render_table
from bot.report.sections.testcase import render_derived, render_smaller, render_testcase
from bot.verdict.verdict import Report

MAX_BYTES = 60_000
_MARKER = "<!-- reprobot:1 verdict={verdict} issue={issue} -->"
_MARKER_PATTERN = re.compile(_MARKER.format(verdict="([a-z-]+)", issue="([0-9a-f]{0,64})"), re.ASCII)


def render_comment(report: Report, limit: int = MAX_BYTES) -> str:
    """Return the comment: Markdown of at most ``limit`` bytes in UTF-8 that ends with the hidden marker."""
    for detail in DETAILS:
        parts = [
            render_headline(report.verdict),
            *map(_render_section, list_sections(report, detail)),
            render_marker(report),
        ]
        text = "\n\n".join(parts) + "\n"
        if len(text.encode()) <= limit:
            return text
    return f"{render_headline(report.verdict)}\n\n{render_marker(report)}\n"


def _render_section(section: Section) -> str:
    if section.folded:
        body = f"{STRANGERS}\n\n{section.body}" if section.quotes else section.body
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

    Only the last line counts. Output of a testcase stands above that line, and `quote_text` breaks markers in it.
    """
    found = _MARKER_PATTERN.fullmatch(comment.rstrip().rpartition("\n")[2])
    return (found[1], found[2]) if found else None


def list_sections(report: Report, detail: Detail = DETAILS[0]) -> Iterator[Section]:
    """Yield the sections below the headline, in the order of a reader's questions. Skip empty sections."""
    candidates = (
        render_request(report, detail),
        Section("", render_table(report.observations, detail)),
        Section("", "\n\n".join(render_changes(report))),
        Section("", render_likely_fix(report.likely)),
        Section("Findings", render_findings(list_findings(report), detail)),
        Section("Reported and observed", render_comparison(report, detail)),
        Section("Changed to run elsewhere", render_derived(report.observations, detail)),
        render_smaller(report.smaller, detail),
        Section("Run it again", render_run_again(report)),
        render_testcase(report, detail),
        Section("Output of the runs", render_outputs(report.observations, detail), folded=True, quotes=True),
        Section("How this was decided", _render_decision(report, detail), folded=True),
    )
    return (section for section in candidates if section.body)


def render_run_again(report: Report) -> str:
    """Return the command that repeats the run; where runs disagree, also the commands of a bad and a good run."""
    if not report.observations:
        return ""
    lines = list_shell_lines(report)
    own = f"By hand, in the folder of the testcase:\n\n{quote_block(cut_end(lines, 4_000), 'sh')}" if lines else ""
    return "\n\n".join(filter(None, (quote_block(cut_end(report.command, 2_000), "sh"), own)))


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
    return tuple(_capitalize(text) for text in notes)


def _capitalize(text: str) -> str:
    """Capitalize a sentence, unless it begins with a name in code: ``tvm.script.tir``, ``call_tir``."""
    return text if re.match(r"[\w-]+[._(][\w]", text) else text[:1].upper() + text[1:]
