"""GitHub's answers as data: the fields that are read, each with its type, and what they are to us. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import msgspec

from bot.forge.contract import IssueBrief, PostedComment
from bot.issue import Comment, Issue


class User(msgspec.Struct, frozen=True):
    login: str


class App(msgspec.Struct, frozen=True):
    id: int


class Label(msgspec.Struct, frozen=True):
    name: str


class CommentData(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    created_at: datetime
    updated_at: datetime
    issue_url: str
    html_url: str
    user: User | None = None
    body: str | None = None
    performed_via_github_app: App | None = None


class IssueData(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    title: str
    state: str
    created_at: datetime
    updated_at: datetime
    repository_url: str
    locked: bool = False
    user: User | None = None
    body: str | None = None
    labels: tuple[Label | str, ...] = ()
    pull_request: dict[str, object] | None = None


class FileData(msgspec.Struct, frozen=True):
    encoding: str
    content: str
    size: int


def is_elsewhere(found: IssueData, repository: str) -> bool:
    """Whether a redirection led to another repository: the issue was transferred."""
    return not found.repository_url.lower().endswith(f"/repos/{repository.lower()}")


def issue_of(found: IssueData, repository: str, comments: tuple[Comment, ...]) -> Issue:
    text = f"# {found.title}\n\n{found.body or ''}"
    return Issue(
        source=f"{repository}#{found.number}",
        title=found.title,
        body=(found.body or "").replace("\r\n", "\n"),
        sha256=hashlib.sha256(text.encode(errors="replace")).hexdigest(),  # JSON may hold lone surrogates
        created=found.created_at.astimezone(UTC).date(),
        author=login_of(found),
        repository=repository,
        number=found.number,
        labels=names_of(found),
        comments=comments,
    )


def login_of(written: IssueData | CommentData) -> str:
    """Who wrote it; ``ghost`` where the account was deleted, as GitHub shows it."""
    return written.user.login if written.user is not None else "ghost"


def names_of(found: IssueData) -> tuple[str, ...]:
    return tuple(label if isinstance(label, str) else label.name for label in found.labels)


def posted(one: CommentData) -> PostedComment:
    return PostedComment(
        id=one.id,
        number=int(one.issue_url.rstrip("/").rpartition("/")[2]),
        author=login_of(one),
        body=(one.body or "").replace("\r\n", "\n"),
        created=one.created_at,
        updated=one.updated_at,
        app_id=one.performed_via_github_app.id if one.performed_via_github_app else None,
        url=one.html_url,
    )


def brief(found: IssueData) -> IssueBrief:
    return IssueBrief(
        number=found.number,
        author=login_of(found),
        title=found.title,
        labels=names_of(found),
        open=found.state == "open",
        locked=found.locked,
        is_pull_request=found.pull_request is not None,
        created=found.created_at,
        updated=found.updated_at,
    )
