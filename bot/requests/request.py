"""Turn one event of the forge into a request, or into the reason why it is ignored. Pure.

Permissions are not checked here: see ``bot/requests/permissions.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from bot.forge.payloads import Event, EventIssue, User
from bot.issue import GHOST
from bot.requests.commands import VERBS, Mistake, SlashCommand, Verb, make_command, read_commands
from bot.requests.markdown_lines import has_code
from bot.settings import Events, Settings
from runners.core.errors import UserError

MAX_EVENT = 25 * 1024 * 1024
"""Bytes. GitHub caps a webhook's payload at 25 MB."""


class Trigger(StrEnum):
    OPENED = "opened"
    EDITED = "edited"
    LABELED = "labeled"
    COMMENT = "comment"
    REPLY = "reply"
    """Code in a comment of the issue's author, without a command."""
    DISPATCH = "dispatch"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Commands for one issue, from an account or from the schedule."""

    trigger: Trigger
    repository: str
    number: int | None
    """None for the schedule: the issue that is due is chosen later."""
    actor: str
    """Login of the account that caused the event; empty for the schedule."""
    at: datetime
    comment: int | None = None
    """Id of the comment with the commands."""
    commands: tuple[SlashCommand, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    asked: bool = False
    """True if a person asked, and gets an answer even without a run."""
    former: str | None = None
    """The issue's text before an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredEvent:
    """An event that causes no run. ``why`` may quote the event: escape it when it is shown."""

    why: str


_REPOSITORY = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


def read_request(
    event: str, payload: bytes, *, settings: Settings, login: str, now: datetime, repository: str = ""
) -> Request | IgnoredEvent:
    """Return the request in an event. ``event`` is its name, as in ``GITHUB_EVENT_NAME``.

    ``login`` is our own account. ``repository`` is for events that carry none (``schedule``).

    Raises:
        UserError: the payload is not an event.
    """
    read = _decode_event(payload)
    name = read.repository.full_name if read.repository else repository
    if not _REPOSITORY.fullmatch(name):
        raise UserError(f"the event names no repository ({name[:60]!r}): is it GitHub's?")
    if event == "schedule":
        return Request(trigger=Trigger.SCHEDULE, repository=name, number=None, actor="", at=now)
    if read.sender is None:
        return IgnoredEvent(why="the event does not say who caused it")
    if why := _check_person(read.sender, login):
        return IgnoredEvent(why=why)
    match event:
        case "issues":
            return _read_issue_event(read, read.sender, name, settings, now)
        case "issue_comment":
            return _read_comment_event(read, name, login, settings, now)
        case "workflow_dispatch":
            return _read_dispatch_event(read, read.sender, name, now)
        case _:
            return IgnoredEvent(why=f"events of the kind {event[:40]!r} are not for us")


