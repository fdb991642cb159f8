"""Where the watcher's events come from: webhooks as GitHub sends them, and the same events found by polling.

Polling asks two listings, issues and comments that changed, with the tag of the last answer: while nothing changes
the answer is 304, which costs nothing. Each listing is asked from two minutes before the last change seen, since a
change may appear in it late; what was seen before is known by its key.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from bot.daemon.ledger import Cursor, Ledger
from bot.forge.contract import Feed, Forge, IssueBrief, PostedComment
from bot.requests.commands import PREFIX, Command, Verb
from bot.requests.request import Request, Trigger
from bot.settings import Settings, load_settings

SWEEP = "sweep"
"""Our own kind of event: the clock's question about one issue."""
OVERLAP = timedelta(minutes=2)


class Hub(Forge, Feed, Protocol):
    """A forge that can also be polled."""


# ---------------------------------------------------------------------------------------------- by webhook


class _Named(msgspec.Struct, frozen=True):
    full_name: str


class _Numbered(msgspec.Struct, frozen=True):
    number: int
    body: str | None = None


class _Identified(msgspec.Struct, frozen=True):
    id: int


class _Label(msgspec.Struct, frozen=True):
    name: str


class _Delivery(msgspec.Struct, frozen=True):
    action: str = ""
    repository: _Named | None = None
    issue: _Numbered | None = None
    comment: _Identified | None = None
    label: _Label | None = None


def key_of(kind: str, payload: bytes, repositories: tuple[str, ...]) -> str | None:
    """What happened, in a word that is the same for every delivery of it; None for what is not for us."""
    try:
        read = msgspec.json.decode(payload, type=_Delivery)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if read.repository is None or read.issue is None:
        return None
    watched = {name.lower(): name for name in repositories}
    if (repository := watched.get(read.repository.full_name.lower())) is None:
        return None
    issue = f"{repository}#{read.issue.number}"
    match kind, read.action:
        case "issue_comment", "created" if read.comment is not None:
            return f"{issue}:comment:{read.comment.id}"
        case "issues", "opened":
            return f"{issue}:opened"
        case "issues", "labeled" if read.label is not None:
            return f"{issue}:labeled:{read.label.name}"
        case "issues", "edited":
            digest = sha256((read.issue.body or "").encode(errors="replace")).hexdigest()[:16]
            return f"{issue}:edited:{digest}"
        case _:
            return None


def unlabeled(kind: str, payload: bytes, repositories: tuple[str, ...]) -> str | None:
    """The key of the labelling that this event undoes, if it is one that does."""
    if kind != "issues" or b'"unlabeled"' not in payload:
        return None
    try:
        read = msgspec.json.decode(payload, type=_Delivery)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if read.action != "unlabeled":
        return None
    again = payload.replace(b'"unlabeled"', b'"labeled"', 1)
    return key_of(kind, again, repositories)


# ---------------------------------------------------------------------------------------------- by polling


def poll(hub: Hub, ledger: Ledger, repository: str, *, now: datetime) -> int:
    """Put what happened since the last time into the ledger; the number of new events.

    The first time, nothing that happened before counts: the bot answers from when it is switched on.

    Raises:
        InfraError, UserError: the forge does not answer, or refuses.
    """
    names = {what: f"{repository}:{what}" for what in ("start", "issues", "comments")}
    start = ledger.cursor(names["start"])
    if start is None:
        _begin(hub, ledger, repository, names, now)
        return 0
    issues_at = ledger.cursor(names["issues"]) or start
    comments_at = ledger.cursor(names["comments"]) or start
    issues = hub.issues_since(repository, issues_at.since - OVERLAP, issues_at.etag)
    comments = hub.comments_since(repository, comments_at.since - OVERLAP, comments_at.etag)
    settings = load_settings(hub.config(repository), {}) if issues.issues else Settings()
    briefs = {brief.number: brief for brief in issues.issues}
    new = 0
    with ledger.together():
        for brief in issues.issues:
            new += sum(
                ledger.add(key, "issues", payload, now)
                for key, payload in _of_issue(repository, brief, settings, start.since)
            )
            if settings.events.label is not None and settings.events.label not in brief.labels:
                ledger.forget(f"{repository}#{brief.number}:labeled:{settings.events.label}")
        for comment in comments.comments:
            if comment.created >= start.since and _may_command(comment, hub.whoami()):
                key = f"{repository}#{comment.number}:comment:{comment.id}"
                payload = _of_comment(repository, comment, briefs.get(comment.number))
                new += ledger.add(key, "issue_comment", payload, now)
        last = max((brief.updated for brief in issues.issues), default=issues_at.since)
        ledger.move_cursor(names["issues"], Cursor(since=max(last, issues_at.since), etag=issues.etag))
        last = max((comment.updated for comment in comments.comments), default=comments_at.since)
        ledger.move_cursor(names["comments"], Cursor(since=max(last, comments_at.since), etag=comments.etag))
    return new


