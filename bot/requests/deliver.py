"""Deliver a report: write the comment and the labels on its issue. Used by the reporting job and by the daemon.

The issue may have changed since the run was planned: a user cancelled the run, edited, locked or deleted the issue,
or a later run has answered already. Each is checked before the first write.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from bot.extract import Repro
from bot.forge.contract import CommentTarget, Forge, ForgeRefused, Gone, IssueState, IssueTarget
from bot.forge.run_record import IssueRecord, RunState
from bot.forge.sticky_comment import (
    MAX_BODY_BYTES,
    StickyComment,
    find_current_comment,
    parse_report,
    parse_sticky_comment,
    publish_comment,
    read_records,
)
from bot.report.comment import render_comment
from bot.report.quote import escape_prose, quote_code
from bot.requests.conversation import remove_eyes
from bot.requests.labels import update_labels
from bot.requests.plan_file import Case
from bot.requests.testcase import extract_with_blocks
from bot.settings import Settings, UnaskedAnswers
from bot.verdict.verdict import Report, VerdictKind
from runners.core.errors import InfraError
from runners.core.protocol import digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """URL of the comment (empty if none was written), and a message for the log."""

    url: str = ""
    message: str


SILENT = frozenset({VerdictKind.UNTESTABLE, VerdictKind.INCONCLUSIVE})
"""Verdicts without a statement about the failure. An unasked run does not post them by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurrentComment:
    """Our comment as it is now, and our login."""

    sticky: StickyComment
    is_posted: bool
    """False if we have no comment on the issue yet."""
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _CurrentIssue(_CurrentComment):
    """The issue as it is now, with our comment on it."""

    state: IssueState


def deliver_report(forge: Forge, case: Case, report: Report) -> Delivery:
    """Post the answer of ``case``, unless the issue or a later run forbids it.

    Raises:
        ForgeRefused: the forge refuses. Delivering again is safe.
        InfraError: the forge does not answer, or hides the issue. Delivering again is safe.
    """
    delivery = _deliver_report(forge, case, report)
    _remove_eyes(forge, case)
    return delivery


def _deliver_report(forge: Forge, case: Case, report: Report) -> Delivery:
    current = _load_current(forge, case)
    if isinstance(current, Delivery):
        return current
    assert case.run is not None
    repository, number = case.issue.repository, _get_number(case)
    record = current.sticky.record.end_run(case.run.id, RunState.DONE, report.verdict.kind)
    if _is_superseded(record, case.run.id, case.run.at):
        sticky = replace(current.sticky, record=record)
        posted = publish_comment(forge, repository, number, sticky, login=current.login)
        return Delivery(url=posted.url, message="a later run has answered already: this one is only in the history")
    if _is_silent(case, report):
        url = ""
        if current.is_posted:
            sticky = replace(current.sticky, record=record, note="", code="")
            url = publish_comment(forge, repository, number, sticky, login=current.login).url
        return Delivery(url=url, message=f"nothing is posted ({report.verdict.kind}): nobody asked for this run")
    here = replace(report, log=case.run.url, follows=case.settings.events.follows)
    answer = parse_report(render_comment(here, MAX_BODY_BYTES))
    note = _note_edit(case, current.state) or _note_update(case, current.sticky, answer)
    same = current.sticky.same if current.sticky.verdict == answer.verdict else ""
    record = record if _is_repeated(case, current.sticky) else record.clear_void()
    sticky = replace(answer, record=record, note=note, same=same)
    posted = publish_comment(forge, repository, number, sticky, login=current.login)
    update_labels(forge, repository, number, case.settings, report.verdict.kind if record.void is None else None)
    return Delivery(url=posted.url, message=f"answered: {report.verdict.kind}")


def deliver_failure(forge: Forge, case: Case, why: str) -> Delivery:
    """Post that there is no answer, through no fault of the testcase. An earlier answer stays as it is.

    An unasked run without a comment on the issue is not posted.
    """
    current = _load_current(forge, case)
    _remove_eyes(forge, case)
    if isinstance(current, Delivery):
        return current
    assert case.run is not None
    if case.run.unasked and not current.is_posted:
        return Delivery(message="nothing is posted: the run did not come to an end, and nobody asked for it")
    url = _post_failure(forge, case.issue.repository, _get_number(case), case.run.id, current, why)
    return Delivery(url=url, message="no answer: the run did not come to an end")


def render_failure(why: str) -> str:
    """Return one line of Markdown which states that a run failed because of us. The reason may quote a guest."""
    return f"The run did not come to an end, through no fault of the testcase: {escape_prose(why, 500)}"


def abandon_run(forge: Forge, repository: str, number: int, run_id: str, why: str) -> None:
    """Post that the run did not end, if our comment reports the run as active."""
    login = forge.get_login()
    remove_eyes(forge, repository, IssueTarget(number=number))
    comments = forge.list_comments(repository, number)
    posted = find_current_comment(comments, login)
    if posted is not None:
        record = read_records(comments, login)[number]
        sticky = replace(parse_sticky_comment(posted.body), record=record)
        current = _CurrentComment(sticky=sticky, is_posted=True, login=login)
        _post_failure(forge, repository, number, run_id, current, why)


