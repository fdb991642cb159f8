"""One event of the forge → what is asked of us, or why nothing is. Pure: who may is `bot.requests.permissions`'s
question.

The event's JSON comes from GitHub, but most strings in it were typed by strangers. Only the few fields below are
read, each with its type; all others are ignored, since GitHub adds some every year.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from bot.requests.commands import VERBS, Command, Mistake, Reading, Verb, command_of, read_commands
from bot.settings import Settings
from runners.core.errors import UserError

MAX_EVENT = 25 * 1024 * 1024
"""GitHub caps a webhook's payload at 25 MB."""


class Trigger(StrEnum):
    OPENED = "opened"
    EDITED = "edited"
    LABELED = "labeled"
    COMMENT = "comment"
    DISPATCH = "dispatch"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody, or the clock, wants something of one issue."""

    trigger: Trigger
    repository: str
    number: int | None
    """None for the clock: which issue is due is found out later."""
    actor: str
    """Who caused the event; empty for the clock."""
    author: str | None
    """Who opened the issue; None where the event does not say."""
    at: datetime
    comment: int | None = None
    """The comment that holds the commands."""
    commands: tuple[Command, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    asked: bool = False
    """A person asked in words, and is owed an answer even where there is nothing to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    why: str


# ------------------------------------------------------------------------------------------ the fields that are read


class _User(msgspec.Struct, frozen=True):
    login: str
    type: str = "User"


class _Label(msgspec.Struct, frozen=True):
    name: str


class _Issue(msgspec.Struct, frozen=True):
    number: int
    user: _User | None = None
    state: str = "open"
    locked: bool = False
    labels: tuple[_Label, ...] = ()
    pull_request: dict[str, object] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class _Comment(msgspec.Struct, frozen=True):
    id: int
    user: _User | None = None
    body: str | None = None
    created_at: datetime | None = None


class _Repository(msgspec.Struct, frozen=True):
    full_name: str


class _Changes(msgspec.Struct, frozen=True):
    body: dict[str, object] | None = None
    title: dict[str, object] | None = None


class _Event(msgspec.Struct, frozen=True):
    repository: _Repository | None = None
    sender: _User | None = None
    action: str = ""
    issue: _Issue | None = None
    comment: _Comment | None = None
    label: _Label | None = None
    changes: _Changes | None = None
    inputs: dict[str, str | None] | None = None


_REPOSITORY = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


def read_request(
    event: str, payload: bytes, *, settings: Settings, me: str, now: datetime, repository: str = ""
) -> Request | Ignored:
    """What the event ``event`` (its name, as in ``GITHUB_EVENT_NAME``) asks of us; ``me`` is our own login.

    ``repository`` names it for events that carry none (the clock's).

    Raises:
        UserError: the payload is no event.
    """
    read = _decode(payload)
    name = read.repository.full_name if read.repository else repository
    if not _REPOSITORY.fullmatch(name):
        raise UserError(f"the event names no repository ({name[:60]!r}): is it GitHub's?")
    if event == "schedule":
        return Request(trigger=Trigger.SCHEDULE, repository=name, number=None, actor="", author=None, at=now)
    if read.sender is None:
        return Ignored(why="the event does not say who caused it")
    if why := _not_a_person(read.sender, me):
        return Ignored(why=why)
    match event:
        case "issues":
            return _of_issue(read, read.sender, name, settings, now)
        case "issue_comment":
            return _of_comment(read, name, me, now)
        case "workflow_dispatch":
            return _of_dispatch(read, read.sender, name, now)
        case _:
            return Ignored(why=f"events of the kind {event[:40]!r} are not for us")


