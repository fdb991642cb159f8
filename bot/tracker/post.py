"""Bring our comments on the issues up to date with the answers of a sweep.

Only a changed verdict is written, as an edit with a change log: nobody asked for these runs, and an edit sends no
notification. An issue without a comment of ours gets its first answer, under the rules of a run that nobody asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from bot.forge.contract import Forge, ForgeRefused, Gone, RateLimited
from bot.forge.run_record import IssueRecord, RecordedRun, RunState
from bot.forge.sticky_comment import (
    RUNNING,
    StickyComment,
    find_current_comment,
    parse_report,
    parse_sticky_comment,
    publish_comment,
    read_records,
)
from bot.report.sections.headline import TITLES, UNJUDGED
from bot.requests.conversation import STALE
from bot.requests.deliver import may_post_unasked
from bot.requests.labels import update_labels
from bot.settings import Settings
from bot.tracker.rows import FAILED, IssueRow
from bot.tracker.state import TrackerState
from bot.verdict.verdict import VerdictKind
from runners.core.errors import InfraError

NEVER_POSTED = UNJUDGED - {VerdictKind.UNTESTABLE}
"""Verdicts about a text without a testcase: a sweep does not ask authors for parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Everything that posting needs; each effect is a field."""

    forge: Forge
    repository: str
    settings: Settings
    state: TrackerState
    out: Path
    """The sweep's folder, with the reports."""
    pause: Callable[[float], None]
    """Waits; raises InfraError if the sweep has no time for it."""
    now: Callable[[], datetime]
    log: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostCount:
    """The number of comments that were created and edited, and of issues that a later sweep tries again."""

    created: int = 0
    edited: int = 0
    postponed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """``wrote`` is ``created``, ``edited`` or empty. ``is_settled`` is False if a later sweep has to look again."""

    message: str
    wrote: str = ""
    is_settled: bool = True


def post_answers(posting: Posting, ids: Iterable[str]) -> PostCount:
    """Write the answers of these issues that are not on the forge yet. Each is kept as posted before the next.

    Raises:
        InfraError: the state cannot be changed.
    """
    rows = posting.state.list_rows()
    count = PostCount()
    for row in (rows[id] for id in ids if id in rows):
        if not _is_new(row) or not may_post_unasked(posting.settings, VerdictKind(row.verdict)):
            continue
        done = _try_to_post(posting, row)
        if done.is_settled:
            posting.state.keep_rows([msgspec.structs.replace(row, posted=name_answer(row))])
        if done.wrote or not done.is_settled:
            posting.log(f"{row.issue.id}: {done.message}")
        count = PostCount(
            created=count.created + (done.wrote == "created"),
            edited=count.edited + (done.wrote == "edited"),
            postponed=count.postponed + (not done.is_settled),
        )
    return count


def _is_new(row: IssueRow) -> bool:
    """True if the answer is our own verdict and was not posted. Another machine's text is never posted."""
    return (
        row.posted != name_answer(row)
        and row.verdict not in (FAILED, *NEVER_POSTED)
        and not row.foreign
        and bool(row.page)
    )


def name_answer(row: IssueRow) -> str:
    """Return the parts of an answer that a comment shows and a sweep may change: the verdict, and its duplicates."""
    return " ".join((row.verdict, *row.same))


def _try_to_post(posting: Posting, row: IssueRow) -> _Outcome:
    try:
        while True:
            try:
                return _post_answer(posting, row)
            except RateLimited as limited:
                posting.log(str(limited))
                posting.pause(limited.wait)
    except (ForgeRefused, InfraError, OSError) as error:
        return _Outcome(message=f"not posted: {error}", is_settled=False)


def _post_answer(posting: Posting, row: IssueRow) -> _Outcome:
    """Write the answer of one issue, unless the issue or a later run forbids it."""
    forge, repository, number = posting.forge, posting.repository, int(row.issue.id)
    state = forge.fetch_state(repository, number)
    if isinstance(state, Gone):
        return _Outcome(message=f"the issue is {state.reason}", is_settled=state.reason != "hidden")
    if state.locked or state.is_pull_request:
        return _Outcome(message="the issue takes no comment")
    answer = parse_report((posting.out / row.page).with_suffix(".md").read_text(encoding="utf-8"))
    if state.issue.sha256.lower() != answer.issue:
        return _Outcome(message="the issue was edited meanwhile", is_settled=False)
    login = forge.get_login()
    comments = forge.list_comments(repository, number)
    posted = find_current_comment(comments, login)
    before = parse_sticky_comment(posted.body) if posted is not None else StickyComment()
    record = read_records(comments, login).get(number, IssueRecord())
    if (reason := _find_objection(before, record, row, posting.now())) is not None:
        return reason
    same = render_same(row)
    if before.verdict == row.verdict:
        if before.same == same:
            return _Outcome(message="the comment has this answer")
        sticky = replace(before, record=record, same=same)
        publish_comment(forge, repository, number, sticky, login=login)
        return _Outcome(message=f"edited: same failure as {', '.join(row.same) or 'no other issue'}", wrote="edited")
    record = record.add_run(_record_run(row))
    note = _render_note(before, row) if before.verdict != RUNNING else ""
    publish_comment(
        forge, repository, number, replace(answer, record=record, note=note, same=same), login=login, in_place=True
    )
    update_labels(forge, repository, number, posting.settings, VerdictKind(row.verdict))
    if before.verdict == RUNNING:
        return _Outcome(message=f"answered: {row.verdict}", wrote="created")
    return _Outcome(message=f"edited: {before.verdict} → {row.verdict}", wrote="edited")


def _find_objection(before: StickyComment, record: IssueRecord, row: IssueRow, now: datetime) -> _Outcome | None:
    """Return why the comment does not change; None if it is to be written."""
    if record.void is not None:
        return _Outcome(message="a maintainer voided the verdict: only a command asks for another")
    if any(run.state is RunState.RUNNING and run.at > now - STALE for run in record.runs):
        return _Outcome(message="a run is under way", is_settled=False)
    is_later = any(run.state is RunState.DONE and run.at > _read_time(row) for run in record.runs)
    if is_later and before.verdict != row.verdict:
        return _Outcome(message="a later run has answered")
    return None


def render_same(row: IssueRow) -> str:
    """Return the line that names the issues with the same failure; empty if no check has shown one."""
    if not row.same:
        return ""
    names = ", ".join(f"#{int(id)}" for id in row.same)
    return (
        f"> **Same failure as {names}.** Each testcase, minimised, was run on the builds of the other issue: they"
        " fail alike, and pass on the same builds. Nothing is closed because of this."
    )


def _record_run(row: IssueRow) -> RecordedRun:
    return RecordedRun(
        id=f"sweep-{sha256(f'{row.issue.id} {row.answered} {row.verdict}'.encode()).hexdigest()[:20]}",
        at=_read_time(row),
        by="",
        testcase=row.testcase,
        counted=False,
        state=RunState.DONE,
        verdict=row.verdict,
        why=row.reason,
        cause="sweep",
        unasked=True,
    )


def _read_time(row: IssueRow) -> datetime:
    return datetime.fromisoformat(row.answered)


def _render_note(before: StickyComment, row: IssueRow) -> str:
    """Return the note above an answer that was edited to another verdict."""
    old, new = (f"*{TITLES[VerdictKind(kind)]}*" for kind in (before.verdict, row.verdict))
    return (
        f"> **Changed** from {old} to {new} by a sweep over all issues on {_read_time(row):%Y-%m-%d %H:%M} UTC"
        f" ({row.reason}). *Runs so far* lists the earlier answers."
    )
