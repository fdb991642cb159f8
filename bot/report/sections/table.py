"""The table of outcomes: releases down, devices across."""

from __future__ import annotations

from collections.abc import Sequence

from bot.report.matrix import Row, Tally, matrix
from bot.report.quote import code
from bot.report.sections.shape import Detail
from runners.core.protocol import Observation, Variant

VARIANTS = {
    Variant.ORIGINAL: "",
    Variant.PORTED: "ported to this release",
    Variant.RETARGETED: "retargeted to this device",
    Variant.CONTROL: "control: with one change",
}


def table(observations: Sequence[Observation], detail: Detail) -> str:
    if not observations:
        return ""
    whole = matrix(observations)
    devices = whole.devices[: max(2, detail.rows // 8)]
    several = len({row.toolchain for row in whole.rows}) > 1
    lines = [_cells(["version", *map(code, devices)]), _cells(["---"] * (1 + len(devices)))]
    lines += [_row(row, len(devices), several) for row in _shown(whole.rows, detail.rows)]
    left_out = len(whole.rows) - detail.rows, len(whole.devices) - len(devices)
    notes = [f"{n} more {what}" for n, what in zip(left_out, ("rows", "devices"), strict=True) if n > 0]
    return "\n".join(lines) + (f"\n\nNot shown here: {' and '.join(notes)}." if notes else "")


def _shown(rows: Sequence[Row], limit: int) -> Sequence[Row]:
    """Both ends of a table that is too long: the newest releases and the oldest."""
    return rows if len(rows) <= limit else [*rows[: limit // 2], *rows[len(rows) - (limit - limit // 2) :]]


def _row(row: Row, width: int, several: bool) -> str:
    build = code(f"{row.toolchain} {row.version}" if several else row.version)
    variant = f" ({VARIANTS[row.variant]})" if VARIANTS[row.variant] else ""
    fork = f" (a fork, {code(row.fork)}; not a release)" if row.fork else ""
    return _cells([build + fork + variant, *map(_place, row.places[:width])])


def _place(tallies: Sequence[Tally]) -> str:
    return ", ".join(tally.words() for tally in tallies[:3])


def _cells(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
