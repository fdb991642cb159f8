"""Write a tracker's dashboard: a static page, and the same rows as JSON, CSV and Markdown.

The page has no external assets: its data, style and script are in the file. It works from a disk and from any host.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bot.report.document import format_json
from bot.report.files import write_file
from bot.report.page import escape_json
from bot.report.quote import clean_text, escape_prose, quote_code
from bot.report.sections.headline import TITLES
from bot.tracker.cost import SweepSummary, describe_summary
from bot.tracker.duplicates import mark_alike
from bot.tracker.rows import FAILED, Change, IssueRow
from bot.tracker.state import TrackerState
from bot.tracker.truth import TRUTH_NOTE, TruthEntry, count_states, list_truth, measure_reliability
from bot.verdict.verdict import VerdictKind
from runners.core.packages.catalogue import Catalogue

FAILED_TITLE = "Not answered"
_CODES = {"good": "g", "bad": "b", "mixed": "m", "other-failure": "o", "timeout": "t", "out-of-memory": "e"} | {
    "incompatible": "i",
    "unavailable": "u",
    "infra": "x",
}
"""Content of a cell → its letter in the page's data."""
NO_RUN = "."
MAX_FAILURE = 300
COLUMNS = (
    *("id", "title", "url", "state", "labels", "verdict", "confidence", "headline", "toolchain", "fixed_in"),
    *("regressed_in", "why", "signature", "passes", "like", "answered", "runs", "runs_from_ledger", "seconds"),
    *("fixed_by", "not_in", "reason", "same"),
)
TRUTH_COLUMNS = ("id", "verdict", "confidence", "answered", "agrees", "fact", "commit")

DASHBOARD = ("index.html", "index.md", "issues.csv", "issues.json", "sweep.json", "truth.csv", "truth.json")
"""The files that each sweep writes, beside the folder of reports and its own state."""


def write_dashboard(
    out: Path, name: str, state: TrackerState, summary: SweepSummary, catalogue: Catalogue, *, now: datetime
) -> None:
    """Write the files ``DASHBOARD`` into the folder ``out``.

    Raises:
        UserError: a file cannot be written.
    """
    rows = mark_alike(list(state.list_rows().values()))
    rows.sort(key=lambda row: (row.issue.created, row.issue.id), reverse=True)
    state.keep_rows(rows)
    changes = state.list_changes(summary.sweep)
    truth = list_truth(state.list_answers(), {row.issue.id: row for row in rows}, state.list_fates())
    texts = (
        render_dashboard(name, rows, changes, truth, summary, catalogue, now=now),
        render_markdown(name, rows),
        render_csv(rows),
        format_json({"schema": 1, "tracker": name, "issues": msgspec.to_builtins(rows)}),
        format_json({"schema": 1, "tracker": name, **_dump_cost(summary)}),
        render_truth_csv(truth),
        format_json({"schema": 1, "tracker": name, **dump_truth(truth)}),
    )
    for file, text in zip(DASHBOARD, texts, strict=True):
        write_file(out / file, text)


def _dump_cost(summary: SweepSummary) -> dict[str, Any]:
    derived = {"core_hours": summary.core_hours, "issues_per_core_hour": summary.issues_per_core_hour}
    return {**msgspec.to_builtins(summary), **derived}


def render_csv(rows: Iterable[IssueRow]) -> str:
    """Return the rows as CSV. A text that a spreadsheet would run as a formula is quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        issue, work = row.issue, row.work
        values = (
            *(issue.id, issue.title, issue.url, "open" if issue.open else "closed", " ".join(issue.labels)),
            *(row.verdict, row.confidence, row.headline, row.toolchain, row.fixed_in, row.regressed_in, row.why),
            *(_describe_failure(row), " ".join(row.passes), " ".join(row.like), row.answered),
            *(work.made, work.reused, work.seconds),
            *(row.fixed_by, " ".join(row.not_in), row.reason, " ".join(row.same)),
        )
        writer.writerow([_disarm_formula(clean_text(value)) if isinstance(value, str) else value for value in values])
    return text.getvalue()


def render_truth_csv(truth: Iterable[TruthEntry]) -> str:
    """Return each verdict beside what became of its issue, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TRUTH_COLUMNS)
    for one in truth:
        agrees = {True: "yes", False: "no", None: ""}[one.agrees]
        fact = _disarm_formula(clean_text(one.fact))
        writer.writerow((one.id, one.verdict, one.confidence, one.answered, agrees, fact, one.commit))
    return text.getvalue()


def dump_truth(truth: Sequence[TruthEntry]) -> dict[str, Any]:
    """Return the truth ledger and its reliability curve as JSON."""
    entries = [{**msgspec.to_builtins(one), "fact": clean_text(one.fact)} for one in truth]
    return {"note": TRUTH_NOTE, "entries": entries, "reliability": msgspec.to_builtins(measure_reliability(truth))}


