"""Turn webhooks, and changes found by polling, into events of the ledger.

Polling asks for two lists, changed issues and changed comments, with the ETag of the last answer. Without a change
the answer is 304, which does not count against the rate limit. A change may appear late in a list, so each list is
asked for from two minutes before the last change seen. Events that were seen before are recognised by their key.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from bot.daemon.ledger import Ledger, ReadPosition
from bot.forge.contract import Forge, IssueBrief, PostedComment
from bot.forge.payloads import Event, EventComment, EventIssue, Label, Repository, User, replace_surrogates
from bot.requests.commands import PREFIX
from bot.requests.markdown_lines import has_code
from bot.settings import Settings, load_settings

OVERLAP = timedelta(minutes=2)


# ---------------------------------------------------------------------------------------------- webhooks


def make_event_key(kind: str, payload: bytes, repositories: tuple[str, ...]) -> str | None:
    """Return a key that is the same for every delivery of an event; None for an event that the bot ignores."""
    event = _decode_event(payload)
    return None if event is None else _make_key(kind, event.action, event, repositories)


def find_undone_key(kind: str, payload: bytes, repositories: tuple[str, ...]) -> str | None:
    """Return the key of the labelling that an ``unlabeled`` event undoes; None for any other event."""
    if kind != "issues" or b'"unlabeled"' not in payload:
        return None
    event = _decode_event(payload)
    if event is None or event.action != "unlabeled":
        return None
    return _make_key(kind, "labeled", event, repositories)


def _decode_event(payload: bytes) -> Event | None:
    try:
        return msgspec.json.decode(payload, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _make_key(kind: str, action: str, event: Event, repositories: tuple[str, ...]) -> str | None:
    if event.repository is None or event.issue is None:
        return None
    watched = {name.lower(): name for name in repositories}
    if (repository := watched.get(event.repository.full_name.lower())) is None:
        return None
    issue = f"{repository}#{event.issue.number}"
    match kind, action:
        case "issue_comment", "created" if event.comment is not None:
            return f"{issue}:comment:{event.comment.id}"
        case "issues", "opened":
            return f"{issue}:opened"
        case "issues", "labeled" if event.label is not None:
            return f"{issue}:labeled:{event.label.name}"
        case "issues", "edited":
            digest = sha256((event.issue.body or "").encode(errors="replace")).hexdigest()[:16]
            return f"{issue}:edited:{digest}"
        case _:
            return None


# ---------------------------------------------------------------------------------------------- polling


def poll_repository(forge: Forge, ledger: Ledger, repository: str, *, now: datetime) -> int:
    """Add the changes since the last poll to the ledger. Return the number of new events.

    The first poll adds none: the bot answers events from its first start on.

    Raises:
        InfraError: the forge does not answer.
        UserError: the forge refuses.
    """
    names = {part: f"{repository}:{part}" for part in ("start", "issues", "comments")}
    start = ledger.read_position(names["start"])
    if start is None:
        _record_start(forge, ledger, repository, names, now)
        return 0
    issues_at = ledger.read_position(names["issues"]) or start
    comments_at = ledger.read_position(names["comments"]) or start
    issues = forge.list_changed_issues(repository, issues_at.since - OVERLAP, issues_at.etag)
    comments = forge.list_changed_comments(repository, comments_at.since - OVERLAP, comments_at.etag)
    settings = load_settings(forge.fetch_settings(repository), {}) if issues.issues else Settings()
    label = settings.events.label
    briefs = {brief.number: brief for brief in issues.issues}
    new = 0
    with ledger.begin_transaction():
        for issue in issues.issues:
            for key, event in _make_issue_events(repository, issue, label, start.since):
                new += ledger.add_event(key, "issues", _encode_event(event), now)
            if label is not None and label not in issue.labels:
                ledger.forget_event(f"{repository}#{issue.number}:labeled:{label}")
        for comment in comments.comments:
            brief = briefs.get(comment.number)
            if comment.created >= start.since and _may_start_run(comment, brief, forge.get_login()):
                key = f"{repository}#{comment.number}:comment:{comment.id}"
                event = _make_comment_event(repository, comment, brief)
                new += ledger.add_event(key, "issue_comment", _encode_event(event), now)
        last = max((brief.updated for brief in issues.issues), default=issues_at.since)
        ledger.move_position(names["issues"], ReadPosition(since=max(last, issues_at.since), etag=issues.etag))
        last = max((comment.updated for comment in comments.comments), default=comments_at.since)
        ledger.move_position(names["comments"], ReadPosition(since=max(last, comments_at.since), etag=comments.etag))
    return new


def _record_start(forge: Forge, ledger: Ledger, repository: str, names: dict[str, str], now: datetime) -> None:
    """Record the time of the first poll. Labels that are on issues now count as answered."""
    label = load_settings(forge.fetch_settings(repository), {}).events.label
    labelled = forge.list_labelled_issues(repository, label) if label is not None else ()
    with ledger.begin_transaction():
        for brief in labelled:
            key = f"{repository}#{brief.number}:labeled:{label}"
            if ledger.add_event(key, "issues", b"", now):
                ledger.mark_done(key, "labelled before the watch began")
        for name in names.values():
            ledger.move_position(name, ReadPosition(since=now))


def _make_issue_events(
    repository: str, brief: IssueBrief, label: str | None, start: datetime
) -> Iterator[tuple[str, Event]]:
    """Yield key and event for an issue that was opened since ``start``, and for ``label`` on it."""
    key = f"{repository}#{brief.number}"
    event = Event(
        action="opened",
        repository=Repository(repository),
        issue=_to_event_issue(brief),
        sender=_to_user(brief.author),
    )
    if brief.created >= start:
        yield f"{key}:opened", event
    if label is not None and label in brief.labels:
        # A list does not show who added the label. Assume the author, who has the least permission.
        yield f"{key}:labeled:{label}", msgspec.structs.replace(event, action="labeled", label=Label(label))


def _may_start_run(comment: PostedComment, brief: IssueBrief | None, login: str) -> bool:
    """True for a comment that may contain a command, or code of the issue's author."""
    if comment.updated > comment.created:
        return False  # an edit gives no commands, and a maintainer can edit the words of any account
    if comment.author == login or "/pull/" in comment.url:
        return False
    is_reply = brief is not None and brief.author == comment.author and has_code(comment.body)
    return PREFIX in comment.body or is_reply


def _make_comment_event(repository: str, comment: PostedComment, brief: IssueBrief | None) -> Event:
    author = _to_user(comment.author)
    return Event(
        action="created",
        repository=Repository(repository),
        issue=_to_event_issue(brief) if brief is not None else EventIssue(number=comment.number),
        sender=author,
        comment=EventComment(id=comment.id, user=author, body=comment.body, created_at=comment.created),
    )


def _to_event_issue(brief: IssueBrief) -> EventIssue:
    return EventIssue(
        number=brief.number,
        user=_to_user(brief.author),
        state="open" if brief.open else "closed",
        locked=brief.locked,
        labels=tuple(Label(name) for name in brief.labels),
        created_at=brief.created,
        updated_at=brief.updated,
    )


def _to_user(login: str) -> User:
    return User(login=login, type="Bot" if login.endswith("[bot]") else "User")


def _encode_event(event: Event) -> bytes:
    """Return the event in the shape of a webhook, so that one function reads both."""
    return msgspec.json.encode(replace_surrogates(event))
