"""A report → the comment and the labels on its issue. The reporting job, and the tail of the daemon.

Much may have happened since the run was planned: somebody cancelled it, edited the issue, locked or deleted it, or a
later run has answered already. Each is looked at before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from bot.extract import Repro
from bot.forge import sticky_comment
from bot.forge.contract import Forge, Gone, IssueState
from bot.forge.run_record import Record, RunState, short
from bot.report.comment import render_comment
from bot.report.quote import prose
from bot.requests.labels import apply
from bot.requests.plan_file import Case, read_issue
from bot.verdict.verdict import Report
from runners.core.protocol import digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Where the answer stands, and in words what was done or why nothing was."""

    url: str = ""
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The issue as it is now, and our comment on it."""

    state: IssueState
    sheet: sticky_comment.Sheet
    me: str


def deliver(forge: Forge, case: Case, report: Report) -> Delivered:
    """Post the answer of ``case``, unless something speaks against it.

    Raises:
        UserError: the forge refuses.
        InfraError: the forge does not answer; delivering again does no harm.
    """
    place = _look(forge, case)
    if isinstance(place, Delivered):
        return place
    assert case.run is not None
    record = place.sheet.record.ended(case.run.id, RunState.DONE, report.verdict.kind)
    if _superseded(record, case.run.id, case.run.at):
        sheet = replace(place.sheet, record=record)
        posted = sticky_comment.publish(forge, case.issue.repository, _number(case), sheet, me=place.me)
        return Delivered(url=posted.url, said="a later run has answered already: this one is only in the history")
    body = sticky_comment.of_report(render_comment(report, sticky_comment.ROOM))
    sheet = replace(body, record=record, note=_note_edited(case, place.state))
    posted = sticky_comment.publish(forge, case.issue.repository, _number(case), sheet, me=place.me)
    apply(forge, case.issue.repository, _number(case), case.settings, report.verdict.kind)
    return Delivered(url=posted.url, said=f"answered: {report.verdict.kind}")


def deliver_failure(forge: Forge, case: Case, why: str) -> Delivered:
    """Say that there is no answer, through no fault of the testcase; an earlier one stays as it is."""
    place = _look(forge, case)
    if isinstance(place, Delivered):
        return place
    assert case.run is not None
    record = place.sheet.record.ended(case.run.id, RunState.FAILED)
    note = f"> The run did not come to an end, through no fault of the testcase: {prose(why, 500)}\n>\n"
    note += "> `/repro rerun` tries it once more."
    posted = sticky_comment.publish(
        forge, case.issue.repository, _number(case), replace(place.sheet, record=record, note=note), me=place.me
    )
    return Delivered(url=posted.url, said="no answer: the run did not come to an end")


def _number(case: Case) -> int:
    assert case.issue.number is not None
    return case.issue.number


def _look(forge: Forge, case: Case) -> _Place | Delivered:
    """The issue now; or why nothing may be written there."""
    repository, number = case.issue.repository, _number(case)
    state = forge.state(repository, number)
    if isinstance(state, Gone):
        return Delivered(said=f"nothing is posted: the issue was {state.reason}")
    if state.locked:
        return Delivered(said="nothing is posted: the issue was locked")
    me = forge.whoami()
    comments = forge.comments(repository, number)
    old = sticky_comment.standing(comments, me)
    sheet = sticky_comment.take_apart(old.body) if old is not None else sticky_comment.Sheet()
    record = sticky_comment.records(comments, me).get(number, Record())
    assert case.run is not None
    known = record.find(case.run.id)
    if known is None:
        record = record.with_run(case.run)  # our comment was deleted meanwhile: the run was caused all the same
    elif known.state is RunState.CANCELLED:
        return Delivered(said="nothing is posted: the run was cancelled")
    return _Place(state=state, sheet=replace(sheet, record=record), me=me)


def _superseded(record: Record, id: str, at: datetime) -> bool:
    return any(run.id != id and run.state is RunState.DONE and run.at > at for run in record.runs)


def _note_edited(case: Case, state: IssueState) -> str:
    """What is said above the answer when the testcase is another one by now."""
    if case.blocks or state.issue.sha256 == case.issue.sha256:
        return ""
    now = replace(state.issue, attachments=case.issue.attachments, refused=case.issue.refused)
    read = read_issue(now, toolchain=case.toolchain, allow=case.wishes.allowed)
    digest = digest_of(read.testcase) if isinstance(read, Repro) else ""
    assert case.run is not None
    if short(digest) == case.run.testcase:
        return ""
    return (
        "> The issue was edited after this run began: this is about the text before. `/repro run` runs it as it is."
    )
