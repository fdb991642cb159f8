"""GitHub's JSON: the fields that are read, each with its type, of answers of the API and of events. Pure.

Strangers typed most strings in both. All other fields are ignored, since GitHub adds some every year.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from bot.forge.contract import IssueBrief, PostedComment
from bot.issue import GHOST, Comment, Issue

T = TypeVar("T")
_SAME_MOMENT = timedelta(minutes=1)


class User(msgspec.Struct, frozen=True):
    login: str
    type: str = "User"


class App(msgspec.Struct, frozen=True):
    id: int


class Label(msgspec.Struct, frozen=True):
    name: str


class ReactionData(msgspec.Struct, frozen=True):
    id: int
    content: str
    user: User | None = None


class Repository(msgspec.Struct, frozen=True):
    full_name: str


class IssueFields(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of an issue that answers and events share."""

    number: int
    user: User | None = None
    body: str | None = None
    locked: bool = False
    labels: tuple[Label | str, ...] = ()
    pull_request: dict[str, object] | None = None

    @property
    def author(self) -> str:
        """Login of the author; `GHOST` if the account was deleted."""
        return self.user.login if self.user is not None else GHOST

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(label if isinstance(label, str) else label.name for label in self.labels)


class IssueData(IssueFields, frozen=True, kw_only=True):
    """An issue in an answer of the API: a missing field is an error."""

    title: str
    state: str
    created_at: datetime
    updated_at: datetime
    repository_url: str
    closed_at: datetime | None = None
    state_reason: str | None = None


class EventIssue(IssueFields, frozen=True, kw_only=True):
    """An issue in an event. Only the number is certain: an event made from a polled comment has no other field."""

    state: str = "open"
    created_at: datetime | None = None
    updated_at: datetime | None = None


class CommentFields(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a comment that answers and events share."""

    id: int
    user: User | None = None
    body: str | None = None

    @property
    def author(self) -> str:
        """Login of the author; `GHOST` if the account was deleted."""
        return self.user.login if self.user is not None else GHOST


class CommentData(CommentFields, frozen=True, kw_only=True):
    """A comment in an answer of the API: a missing field is an error."""

    created_at: datetime
    updated_at: datetime
    issue_url: str
    html_url: str
    performed_via_github_app: App | None = None


class EventComment(CommentFields, frozen=True, kw_only=True):
    """A comment in an event."""

    created_at: datetime | None = None


class EditedFields(msgspec.Struct, frozen=True):
    """The parts of an issue that an edit changed, each with its former text."""

    body: dict[str, object] | None = None
    title: dict[str, object] | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A webhook of ``issues``, ``issue_comment`` or ``workflow_dispatch``, or the same file in a GitHub Actions step.

    ``inputs`` are those of ``workflow_dispatch``.
    """

    repository: Repository | None = None
    sender: User | None = None
    action: str = ""
    issue: EventIssue | None = None
    comment: EventComment | None = None
    label: Label | None = None
    changes: EditedFields | None = None
    inputs: dict[str, str | None] | None = None


class IssueEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the history of an issue."""

    event: str
    created_at: datetime
    commit_id: str | None = None


class FileData(msgspec.Struct, frozen=True):
    """A file of a repository in an answer of the API."""

    encoding: str
    content: str
    size: int


# ---------------------------------------------------------------------------------------------- answers → our types


def was_transferred(data: IssueData, repository: str) -> bool:
    """True if a redirection led to another repository."""
    return not data.repository_url.lower().endswith(f"/repos/{repository.lower()}")


def to_issue(data: IssueData, repository: str, comments: tuple[Comment, ...]) -> Issue:
    text = f"# {data.title}\n\n{data.body or ''}"
    return Issue(
        source=f"{repository}#{data.number}",
        title=data.title,
        body=_unify_line_ends(data.body),
        sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(),  # JSON may contain lone surrogates
        created=data.created_at.astimezone(UTC).date(),
        author=data.author,
        repository=repository,
        number=data.number,
        labels=data.label_names,
        comments=comments,
    )


def to_posted_comment(data: CommentData) -> PostedComment:
    return PostedComment(
        id=data.id,
        number=int(data.issue_url.rstrip("/").rpartition("/")[2]),
        author=data.author,
        body=_unify_line_ends(data.body),
        created=data.created_at,
        updated=data.updated_at,
        app_id=data.performed_via_github_app.id if data.performed_via_github_app else None,
        url=data.html_url,
    )


def to_brief(data: IssueData) -> IssueBrief:
    return IssueBrief(
        number=data.number,
        author=data.author,
        title=data.title,
        labels=data.label_names,
        open=data.state == "open",
        locked=data.locked,
        is_pull_request=data.pull_request is not None,
        created=data.created_at,
        updated=data.updated_at,
        closed=data.closed_at,
        closed_as=(data.state_reason or "") if data.state == "closed" else "",
    )


def find_closing_commit(events: Sequence[IssueEvent]) -> str:
    """Return the commit that closed an issue, from its events in their order; empty if no commit did.

    A commit that closes an issue is named by the event. Where a pull request closes the issue, the event names no
    commit, but the merged commit, which mentions the issue, arrives in the same minute.
    """
    closings = [one for one in events if one.event == "closed"]
    if not closings or any(one.event == "reopened" and one.created_at > closings[-1].created_at for one in events):
        return ""
    last = closings[-1]
    near = [
        one.commit_id
        for one in events
        if one.event == "referenced" and one.commit_id and abs(one.created_at - last.created_at) <= _SAME_MOMENT
    ]
    return last.commit_id or (near[-1] if near else "")


def _unify_line_ends(text: str | None) -> str:
    return (text or "").replace("\r\n", "\n")


def replace_surrogates(value: T) -> T:
    """Return ``value`` with U+FFFD for every lone surrogate. A forge's JSON may contain surrogates; a file cannot."""
    made: T = msgspec.convert(_replace_surrogates(msgspec.to_builtins(value)), type(value))
    return made


def _replace_surrogates(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {key: _replace_surrogates(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_replace_surrogates(inner) for inner in value]
        case _:
            return value
