"""Keep each run once in a ledger: one SQLite file for any number of processes.

A row is keyed by the request (testcase, build, device, conditions), the surroundings of the run (environment, engine,
image, driver, guest programs), and the number among equal requests. The ledger contains no verdicts: an investigation
that repeats its requests gets the recorded runs, and the same pure functions judge them.
"""

from __future__ import annotations

import fcntl
import functools
import os
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from runners.core.database import Database, open_database
from runners.core.errors import InfraError, UserError
from runners.core.protocol import Testcase, digest_of
from runners.core.runs import Recording, RunRequest, RunResult
from runners.core.toolchain.guest import is_launch_step

GUEST = Path(__file__).parents[1] / "guest"
MAX_LINE = 16 * 1024 * 1024
"""Maximum length of a line to import, in bytes."""
MIGRATIONS = (
    """
CREATE TABLE runs (
    key TEXT NOT NULL, environment TEXT NOT NULL, engine TEXT NOT NULL, image TEXT NOT NULL, driver TEXT NOT NULL,
    guest TEXT NOT NULL, ordinal INTEGER NOT NULL, version TEXT NOT NULL, testcase TEXT NOT NULL, date TEXT NOT NULL,
    fresh INTEGER NOT NULL, limits BLOB, result BLOB NOT NULL,
    PRIMARY KEY (key, environment, engine, image, driver, guest, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_testcase ON runs (testcase);
""",
)
_DECODER = msgspec.json.Decoder(Recording)
"""Made at import, before threads start: msgspec 0.22 ends the process with SIGSEGV if two threads are the first to
read one type."""
_COLUMNS = "key, environment, engine, image, driver, guest, ordinal, version, testcase, date, fresh, limits, result"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All facts besides the request that decide a run. The order of the fields is that of the table's columns."""

    environment: str
    engine: str
    image: str
    driver: str
    guest: str


ALWAYS = ("probe", "script")
"""Folders of `runners/guest` whose programs are part of every run."""


def digest_guest(testcase: Testcase) -> str:
    """Return the first 16 digits of the sha256 of the guest programs that are part of a run of the testcase.

    A step that launches a program of a compiler's folder adds that folder. So a new diagnoser for one compiler does
    not affect recorded runs of posted testcases, or those of other compilers.
    """
    launched = {step[2].partition(".")[0] for step in testcase.steps if is_launch_step(step) and len(step) > 2}
    return _digest_folders(frozenset(launched.union(ALWAYS)))


def list_guest_digests() -> frozenset[str]:
    """Return every value that `digest_guest` can give for the current guest programs."""
    own = (path.name for path in GUEST.iterdir() if path.is_dir() and path.name not in ALWAYS)
    return frozenset(
        {_digest_folders(frozenset(ALWAYS)), *(_digest_folders(frozenset({*ALWAYS, name})) for name in own)}
    )


@functools.cache
def _digest_folders(folders: frozenset[str]) -> str:
    names = sorted(path.relative_to(GUEST) for path in GUEST.rglob("*.py"))
    chosen = (name for name in names if len(name.parts) == 1 or name.parts[0] in folders)
    texts = [f"{name}\n{(GUEST / name).read_text()}" for name in chosen]
    return sha256("\0".join(texts).encode()).hexdigest()[:16]


