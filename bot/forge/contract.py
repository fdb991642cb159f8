"""The forge as the bot uses it: types, and the ``Forge`` protocol that ``bot/forge/github`` and the tests' fake keep.

No client library is imported here. A stranger typed every text in these types.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Literal, Protocol

from bot.issue import Issue
from runners.core.errors import InfraError, UserError

MAX_COMMENTS = 3_000
"""Largest number of comments that are read: all of them on GitHub, where an issue has at most 2,500 comments."""
MAX_RECENT = 5_000
"""Largest number of issues or comments that are read from a repository's list of changes, oldest change first."""


class ForgeRefused(UserError):
    """The forge refuses a request. A refusal may be temporary: a token is renewed, a permission is given back."""


class RateLimited(InfraError):
    """A rate limit is reached. ``wait`` is the time that the forge asks for, in seconds."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


class Permission(IntEnum):
    """An account's role in a repository: ``role_name`` of the permission API. An unknown account has NONE.

    ``author_association`` is not a substitute: it lists private members of an organisation as contributors.
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


ReactionTarget = IssueTarget | CommentTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedComment:
    """A comment as it is on the forge. ``updated`` is later than ``created`` if the comment was edited."""

    id: int
    number: int
    """The issue of the comment."""
    author: str
    body: str
    created: datetime
    updated: datetime
    app_id: int | None = None
    """The GitHub App that wrote the comment; None if a person did."""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueState:
    """An issue as it is now. ``etag`` is for a later conditional request."""

    issue: Issue
    open: bool
    locked: bool
    is_pull_request: bool
    updated: datetime
    etag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Two requests did not find the issue. ``hidden`` may be temporary; ``deleted`` and ``transferred`` are final."""

    reason: Literal["deleted", "transferred", "hidden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueBrief:
    """One row of a list of issues."""

    number: int
    author: str
    title: str
    labels: tuple[str, ...]
    open: bool
    locked: bool
    is_pull_request: bool
    created: datetime
    updated: datetime
    closed: datetime | None = None
    closed_as: str = ""
    """The reason that the forge shows: ``completed``, ``not_planned``, ``duplicate``; empty for an open issue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueListing:
    """Issues that changed. ``unchanged`` is True if the forge answered 304; ``issues`` is then empty."""

    issues: tuple[IssueBrief, ...]
    etag: str | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueQuery:
    """The issues to list, newest first."""

    state: Literal["open", "closed", "all"] = "open"
    labels: tuple[str, ...] = ()
    """An issue has all of them."""
    since: datetime | None = None
    """An issue changed at this moment or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuePage:
    """One page of a list of issues and pull requests. ``unchanged`` as in `IssueListing`."""

    issues: tuple[IssueBrief, ...] = ()
    next: str = ""
    """The address of the page after this one; empty for the last."""
    etag: str | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentListing:
    """Comments that changed, on any issue. ``unchanged`` as in `IssueListing`."""

    comments: tuple[PostedComment, ...]
    etag: str | None = None
    unchanged: bool = False


class Forge(Protocol):
    """Every method raises ``InfraError`` if the forge does not answer, and ``ForgeRefused`` if the forge refuses (a
    permission is missing, the issue is locked or gone). The message names the next step."""

    def get_login(self) -> str:
        """Return the login that writes our comments: ``github-actions[bot]`` for a workflow's token."""

    def fetch_issue(self, repository: str, number: int) -> Issue:
        """Return the issue with its first comments."""

    def fetch_state(self, repository: str, number: int) -> IssueState | Gone: ...

    def fetch_permission(self, repository: str, login: str) -> Permission: ...

    def fetch_settings(self, repository: str) -> bytes | None:
        """Return ``.github/reprobot.yml`` of the default branch, at most 64 KiB; None if there is no such file."""

    def list_comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        """Return the comments of an issue, oldest first, at most ``MAX_COMMENTS``."""

    def list_changed_issues(self, repository: str, since: datetime | None, etag: str | None = None) -> IssueListing:
        """Return issues (no pull requests) that changed since, oldest change first; conditional on ``etag``."""

    def list_changed_comments(
        self, repository: str, since: datetime | None, etag: str | None = None
    ) -> CommentListing:
        """Return comments on any issue that were written or edited since, oldest change first.

        At most ``MAX_RECENT``; conditional on ``etag``. Budgets are counted from this list.
        """

    def list_labelled_issues(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        """Return at most 100 open issues with this label, oldest change first."""

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        """Write a comment exactly once, even if the answer to the first attempt is lost."""

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment: ...

    def delete_comment(self, repository: str, comment: int) -> None:
        """Delete a comment of ours. A missing comment is not an error."""

    def has_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> bool:
        """True if we have added this reaction."""

    def add_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        """Add a reaction. A second call has no effect."""

    def remove_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        """Remove our reaction. A missing reaction is not an error."""

    def list_labels(self, repository: str, number: int) -> tuple[str, ...]:
        """Return the names of an issue's labels."""

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None: ...

    def remove_label(self, repository: str, number: int, name: str) -> None:
        """Remove a label from an issue. A missing label is not an error."""

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        """Create a label in the repository. An existing label of that name does not change."""


class TrackerReader(Protocol):
    """The part of a forge that a sweep over a tracker reads. Raises as `Forge` does."""

    def get_login(self) -> str:
        """Return the login that writes our comments; empty for a reader without an account."""

    def list_changed_comments(
        self, repository: str, since: datetime | None, etag: str | None = None
    ) -> CommentListing:
        """Return comments on any issue that were written or edited since, as `Forge` does."""

    def fetch_closing_commit(self, repository: str, number: int) -> str:
        """Return the full sha of the commit that closed an issue; empty if no commit did. One request."""

    def fetch_issue(self, repository: str, number: int) -> Issue:
        """Return the issue with its first comments."""

    def fetch_issue_page(
        self, repository: str, query: IssueQuery, page: str = "", etag: str | None = None
    ) -> IssuePage:
        """Return one page of the issues, in one request: the first, or the one at the address ``page``.

        The rows contain pull requests too. With ``etag``, an unchanged page is not sent again.
        """
