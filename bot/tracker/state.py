"""The state of a tracker's sweeps: one SQLite file with a row for each issue, pages of lists, and past sweeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from bot.forge.contract import IssuePage
from bot.tracker.rows import FAILED, Answer, Change, Fate, IssueRow, PairCheck
from runners.core.database import Database, open_database

MIGRATIONS = (
    """
CREATE TABLE issues (id TEXT PRIMARY KEY, row BLOB NOT NULL) STRICT;
CREATE TABLE pages (key TEXT PRIMARY KEY, page BLOB NOT NULL) STRICT;
CREATE TABLE sweeps (number INTEGER PRIMARY KEY, began TEXT NOT NULL, ended TEXT, summary BLOB) STRICT;
CREATE TABLE changes (sweep INTEGER NOT NULL, id TEXT NOT NULL, change BLOB NOT NULL, PRIMARY KEY (sweep, id)) STRICT;
""",
    """
CREATE TABLE answers (
    id TEXT NOT NULL, answered TEXT NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (id, answered)
) STRICT;
CREATE TABLE fates (id TEXT PRIMARY KEY, fate BLOB NOT NULL) STRICT;
CREATE TABLE pairs (one TEXT NOT NULL, other TEXT NOT NULL, checked BLOB NOT NULL, PRIMARY KEY (one, other)) STRICT;
CREATE TABLE positions (name TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT;
""",
)


class TrackerState:
    """The state in one file. Every change is on disk when the method returns."""

    def __init__(self, database: Database) -> None:
        self._data = database

    def close(self) -> None:
        self._data.close()

    # ------------------------------------------------------------------------------------------ issues

    def list_rows(self) -> dict[str, IssueRow]:
        """Return id → row."""
        rows = self._data.select("SELECT id, row FROM issues")
        return {id: msgspec.json.decode(row, type=IssueRow) for id, row in rows}

    def keep_rows(self, rows: Iterable[IssueRow]) -> None:
        self._data.change_many(
            "INSERT OR REPLACE INTO issues (id, row) VALUES (?, ?)",
            [(row.issue.id, msgspec.json.encode(row)) for row in rows],
        )

    def keep_answer(self, sweep: int, row: IssueRow, change: Change | None) -> None:
        """Keep an answer and the change that it makes, both or none."""
        with self._data.begin_transaction():
            self._data.change(
                "INSERT OR REPLACE INTO issues (id, row) VALUES (?, ?)", (row.issue.id, msgspec.json.encode(row))
            )
            if row.verdict != FAILED:
                self._keep_answers([row])
            if change is not None:
                self._data.change(
                    "INSERT OR REPLACE INTO changes (sweep, id, change) VALUES (?, ?, ?)",
                    (sweep, change.id, msgspec.json.encode(change)),
                )

    def keep_merged(self, rows: Sequence[IssueRow]) -> None:
        """Keep rows that another sweep answered."""
        with self._data.begin_transaction():
            for row in rows:
                self._data.change(
                    "INSERT OR REPLACE INTO issues (id, row) VALUES (?, ?)", (row.issue.id, msgspec.json.encode(row))
                )
            self._keep_answers([row for row in rows if row.verdict != FAILED])

    # ------------------------------------------------------------------------------------------ duplicates

    def list_pair_checks(self) -> dict[tuple[str, str], PairCheck]:
        """Return the comparisons of two issues, by their ids in order."""
        rows = self._data.select("SELECT one, other, checked FROM pairs")
        return {(one, other): msgspec.json.decode(checked, type=PairCheck) for one, other, checked in rows}

    def keep_pair_check(self, pair: tuple[str, str], check: PairCheck) -> None:
        self._data.change(
            "INSERT OR REPLACE INTO pairs (one, other, checked) VALUES (?, ?, ?)", (*pair, msgspec.json.encode(check))
        )

    # ------------------------------------------------------------------------------------------ truth

    def _keep_answers(self, rows: Iterable[IssueRow]) -> None:
        for row in rows:
            answer = Answer(id=row.issue.id, verdict=row.verdict, confidence=row.confidence, answered=row.answered)
            self._data.change(
                "INSERT OR REPLACE INTO answers (id, answered, answer) VALUES (?, ?, ?)",
                (answer.id, answer.answered, msgspec.json.encode(answer)),
            )

    def list_answers(self) -> list[Answer]:
        """Return every verdict that was given, in the order of their times."""
        rows = self._data.select("SELECT answer FROM answers ORDER BY answered, id")
        return [msgspec.json.decode(row[0], type=Answer) for row in rows]

    def list_fates(self) -> dict[str, Fate]:
        """Return id → fate."""
        rows = self._data.select("SELECT id, fate FROM fates")
        return {id: msgspec.json.decode(fate, type=Fate) for id, fate in rows}

    def keep_fates(self, fates: Iterable[Fate]) -> None:
        self._data.change_many(
            "INSERT OR REPLACE INTO fates (id, fate) VALUES (?, ?)",
            [(fate.id, msgspec.json.encode(fate)) for fate in fates],
        )

    def read_position(self, name: str) -> datetime | None:
        """Return the time up to which a list of changes was read; None before the first time."""
        rows = self._data.select("SELECT at FROM positions WHERE name = ?", (name,))
        return datetime.fromisoformat(rows[0][0]) if rows else None

    def move_position(self, name: str, at: datetime) -> None:
        self._data.change("INSERT OR REPLACE INTO positions (name, at) VALUES (?, ?)", (name, at.isoformat()))

    # ------------------------------------------------------------------------------------------ sweeps

    def begin_sweep(self, now: datetime) -> int:
        """Return the number of the sweep. A sweep that was stopped continues under its number."""
        if unfinished := self._data.select(
            "SELECT number FROM sweeps WHERE ended IS NULL ORDER BY number DESC LIMIT 1"
        ):
            return int(unfinished[0][0])
        self._data.change("INSERT INTO sweeps (began) VALUES (?)", (now.isoformat(),))
        return int(self._data.select("SELECT max(number) FROM sweeps")[0][0])

    def end_sweep(self, number: int, now: datetime, summary: bytes) -> None:
        self._data.change(
            "UPDATE sweeps SET ended = ?, summary = ? WHERE number = ?", (now.isoformat(), summary, number)
        )

    def list_changes(self, sweep: int) -> list[Change]:
        rows = self._data.select("SELECT change FROM changes WHERE sweep = ? ORDER BY id", (sweep,))
        return [msgspec.json.decode(row[0], type=Change) for row in rows]

    # ------------------------------------------------------------------------------------------ pages

    def find_page(self, key: str) -> IssuePage | None:
        rows = self._data.select("SELECT page FROM pages WHERE key = ?", (key,))
        return msgspec.json.decode(rows[0][0], type=IssuePage) if rows else None

    def keep_page(self, key: str, page: IssuePage) -> None:
        self._data.change("INSERT OR REPLACE INTO pages (key, page) VALUES (?, ?)", (key, msgspec.json.encode(page)))


def open_tracker_state(path: Path) -> TrackerState:
    """Open the state in this file; create the file if there is none.

    Raises:
        UserError: the file cannot be opened, or a newer version wrote it.
    """
    return TrackerState(open_database(path, MIGRATIONS))
