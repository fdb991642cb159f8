"""A report as one HTML file that needs nothing else: no script, no font, no address is loaded.

It is opened from an artifact or a mail, so it carries its own policy: nothing may run or load, and the only style is
the one whose hash stands in the head.
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
from bot.report.comment import render_comment, said_of_the_decision
from bot.report.document import document, dumps
from bot.report.matrix import matrix, said
from bot.report.quote import clean, prose
from bot.report.run_again import by_hand
from bot.report.sections.failures import compared, ended
from bot.report.sections.findings import list_findings, render_findings
from bot.report.sections.headline import TITLES, under_its_label
from bot.report.sections.ranges import changes, likely_fix
from bot.report.sections.request import request
from bot.report.sections.table import VARIANTS
from bot.report.sections.testcase import derived, provenance, smaller_testcase
from bot.verdict.verdict import Report
from runners.core.conditions import describe_conditions
from runners.core.protocol import Answer

GLYPH = {Answer.GOOD: "✓", Answer.BAD: "✗", Answer.SKIP: "–"}
"""A page cannot bring a font for the comment's emoji, and not every machine that opens it has one."""


def render_page(report: Report) -> str:
    """The whole file. Every word that is not ours is cleaned and escaped, the report's JSON included."""
    verdict = report.verdict
    style = files("bot.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            repro=report.extraction if isinstance(report.extraction, Repro) else None,
            matrix=matrix(report.observations),
            label=TITLES[verdict.kind],
            headline=_html(under_its_label(verdict)),
            request=_html(request(report).body),
            changes=[_html(text) for text in _below_the_table(report) if text],
            compared=_html(compared(report)),
            findings=_html(render_findings(list_findings(report), folds=False)),
            derived=_html(derived(report.observations)),
            by_hand=by_hand(report),
            decided=[_html(prose(text)) for text in said_of_the_decision(report)],
            style=Markup(style),
            policy=_policy(style),
            data=_embedded(dumps(document(report, render_comment(report)))),
        )
    )


def _below_the_table(report: Report) -> tuple[str, ...]:
    """Where the behaviour changes, who may have changed it back, and the smaller testcase."""
    smaller = smaller_testcase(report.smaller)
    cut = f"**{smaller.title}**\n\n{smaller.body}" if smaller.body else ""
    return (*changes(report), likely_fix(report.likely), cut)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bot.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clean=clean,
        provenance=lambda span: provenance(span, clean),
        shell=shlex.join,
        ended=lambda how: ended(how, clean),
        conditions=describe_conditions,
    )
    environment.globals.update(GLYPH=GLYPH, said=said, VARIANTS=VARIANTS)
    return environment


def _html(markdown: str) -> Markup:
    """Our own Markdown, in which strangers' words stand in code alone; raw HTML in it would be shown, not used."""
    return Markup(MarkdownIt("commonmark", {"html": False}).render(markdown)) if markdown else Markup("")


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _embedded(json: str) -> Markup:
    """JSON that no text in it can end: in a data block only ``<`` could, and escapes of it mean the same in JSON."""
    for character in "<>&\u2028\u2029":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return Markup(json)
