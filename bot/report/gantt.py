"""The geometry of the chart of an investigation's stages and runs, and a table with the same facts. Pure.

The template draws the chart as inline SVG. The names of builds and devices come from a runner, so they are cut here
and escaped there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from runners.core.protocol import StageName, TimedRun, Times

WIDTH, LABELS, RIGHT = 940, 230, 40
TOP, LANE, BAR = 30, 18, 12
MOST_BARS = 60
"""Above this number, neighbouring bars of a row are drawn as one."""
MOST_BUILDS = 24
"""Above this number, the builds with the shortest runs share a row."""
MOST_CHARS = 28
STAGES: Mapping[StageName, str] = {
    "matrix": "first releases",
    "bisection": "search for the change",
    "confirmation": "confirming runs",
    "diagnosis": "diagnosis",
    "between releases": "builds between releases",
    "minimization": "smaller testcase",
}
"""Name of a stage → our words for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stage, one run, or neighbouring runs; in seconds since the start."""

    begin: float
    end: float
    prepared: float = 0.0
    """The part at the beginning in which no testcase ran yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stage, a build on a device, or all other builds."""

    label: str
    spans: tuple[Span, ...]
    runs: int = 0
    """0 for a stage."""

    @property
    def seconds(self) -> float:
        """The sum of the times of all spans; concurrent spans count twice."""
        return sum(one.end - one.begin for one in self.spans)

    @property
    def begin(self) -> float:
        return min(one.begin for one in self.spans)

    @property
    def end(self) -> float:
        return max(one.end for one in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: int
    width: float
    css: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    width: int
    height: int
    bars: tuple[Bar, ...]
    labels: tuple[tuple[int, str], ...]
    """Position and text of each row."""
    ticks: tuple[tuple[float, str], ...]
    """Position and text of the seconds."""
    rows: tuple[Row, ...]
    """The lines of the table. The bars that were drawn as one are still single here."""
    summary: str
    bar_height: int = BAR
    top: int = TOP


def draw_chart(times: Times) -> Chart | None:
    """Return the chart; None without a run or without a duration."""
    if not times.runs or times.seconds <= 0:
        return None
    rows = (*_list_stages(times), *_list_builds(times.runs))
    scale = (WIDTH - LABELS - RIGHT) / times.seconds
    bars: list[Bar] = []
    labels: list[tuple[int, str]] = []
    y = TOP
    for row in merge_spans(rows, MOST_BARS):
        labels.append((y + BAR - 1, row.label))
        lanes = list(assign_lanes(row.spans))
        for span, lane in zip(row.spans, lanes, strict=True):
            bars += _draw_span(span, y + lane * LANE, scale, "run" if row.runs else "stage")
        y += LANE * (1 + max(lanes))
    return Chart(
        width=WIDTH,
        height=y + 8,
        bars=tuple(bars),
        labels=tuple(labels),
        ticks=tuple((round(LABELS + at * scale, 1), f"{at:g} s") for at in list_ticks(times.seconds)),
        rows=rows,
        summary=_summarise(times),
    )


def _summarise(times: Times) -> str:
    builds = len({run.version for run in times.runs})
    runs = len(times.runs)
    return (
        f"{times.seconds:.1f} s for {runs} run{'s' if runs > 1 else ''} of {builds} build{'s' if builds > 1 else ''}"
    )


def _list_stages(times: Times) -> Iterator[Row]:
    spans: dict[StageName, list[Span]] = defaultdict(list)
    for stage in times.stages:
        spans[stage.name].append(Span(stage.begin, stage.end))
    for name, found in spans.items():
        yield Row(label=STAGES[name], spans=tuple(sorted(found, key=lambda one: one.begin)))


def _list_builds(runs: Sequence[TimedRun]) -> tuple[Row, ...]:
    """Return a row for each build and device, in the order of the first runs; the shortest share one row."""
    spans: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for run in sorted(runs, key=lambda one: one.begin):
        spans[run.version, run.device].append(Span(run.begin, run.end, max(0.0, run.end - run.begin - run.seconds)))
    rows = [
        Row(label=_cut(f"{version} on {device}"), spans=tuple(found), runs=len(found))
        for (version, device), found in spans.items()
    ]
    if len(rows) <= MOST_BUILDS:
        return tuple(rows)
    kept = sorted(rows, key=lambda row: row.seconds, reverse=True)[: MOST_BUILDS - 1]
    rest = [row for row in rows if row not in kept]
    shared = sorted((span for row in rest for span in row.spans), key=lambda one: one.begin)
    others = Row(label=f"{len(rest)} others", spans=tuple(shared), runs=len(shared))
    return (*(row for row in rows if row in kept), others)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARS else text[: MOST_CHARS - 1] + "…"


def merge_spans(rows: Sequence[Row], most: int) -> tuple[Row, ...]:
    """Join the nearest neighbours within a row until there are at most ``most`` spans, but one for each row."""
    spans = [list(row.spans) for row in rows]
    while sum(map(len, spans)) > most:
        gaps = [
            (after.begin - before.end, row, place)
            for row, found in enumerate(spans)
            for place, (before, after) in enumerate(pairwise(found))
        ]
        if not gaps:
            break
        _, row, place = min(gaps)
        before, after = spans[row][place : place + 2]
        spans[row][place : place + 2] = [Span(before.begin, max(before.end, after.end))]
    return tuple(replace(row, spans=tuple(found)) for row, found in zip(rows, spans, strict=True))


def assign_lanes(spans: Sequence[Span]) -> Iterator[int]:
    """Yield a lane for each span, so that no two in a lane overlap. The spans are sorted by their beginnings."""
    ends: list[float] = []
    for span in spans:
        lane = next((number for number, end in enumerate(ends) if end <= span.begin), len(ends))
        ends[lane : lane + 1] = [span.end]
        yield lane


def _draw_span(span: Span, y: int, scale: float, css: str) -> Iterator[Bar]:
    """Yield the part without a testcase, if it is visible, and the rest.

    A bar is at least a pixel wide, and leaves a pixel to the next.
    """
    x, split = LABELS + span.begin * scale, LABELS + (span.begin + span.prepared) * scale
    if split - x >= 1:
        yield Bar(x=round(x, 1), y=y, width=round(split - x, 1), css="prepared")
        x = split
    yield Bar(x=round(x, 1), y=y, width=round(max(1.0, LABELS + span.end * scale - x - 1), 1), css=css)


def list_ticks(seconds: float, most: int = 8) -> list[float]:
    """Return round numbers from 0 up to ``seconds``, at most ``most`` after 0."""
    step = next(
        factor * 10.0**power for power in range(-3, 7) for factor in (1, 2, 5) if seconds <= most * factor * 10**power
    )
    return [round(number * step, 3) for number in range(int(seconds / step) + 1)]