def _decode(payload: bytes) -> _Event:
    if len(payload) > MAX_EVENT:
        raise UserError(f"the event has {len(payload):,} bytes, more than GitHub sends")
    try:
        return msgspec.json.decode(payload, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the event cannot be read ({str(error)[:200]}): is it GitHub's?") from None


def _not_a_person(sender: _User, me: str) -> str:
    """Why this account is not answered. By the event's own fields, never by a comparison with some bot's name."""
    if sender.login == me:
        return "we caused it ourselves"
    return "" if sender.type == "User" else f"it was caused by a {sender.type.lower()[:20]} account"


def _of_issue(read: _Event, sender: _User, repository: str, settings: Settings, now: datetime) -> Request | Ignored:
    issue, events = read.issue, settings.events
    if issue is None:
        return Ignored(why="the event carries no issue")
    if why := _closed_to_us(issue):
        return Ignored(why=why)
    match read.action:
        case "opened" if not events.opened:
            return Ignored(why="events.opened is off")
        case "opened" if events.only and not {label.name for label in issue.labels} & set(events.only):
            return Ignored(why="the issue has none of the labels in events.only")
        case "opened" if {label.name for label in issue.labels} & set(events.skip):
            return Ignored(why="the issue has one of the labels in events.skip")
        case "opened":
            trigger = Trigger.OPENED
        case "edited" if not events.edited:
            return Ignored(why="events.edited is off")
        case "edited" if read.changes is not None and read.changes.body is None:
            return Ignored(why="the edit left the text as it was")
        case "edited":
            trigger = Trigger.EDITED
        case "labeled" if read.label is not None and events.label is not None and read.label.name == events.label:
            trigger = Trigger.LABELED
        case "labeled":
            return Ignored(why="the label is not the one in events.label")
        case _:
            return Ignored(why=f"nothing is done when an issue is {read.action[:40]}")
    return Request(
        trigger=trigger,
        repository=repository,
        number=issue.number,
        actor=sender.login,
        author=issue.user.login if issue.user else None,
        at=(issue.created_at if trigger is Trigger.OPENED else issue.updated_at) or now,
        commands=(Command(verb=Verb.RUN),),
        asked=trigger is Trigger.LABELED,
    )


def _closed_to_us(issue: _Issue) -> str:
    if issue.pull_request is not None:
        return "it is a pull request"
    return "the issue is locked" if issue.locked else ""


def _of_comment(read: _Event, repository: str, me: str, now: datetime) -> Request | Ignored:
    issue, comment = read.issue, read.comment
    if issue is None or comment is None or comment.user is None:
        return Ignored(why="the event carries no comment")
    if read.action != "created":
        return Ignored(why=f"a comment that is {read.action[:40]} gives no commands: write a new one")
    if why := _not_a_person(comment.user, me) or _closed_to_us(issue):
        return Ignored(why=why)
    reading = read_commands(comment.body or "")
    if not reading:
        return Ignored(why="the comment holds no command")
    return Request(
        trigger=Trigger.COMMENT,
        repository=repository,
        number=issue.number,
        actor=comment.user.login,
        author=issue.user.login if issue.user else None,
        at=comment.created_at or now,
        comment=comment.id,
        commands=reading.commands,
        mistakes=reading.mistakes,
        asked=True,
    )


def _of_dispatch(read: _Event, sender: _User, repository: str, now: datetime) -> Request | Ignored:
    """Somebody pressed the button; the inputs are named as the options of ``/repro rerun``."""
    given = {name: (value or "").strip() for name, value in (read.inputs or {}).items()}
    number = given.pop("issue", "").removeprefix("#")
    if not re.fullmatch(r"[1-9]\d{0,8}", number, re.ASCII):
        raise UserError(f"the input issue is {number[:40]!r}: give the number of an issue")
    wanted = {name: value for name, value in given.items() if name in VERBS[Verb.RERUN].options}
    reading = _one(command_of(Verb.RERUN, wanted))
    return Request(
        trigger=Trigger.DISPATCH,
        repository=repository,
        number=int(number),
        actor=sender.login,
        author=None,
        at=now.astimezone(UTC),
        commands=reading.commands,
        mistakes=reading.mistakes,
        asked=True,
    )


def _one(command: Command | Mistake) -> Reading:
    if isinstance(command, Mistake):
        return Reading(mistakes=(command,))
    return Reading(commands=(command,))
