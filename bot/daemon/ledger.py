"""The daemon's database: one SQLite file. Every change is on disk before the next step begins.

The key of an event describes the event (``octo/compiler#7:comment:4711``). So an event that arrives by webhook and by
polling, twice or out of order, is kept once. Its states are *new*, *planned* (the plan is kept with the event), *ran*
(the results are in the event's folder) and *done*. A daemon that is killed continues from the last state. Each step
checks the forge before it writes there, so a repeated step has no effect.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from runners.core.database import Database, open_database

KEPT_DAYS = 30
"""Days until a finished event is deleted. GitHub offers redelivery for three days."""

MIGRATIONS = (
    """
CREATE TABLE events (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, payload BLOB NOT NULL, received REAL NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0, plan BLOB, sha256 TEXT, said TEXT
) STRICT;
CREATE INDEX events_by_state ON events (state, not_before);
CREATE TABLE cursors (name TEXT PRIMARY KEY, since REAL NOT NULL, etag TEXT) STRICT;
""",
)


class EventState(StrEnum):
    NEW = "new"
    PLANNED = "planned"
    RAN = "ran"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEvent:
    """One event and its state. ``plan`` and ``sha256`` are set from *planned* on."""

    key: str
    kind: str
    """Name of the event, as in ``GITHUB_EVENT_NAME``."""
    payload: bytes
    received: datetime
    state: EventState
    attempts: int
    plan: bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """Time of the last change read from a list, and the ETag for a conditional request."""

    since: datetime
    etag: str | None = None


class Ledger:
    """The ledger in one file. Each thread opens its own.

    Every method raises ``InfraError`` if the database cannot be read or changed, for example on a full disk.
    """

    def __init__(self, database: Database) -> None:
        self._data = database

    def close(self) -> None:
        self._data.close()

    def begin_transaction(self) -> AbstractContextManager[None]:
        """Apply all changes inside the ``with`` block, or none of them.

        Raises:
            InfraError: the database cannot be changed.
        """
        return self._data.begin_transaction()

    def add_event(self, key: str, kind: str, payload: bytes, now: datetime) -> bool:
        """Add an event. Return False if its key is known already."""
        added = self._data.change(
            "INSERT OR IGNORE INTO events (key, kind, payload, received, state) VALUES (?, ?, ?, ?, ?)",
            (key, kind, payload, now.timestamp(), EventState.NEW),
        )
        return added == 1

    def forget_event(self, key: str) -> None:
        """Delete a finished event, so that it can happen again: a label that was removed may be added anew."""
        self._data.change("DELETE FROM events WHERE key = ? AND state = ?", (key, EventState.DONE))

    def list_due(self, now: datetime, *states: EventState) -> tuple[LedgerEvent, ...]:
        """Return the events in these states that are not postponed beyond ``now``, oldest first."""
        marks = ",".join("?" * len(states))
        where = f"WHERE state IN ({marks}) AND not_before <= ?"
        return self._list_events(where, (*states, now.timestamp()))

    def list_unfinished(self) -> tuple[LedgerEvent, ...]:
        """Return the events that are not done, postponed or not, oldest first."""
        return self._list_events("WHERE state != ?", (EventState.DONE,))

    def _list_events(self, where: str, values: tuple[object, ...]) -> tuple[LedgerEvent, ...]:
        columns = "key, kind, payload, received, state, attempts, plan, sha256"
        rows = self._data.select(f"SELECT {columns} FROM events {where} ORDER BY received, rowid", values)
        return tuple(map(_read_row, rows))

    def mark_planned(self, key: str, plan: bytes, sha256: str) -> None:
        self._set_state(key, EventState.PLANNED, plan=plan, sha256=sha256)

    def mark_ran(self, key: str) -> None:
        self._set_state(key, EventState.RAN)

    def mark_done(self, key: str, note: str) -> None:
        """Finish an event. Its plan and payload are deleted; its key and ``note`` stay."""
        self._data.change(
            "UPDATE events SET state = ?, said = ?, plan = NULL, payload = x'' WHERE key = ?",
            (EventState.DONE, note[:2000], key),
        )

    def postpone_event(self, key: str, until: datetime, why: str) -> None:
        """Keep the event's state, and do not list the event as due before ``until``."""
        self._data.change(
            "UPDATE events SET attempts = attempts + 1, not_before = ?, said = ? WHERE key = ?",
            (until.timestamp(), why[:2000], key),
        )

    def read_position(self, name: str) -> ReadPosition | None:
        rows = self._data.select("SELECT since, etag FROM cursors WHERE name = ?", (name,))
        return ReadPosition(since=datetime.fromtimestamp(rows[0][0], UTC), etag=rows[0][1]) if rows else None

    def move_position(self, name: str, position: ReadPosition) -> None:
        self._data.change(
            "INSERT OR REPLACE INTO cursors (name, since, etag) VALUES (?, ?, ?)",
            (name, position.since.timestamp(), position.etag),
        )

    def delete_old_events(self, now: datetime) -> None:
        """Delete finished events that are older than ``KEPT_DAYS``."""
        self._data.change(
            "DELETE FROM events WHERE state = ? AND received < ?",
            (EventState.DONE, now.timestamp() - KEPT_DAYS * 86_400),
        )

    def _set_state(self, key: str, state: EventState, plan: bytes | None = None, sha256: str | None = None) -> None:
        self._data.change(
            "UPDATE events SET state = ?, attempts = 0, not_before = 0, plan = coalesce(?, plan), "
            "sha256 = coalesce(?, sha256) WHERE key = ?",
            (state, plan, sha256, key),
        )


def _read_row(row: tuple[str, str, bytes, float, str, int, bytes | None, str | None]) -> LedgerEvent:
    key, kind, payload, received, state, attempts, plan, sha256 = row
    return LedgerEvent(
        key=key,
        kind=kind,
        payload=payload,
        received=datetime.fromtimestamp(received, UTC),
        state=EventState(state),
        attempts=attempts,
        plan=plan or b"",
        sha256=sha256 or "",
    )


def open_ledger(path: Path) -> Ledger:
    """Open the ledger in this file; create the file if there is none.

    Raises:
        UserError: the file cannot be opened, or a newer version wrote it.
    """
    return Ledger(open_database(path, MIGRATIONS, folder_mode=0o700))