def _begin(hub: Hub, ledger: Ledger, repository: str, names: dict[str, str], now: datetime) -> None:
    """Issues that carry the label already were labelled before our time."""
    label = load_settings(hub.config(repository), {}).events.label
    before = hub.issues_labelled(repository, label) if label is not None else ()
    with ledger.together():
        for brief in before:
            key = f"{repository}#{brief.number}:labeled:{label}"
            if ledger.add(key, "issues", b"", now):
                ledger.done(key, "labelled before the watch began")
        for name in names.values():
            ledger.move_cursor(name, Cursor(since=now))


def _of_issue(repository: str, brief: IssueBrief, settings: Settings, start: datetime) -> Iterator[tuple[str, bytes]]:
    key = f"{repository}#{brief.number}"
    if brief.created >= start:
        yield f"{key}:opened", _payload(repository, "opened", brief)
    label = settings.events.label
    if label is not None and label in brief.labels:
        # Who put it there is not in a listing: it counts as the author's, who has the least permission.
        yield f"{key}:labeled:{label}", _payload(repository, "labeled", brief, label={"name": label})


def _may_command(comment: PostedComment, me: str) -> bool:
    return comment.author != me and PREFIX in comment.body and "/pull/" not in comment.url


def _of_comment(repository: str, comment: PostedComment, brief: IssueBrief | None) -> bytes:
    issue = _issue(brief) if brief is not None else {"number": comment.number}
    written = {
        "id": comment.id,
        "user": _user(comment.author),
        "body": comment.body,
        "created_at": comment.created,
    }
    return _event(repository, "created", issue, comment.author, comment=written)


def _payload(repository: str, action: str, brief: IssueBrief, **more: Any) -> bytes:
    return _event(repository, action, _issue(brief), brief.author, **more)


def _event(repository: str, action: str, issue: dict[str, Any], sender: str, **more: Any) -> bytes:
    """In the shape of a webhook, so that both are read by the same reader. A lone surrogate becomes U+FFFD."""
    event = {
        "action": action,
        "repository": {"full_name": repository},
        "issue": issue,
        "sender": _user(sender),
        **more,
    }
    return msgspec.json.encode(_encodable(event))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {key: _encodable(inner) for key, inner in value.items()}
        case list():
            return [_encodable(inner) for inner in value]
        case _:
            return value


def _issue(brief: IssueBrief) -> dict[str, Any]:
    return {
        "number": brief.number,
        "user": _user(brief.author),
        "state": "open" if brief.open else "closed",
        "locked": brief.locked,
        "labels": [{"name": name} for name in brief.labels],
        "created_at": brief.created,
        "updated_at": brief.updated,
    }


def _user(login: str) -> dict[str, str]:
    return {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


# ---------------------------------------------------------------------------------------------- by the clock


class _Swept(msgspec.Struct, frozen=True):
    repository: str
    number: int


def sweep_event(repository: str, number: int) -> tuple[str, bytes]:
    """Key and payload of the question whether one issue's answer still stands."""
    key = f"{repository}#{number}:sweep"
    return key, msgspec.json.encode(_Swept(repository=repository, number=number))


def swept(payload: bytes, *, at: datetime) -> Request:
    """The request of such an event."""
    read = msgspec.json.decode(payload, type=_Swept)
    return Request(
        trigger=Trigger.SCHEDULE,
        repository=read.repository,
        number=read.number,
        actor="",
        author=None,
        at=at,
        commands=(Command(verb=Verb.RERUN),),
    )