def _decode_event(payload: bytes) -> Event:
    if len(payload) > MAX_EVENT:
        raise UserError(f"the event has {len(payload):,} bytes, more than GitHub sends")
    try:
        return msgspec.json.decode(payload, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the event cannot be read ({str(error)[:200]}): is it GitHub's?") from None


def _check_person(sender: User, login: str) -> str:
    """Return why this account is not answered; empty if it is. Decided by ``type``, not by a list of bots' names."""
    if sender.login == login:
        return "we caused it ourselves"
    if sender.login == GHOST:
        return "it was caused by a deleted account"
    return "" if sender.type == "User" else f"it was caused by a {sender.type.lower()[:20]} account"


def _read_issue_event(
    read: Event, sender: User, repository: str, settings: Settings, now: datetime
) -> Request | IgnoredEvent:
    issue, events = read.issue, settings.events
    if issue is None:
        return IgnoredEvent(why="the event carries no issue")
    if why := _check_issue(issue):
        return IgnoredEvent(why=why)
    match read.action:
        case "opened" if not events.opened:
            return IgnoredEvent(why="events.opened is off")
        case "opened" | "edited" if why := _check_labels(issue, events):
            return IgnoredEvent(why=why)
        case "opened":
            trigger = Trigger.OPENED
        case "edited" if not events.edited:
            return IgnoredEvent(why="events.edited is off")
        case "edited" if issue.state == "closed":
            return IgnoredEvent(why="the issue is closed")
        case "edited" if read.changes is not None and read.changes.body is None:
            return IgnoredEvent(why="the edit left the text as it was")
        case "edited":
            trigger = Trigger.EDITED
        case "labeled" if read.label is not None and events.label is not None and read.label.name == events.label:
            trigger = Trigger.LABELED
        case "labeled":
            return IgnoredEvent(why="the label is not the one in events.label")
        case _:
            return IgnoredEvent(why=f"nothing is done when an issue is {read.action[:40]}")
    return Request(
        trigger=trigger,
        repository=repository,
        number=issue.number,
        actor=sender.login,
        at=(issue.created_at if trigger is Trigger.OPENED else issue.updated_at) or now,
        commands=(SlashCommand(verb=Verb.RUN),),
        asked=trigger is Trigger.LABELED,
        former=_read_former_text(read) if trigger is Trigger.EDITED else None,
    )


def _read_former_text(read: Event) -> str | None:
    """Return the issue's text before an edit; None if the event does not contain that text."""
    former = read.changes.body.get("from") if read.changes is not None and read.changes.body is not None else None
    return former if isinstance(former, str) else None


def _check_labels(issue: EventIssue, events: Events) -> str:
    """Return why an event without a request is ignored; empty if it is not ignored."""
    labels = set(issue.label_names)
    if events.only and not labels & set(events.only):
        return "the issue has none of the labels in events.only"
    return "the issue has one of the labels in events.skip" if labels & set(events.skip) else ""


def _check_issue(issue: EventIssue) -> str:
    """Return why events of this issue are ignored; empty if they are not."""
    if issue.pull_request is not None:
        return "it is a pull request"
    return "the issue is locked" if issue.locked else ""


def _read_comment_event(
    read: Event, repository: str, login: str, settings: Settings, now: datetime
) -> Request | IgnoredEvent:
    issue, comment = read.issue, read.comment
    if issue is None or comment is None or comment.user is None:
        return IgnoredEvent(why="the event carries no comment")
    if read.action != "created":
        return IgnoredEvent(why=f"a comment that is {read.action[:40]} gives no commands: write a new one")
    if why := _check_person(comment.user, login) or _check_issue(issue):
        return IgnoredEvent(why=why)
    reading = read_commands(comment.body or "")
    is_reply = not reading and comment.author == issue.author and has_code(comment.body or "")
    if not reading and not is_reply:
        return IgnoredEvent(why="the comment holds no command")
    if is_reply and (why := _check_reply(issue, settings.events)):
        return IgnoredEvent(why=why)
    return Request(
        trigger=Trigger.REPLY if is_reply else Trigger.COMMENT,
        repository=repository,
        number=issue.number,
        actor=comment.user.login,
        at=comment.created_at or now,
        comment=comment.id,
        commands=reading.commands if reading else (SlashCommand(verb=Verb.RUN),),
        mistakes=reading.mistakes,
        asked=not is_reply,
    )


def _check_reply(issue: EventIssue, events: Events) -> str:
    """Return why code in a reply is ignored; empty if it is not."""
    if not events.replies:
        return "events.replies is off"
    return "the issue is closed" if issue.state == "closed" else _check_labels(issue, events)


def _read_dispatch_event(read: Event, sender: User, repository: str, now: datetime) -> Request | IgnoredEvent:
    """Return the request of the *Run workflow* button. Its inputs are named as the options of ``/repro rerun``."""
    given = {name: (value or "").strip() for name, value in (read.inputs or {}).items()}
    number = given.pop("issue", "").removeprefix("#")
    if not re.fullmatch(r"[1-9]\d{0,8}", number, re.ASCII):
        raise UserError(f"the input issue is {number[:40]!r}: give the number of an issue")
    options = {name: value for name, value in given.items() if name in VERBS[Verb.RERUN].options}
    command = make_command(Verb.RERUN, options)
    return Request(
        trigger=Trigger.DISPATCH,
        repository=repository,
        number=int(number),
        actor=sender.login,
        at=now.astimezone(UTC),
        commands=() if isinstance(command, Mistake) else (command,),
        mistakes=(command,) if isinstance(command, Mistake) else (),
        asked=True,
    )