def _disarm_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def render_markdown(name: str, rows: Iterable[IssueRow]) -> str:
    """Return the rows as a Markdown list."""
    lines = [f"# {escape_prose(name)}", ""]
    for row in rows:
        said = escape_prose(row.headline or row.why)
        lines.append(f"- #{escape_prose(row.issue.id)} {quote_code(row.issue.title, 100)}: **{row.verdict}**. {said}")
    return "\n".join(lines) + "\n"


def render_dashboard(
    name: str,
    rows: Sequence[IssueRow],
    changes: Sequence[Change],
    truth: Sequence[TruthEntry],
    summary: SweepSummary,
    catalogue: Catalogue,
    *,
    now: datetime,
) -> str:
    """Return the page. Strangers' words reach it as JSON, and its script shows them as text only."""
    place = files("bot.tracker")
    style, script = (place.joinpath(f"dashboard.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    data = make_data(name, rows, changes, truth, summary, catalogue)
    return (
        _make_environment()
        .get_template("dashboard.html.j2")
        .render(
            name=name,
            now=now,
            count=len(rows),
            cost=describe_summary(summary)[-2 if summary.stopped else -1 :],
            style=Markup(style),
            script=Markup(script),
            policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'",
            data=escape_json(msgspec.json.encode(data).decode()),
        )
    )


def make_data(
    name: str,
    rows: Sequence[IssueRow],
    changes: Sequence[Change],
    truth: Sequence[TruthEntry],
    summary: SweepSummary,
    catalogue: Catalogue,
) -> dict[str, Any]:
    """Return the page's data. A row's cells are one string, with a letter for each release."""
    releases = {
        toolchain: _list_releases(toolchain, [row for row in rows if row.toolchain == toolchain], catalogue)
        for toolchain in sorted({row.toolchain for row in rows if row.cells})
    }
    titles = {str(kind): title for kind, title in TITLES.items()} | {FAILED: FAILED_TITLE}
    return {
        "tracker": name,
        "releases": releases,
        "titles": titles,
        "order": [*map(str, VerdictKind), FAILED],
        "rows": [_dump_row(row, releases.get(row.toolchain, [])) for row in rows],
        "changes": msgspec.to_builtins(changes),
        "truth": msgspec.to_builtins(count_states(rows)),
        "truth_note": TRUTH_NOTE,
        "disagree": [
            {"id": one.id, "verdict": one.verdict, "confidence": one.confidence, "fact": clean_text(one.fact)}
            for one in truth
            if one.agrees is False
        ],
        "decided": Counter(clean_text(one.fact) for one in truth if one.agrees is not None),
        "reliability": msgspec.to_builtins(measure_reliability(truth)),
        "sweep": msgspec.to_builtins(summary),
    }


def _list_releases(toolchain: str, rows: Sequence[IssueRow], catalogue: Catalogue) -> list[str]:
    """Return the builds that a row ran, oldest first, nightlies left out unless only nightlies ran."""
    ran = {version for row in rows for version in row.cells}
    return [build.version for build in catalogue.list_releases(toolchain, prereleases=True) if build.version in ran]


def _dump_row(row: IssueRow, releases: Sequence[str]) -> dict[str, Any]:
    issue = row.issue
    plain: dict[str, Any] = {
        "id": issue.id,
        "title": clean_text(issue.title),
        "url": issue.url,
        "open": issue.open,
        "labels": [clean_text(label) for label in issue.labels],
        "created": issue.created.date().isoformat(),
        "verdict": row.verdict,
        "confidence": row.confidence,
        "headline": clean_text(row.headline),
        "toolchain": row.toolchain,
        "cells": "".join(_CODES.get(row.cells.get(version, ""), NO_RUN) for version in releases).rstrip(NO_RUN),
        "fixed": row.fixed_in,
        "fixed_by": clean_text(row.fixed_by),
        "not_in": list(row.not_in),
        "regressed": row.regressed_in,
        "why": clean_text(row.why),
        "signature": clean_text(_describe_failure(row)),
        "passes": [clean_text(name) for name in row.passes],
        "like": list(row.like),
        "same": list(row.same),
        "page": row.page,
        "answered": row.answered,
    }
    return {key: value for key, value in plain.items() if value not in ("", [], False)} | {"open": issue.open}


def _describe_failure(row: IssueRow) -> str:
    """Return type and message of the failure, shortened; empty if the reported failure was not seen."""
    return "" if row.failure is None else f"{row.failure.type}: {row.failure.message}".rstrip(": ")[:MAX_FAILURE]


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _make_environment() -> Environment:
    return Environment(
        loader=PackageLoader("bot.tracker", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
