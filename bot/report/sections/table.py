"""The table of outcomes: releases down, devices across."""

from __future__ import annotations

from collections.abc import Sequence

from bot.report.matrix import Row, RunTally, make_matrix
from bot.report.quote import quote_code
from bot.report.sections.shape import Detail
from runners.core.protocol import Observation, Variant

VARIANT_NOTES = {
    Variant.ORIGINAL: "",
    Variant.PORTED: "ported to this release's API",
    Variant.RETARGETED: "changed to run on this device",
    Variant.CONTROL: "control: with one change",
}


def render_table(observations: Sequence[Observation], detail: Detail) -> str:
    """Return the table as Markdown, cut to the rows and devices of ``detail``; empty without a run."""
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
