"""What our comment remembers of an issue: who caused which run of which testcase, and whether its verdict was voided.

The record is a hidden line of our own comment. Nobody but us and the repository's maintainers can change that, so
budgets counted from it hold: a stranger may delete a command, not what it caused. Read only from comments that are
ours by author; whatever does not decode is an empty record. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

MAX_RUNS = 16
MAX_LINE = 16 * 1024


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


_Short = Annotated[str, msgspec.Meta(max_length=100)]


class Run(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: ``id`` is unique to it, ``testcase`` the first 16 digits of its sha256."""

    id: _Short
    at: datetime
    by: _Short
    testcase: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}$")]
    counted: bool
    """Whether it counts against the budgets: it was caused by somebody without triage permission."""
    state: RunState = RunState.RUNNING
    machines: tuple[_Short, ...] = ()
    asked: _Short = ""
    """The options given, so that the same question is known again."""
    cause: _Short = ""
    """The event behind it (``comment-4242``): a delivery that comes twice is one run."""
    verdict: _Short = ""
    url: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Where its log is."""


class Void(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A maintainer withdrew the verdict. ``why`` is the maintainer's text: quoted when shown."""

    by: _Short
    at: datetime
    why: Annotated[str, msgspec.Meta(max_length=400)]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    runs: tuple[Run, ...] = ()
    """Oldest first, the last ``MAX_RUNS``."""
    void: Void | None = None

    def with_run(self, run: Run) -> Record:
        """``run`` added or, if it is known, replaced."""
        known = tuple(old for old in self.runs if old.id != run.id)
        return Record(runs=(*known, run)[-MAX_RUNS:], void=self.void)

    def ended(self, id: str, state: RunState, verdict: str = "") -> Record:
        """The run ``id`` in its new state; one that was cancelled stays so. A new verdict lifts a void."""
        runs = tuple(
            msgspec.structs.replace(run, state=state, verdict=verdict)
            if run.id == id and run.state is RunState.RUNNING
            else run
            for run in self.runs
        )
        return Record(runs=runs, void=None if state is RunState.DONE else self.void)

    def without(self, id: str) -> Record:
        """The record as it was before the run ``id``."""
        return Record(runs=tuple(run for run in self.runs if run.id != id), void=self.void)

    def find(self, id: str) -> Run | None:
        return next((run for run in self.runs if run.id == id), None)


_LINE = re.compile(r"^<!-- reprobot:record (\{.*\}) -->$", re.MULTILINE)


def encode(record: Record) -> str:
    """The hidden line. What could end an HTML comment, or mention anybody, is escaped the way JSON allows."""
    text = msgspec.json.encode(record).decode()
    safe = text.replace("--", "-\\u002d").replace("<", "\\u003c").replace(">", "\\u003e").replace("@", "\\u0040")
    return f"<!-- reprobot:record {safe} -->"


def decode(comment: str) -> Record:
    """The record in one of our own comments; the last line that looks like one counts."""
    found = _LINE.findall(comment)
    if not found or len(found[-1]) > MAX_LINE:
        return Record()
    try:
        return msgspec.json.decode(found[-1], type=Record)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return Record()


def merged(records: Iterable[Record]) -> Record:
    """One record of several comments on one issue, oldest comment first: each run once, as it was last seen."""
    runs: dict[str, Run] = {}
    void = None
    for record in records:
        runs |= {run.id: run for run in record.runs}
        void = record.void
    return Record(runs=tuple(sorted(runs.values(), key=lambda run: run.at))[-MAX_RUNS:], void=void)


def short(sha256_hex: str) -> str:
    """As much of a digest as a person compares and types."""
    return sha256_hex[:16]
