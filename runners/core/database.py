"""Open a SQLite file that several processes share: WAL mode, migrations, and SQLite's errors as ours."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from runners.core.errors import InfraError, UserError

WAIT_S = 60.0
"""Seconds to wait for another process that writes."""


class Database:
    """One connection, shared by the threads of a process.

    Every method raises ``InfraError`` if the file cannot be read or changed, for example on a full disk. A change
    that raises has no effect.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._sql = connection
        self._lock = threading.RLock()
        self.path = path

    def close(self) -> None:
        with self._lock:
            self._sql.close()

    def change(self, text: str, values: Sequence[object] = ()) -> int:
        """Run a statement that changes the file. Return the number of changed rows."""
        with self._lock, self._translate_errors("changed"):
            return self._sql.execute(text, values).rowcount

    def change_many(self, text: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement once for each row, all or none. Return the number of changed rows."""
        with self.begin_transaction(), self._translate_errors("changed"):
            return self._sql.executemany(text, rows).rowcount

    def select(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        with self._lock, self._translate_errors("read"):
            return self._sql.execute(text, values).fetchall()

    @contextmanager
    def begin_transaction(self) -> Iterator[None]:
        """Apply all changes inside the ``with`` block, or none of them."""
        with self._lock:
            self.change("BEGIN IMMEDIATE")
            try:
                yield
                self.change("COMMIT")
            except BaseException:
                if self._sql.in_transaction:  # SQLite rolls back by itself if its disk is full
                    self.change("ROLLBACK")
                raise

    @contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise self._make_error(action, error, "free space on its disk, then retry") from None
        except sqlite3.DatabaseError as error:  # the file is damaged
            raise self._make_error(action, error, "restore it from a copy, or move it away to begin anew") from None

    def _make_error(self, action: str, error: sqlite3.Error, remedy: str) -> InfraError:
        return InfraError(f"{self.path} cannot be {action} ({error}): {remedy}")


def open_database(path: Path, migrations: Sequence[str], *, folder_mode: int = 0o777) -> Database:
    """Open the file, or create it, and apply the migrations that it lacks. Its ``user_version`` counts them.

    ``folder_mode`` is the mode of its folder, if there is none yet.

    Raises:
        UserError: the file cannot be opened, is not a database, or was written by a newer version of Reprobot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=folder_mode)
        sql = sqlite3.connect(path, isolation_level=None, timeout=WAIT_S, check_same_thread=False)
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")  # the default of WAL mode may lose the last change in a power cut
        version = _migrate(sql, migrations)
    except (OSError, sqlite3.Error) as error:
        raise UserError(f"{path} cannot be opened ({error}): name another file or folder") from None
    if version > len(migrations):
        raise UserError(f"{path} was written by a newer version of Reprobot ({version}): use that version")
    return Database(sql, path)


def _migrate(sql: sqlite3.Connection, migrations: Sequence[str]) -> int:
    """Apply the missing migrations. If two processes try this at once, the second has nothing to do."""
    if (version := _read_version(sql)) >= len(migrations):
        return version
    sql.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_read_version(sql), len(migrations)):
            for statement in filter(str.strip, migrations[number].split(";")):
                sql.execute(statement)
        sql.execute(f"PRAGMA user_version = {len(migrations)}")
        sql.execute("COMMIT")
    except BaseException:
        if sql.in_transaction:
            sql.execute("ROLLBACK")
        raise
    return len(migrations)


def _read_version(sql: sqlite3.Connection) -> int:
    with closing(sql.execute("PRAGMA user_version")) as answer:
        return int(answer.fetchone()[0])
