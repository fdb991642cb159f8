"""Our comment on an issue (a sticky comment): found by its marker and author, parsed, rendered, edited in place.

The comment has six parts: a *note* above (running, updated, voided, superseded), the folded *code* that waits for
approval, the *body* (a report), the issues with the *same* failure, the folded *history* of runs, and two hidden
lines, the record and the marker.
Anybody can write a comment with our marker, but only we can be its author.

An edit sends no notification. So the first verdict is a new comment, which replaces the progress note, and a changed
verdict is a new comment too. Every other change is an edit. A sweep after a release may change hundreds of verdicts
that nobody asked for: it edits, and the history shows the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bot.forge.contract import Forge, PostedComment
from bot.forge.run_record import (
    IssueRecord,
    RecordedRun,
    VoidedVerdict,
    decode_record,
    encode_record,
    merge_records,
    remove_record,
)
from bot.report.comment import MAX_BYTES, format_marker, read_marker
from bot.report.quote import quote_block, quote_code

MAX_NOTE = 4_000
MAX_HISTORY = 12
MAX_BODY_BYTES = MAX_BYTES - 24_000
"""Limit for the body, so that all parts together stay below ``MAX_BYTES``."""

_NOTE = ("<!-- reprobot:note -->", "<!-- reprobot:end-note -->")
_CODE = ("<!-- reprobot:code -->", "<!-- reprobot:end-code -->")
_VOID = ("<!-- reprobot:void -->", "<!-- reprobot:end-void -->")
_SAME = ("<!-- reprobot:same -->", "<!-- reprobot:end-same -->")
_HISTORY = ("<!-- reprobot:history -->", "<!-- reprobot:end-history -->")
RUNNING = "running"
"""The verdict in the marker before the first answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StickyComment:
    """Our comment as its parts."""

    note: str = ""
    code: str = ""
    """The testcase that waits for approval, folded. Body and code share ``MAX_BODY_BYTES``."""
    body: str = ""
    """The report without its marker."""
    same: str = ""
    """The issues that have the same failure, as a sweep has checked."""
    record: IssueRecord = field(default_factory=IssueRecord)
    verdict: str = RUNNING
    issue: str = ""
    """The sha256 of the issue's text that the verdict is about."""


# ---------------------------------------------------------------------------------------------- finding


def filter_own_comments(comments: Iterable[PostedComment], login: str) -> tuple[PostedComment, ...]:
    """Return our comments with a marker, in their order.

    ``login`` is our account. The author decides; the marker only separates the comment from our replies.
    """
    return tuple(one for one in comments if one.author == login and read_marker(one.body) is not None)


def find_current_comment(comments: Iterable[PostedComment], login: str) -> PostedComment | None:
    """Return our newest comment with a marker: the comment that is edited."""
    own = filter_own_comments(comments, login)
    return own[-1] if own else None


def read_records(comments: Iterable[PostedComment], login: str) -> Mapping[int, IssueRecord]:
    """Return the record of each issue that has a comment of ours, by issue number."""
    by_issue: dict[int, list[IssueRecord]] = {}
    for one in filter_own_comments(comments, login):
        by_issue.setdefault(one.number, []).append(decode_record(one.body))
    return {number: merge_records(records) for number, records in by_issue.items()}


def find_later_first_runs(comments: Iterable[PostedComment], login: str, own: PostedComment) -> frozenset[int]:
    """Return the issues whose first run was recorded after the first run of ``own``'s issue.

    Ids of comments grow, so two jobs agree on which comment was created first. This is the order of the runs only if
    each comment was created with its run. So an edited comment is never later than another, and no comment is later
    than an edited one.
    """
    by_issue: dict[int, list[PostedComment]] = {}
    for one in filter_own_comments(comments, login):
        by_issue.setdefault(one.number, []).append(one)
    first = {
        number: ours[0].id
        for number, ours in by_issue.items()
        if len(ours) == 1 and ours[0].updated <= ours[0].created and _begins_run(ours[0].body)
    }
    if first.get(own.number) != own.id:
        return frozenset()
    return frozenset(number for number, id in first.items() if id > own.id)


def _begins_run(body: str) -> bool:
    """True for a progress note with its first run. A verdict is a new comment too, but later than its run."""
    return (read_marker(body) or ("",))[0] == RUNNING and len(decode_record(body).runs) == 1


# ---------------------------------------------------------------------------------------------- parsing, rendering


def parse_sticky_comment(text: str) -> StickyComment:
    """Return the parts of a comment of ours. Text that an edit has damaged is kept in the body."""
    verdict, issue = read_marker(text) or (RUNNING, "")
    record = decode_record(text)
    lines = text.rstrip().rpartition("\n")[0] if read_marker(text) else text
    rest, note = _cut_out(remove_record(lines), *_NOTE)
    rest, code = _cut_out(rest, *_CODE)
    rest, _ = _cut_out(rest, *_VOID)
    rest, same = _cut_out(rest, *_SAME)
    rest, _ = _cut_out(rest, *_HISTORY)
    return StickyComment(
        note=note, code=code, body=rest.strip(), same=same, record=record, verdict=verdict, issue=issue
    )


