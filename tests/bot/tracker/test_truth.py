"""Each verdict beside what became of its issue: which facts decide, and which do not."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.tracker.dashboard import dump_truth, render_truth_csv
from bot.tracker.rows import Answer, Fate, IssueRow
from bot.tracker.truth import TruthEntry, compare_verdict, count_states, list_truth, measure_reliability
from tests.bot.tracker.rows import make_row

AT = datetime(2026, 6, 1, tzinfo=UTC)
LATER, EARLIER = AT + timedelta(days=30), AT - timedelta(days=30)
SHA = "c" * 40


def answer(verdict: str, *, id: str = "7", at: datetime = AT, confidence: float = 0.9) -> Answer:
    return Answer(id=id, verdict=verdict, confidence=confidence, answered=at.isoformat())


def closed(at: datetime | None = LATER, reason: str = "completed", **more: Any) -> IssueRow:
    return make_row("7", open=False, closed=at, closed_as=reason, **more)


@pytest.mark.parametrize(
    ("row", "fate", "expected"),
    [
        # verdicts:                                           confirmed  fixed  invalid-repro
        (make_row("7"), Fate(id="7"), (None, None, None)),
        (closed(), Fate(id="7", commit=SHA, closed=LATER), (True, False, False)),
        (closed(), Fate(id="7", closed=LATER), (None, True, True)),
        (closed(), Fate(id="7", commit=SHA, closed=EARLIER), (None, True, True)),
        (closed(EARLIER), Fate(id="7", commit=SHA, closed=EARLIER), (False, True, True)),
        (closed(None, ""), Fate(id="7"), (False, True, True)),
        (closed(reason="not_planned"), Fate(id="7"), (None, None, True)),
        (closed(reason="duplicate"), Fate(id="7"), (None, None, None)),
        (closed(labels=("type: Not-a-bug",)), Fate(id="7"), (False, None, True)),
        (closed(labels=("not a bug in disguise",)), Fate(id="7"), (None, True, True)),
        (make_row("7"), Fate(id="7", voided="confirmed", voided_at=LATER), (False, None, None)),
        (closed(), Fate(id="7", voided="fixed", voided_at=LATER), (None, False, True)),
    ],
    ids=[
        *("open", "commit", "no-commit", "earlier-closing", "closed-before", "folder", "not-planned", "duplicate"),
        *("label", "other-label", "void", "void-of-another"),
    ],
)
def test_facts_decide_verdicts(row: IssueRow, fate: Fate, expected: tuple[bool | None, ...]) -> None:
    kinds = ("confirmed", "fixed", "invalid-repro")
    assert tuple(compare_verdict(answer(kind), row, fate)[0] for kind in kinds) == expected


@pytest.mark.parametrize("kind", ["no-repro", "untestable", "inconclusive", "different-failure"])
def test_a_verdict_without_a_statement_is_never_decided(kind: str) -> None:
    assert compare_verdict(answer(kind), closed(EARLIER), Fate(id="7"))[0] is None


def test_a_verdict_counts_once_by_its_last_answer() -> None:
    """An issue that ten sweeps call confirmed, and then one fixed, has two entries."""
    given = [answer("confirmed", at=AT + timedelta(days=day), confidence=0.5 + day / 100) for day in range(10)]
    entries = list_truth([*given, answer("fixed", at=LATER + timedelta(days=1))], {"7": closed()}, {})
    assert [(one.verdict, one.confidence, one.agrees) for one in entries] == [
        ("fixed", 0.9, True),
        ("confirmed", 0.59, None),
    ]
    assert list_truth([answer("fixed", id="8")], {"7": closed()}, {}) == []


def entry(confidence: float, agrees: bool | None) -> TruthEntry:
    return TruthEntry(
        id="7",
        verdict="fixed",
        confidence=confidence,
        answered=AT.isoformat(),
        agrees=agrees,
        fact="=1+1",
        commit=SHA,
    )


def test_reliability_counts_what_is_decided() -> None:
    curve = measure_reliability([entry(0.95, True), entry(1.0, False), entry(0.95, None), entry(0.55, True)])
    assert [(one.low, one.known, one.right, one.mean) for one in curve if one.known] == [
        (0.5, 1, 1, 0.55),
        (0.9, 2, 1, 0.975),
    ]


def test_truth_is_csv_and_json() -> None:
    (row,) = csv.DictReader(io.StringIO(render_truth_csv([entry(0.9, False)])))
    assert (row["agrees"], row["commit"], row["fact"]) == ("no", SHA, "'=1+1")
    dumped = dump_truth([entry(0.9, False)])
    assert dumped["entries"][0]["agrees"] is False
    assert sum(one["known"] for one in dumped["reliability"]) == 1


def test_states_are_counted() -> None:
    rows = [closed(verdict="fixed"), make_row("3", verdict="fixed"), closed(verdict="no-repro")]
    assert {(one.verdict, one.open, one.closed) for one in count_states(rows)} == {
        ("fixed", 1, 1),
        ("no-repro", 0, 1),
    }
