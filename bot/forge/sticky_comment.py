"""Our one comment on an issue: found by its marker and its author, edited in place, taken apart and put together.

A comment of ours has four parts: a *note* above (running, voided, superseded), the *body* (a report), the folded
*history* of runs, and two hidden lines, the record and the marker. Anybody can write a comment with our marker; only
we can be its author. A change of the verdict is worth a notification, so it gets a comment of its own; everything
else is an edit, which notifies nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bot.forge.contract import Forge, PostedComment
from bot.forge.run_record import Record, Void, decode, encode, merged
from bot.report.comment import MAX_BYTES, read_marker
from bot.report.quote import code, fence

MAX_NOTE = 4_000
MAX_HISTORY = 12
ROOM = MAX_BYTES - 20_000
"""What a body may have in bytes, so that all parts together stay below ``MAX_BYTES``."""

_NOTE = ("<!-- reprobot:note -->", "<!-- reprobot:end-note -->")
_VOID = ("<!-- reprobot:void -->", "<!-- reprobot:end-void -->")
_HISTORY = ("<!-- reprobot:history -->", "<!-- reprobot:end-history -->")
_RECORD_LINE = re.compile(r"^<!-- reprobot:record .*-->\n?", re.MULTILINE)
RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One comment of ours, as its parts. ``verdict`` is ``running`` before there is any."""

    note: str = ""
    body: str = ""
    """The report without its marker."""
    record: Record = field(default_factory=Record)
    verdict: str = RUNNING
    issue: str = ""
    """The sha256 of the issue's text that the verdict is about."""


def ours(comments: Iterable[PostedComment], me: str) -> tuple[PostedComment, ...]:
    """Our comments with a marker, oldest first. The author decides; the marker only tells it from our replies."""
    return tuple(one for one in comments if one.author == me and read_marker(one.body) is not None)


def standing(comments: Iterable[PostedComment], me: str) -> PostedComment | None:
    """Our newest comment: the one that is edited."""
    found = ours(comments, me)
    return found[-1] if found else None


def records(comments: Iterable[PostedComment], me: str) -> Mapping[int, Record]:
    """What our comments remember of each issue."""
    by_issue: dict[int, list[Record]] = {}
    for one in ours(comments, me):
        by_issue.setdefault(one.number, []).append(decode(one.body))
    return {number: merged(found) for number, found in by_issue.items()}


def take_apart(text: str) -> Sheet:
    """The parts of a comment of ours; what somebody edited out of shape is kept as body."""
    verdict, issue = read_marker(text) or (RUNNING, "")
    record = decode(text)
    lines = text.rstrip().rpartition("\n")[0] if read_marker(text) else text
    rest, note = _cut_out(_RECORD_LINE.sub("", lines), *_NOTE)
    rest, _ = _cut_out(rest, *_VOID)
    rest, _ = _cut_out(rest, *_HISTORY)
    return Sheet(note=note, body=rest.strip(), record=record, verdict=verdict, issue=issue)


def _cut_out(text: str, start: str, end: str) -> tuple[str, str]:
    """``text`` without what stands between the two lines, and that."""
    before, found, rest = text.partition(start)
    inner, closed, after = rest.partition(end)
    return (before + after, inner.strip()) if found and closed else (text, "")


def put_together(sheet: Sheet) -> str:
    """The comment's text. The marker is the last line: only there it counts."""
    marker = f"<!-- reprobot:1 verdict={sheet.verdict} issue={sheet.issue} -->"
    note = _between(_NOTE, sheet.note[:MAX_NOTE])
    void = _between(_VOID, _voided(sheet.record.void)) if sheet.record.void is not None else ""
    history = _between(_HISTORY, _history(sheet.record))
    parts = [note, void, sheet.body, history, f"{encode(sheet.record)}\n{marker}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _between(lines: tuple[str, str], text: str) -> str:
    return f"{lines[0]}\n{text}\n{lines[1]}" if text else ""


def _voided(void: Void) -> str:
    """What stands above a verdict that was withdrawn."""
    reason = "\n".join(f"> {line}" for line in fence(void.why).splitlines())
    return f"> **Voided** by {code(void.by)} on {void.at:%Y-%m-%d}. The answer below no longer stands:\n>\n{reason}"


def of_report(text: str) -> Sheet:
    """A rendered report, whose last line is its marker, as a sheet without note or record."""
    return replace(take_apart(text), note="", record=Record())


def _history(record: Record) -> str:
    """The runs that ended, newest first, folded; nothing as long as there is only one."""
    past = [run for run in record.runs if run.verdict]
    if len(past) < 2:
        return ""
    rows = [
        f"- {run.at:%Y-%m-%d %H:%M} UTC: {run.verdict} for testcase `{run.testcase[:12]}`"
        + (f" ({code(run.asked, 80)})" if run.asked else "")
        + (f", [log]({run.url})" if _plain(run.url) else "")
        for run in reversed(past[-MAX_HISTORY:])
    ]
    return "<details><summary>Runs so far</summary>\n\n" + "\n".join(rows) + "\n\n</details>"


def _plain(url: str) -> bool:
    return re.fullmatch(r"https?://[\w.:-]+/[\w./-]*(?:#[\w-]*)?", url, re.ASCII) is not None


def publish(forge: Forge, repository: str, number: int, sheet: Sheet, *, me: str) -> PostedComment:
    """Bring our comment on the issue to ``sheet``: edited in place, or a new one where the verdict changed.

    The old one then says where it went on. Nothing is written when nothing changed.
    """
    old = standing(forge.comments(repository, number), me)
    text = put_together(sheet)
    if old is None:
        return forge.create_comment(repository, number, text)
    before = take_apart(old.body)
    if before.verdict not in (RUNNING, sheet.verdict) and sheet.verdict != RUNNING:
        new = forge.create_comment(repository, number, text)
        where = f"[the comment below]({new.url})" if _plain(new.url) else "the comment below"
        note = f"> Another run has come to another verdict since: see {where}."
        forge.edit_comment(repository, old.id, put_together(replace(before, note=note)))
        return new
    return old if old.body.strip() == text.strip() else forge.edit_comment(repository, old.id, text)