def _cut_out(text: str, start: str, end: str) -> tuple[str, str]:
    """Return ``text`` without the part between the two lines, and that part."""
    before, has_start, rest = text.partition(start)
    inner, has_end, after = rest.partition(end)
    return (before + after, inner.strip()) if has_start and has_end else (text, "")


def parse_report(text: str) -> StickyComment:
    """Return a rendered report, whose last line is its marker, as a comment without note or record."""
    return replace(parse_sticky_comment(text), note="", code="", same="", record=IssueRecord())


def render_sticky_comment(sticky: StickyComment) -> str:
    """Return the comment's text. The marker is the last line: it counts only there."""
    marker = format_marker(sticky.verdict, sticky.issue)
    note = _wrap_lines(_NOTE, sticky.note[:MAX_NOTE])
    has_room = len(sticky.code.encode()) + len(sticky.body.encode()) <= MAX_BODY_BYTES
    code = _wrap_lines(_CODE, sticky.code) if has_room else ""  # a part of it could end inside a fence
    void = _wrap_lines(_VOID, _render_void(sticky.record.void)) if sticky.record.void is not None else ""
    history = _wrap_lines(_HISTORY, _render_history(sticky.record))
    same = _wrap_lines(_SAME, sticky.same)
    parts = [note, code, void, sticky.body, same, history, f"{encode_record(sticky.record)}\n{marker}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _wrap_lines(lines: tuple[str, str], text: str) -> str:
    return f"{lines[0]}\n{text}\n{lines[1]}" if text else ""


def _render_void(void: VoidedVerdict) -> str:
    """Return the text above a verdict that was withdrawn."""
    reason = "\n".join(f"> {line}" for line in quote_block(void.why).splitlines())
    header = f"> **Voided** by {quote_code(void.by)} on {void.at:%Y-%m-%d}. The answer below no longer stands:"
    return f"{header}\n>\n{reason}"


def _render_history(record: IssueRecord) -> str:
    """Return the runs that ended, newest first, folded. Empty if there is only one."""
    past = [run for run in record.runs if run.verdict]
    if len(past) < 2:
        return ""
    rows = [
        f"- {run.at:%Y-%m-%d %H:%M} UTC: {_render_step(before, run)} for testcase `{run.testcase}`"
        + (f" ({quote_code(run.asked, 80)})" if run.asked else "")
        + (f", [log]({run.url})" if _is_plain_url(run.url) else "")
        for before, run in reversed(list(zip([None, *past], past, strict=False))[-MAX_HISTORY:])
    ]
    return "<details><summary>Runs so far</summary>\n\n" + "\n".join(rows) + "\n\n</details>"


def _render_step(before: RecordedRun | None, run: RecordedRun) -> str:
    """Return the verdict of a run; of a sweep's run, also the verdict before, and the reason of the run."""
    change = f"{before.verdict} → " if run.why and before is not None and before.verdict != run.verdict else ""
    return f"{change}{run.verdict}" + (f" ({quote_code(run.why)})" if run.why else "")


def _is_plain_url(url: str) -> bool:
    return re.fullmatch(r"https?://[\w.:-]+/[\w./-]*(?:#[\w-]*)?", url, re.ASCII) is not None


# ---------------------------------------------------------------------------------------------- writing


def publish_comment(
    forge: Forge, repository: str, number: int, sticky: StickyComment, *, login: str, in_place: bool = False
) -> PostedComment:
    """Make ``sticky`` our comment on the issue: edit it in place, or write a new one for a new verdict.

    A new verdict replaces a progress note, which is deleted. A verdict that it supersedes stays, with a note that
    links to the new one. An unchanged comment is not written. With ``in_place``, a new verdict edits an old one.
    """
    own = filter_own_comments(forge.list_comments(repository, number), login)
    text = render_sticky_comment(sticky)
    if not own:
        return forge.create_comment(repository, number, text)
    posted = _replace_comment(forge, repository, number, own[-1], sticky, text, in_place=in_place)
    if sticky.verdict != RUNNING:
        for old in own:
            if old.id != posted.id and parse_sticky_comment(old.body).verdict == RUNNING:
                forge.delete_comment(repository, old.id)
    return posted


def _replace_comment(
    forge: Forge,
    repository: str,
    number: int,
    old: PostedComment,
    sticky: StickyComment,
    text: str,
    *,
    in_place: bool,
) -> PostedComment:
    before = parse_sticky_comment(old.body)
    if before.verdict == RUNNING != sticky.verdict:
        return forge.create_comment(repository, number, text)
    if before.verdict != sticky.verdict != RUNNING and not in_place:
        new = forge.create_comment(repository, number, text)
        link = f"[the comment below]({new.url})" if _is_plain_url(new.url) else "the comment below"
        note = f"> Another run has come to another verdict since: see {link}."
        forge.edit_comment(repository, old.id, render_sticky_comment(replace(before, note=note, code="")))
        return new
    return old if old.body.strip() == text.strip() else forge.edit_comment(repository, old.id, text)
