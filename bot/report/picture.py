"""The geometry of the timeline's picture: a mark per release at its date, and the day of the report. Pure.

The template draws it as inline SVG. The description has all facts of the picture in words.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from bot.report.sections.timeline import DatedBuild, find_report_day, list_dated_builds
from bot.verdict.behaviour import Behaviour
from bot.verdict.verdict import Report

WIDTH, MARGIN = 940, 60
LINE_Y, LABEL_Y, LABEL_STEP = 40, 70, 19
LEVELS = 3
CHAR_WIDTH = 7.4
"""Width of a character of a label, in the picture's units. It keeps labels apart."""

SHAPES: Mapping[Behaviour | None, str] = {
    Behaviour.FAILS: "cross",
    Behaviour.ACCEPTS: "cross",
    Behaviour.CLEAN: "circle",
    Behaviour.REFUSES: "circle",
    Behaviour.COMPILES: "square",
}
"""Shapes beside colours, for readers who cannot distinguish the colours. A ring is any other behaviour, or runs that
disagree."""
CLASSES: Mapping[Behaviour | None, str] = {
    Behaviour.FAILS: "bad",
    Behaviour.ACCEPTS: "bad",
    Behaviour.CLEAN: "good",
    Behaviour.REFUSES: "good",
    Behaviour.COMPILES: "compiles",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One release. ``label`` is empty if its neighbours have the same outcome."""

    x: int
    shape: str
    css: str
    label: str = ""
    label_x: int = 0
    label_y: int = 0
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    width: int
    height: int
    line_y: int
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[int, str], ...]
    """Position and text of the years."""
    legend: tuple[tuple[str, str, str], ...]
    """Shape, class and words."""
    report_x: int | None
    report_day: str
    description: str


def draw_timeline(report: Report) -> Picture | None:
    """Return the picture; None with fewer than two dated releases."""
    builds = list_dated_builds(report)
    if len(builds) < 2:
        return None
    day = find_report_day(report)
    days = [*(one.day for one in builds), *([day] if day is not None else [])]
    scale = _Scale(min(days), max(days))
    reported = (report.plan.reported or "") if report.plan is not None else ""
    marks = _place_labels(_make_marks(builds, scale, reported))
    lowest = max((mark.label_y for mark in marks), default=LABEL_Y)
    return Picture(
        width=WIDTH,
        height=lowest + 50,
        line_y=LINE_Y,
        marks=marks,
        ticks=_list_ticks(scale),
        legend=_list_legend(marks),
        report_x=scale.place(day) if day is not None else None,
        report_day=f"reported {day}" if day is not None else "",
        description=_describe(builds, day),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    first: date
    last: date

    def place(self, day: date) -> int:
        share = (day - self.first).days / max(1, (self.last - self.first).days)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN))


def _make_marks(builds: Sequence[DatedBuild], scale: _Scale, reported: str) -> list[Mark]:
    """Return the marks. The reported release, and the ends of each period of equal outcomes, have a label."""
    marks = []
    for _, group in itertools.groupby(builds, key=lambda one: one.words):
        period = list(group)
        for one in period:
            labelled = one in (period[0], period[-1]) or one.version == reported
            marks.append(
                Mark(
                    x=scale.place(one.day),
                    shape=SHAPES.get(one.agreed, "ring"),
                    css=CLASSES.get(one.agreed, "skip"),
                    label=one.version if labelled else "",
                    words=one.words,
                )
            )
    return marks


def _place_labels(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Put each label on the first of `LEVELS` lines that has room for it; drop a label without room."""
    ends = [-1.0] * LEVELS
    placed = []
    for mark in marks:
        width = CHAR_WIDTH * len(mark.label)
        left = max(0.0, min(mark.x - width / 2, WIDTH - width))
        level = next((i for i, end in enumerate(ends) if left > end + 8), None) if mark.label else None
        if level is None:
            placed.append(replace(mark, label=""))
            continue
        ends[level] = left + width
        placed.append(replace(mark, label_x=round(left + width / 2), label_y=LABEL_Y + level * LABEL_STEP))
    return tuple(placed)


def _list_ticks(scale: _Scale) -> tuple[tuple[int, str], ...]:
    years = range(scale.first.year + 1, scale.last.year + 1)
    return tuple((scale.place(date(year, 1, 1)), str(year)) for year in years)


def _list_legend(marks: Sequence[Mark]) -> tuple[tuple[str, str, str], ...]:
    return tuple(dict.fromkeys((mark.shape, mark.css, mark.words) for mark in marks))


def _describe(builds: Sequence[DatedBuild], day: date | None) -> str:
    """Return the picture in words, in the order of time."""
    told = [f"{one.version}, {one.day}: {one.words}" for one in builds]
    reported = f" The issue was reported on {day}." if day is not None else ""
    return f"Releases by date: {'; '.join(told)}.{reported}"
