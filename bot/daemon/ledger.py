"""What the watcher must not forget: SQLite, one file, every change on the disk before the next step is taken.

An event is kept under a key that says what happened (``octo/compiler:comment:4711``), so that the same event by
webhook, by polling, delivered twice or out of order is one event. It goes through states: *new*, *planned* (its plan
is kept with it), *ran* (its results are in its folder), *done*. Killed anywhere, the watcher goes on from the last
state; each step looks before it writes on the forge, so doing one again changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from runners.core.errors import UserError

VERSION = 1
KEPT_DAYS = 30
"""An event that old is not delivered again: GitHub offers redelivery for three days."""

_TABLES = """
CREATE TABLE events (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, payload BLOB NOT NULL, received REAL NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0, plan BLOB, sha256 TEXT, said TEXT
) STRICT;
CREATE INDEX events_by_state ON events (state, not_before);
CREATE TABLE cursors (name TEXT PRIMARY KEY, since REAL NOT NULL, etag TEXT) STRICT;
"""


class State(StrEnum):
    NEW = "new"
    PLANNED = "planned"
    RAN = "ran"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event and how far it has come. ``plan`` and ``sha256`` are set from *planned* on."""

    key: str
    kind: str
    """As in ``GITHUB_EVENT_NAME``."""
    payload: bytes
    received: datetime
    state: State
    attempts: int
    plan: bytes
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far one listing was read, and the tag for asking whether anything changed since."""

    since: datetime
    etag: str | None = None


class Ledger:
    """One connection; each thread opens its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection

    def close(self) -> None:
        self._sql.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything inside, or nothing of it."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")

    def add(self, key: str, kind: str, payload: bytes, now: datetime) -> bool:
        """Keep an event; False when it is known already."""
        done = self._sql.execute(
            "INSERT OR IGNORE INTO events (key, kind, payload, received, state) VALUES (?, ?, ?, ?, ?)",
            (key, kind, payload, now.timestamp(), State.NEW),
        )
        return done.rowcount == 1

    def forget(self, key: str) -> None:
        """Let the same thing happen again: a label that was taken off may be put on anew."""
        self._sql.execute("DELETE FROM events WHERE key = ? AND state = ?", (key, State.DONE))

    def due(self, now: datetime, *states: State) -> tuple[Event, ...]:
        """Events in these states whose time has come, oldest first."""
        marks = ",".join("?" * len(states))
        rows = self._sql.execute(
            "SELECT key, kind, payload, received, state, attempts, plan, sha256 FROM events "
            f"WHERE state IN ({marks}) AND not_before <= ? ORDER BY received, rowid",
            (*states, now.timestamp()),
        )
        return tuple(_event(row) for row in rows)

    def planned(self, key: str, plan: bytes, sha256: str) -> None:
        self._move(key, State.PLANNED, plan=plan, sha256=sha256)

    def ran(self, key: str) -> None:
        self._move(key, State.RAN)

    def done(self, key: str, said: str) -> None:
        """Finished; what was kept of it but its key goes."""
        self._sql.execute(
            "UPDATE events SET state = ?, said = ?, plan = NULL, payload = x'' WHERE key = ?",
            (State.DONE, said[:2000], key),
        )

    def postpone(self, key: str, until: datetime, why: str) -> None:
        """Try the same step again later."""
        self._sql.execute(
            "UPDATE events SET attempts = attempts + 1, not_before = ?, said = ? WHERE key = ?",
            (until.timestamp(), why[:2000], key),
        )

    def said(self, key: str) -> str | None:
        """The last thing noted about an event."""
        row = self._sql.execute("SELECT said FROM events WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def cursor(self, name: str) -> Cursor | None:
        row = self._sql.execute("SELECT since, etag FROM cursors WHERE name = ?", (name,)).fetchone()
        return Cursor(since=datetime.fromtimestamp(row[0], UTC), etag=row[1]) if row else None

    def move_cursor(self, name: str, cursor: Cursor) -> None:
        self._sql.execute(
            "INSERT OR REPLACE INTO cursors (name, since, etag) VALUES (?, ?, ?)",
            (name, cursor.since.timestamp(), cursor.etag),
        )

    def tidy(self, now: datetime) -> None:
        """Drop what was finished long ago."""
        self._sql.execute(
            "DELETE FROM events WHERE state = ? AND received < ?",
            (State.DONE, now.timestamp() - KEPT_DAYS * 86_400),
        )

    def _move(self, key: str, state: State, plan: bytes | None = None, sha256: str | None = None) -> None:
        self._sql.execute(
            "UPDATE events SET state = ?, attempts = 0, not_before = 0, plan = coalesce(?, plan), "
            "sha256 = coalesce(?, sha256) WHERE key = ?",
            (state, plan, sha256, key),
        )


def _event(row: tuple[str, str, bytes, float, str, int, bytes | None, str | None]) -> Event:
    key, kind, payload, received, state, attempts, plan, sha256 = row
    return Event(
        key=key,
        kind=kind,
        payload=payload,
        received=datetime.fromtimestamp(received, UTC),
        state=State(state),
        attempts=attempts,
        plan=plan or b"",
        sha256=sha256 or "",
    )


def open_ledger(path: Path) -> Ledger:
    """The ledger in this file, made if there is none.

    Raises:
        UserError: it cannot be opened, or a newer version wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sql = sqlite3.connect(path, isolation_level=None, timeout=30)
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")  # in WAL mode the default may lose the last change in a power cut
        with closing(sql.execute("PRAGMA user_version")) as found:
            version = int(found.fetchone()[0])
        if version == 0:
            sql.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    except (OSError, sqlite3.Error) as error:
        raise UserError(f"the ledger {path} cannot be opened ({error}): name another folder with --state") from None
    if version > VERSION:
        raise UserError(f"the ledger {path} was written by a newer version ({version}): use that one")
    return Ledger(sql)
