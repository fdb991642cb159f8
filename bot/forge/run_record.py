"""The record in our comment: its runs with testcase and requester, its approvals, and its voided verdict.

The record is a hidden line of our own comment. Only we and the repository's maintainers can change that comment, so
budgets can be counted from the record: a stranger may delete a command, but not its runs. The record is read only
from comments that we wrote. A line that does not decode is an empty record. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

import msgspec

MAX_RUNS = 20
"""Larger than any budget, so that counted runs are never dropped."""
_BUDGET_TIME = timedelta(days=1)
MAX_APPROVALS = 16
MAX_LINE = 24 * 1024


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


_Short = Annotated[str, msgspec.Meta(max_length=100)]
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
"""A whole sha256. Two testcases that share a part of their digests can be made in an hour."""


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run. ``id`` is unique to the run; ``testcase`` is the sha256 of the testcase."""

    id: _Short
    at: datetime
    by: _Short
    testcase: _Digest
    counted: bool
    """True if the run counts against the budgets: an account without triage permission caused it."""
    state: RunState = RunState.RUNNING
    machines: tuple[_Short, ...] = ()
    asked: _Short = ""
    """The options given, so that a request for the same run is recognised."""
    cause: _Short = ""
    """The event that caused the run (``comment-4242``): an event that is delivered twice is one run."""
    unasked: bool = False
    """True if an opened issue or the schedule caused the run. It posts one answer at most."""
    verdict: _Short = ""
    why: _Short = ""
    """Why a sweep answered again: ``new release``. Empty for every other run."""
    url: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Address of the run's log."""


class VoidedVerdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A maintainer withdrew the verdict. ``why`` is the maintainer's text: quote it when it is shown."""

    by: _Short
    at: datetime
    why: Annotated[str, msgspec.Meta(max_length=400)]


class RecordedApproval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A maintainer's approval of a testcase. It is valid while the comment is unedited and ``by`` may still
    approve."""

    testcase: _Digest
    by: _Short
    comment: int
    """Id of the comment with the command."""


class IssueRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The runs of one issue, its approvals, and its voided verdict."""

    runs: tuple[RecordedRun, ...] = ()
    """The last runs, oldest first: ``MAX_RUNS`` at most, see ``_drop_old_runs``."""
    void: VoidedVerdict | None = None
    approvals: tuple[RecordedApproval, ...] = ()
    """The last ``MAX_APPROVALS``, oldest first. Only an account that may approve adds one."""
    idle: datetime | None = None
    """Time of the last turn on the schedule that had no run to make."""
    cancelled: datetime | None = None
    """Runs that began before this time are cancelled, also a run that no comment of ours records."""

    def add_run(self, run: RecordedRun) -> IssueRecord:
        """Return the record with ``run`` at its end; a run of the same id is replaced."""
        others = tuple(old for old in self.runs if old.id != run.id)
        return msgspec.structs.replace(self, runs=_drop_old_runs((*others, run)))

    def add_approval(self, approval: RecordedApproval) -> IssueRecord:
        """Return the record with ``approval`` at its end, once."""
        others = tuple(old for old in self.approvals if old != approval)
        return msgspec.structs.replace(self, approvals=(*others, approval)[-MAX_APPROVALS:])

    def end_run(self, id: str, state: RunState, verdict: str = "") -> IssueRecord:
        """Return the record with the run ``id`` in its last state. A cancelled run stays cancelled."""
        runs = tuple(
            msgspec.structs.replace(run, state=state, verdict=verdict)
            if run.id == id and run.state is RunState.RUNNING
            else run
            for run in self.runs
        )
        return msgspec.structs.replace(self, runs=runs)

    def clear_void(self) -> IssueRecord:
        """Return the record of a comment whose verdict is a new one."""
        return msgspec.structs.replace(self, void=None)

    def remove_run(self, id: str) -> IssueRecord:
        """Return the record without the run ``id``."""
        return msgspec.structs.replace(self, runs=tuple(run for run in self.runs if run.id != id))

    def find_run(self, id: str) -> RecordedRun | None:
        return next((run for run in self.runs if run.id == id), None)


def _drop_old_runs(runs: tuple[RecordedRun, ...]) -> tuple[RecordedRun, ...]:
    """Drop the oldest runs, so that `MAX_RUNS` are left. Runs that a budget still counts are dropped last.

    Otherwise many runs by maintainers would make room for more runs by strangers.
    """
    if not (excess := len(runs) - MAX_RUNS) > 0:
        return runs
    newest = max(run.at for run in runs)
    free = [run for run in runs[:-1] if not run.counted or run.at <= newest - _BUDGET_TIME]
    dropped = {run.id for run in (*free, *runs)[:excess]}
    return tuple(run for run in runs if run.id not in dropped)


_PREFIX = "<!-- reprobot:record "
_RECORD = re.compile(rf"^{_PREFIX}(\{{.*\}}) -->$", re.MULTILINE)
_RECORD_LINE = re.compile(rf"^{_PREFIX}.*-->\n?", re.MULTILINE)


def encode_record(record: IssueRecord) -> str:
    """Return the hidden line. Characters that could end an HTML comment or mention an account are escaped as JSON."""
    text = msgspec.json.encode(record).decode()
    safe = text.replace("--", "-\\u002d").replace("<", "\\u003c").replace(">", "\\u003e").replace("@", "\\u0040")
    return f"{_PREFIX}{safe} -->"


def decode_record(comment: str) -> IssueRecord:
    """Return the record in one of our own comments, from the last line with the form of a record."""
    lines = _RECORD.findall(comment)
    if not lines or len(lines[-1]) > MAX_LINE:
        return IssueRecord()
    try:
        return msgspec.json.decode(lines[-1], type=IssueRecord)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return IssueRecord()


def remove_record(comment: str) -> str:
    """Return the comment without its record, even if an edit has damaged that line."""
    return _RECORD_LINE.sub("", comment)


def merge_records(records: Iterable[IssueRecord]) -> IssueRecord:
    """Return one record of several comments on one issue, oldest comment first: each run once, in its last state."""
    runs: dict[str, RecordedRun] = {}
    approvals: dict[RecordedApproval, None] = {}
    void, idle, cancelled = None, None, None
    for record in records:
        runs |= {run.id: run for run in record.runs}
        approvals |= dict.fromkeys(record.approvals)
        void = record.void
        idle = record.idle or idle
        cancelled = record.cancelled or cancelled
    last = _drop_old_runs(tuple(sorted(runs.values(), key=lambda run: run.at)))
    last_approvals = tuple(approvals)[-MAX_APPROVALS:]
    return IssueRecord(runs=last, void=void, approvals=last_approvals, idle=idle, cancelled=cancelled)