class RunLedger:
    """The ledger in one file. Threads and processes may use it at the same time."""

    def __init__(self, database: Database) -> None:
        self._data = database

    def close(self) -> None:
        self._data.close()

    def find_run(
        self, request: RunRequest, around: Surroundings, used: Collection[int] = ()
    ) -> tuple[int, RunResult] | None:
        """Return a recorded run that answers the request, with its number. None if all of them are used."""
        rows = self._data.select(
            f"SELECT {_COLUMNS} FROM runs WHERE key = ? AND environment = ? AND engine = ? AND image = ? "
            "AND driver = ? AND guest = ? ORDER BY ordinal",
            (request.key, *astuple(around)),
        )
        for found in map(_read_row, rows):
            if found.ordinal not in used and found.answers(request):
                return found.ordinal, found.result
        return None

    def add_run(self, request: RunRequest, result: RunResult, around: Surroundings) -> int:
        """Record a run. Return its number among equal requests."""
        marks = ", ".join("?" * len(_COLUMNS.split(",")))
        with self._data.begin_transaction():
            ((ordinal,),) = self._data.select(
                "SELECT coalesce(max(ordinal) + 1, 0) FROM runs WHERE key = ? AND environment = ? AND engine = ? "
                "AND image = ? AND driver = ? AND guest = ?",
                (request.key, *astuple(around)),
            )
            recording = Recording(
                key=request.key,
                ordinal=ordinal,
                version=request.version,
                testcase=digest_of(request.testcase),
                guest=around.guest,
                date=datetime.now(UTC).date().isoformat(),
                result=result,
                limits=request.limits,
                fresh=request.fresh,
            )
            self._data.change(f"INSERT INTO runs ({_COLUMNS}) VALUES ({marks})", _make_row(recording))
        return int(ordinal)

    def count_runs(self) -> int:
        return int(self._data.select("SELECT count(*) FROM runs")[0][0])

    @contextmanager
    def lock_run(self, request: RunRequest) -> Iterator[None]:
        """Let only one thread of one process make runs of this request at a time.

        The lock ends with its process, also by kill -9.

        Raises:
            InfraError: the lock's file cannot be used.
        """
        # A byte of the file represents a run. Locks of open file descriptions, unlike POSIX's, work between threads.
        byte = int(request.key[:15], 16)
        try:
            handle = os.open(self._data.path.with_name(f"{self._data.path.name}-runs"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise InfraError(f"{self._data.path} cannot be locked ({error.strerror}): free some space") from None
        try:
            fcntl.fcntl(handle, fcntl.F_OFD_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
            yield
        finally:
            os.close(handle)

    def export_lines(self) -> Iterator[bytes]:
        """Yield every recorded run as a line of JSON, in order of the keys."""
        for row in self._data.select(f"SELECT {_COLUMNS} FROM runs ORDER BY {_COLUMNS.rpartition(', version')[0]}"):
            yield msgspec.json.encode(_read_row(row)) + b"\n"

    def import_lines(self, lines: Iterable[bytes]) -> int:
        """Add recorded runs, all or none. Existing runs are kept. Return the number of added runs.

        Raises:
            UserError: a line is not a recorded run.
        """
        marks = ", ".join("?" * len(_COLUMNS.split(",")))
        rows = (_make_row(_decode_line(number, line)) for number, line in enumerate(lines, 1) if line.strip())
        return self._data.change_many(f"INSERT OR IGNORE INTO runs ({_COLUMNS}) VALUES ({marks})", rows)


def _decode_line(number: int, line: bytes) -> Recording:
    try:
        if len(line) > MAX_LINE:
            raise msgspec.DecodeError(f"longer than {MAX_LINE:,} bytes")
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"line {number} is no recorded run: {str(error)[:200]}") from None


def _make_row(one: Recording) -> tuple[object, ...]:
    result = one.result
    return (
        *(one.key, result.environment, result.engine, result.image, result.driver, one.guest, one.ordinal),
        *(one.version, one.testcase, one.date, int(one.fresh)),
        None if one.limits is None else msgspec.json.encode(one.limits),
        zlib.compress(msgspec.json.encode(result)),
    )


def _read_row(row: tuple[object, ...]) -> Recording:
    key, _, _, _, _, guest, ordinal, version, testcase, date, fresh, limits, result = row
    return msgspec.convert(
        {
            **{"key": key, "ordinal": ordinal, "version": version, "testcase": testcase, "guest": guest},
            **{"date": date, "fresh": bool(fresh)},
            "limits": msgspec.json.decode(limits) if isinstance(limits, bytes) else None,
            "result": msgspec.json.decode(zlib.decompress(result)) if isinstance(result, bytes) else None,
        },
        Recording,
    )


def open_run_ledger(path: Path) -> RunLedger:
    """Open the ledger in this file. Create the file if it does not exist.

    Raises:
        UserError: the file cannot be opened, or a newer version wrote it.
    """
    return RunLedger(open_database(path, MIGRATIONS))
