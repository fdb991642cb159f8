"""Render a report as one self-contained HTML file, which loads no script, font or address.

The file is opened from an artifact or an e-mail, so it has its own content security policy: no script may run, no
address may load, and only the style sheet whose hash is in the policy applies.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from bot.extract.types import Repro
from bot.report.comment import list_decision_notes, render_comment
from bot.report.document import format_json, make_document
from bot.report.gantt import draw_chart
from bot.report.matrix import MARKS, NO_ANSWER, describe_run, make_matrix
from bot.report.picture import draw_timeline
from bot.report.quote import clean_text, escape_prose
from bot.report.sections.failures import describe_ending, render_comparison, render_failure
from bot.report.sections.findings import list_findings, render_evidence
from bot.report.sections.headline import TITLES, render_sentence
from bot.report.sections.next_step import render_next_step
from bot.report.sections.ranges import render_changes, render_landing, render_likely_fix
from bot.report.sections.reasons import render_reasons
from bot.report.sections.request import render_request
from bot.report.sections.run_again import list_shell_lines, render_ranking
from bot.report.sections.table import VARIANT_NOTES
from bot.report.sections.testcase import describe_provenance, render_derived, render_smaller
from bot.report.sections.timeline import render_timeline
from bot.verdict.behaviour import Behaviour, find_behaviour
from bot.verdict.forks import label_forks, list_forks
from bot.verdict.verdict import Report
from runners.core.conditions import describe_conditions

GLYPHS = {
    Behaviour.CLEAN: "✓",
    Behaviour.REFUSES: "✓",
    Behaviour.FAILS: "✗",
    Behaviour.ACCEPTS: "✗",
    Behaviour.FAILS_OTHERWISE: "≠",
    Behaviour.COMPILES: "□",
}
"""Signs instead of the comment's emoji, for which the reader's machine may lack a font."""
NO_GLYPH = "–"
"""The sign of all other behaviours."""


def render_page(report: Report) -> str:
    """Return the page. Every foreign word is cleaned and escaped, including the embedded JSON."""
    verdict = report.verdict

    def label(text: str) -> str:
        return label_forks(text, list_forks(report.observations))

    style = files("bot.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        _make_environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            repro=report.extraction if isinstance(report.extraction, Repro) else None,
            matrix=make_matrix(report.observations),
            picture=draw_timeline(report),
            chart=draw_chart(report.times),
            strip=_render_strip(report),
            failure=_render_html(label(render_failure(report))),
            reasons=_render_html(label(render_reasons(report))),
            next_step=_render_html(label(render_next_step(report))),
            label=TITLES[verdict.kind],
            headline=_render_html(render_sentence(verdict)),
            request=_render_html(render_request(report).body),
            changes=[_render_html(text) for text in _render_below_table(report) if text],
            compared=_render_html(render_comparison(report)),
            findings=_render_html(render_evidence(list_findings(report), folds=False)),
            derived=_render_html(render_derived(report.observations)),
            by_hand=list_shell_lines(report),
            ranking=_render_html(render_ranking(report)),
            decided=[_render_html(escape_prose(text)) for text in list_decision_notes(report)],
            style=Markup(style),
            policy=_make_policy(style),
            data=escape_json(format_json(make_document(report, render_comment(report)))),
        )
    )


def _render_strip(report: Report) -> Markup:
    """Return the timeline in words, which a narrow screen shows instead of the picture; empty without an order."""
    text = render_timeline(report).replace(NO_ANSWER, NO_GLYPH)
    for behaviour, mark in MARKS.items():
        text = text.replace(mark, GLYPHS[behaviour])
    return Markup('<div class="strip">{}</div>').format(_render_html(text)) if text else Markup("")


def _render_below_table(report: Report) -> tuple[str, ...]:
    """Return the changes of behaviour, the commits that may have fixed the failure, and the minimized testcase."""
    smaller = render_smaller(report.smaller)
    cut = f"**{smaller.title}**\n\n{smaller.body}" if smaller.body else ""
    return (*render_changes(report), render_landing(report), render_likely_fix(report.likely), cut)


@cache
def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bot.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clean=clean_text,
        provenance=lambda span: describe_provenance(span, clean_text),
        shell=shlex.join,
        ended=lambda how: describe_ending(how, clean_text),
        conditions=describe_conditions,
    )
    environment.globals.update(
        glyph=lambda behaviour: GLYPHS.get(behaviour, NO_GLYPH),
        find_behaviour=find_behaviour,
        describe_run=describe_run,
        VARIANT_NOTES=VARIANT_NOTES,
    )
    return environment


def _render_html(markdown: str) -> Markup:
    """Render Markdown of this package, in which foreign words are only in code. Raw HTML is shown as text.

    A code block may scroll, so the keyboard must reach it. No text of a stranger can contain an unescaped ``<pre>``.
    """
    html = MarkdownIt("commonmark", {"html": False}).render(markdown)
    return Markup(html.replace("<pre>", '<pre tabindex="0">'))


def _make_policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def escape_json(json: str) -> Markup:
    """Escape JSON for a data block, which only ``<`` could end. The escapes have the same meaning in JSON."""
    for character in "<>&\u2028\u2029":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return Markup(json)
