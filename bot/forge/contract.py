"""What the bot needs of a forge: types, and one contract that ``bot/forge/github.py`` and the tests' fake both keep.

Nothing here imports a client library. Every text in these types was typed by a stranger.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Literal, Protocol

from bot.issue import Issue


class Permission(IntEnum):
    """What an account may do in a repository, by the permission API's ``role_name``; an unknown account is NONE.

    ``author_association`` is no substitute: it calls private members of an organisation contributors.
    """

    NONE = 0
    READ = 1
    """GitHub's answer for every stranger on a public repository."""
    TRIAGE = 2
    WRITE = 3
    MAINTAIN = 4
    ADMIN = 5


class Reaction(StrEnum):
    EYES = "eyes"
    ROCKET = "rocket"
    PLUS_ONE = "+1"
    CONFUSED = "confused"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueTarget:
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentTarget:
    id: int


Target = IssueTarget | CommentTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedComment:
    """A comment as it stands on the forge. ``updated`` is later than ``created`` once somebody edited it."""

    id: int
    number: int
    """The issue it is on."""
    author: str
    body: str
    created: datetime
    updated: datetime
    app_id: int | None = None
    """The GitHub App that wrote it, if one did."""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueState:
    """An issue now, and what a conditional request about it sends."""

    issue: Issue
    open: bool
    locked: bool
    is_pull_request: bool
    updated: datetime
    etag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The issue isn't there any more."""

    reason: Literal["deleted", "transferred", "hidden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueBrief:
    """One row of a listing."""

    number: int
    author: str
    title: str
    labels: tuple[str, ...]
    open: bool
    locked: bool
    is_pull_request: bool
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What changed since then; ``unchanged`` when the forge says that nothing did (and then ``issues`` is empty)."""

    issues: tuple[IssueBrief, ...]
    etag: str | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentListing:
    """As ``Listing``, of comments on any issue."""

    comments: tuple[PostedComment, ...]
    etag: str | None = None
    unchanged: bool = False


class Feed(Protocol):
    """What polling asks, over and over: conditional requests, which cost nothing while nothing changes."""

    def issues_since(self, repository: str, since: datetime | None, etag: str | None = None) -> Listing:
        """Issues (no pull requests) that changed since, oldest change first; conditional on ``etag``."""

    def comments_since(self, repository: str, since: datetime | None, etag: str | None = None) -> CommentListing:
        """Comments on any issue that were written or edited since, oldest change first; conditional on ``etag``."""


class Forge(Protocol):
    """Every method raises ``InfraError`` when the forge does not answer (trying again may help), and ``UserError``
    when it refuses (a permission is missing, the issue is locked or gone), with the next step in the message."""

    def whoami(self) -> str:
        """The login whose comments are ours: ``github-actions[bot]`` for a workflow's token."""

    def issue(self, repository: str, number: int) -> Issue:
        """The issue with its first comments, as the reader of testcases wants it."""

    def state(self, repository: str, number: int) -> IssueState | Gone: ...

    def permission(self, repository: str, login: str) -> Permission: ...

    def comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        """All comments of an issue, oldest first."""

    def recent_comments(self, repository: str, since: datetime) -> tuple[PostedComment, ...]:
        """Comments on any issue that were written or edited since, oldest first: budgets are counted from them."""

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        """Write a comment once, even when the answer to the first attempt is lost."""

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment: ...

    def react(self, repository: str, target: Target, reaction: Reaction) -> None:
        """Add a reaction; again is the same as once."""

    def labels(self, repository: str, number: int) -> tuple[str, ...]: ...

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None: ...

    def remove_label(self, repository: str, number: int, name: str) -> None:
        """Take a label off; one that isn't on the issue is no error."""

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        """Create the label unless there is one of that name already, which is left as it is."""

    def config(self, repository: str) -> bytes | None:
        """``.github/reprobot.yml`` on the default branch, at most 64 KiB of it; None when there is none."""

    def issues_labelled(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        """Open issues with this label, the one that changed longest ago first; at most 100."""

    def issues_since(self, repository: str, since: datetime | None, etag: str | None = None) -> Listing:
        """Issues (no pull requests) that changed since, oldest change first; conditional on ``etag``."""
