"""Read the later state of the issues that a sweep answered: closed, closed by a commit, voided by a maintainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from bot.tracker.rows import Fate, IssueRow, TrackedIssue
from bot.tracker.sources import IssueSource
from bot.tracker.state import TrackerState
from bot.tracker.truth import DECIDABLE
from runners.core.errors import InfraError, UserError

FIRST_LOOK = timedelta(days=90)
"""Age of the oldest comments that the first sweep reads. They may withdraw a verdict."""
OVERLAP = timedelta(minutes=5)
"""A change may appear late in a list of changes."""
POSITION = "fates"
MAX_CLOSINGS = 100
"""Largest number of closings that one sweep looks up: each costs a request. The next sweep continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FateReader:
    """Everything that reading fates needs."""

    source: IssueSource
    state: TrackerState
    now: Callable[[], datetime]
    log: Callable[[str], None]


def refresh_fates(reader: FateReader, listed: Sequence[TrackedIssue]) -> None:
    """Bring states, closing commits and voids up to date.

    A forge that does not answer ends the reading: the next sweep reads from the same time on.
    """
    began, last = reader.now(), reader.state.read_position(POSITION)
    try:
        _refresh_states(reader, listed, last)
        _read_voids(reader, last)
        _read_closings(reader)
        reader.state.move_position(POSITION, began - OVERLAP)
    except (InfraError, UserError) as error:
        reader.log(f"what became of the issues is not complete: {error}")


def _refresh_states(reader: FateReader, listed: Sequence[TrackedIssue], last: datetime | None) -> None:
    """Update the rows of issues that were closed since then, and are no longer in the list of open issues."""
    seen = {issue.id for issue in listed}
    rows = reader.state.list_rows()
    gone = {id for id, row in rows.items() if row.issue.open and id not in seen}
    if not gone:
        return
    closed = (issue for issue in reader.source.list_closed(last) if issue.id in gone)
    reader.state.keep_rows(msgspec.structs.replace(rows[issue.id], issue=issue) for issue in closed)


def _read_voids(reader: FateReader, last: datetime | None) -> None:
    fates = reader.state.list_fates()
    since = last or reader.now() - FIRST_LOOK
    voids = {
        one.id: msgspec.structs.replace(
            fates.get(one.id, Fate(id=one.id)), voided=one.voided, voided_at=one.voided_at
        )
        for one in reader.source.list_voids(since)
    }
    reader.state.keep_fates(voids.values())


def _read_closings(reader: FateReader) -> None:
    """Look up the commits that closed issues, newest closing first, each closing once."""
    fates = reader.state.list_fates()
    answered = {answer.id for answer in reader.state.list_answers() if answer.verdict in DECIDABLE}
    waiting = [
        row
        for id, row in reader.state.list_rows().items()
        if id in answered and not row.issue.open and _is_unread(row, fates.get(id))
    ]
    waiting.sort(key=lambda row: row.issue.closed or row.issue.created, reverse=True)
    for row in waiting[:MAX_CLOSINGS]:
        fate = fates.get(row.issue.id, Fate(id=row.issue.id))
        commit = reader.source.fetch_closing_commit(row.issue)
        reader.state.keep_fates([msgspec.structs.replace(fate, commit=commit, closed=row.issue.closed)])


def _is_unread(row: IssueRow, fate: Fate | None) -> bool:
    return row.issue.closed is not None and (fate is None or fate.closed != row.issue.closed)
