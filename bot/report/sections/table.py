"""The tables of outcomes: equal neighbouring releases in one row, and, folded, every build and variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bot.report.matrix import MARKS, NO_ANSWER, MergedCell, MergedRow, Row, RunTally, make_matrix, merge_rows
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.shape import Detail, Section
from bot.verdict.behaviour import BAD, GOOD, Behaviour
from bot.verdict.forks import describe_fork
from bot.verdict.verdict import Report
from runners.core.protocol import Observation, Variant

VARIANT_NOTES = {
    Variant.ORIGINAL: "",
    Variant.PORTED: "ported to this release's API",
    Variant.RETARGETED: "changed to run on this device",
    Variant.CONTROL: "control: with one change",
}
SILENT = frozenset({Behaviour.API_DIFFERS, Behaviour.UNAVAILABLE, Behaviour.NOT_RUN})
"""Behaviours of a build that cannot run the testcase."""
_CHANGED = "(testcase adapted)"
NO_BREAK = "\N{NON-BREAKING HYPHEN}"
MAX_ROWS, MAX_DEVICES = 5, 4
"""Rows and devices of the table that is always visible."""


def render_summary(report: Report) -> str:
    """Return the table of releases as Markdown; empty without a run. Rows that do not fit are named as left out."""
    if not report.observations:
        return ""
    devices, rows = merge_rows(report.observations)
    several = len({row.toolchain for row in rows}) > 1
    dated = any(report.find_release(version) for row in rows for version in row.versions)
    kept = _drop_silent_forks(rows)
    shown = _select_telling(kept, _find_reported(report))
    builds = ["release (date)" if dated else "release", *(_name_row(row, report, several=several) for row in shown)]
    told, shown = _drop_silent_devices(devices, shown, report)
    columns = [builds, *_make_columns(told[:MAX_DEVICES], shown)]
    head, *body = zip(*columns, strict=True)
    lines = [_join_cells(head), _join_cells(["---"] * len(head)), *map(_join_cells, body)]
    left_out = len(kept) - len(shown)
    note = f"\n\n{left_out} more rows are in the table of all runs below." if left_out else ""
    return "\n".join(lines) + note


def _drop_silent_forks(rows: Sequence[MergedRow]) -> Sequence[MergedRow]:
    """Leave out forks that cannot run the testcase, beside other builds: they say nothing about a release.

    The table of all runs has them.
    """
    kept = [row for row in rows if not row.fork or any(not SILENT.issuperset(cell.key[1]) for cell in row.cells)]
    return kept or rows


def _drop_silent_devices(
    devices: Sequence[str], rows: Sequence[MergedRow], report: Report
) -> tuple[Sequence[str], Sequence[MergedRow]]:
    """Leave out the devices beside the testcase's own on which no run fails as reported.

    Those that were asked for stay, and all of them where the testcase's own device gave no answer. The table of all
    runs has every device.
    """
    plan = report.plan
    if plan is None or plan.device not in devices:
        return devices, rows
    own = devices.index(plan.device)
    if not any(row.cells[own].key[1] & (BAD | GOOD) for row in rows):
        return devices, rows
    kept = [
        i
        for i, device in enumerate(devices)
        if i == own or device in plan.devices or any(row.cells[i].key[1] & BAD for row in rows)
    ]
    return [devices[i] for i in kept], [replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows]


def _make_columns(devices: Sequence[str], rows: Sequence[MergedRow]) -> Iterator[list[str]]:
    """Yield the title and the cells of each device, then one column for all devices with only adapted runs.

    Such runs are rare, and a fourth column is wider than the screen of a telephone.
    """
    adapted: list[int] = []
    for i, device in enumerate(devices):
        if {row.cells[i].variant for row in rows if row.cells[i].tallies} == {Variant.RETARGETED}:
            adapted.append(i)
        else:
            yield [quote_code(device), *(_render_merged(row.cells[i], row.versions) for row in rows)]
    if not adapted:
        return
    names = [quote_code(devices[i]) for i in adapted]
    cells = [_group_devices(names, [row.cells[i] for i in adapted], row.versions) for row in rows]
    if all(own == names for groups in cells for _, own in groups):
        yield [f"{', '.join(names)} {_CHANGED}", *("".join(text for text, _ in groups) for groups in cells)]
    else:
        told = ("; ".join(f"{', '.join(own)}: {text}" for text, own in groups) for groups in cells)
        yield [f"other devices {_CHANGED}", *told]


def _group_devices(
    names: Sequence[str], cells: Sequence[MergedCell], versions: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Return the behaviours of several devices in one row, each once, and the devices that show it."""
    groups: dict[str, list[tuple[str, MergedCell]]] = {}
    for name, cell in zip(names, cells, strict=True):
        if cell.tallies:
            groups.setdefault(_render_merged(cell, cell.versions), []).append((name, cell))
    return [
        (text + _share_builds([cell.versions for _, cell in own], versions), [name for name, _ in own])
        for text, own in groups.items()
    ]


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
    """True if the report names exactly this release, so that no other build represents it."""
    named = [one.lstrip("vV") for one in report.extraction.claim.versions]
    return _find_reported(report) in named


