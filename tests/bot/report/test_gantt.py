"""The chart of stages and runs: bounded for any runner's claim, and told in words too."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given, strategies as st

from bot.report.document import make_document
from bot.report.gantt import (
    LABELS,
    MOST_BARS,
    MOST_BUILDS,
    MOST_CHARS,
    RIGHT,
    WIDTH,
    Row,
    Span,
    assign_lanes,
    draw_chart,
    list_ticks,
    merge_spans,
)
from bot.report.page import render_page
from runners.core.protocol import TimedRun, TimedStage, Times
from tests.bot.report import reports

RUNS = (
    TimedRun(version="0.26.0", device="llvm", begin=0.0, end=3.0, seconds=1.0),
    TimedRun(version="0.27.0", device="llvm", begin=0.5, end=2.0, seconds=1.5),
    TimedRun(version="0.26.0", device="llvm", begin=3.0, end=4.0, seconds=1.0),
)
TIMES = Times(stages=(TimedStage(name="matrix", begin=0.0, end=4.0),), runs=RUNS)
SPANS = st.lists(
    st.tuples(st.floats(0, 604800), st.floats(0, 3600)).map(lambda two: Span(two[0], two[0] + two[1])), min_size=1
).map(lambda found: sorted(found, key=lambda one: one.begin))


def test_no_run_gives_no_chart() -> None:
    assert draw_chart(Times()) is None
    assert draw_chart(Times(stages=TIMES.stages)) is None
    assert draw_chart(Times(runs=(TimedRun(version="1", device="llvm", begin=0, end=0),))) is None


def test_a_row_for_each_stage_and_build() -> None:
    """In the order of their beginnings; a light bar shows the time before the testcase ran."""
    chart = draw_chart(TIMES)
    assert chart is not None
    assert [(row.label, row.runs, row.begin, row.end, row.seconds) for row in chart.rows] == [
        ("first releases", 0, 0.0, 4.0, 4.0),
        ("0.26.0 on llvm", 2, 0.0, 4.0, 4.0),
        ("0.27.0 on llvm", 1, 0.5, 2.0, 1.5),
    ]
    assert [bar.css for bar in chart.bars] == ["stage", "prepared", "run", "run", "run"]
    assert chart.summary == "4.0 s for 3 runs of 2 builds"


@given(
    st.lists(
        st.builds(
            TimedRun,
            version=st.text(max_size=60),
            device=st.sampled_from(("llvm", "cuda")),
            begin=st.floats(0, 604800),
            end=st.floats(0, 604800),
            seconds=st.floats(0, 604800),
        ),
        max_size=150,
    )
)
def test_any_claim_of_a_runner_gives_a_chart_of_limited_size(runs: list[TimedRun]) -> None:
    """Few bars, short labels, and nothing outside the picture."""
    runs = [run for run in runs if run.begin <= run.end]
    chart = draw_chart(Times(runs=tuple(runs)))
    if chart is None:
        return
    assert sum(bar.css == "run" for bar in chart.bars) <= MOST_BARS
    assert len(chart.rows) <= MOST_BUILDS
    assert sum(row.runs for row in chart.rows) == len(runs)
    assert all(len(text) <= MOST_CHARS for _, text in chart.labels)
    assert all(bar.x >= LABELS and bar.x + bar.width <= WIDTH - RIGHT + 2 for bar in chart.bars)
    assert all(bar.y + chart.bar_height <= chart.height for bar in chart.bars)


@given(st.lists(SPANS, min_size=1, max_size=5), st.integers(1, 60))
def test_joined_spans_cover_the_same_time(spans: list[list[Span]], most: int) -> None:
    rows = [Row(label="a", spans=tuple(found), runs=len(found)) for found in spans]
    merged = merge_spans(rows, most)
    assert sum(len(row.spans) for row in merged) <= max(most, len(rows))
    assert [(row.begin, row.end, row.runs) for row in merged] == [(row.begin, row.end, row.runs) for row in rows]


def test_nearest_neighbours_are_joined_first() -> None:
    row = Row(label="a", spans=(Span(0, 1), Span(5, 6), Span(6.5, 9)), runs=3)
    assert merge_spans([row], 2)[0].spans == (Span(0, 1), Span(5, 9))


@given(SPANS)
def test_spans_of_a_lane_do_not_overlap(spans: list[Span]) -> None:
    placed = list(zip(spans, assign_lanes(spans), strict=True))
    for (one, lane), (other, beside) in combinations(placed, 2):
        assert lane != beside or one.end <= other.begin


@given(st.floats(0.001, 604800))
def test_ticks_are_few_and_within_the_time(seconds: float) -> None:
    ticks = list_ticks(seconds)
    assert 1 <= len(ticks) <= 9
    assert ticks[0] == 0
    assert ticks[-1] <= seconds + 0.001


def test_the_page_has_the_chart_and_the_same_times_in_a_table() -> None:
    """Folded; a page of a run without times has neither."""
    page = render_page(replace(reports.regression(), times=TIMES))
    section = page.partition("<h2>How the time was spent</h2>")[2].partition("</section>")[0]
    assert section.count("<rect") == 5
    assert "<details>" in section
    assert '<th scope="row">0.26.0 on llvm</th><td>0.0</td><td>4.0</td><td>2</td><td>4.0</td>' in section
    assert "How the time was spent" not in render_page(reports.regression())


def test_a_name_from_a_runner_is_text() -> None:
    run = TimedRun(version="<script>x</script>", device="llvm", begin=0, end=1)
    page = render_page(replace(reports.regression(), times=Times(runs=(run,)))).partition('type="application/json"')[
        0
    ]
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page


def test_the_document_has_the_times() -> None:
    told = make_document(replace(reports.regression(), times=TIMES), "")["times"]
    assert list(told["stages"]) == [{"name": "matrix", "begin": 0.0, "end": 4.0}]
    assert told["runs"][0] == {"version": "0.26.0", "device": "llvm", "begin": 0.0, "end": 3.0, "seconds": 1.0}