def _post_failure(forge: Forge, repository: str, number: int, run_id: str, current: _CurrentComment, why: str) -> str:
    """Write the failure above an earlier answer. Return the comment's URL; empty if the run has ended already."""
    run = current.sticky.record.find_run(run_id)
    if run is None or run.state is not RunState.RUNNING:
        return ""
    record = current.sticky.record.end_run(run_id, RunState.FAILED)
    note = f"> {render_failure(why)}\n>\n> `/repro rerun` tries it once more."
    return publish_comment(
        forge, repository, number, replace(current.sticky, record=record, note=note, code=""), login=current.login
    ).url


def _get_number(case: Case) -> int:
    assert case.issue.number is not None
    return case.issue.number


def _load_current(forge: Forge, case: Case) -> _CurrentIssue | Delivery:
    """Return the issue as it is now, or a delivery which states why no comment may be written there."""
    repository, number = case.issue.repository, _get_number(case)
    state = forge.fetch_state(repository, number)
    assert case.run is not None
    if isinstance(state, Gone):
        if state.reason == "hidden":
            raise InfraError(f"{repository}#{number} cannot be seen (404): check the token's access, and try again")
        return Delivery(message=f"nothing is posted: the issue was {state.reason}")
    if state.locked:
        with suppress(ForgeRefused):  # an edit of our comment may be allowed, and sends no notification
            abandon_run(forge, repository, number, case.run.id, "the issue was locked meanwhile")
        return Delivery(message="nothing is posted: the issue was locked")
    login = forge.get_login()
    comments = forge.list_comments(repository, number)
    posted = find_current_comment(comments, login)
    sticky = parse_sticky_comment(posted.body) if posted is not None else StickyComment()
    record = read_records(comments, login).get(number, IssueRecord())
    known = record.find_run(case.run.id)
    if known is None:
        record = record.add_run(case.run)  # our comment was deleted meanwhile; the run still counts
    is_cancelled = known is not None and known.state is RunState.CANCELLED
    if is_cancelled or (record.cancelled is not None and case.run.at <= record.cancelled):
        return Delivery(message="nothing is posted: the run was cancelled")
    return _CurrentIssue(
        state=state, sticky=replace(sticky, record=record), is_posted=posted is not None, login=login
    )


def _is_silent(case: Case, report: Report) -> bool:
    """True if this answer is not posted: the run was not requested, and the settings exclude such an answer."""
    assert case.run is not None
    return case.run.unasked and not may_post_unasked(case.settings, report.verdict.kind)


def may_post_unasked(settings: Settings, kind: VerdictKind) -> bool:
    """True if the settings allow this answer of a run that nobody asked for."""
    match settings.events.post:
        case UnaskedAnswers.ALL:
            return True
        case UnaskedAnswers.ANSWERS:
            return kind not in SILENT
        case UnaskedAnswers.NOTHING:
            return False


def _remove_eyes(forge: Forge, case: Case) -> None:
    """Remove the reaction that shows that this run is active."""
    assert case.run is not None
    comment = re.fullmatch(r"comment-(\d{1,18})", case.run.cause, re.ASCII)
    target = CommentTarget(id=int(comment[1])) if comment else IssueTarget(number=_get_number(case))
    remove_eyes(forge, case.issue.repository, target)


def _is_superseded(record: IssueRecord, id: str, at: datetime) -> bool:
    """True if a run that began later is done."""
    return any(run.id != id and run.state is RunState.DONE and run.at > at for run in record.runs)


def _note_update(case: Case, before: StickyComment, answer: StickyComment) -> str:
    """Return the note on an edited answer, because the forge does not notify of edits; empty for a new answer."""
    assert case.run is not None
    if _is_repeated(case, before):
        return before.note
    if before.verdict != answer.verdict:
        return ""
    asker = f" for {quote_code(case.run.by)}" if case.run.by else ""
    return f"> **Updated** by a run{asker} on {case.run.at:%Y-%m-%d %H:%M} UTC. The verdict is the same."


def _is_repeated(case: Case, before: StickyComment) -> bool:
    """True if this delivery repeats one that a fault of the forge cut short: the comment has the run's answer."""
    assert case.run is not None
    known = before.record.find_run(case.run.id)
    return known is not None and known.state is RunState.DONE


def _note_edit(case: Case, state: IssueState) -> str:
    """Return the note above the answer if the issue's testcase changed since the run began; empty if it did not."""
    if case.blocks or state.issue.sha256 == case.issue.sha256:
        return ""
    now = replace(
        state.issue,
        attachments=case.issue.attachments,
        refused=case.issue.refused,
        comments=case.issue.comments,
    )
    extraction = extract_with_blocks(now, toolchain=case.toolchain, allow=case.options.allowed)
    digest = digest_of(extraction.testcase) if isinstance(extraction, Repro) else ""
    assert case.run is not None
    if digest == case.run.testcase:
        return ""
    return (
        "> The issue was edited after this run began: this is about the text before. `/repro run` runs it as it is."
    )
