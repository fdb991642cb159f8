"""The daemon's database: one SQLite file. Every change is on disk before the next step begins.

The key of an event describes the event (``octo/compiler#7:comment:4711``). So an event that arrives by webhook and by
polling, twice or out of order, is kept once. Its states are *new*, *planned* (the plan is kept with the event), *ran*
(the results are in the event's folder) and *done*. A daemon that is killed continues from the last state. Each step
checks the forge before it writes there, so a repeated step has no effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from runners.core.errors import InfraError, UserError

VERSION = 1
KEPT_DAYS = 30
"""Days until a finished event is deleted. GitHub offers redelivery for three days."""

_TABLES = """
CREATE TABLE events (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, payload BLOB NOT NULL, received REAL NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0, plan BLOB, sha256 TEXT, said TEXT
) STRICT;
CREATE INDEX events_by_state ON events (state, not_before);
CREATE TABLE cursors (name TEXT PRIMARY KEY, since REAL NOT NULL, etag TEXT) STRICT;
"""


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
    """One connection to the database. Each thread opens its own.

    Every method raises ``InfraError`` if the database cannot be read or changed, for example on a full disk.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection

    def close(self) -> None:
        self._sql.close()

    @contextmanager
    def begin_transaction(self) -> Iterator[None]:
        """Apply all changes inside the ``with`` block, or none of them.

        Raises:
            InfraError: the database cannot be changed.
        """
        self._change("BEGIN IMMEDIATE")
        try:
            yield
            self._change("COMMIT")
        except BaseException:
            if self._sql.in_transaction:  # SQLite rolls back by itself if its disk is full
                self._change("ROLLBACK")
            raise

    def add_event(self, key: str, kind: str, payload: bytes, now: datetime) -> bool:
        """Add an event. Return False if its key is known already."""
        added = self._change(
            "INSERT OR IGNORE INTO events (key, kind, payload, received, state) VALUES (?, ?, ?, ?, ?)",
            (key, kind, payload, now.timestamp(), EventState.NEW),
        )
        return added == 1

    def forget_event(self, key: str) -> None:
        """Delete a finished event, so that it can happen again: a label that was removed may be added anew."""
        self._change("DELETE FROM events WHERE key = ? AND state = ?", (key, EventState.DONE))

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
        rows = self._select(f"SELECT {columns} FROM events {where} ORDER BY received, rowid", values)
        return tuple(map(_read_row, rows))

    def mark_planned(self, key: str, plan: bytes, sha256: str) -> None:
        self._set_state(key, EventState.PLANNED, plan=plan, sha256=sha256)

    def mark_ran(self, key: str) -> None:
        self._set_state(key, EventState.RAN)

    def mark_done(self, key: str, note: str) -> None:
        """Finish an event. Its plan and payload are deleted; its key and ``note`` stay."""
        self._change(
            "UPDATE events SET state = ?, said = ?, plan = NULL, payload = x'' WHERE key = ?",
            (EventState.DONE, note[:2000], key),
        )

    def postpone_event(self, key: str, until: datetime, why: str) -> None:
        """Keep the event's state, and do not list the event as due before ``until``."""
        self._change(
            "UPDATE events SET attempts = attempts + 1, not_before = ?, said = ? WHERE key = ?",
            (until.timestamp(), why[:2000], key),
        )

    def read_position(self, name: str) -> ReadPosition | None:
        rows = self._select("SELECT since, etag FROM cursors WHERE name = ?", (name,))
        return ReadPosition(since=datetime.fromtimestamp(rows[0][0], UTC), etag=rows[0][1]) if rows else None

    def move_position(self, name: str, position: ReadPosition) -> None:
        self._change(
            "INSERT OR REPLACE INTO cursors (name, since, etag) VALUES (?, ?, ?)",
            (name, position.since.timestamp(), position.etag),
        )

    def delete_old_events(self, now: datetime) -> None:
        """Delete finished events that are older than ``KEPT_DAYS``."""
        self._change(
            "DELETE FROM events WHERE state = ? AND received < ?",
            (EventState.DONE, now.timestamp() - KEPT_DAYS * 86_400),
        )

    def _set_state(self, key: str, state: EventState, plan: bytes | None = None, sha256: str | None = None) -> None:
        self._change(
            "UPDATE events SET state = ?, attempts = 0, not_before = 0, plan = coalesce(?, plan), "
            "sha256 = coalesce(?, sha256) WHERE key = ?",
            (state, plan, sha256, key),
        )

    def _change(self, text: str, values: tuple[object, ...] = ()) -> int:
        """Run a statement that changes the database. Return the number of rows that it changed."""
        with _translate_errors("changed"):
            return self._sql.execute(text, values).rowcount

    def _select(self, text: str, values: tuple[object, ...]) -> list[Any]:
        with _translate_errors("read"):
            return self._sql.execute(text, values).fetchall()


@contextmanager
def _translate_errors(action: str) -> Iterator[None]:
    """Raise SQLite's operational errors (a full disk, a lock) as InfraError: they may pass."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InfraError(f"the ledger cannot be {action} ({error}): free space on the disk of the state") from None


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sql = sqlite3.connect(path, isolation_level=None, timeout=30)
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")  # WAL's default may lose the last change in a power failure
        with closing(sql.execute("PRAGMA user_version")) as answer:
            version = int(answer.fetchone()[0])
        if version == 0:
            sql.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    except (OSError, sqlite3.Error) as error:
        raise UserError(f"the ledger {path} cannot be opened ({error}): name another folder with --state") from None
    if version > VERSION:
        raise UserError(f"the ledger {path} was written by a newer version ({version}): use that one")
    return Ledger(sql)
