"""The tables of outcomes: equal neighbouring releases in one row, and, folded, every build and variant."""

from __future__ import annotations

from collections.abc import Sequence

from bot.report.matrix import MARKS, NO_ANSWER, MergedCell, MergedRow, Row, RunTally, make_matrix, merge_rows
from bot.report.quote import quote_code
from bot.report.sections.shape import Detail, Section
from bot.verdict.verdict import Report
from runners.core.protocol import Observation, Variant

VARIANT_NOTES = {
    Variant.ORIGINAL: "",
    Variant.PORTED: "ported to this release's API",
    Variant.RETARGETED: "changed to run on this device",
    Variant.CONTROL: "control: with one change",
}
_CHANGED = "(testcase adapted)"
MAX_ROWS, MAX_DEVICES = 5, 4
"""Rows and devices of the table that is always visible."""


def render_summary(report: Report) -> str:
    """Return the table of releases as Markdown; empty without a run. Rows that do not fit are named as left out."""
    if not report.observations:
        return ""
    devices, rows = merge_rows(report.observations)
    devices = devices[:MAX_DEVICES]
    several = len({row.toolchain for row in rows}) > 1
    dated = any(report.find_release(version) for row in rows for version in row.versions)
    changed = [{row.cells[i].variant for row in rows if row.cells[i].tallies} for i in range(len(devices))]
    names = [
        f"{quote_code(device)} {_CHANGED}" if variants == {Variant.RETARGETED} else quote_code(device)
        for device, variants in zip(devices, changed, strict=True)
    ]
    head = ["release", *(["released"] if dated else []), *names]
    lines = [_join_cells(head), _join_cells(["---"] * len(head))]
    shown = _select_telling(rows, _find_reported(report))
    for row in shown:
        cells = [_render_merged(cell, len(row.versions)) for cell in row.cells[: len(devices)]]
        lines.append(
            _join_cells(
                [_name_row(row, report, several=several), *([_date_row(row, report)] if dated else []), *cells]
            )
        )
    left_out = len(rows) - len(shown)
    note = f"\n\n{left_out} more rows are in the table of all runs below." if left_out else ""
    return "\n".join(lines) + note


def _select_telling(rows: Sequence[MergedRow], reported: str) -> Sequence[MergedRow]:
    """Return at most `MAX_ROWS` rows: the oldest, the newest, the reported one, and those before the newest."""
    if len(rows) <= MAX_ROWS:
        return rows
    home = next((i for i, row in enumerate(rows) if reported in row.versions), 0)
    wanted = dict.fromkeys([len(rows) - 1, home, 0, *range(len(rows) - 2, 0, -1)])
    return [rows[i] for i in sorted(list(wanted)[:MAX_ROWS])]


def _find_reported(report: Report) -> str:
    return (report.plan.reported or "") if report.plan is not None else ""


def _is_exact(report: Report) -> bool:
    """True if the report names this very release, so that no other build stands in for it."""
    named = [one.lstrip("vV") for one in report.extraction.claim.versions]
    return _find_reported(report) in named


def _name_row(row: MergedRow, report: Report, *, several: bool) -> str:
    toolchain = f"{row.toolchain} " if several else ""
    names = [quote_code(f"{toolchain}{version}") for version in row.versions]
    if row.fork:
        return f"{names[0]} (fork {quote_code(row.fork.partition(',')[0])}, not a release)"
    reported = _find_reported(report)
    is_home = reported in row.versions
    role = "reported" if _is_exact(report) else "closest to the report"
    if len(names) < 3:
        marks = {reported: f" ({role})"} if is_home else {}
        return ", ".join(f"{name}{marks.get(v, '')}" for name, v in zip(names, row.versions, strict=True))
    home = f"; {role}: {quote_code(reported)}" if is_home else ""
    return f"{names[0]} to {names[-1]} ({len(names)} releases run{home})"


def _date_row(row: MergedRow, report: Report) -> str:
    days = [release.released for version in row.versions if (release := report.find_release(version)) is not None]
    if not days:
        return ""
    first, last = min(days), max(days)
    if first == last:
        return f"{first}"
    return " to ".join(dict.fromkeys((f"{first:%Y-%m}", f"{last:%Y-%m}")))


def _render_merged(cell: MergedCell, builds: int) -> str:
    """Return ``❌ fails as reported``; with the share of runs that disagree, or of the builds that ran here."""
    if not cell.tallies:
        return ""
    mixed = len(cell.tallies) > 1
    parts = [
        f"{MARKS.get(tally.behaviour, NO_ANSWER)} {tally.text}"
        + (f" ({tally.times} of {tally.runs} runs)" if mixed else "")
        for tally in cell.tallies[:3]
    ]
    ported = " (ported)" if cell.variant is Variant.PORTED else ""
    share = f" (run on {cell.builds} of {builds})" if 0 < cell.builds < builds else ""
    return ", ".join(parts) + ported + share


def render_all_runs(report: Report, detail: Detail) -> Section:
    """Return the folded table of every build, variant and repeated run; empty if the summary shows all of it."""
    n = len(report.observations)
    if n < 2:
        return Section("", "")
    devices = len({seen.device for seen in report.observations})
    on = f" on {devices} devices" if devices > 1 else ""
    builds = len({(seen.toolchain, seen.version) for seen in report.observations})
    title = f"All {n} runs, of {builds} {'release' if builds == 1 else 'releases'}{on}"
    return Section(title, render_table(report.observations, detail), folded=True)


def render_table(observations: Sequence[Observation], detail: Detail) -> str:
    """Return every build and variant as Markdown, cut to the rows and devices of ``detail``; empty without a run."""
    if not observations:
        return ""
    whole = make_matrix(observations)
    devices = whole.devices[: max(2, detail.rows // 8)]
    several = len({row.toolchain for row in whole.rows}) > 1
    lines = [_join_cells(["version", *map(quote_code, devices)]), _join_cells(["---"] * (1 + len(devices)))]
    lines += [_render_row(row, len(devices), several) for row in _select_rows(whole.rows, detail.rows)]
    left_out = len(whole.rows) - detail.rows, len(whole.devices) - len(devices)
    notes = [f"{n} more {noun}" for n, noun in zip(left_out, ("rows", "devices"), strict=True) if n > 0]
    return "\n".join(lines) + (f"\n\nNot shown here: {' and '.join(notes)}." if notes else "")


def _select_rows(rows: Sequence[Row], limit: int) -> Sequence[Row]:
    """Return at most ``limit`` rows: the oldest and the newest releases."""
    return rows if len(rows) <= limit else [*rows[: limit // 2], *rows[len(rows) - (limit - limit // 2) :]]


def _render_row(row: Row, width: int, several: bool) -> str:
    build = quote_code(f"{row.toolchain} {row.version}" if several else row.version)
    variant = f" ({VARIANT_NOTES[row.variant]})" if VARIANT_NOTES[row.variant] else ""
    fork = f" (a fork, {quote_code(row.fork)}; not a release)" if row.fork else ""
    return _join_cells([build + fork + variant, *map(_render_cell, row.cells[:width])])


def _render_cell(tallies: Sequence[RunTally]) -> str:
    return ", ".join(tally.describe() for tally in tallies[:3])


def _join_cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