def _name_row(row: MergedRow, report: Report, *, several: bool) -> str:
    """Return ``3.9.0 to 3.11.0 (2025-11 to 2026-03; 3 releases run; reported: 3.10.0)``.

    The dates have no column of their own: four columns are wider than the screen of a telephone.
    """
    toolchain = f"{row.toolchain} " if several else ""
    fork = "fork " if row.fork else ""
    names = [f"{fork}{quote_code(f'{toolchain}{version}')}" for version in row.versions]
    reported = _find_reported(report)
    facts = [_date_row(row, report)]
    if row.fork:
        whose = describe_fork(row.toolchain, row.versions[0])
        facts.append(escape_prose(whose) if whose else f"at {quote_code(row.fork.partition(',')[0])}")
    if len(names) > 2:
        facts.append(f"{len(names)} releases run")
    if reported in row.versions and not row.fork:
        role = "reported" if _is_exact(report) else "closest to the report"
        facts.append(role if len(names) == 1 else f"{role}: {quote_code(reported)}")
    shown = "; ".join(filter(None, facts))
    return (f"{names[0]} to {names[-1]}" if len(names) > 2 else ", ".join(names)) + (f" ({shown})" if shown else "")


def _date_row(row: MergedRow, report: Report) -> str:
    """Return the day of the release, or the months of several, with hyphens that do not break a line."""
    days = [release.released for version in row.versions if (release := report.find_release(version)) is not None]
    if not days:
        return ""
    first, last = min(days), max(days)
    text = f"{first}" if first == last else " to ".join(dict.fromkeys((f"{first:%Y-%m}", f"{last:%Y-%m}")))
    return text.replace("-", NO_BREAK)


def _render_merged(cell: MergedCell, versions: Sequence[str]) -> str:
    """Return ``❌ fails as reported``; with the share of runs that disagree, and of the builds that ran here."""
    if not cell.tallies:
        return ""
    mixed = len(cell.tallies) > 1
    parts = [
        f"{MARKS.get(tally.behaviour, NO_ANSWER)} {tally.text}"
        + (f" ({tally.times} of {tally.runs} runs)" if mixed else "")
        for tally in cell.tallies[:3]
    ]
    ported = " (ported)" if cell.variant is Variant.PORTED else ""
    return ", ".join(parts) + ported + _share_builds([cell.versions], versions)


def _share_builds(ran: Sequence[tuple[str, ...]], versions: Sequence[str]) -> str:
    """Return `` (run on 3.11.0)`` or `` (run on 2 of 3)`` where not every build of a row ran on each device."""
    if all(len(one) == len(versions) for one in ran):
        return ""
    if len(set(ran)) > 1:
        return " (not run on all)"
    return f" (run on {quote_code(ran[0][0])})" if len(ran[0]) == 1 else f" (run on {len(ran[0])} of {len(versions)})"


def render_all_runs(report: Report, detail: Detail) -> Section:
    """Return the folded table of every build, variant and repeated run; empty if the summary shows all of them."""
    n = len(report.observations)
    if n < 2:
        return Section("", "")
    devices = len({seen.device for seen in report.observations})
    on = f" on {devices} devices" if devices > 1 else ""
    builds = len({(seen.toolchain, seen.version) for seen in report.observations})
    noun = "build" if any(seen.fork for seen in report.observations) else "release"
    title = f"All {n} runs, of {builds} {noun}{'s' * (builds != 1)}{on}"
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
    commit, _, carrier = row.fork.partition(", carried by ")
    carried = f", carried by {quote_code(carrier)}" if carrier else ""
    fork = f" (at {quote_code(commit)}{carried}; not a release)" if row.fork else ""
    build = f"fork {build}" if row.fork else build
    return _join_cells([build + fork + variant, *map(_render_cell, row.cells[:width])])


def _render_cell(tallies: Sequence[RunTally]) -> str:
    return ", ".join(tally.describe() for tally in tallies[:3])


def _join_cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
