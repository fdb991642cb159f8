"""A forge in memory that implements ``bot.forge.contract``: tests of requests use it instead of HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from bot.forge.contract import (
    MAX_COMMENTS,
    MAX_RECENT,
    CommentListing,
    Gone,
    IssueBrief,
    IssueListing,
    IssueState,
    Permission,
    PostedComment,
    Reaction,
    ReactionTarget,
)
from bot.issue import Issue

ME = "github-actions[bot]"
REPOSITORY = "octo/compiler"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def issue_of(body: str, *, number: int = 7, author: str = "ada", title: str = "It fails") -> Issue:
    return Issue(
        source=f"{REPOSITORY}#{number}",
        title=title,
        body=body,
        sha256=sha256(f"# {title}\n\n{body}".encode(errors="replace")).hexdigest(),
        created=NOW.date(),
        author=author,
        repository=REPOSITORY,
        number=number,
    )


@dataclass
class MemoryForge:
    """Issues, comments and labels of one repository. Time moves one second with each write."""

    issues: dict[int, Issue]
    permissions: dict[str, Permission] = field(default_factory=dict)
    file: bytes | None = None
    gone: dict[int, Gone] = field(default_factory=dict)
    locked: set[int] = field(default_factory=set)
    posted: list[PostedComment] = field(default_factory=list)
    reactions: list[tuple[ReactionTarget, Reaction]] = field(default_factory=list)
    on: dict[int, list[str]] = field(default_factory=dict)
    known_labels: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    last_id: int = 999
    now: datetime = NOW

    def get_login(self) -> str:
        return ME

    def fetch_issue(self, repository: str, number: int) -> Issue:
        return self.issues[number]

    def fetch_state(self, repository: str, number: int) -> IssueState | Gone:
        if number in self.gone:
            return self.gone[number]
        return IssueState(
            issue=self.issues[number],
            open=True,
            locked=number in self.locked,
            is_pull_request=False,
            updated=self.now,
        )

    def fetch_permission(self, repository: str, login: str) -> Permission:
        return self.permissions.get(login, Permission.READ)

    def list_comments(self, repository: str, number: int) -> tuple[PostedComment, ...]:
        return tuple(comment for comment in self.posted if comment.number == number)[:MAX_COMMENTS]

    def list_changed_comments(
        self, repository: str, since: datetime | None, etag: str | None = None
    ) -> CommentListing:
        changed = (comment for comment in self.posted if since is None or comment.updated >= since)
        return CommentListing(comments=tuple(sorted(changed, key=lambda comment: comment.updated))[:MAX_RECENT])

    def say(self, number: int, author: str, body: str) -> PostedComment:
        """Write a comment as ``author``."""
        self.now += timedelta(seconds=1)
        self.last_id += 1
        id = self.last_id
        comment = PostedComment(
            id=id,
            number=number,
            author=author,
            body=body,
            created=self.now,
            updated=self.now,
            url=f"https://github.com/{REPOSITORY}/issues/{number}#issuecomment-{id}",
        )
        self.posted.append(comment)
        return comment

    def create_comment(self, repository: str, number: int, body: str) -> PostedComment:
        self.writes += 1
        return self.say(number, ME, body)

    def edit_comment(self, repository: str, comment: int, body: str) -> PostedComment:
        self.writes += 1
        self.now += timedelta(seconds=1)
        place = next(i for i, one in enumerate(self.posted) if one.id == comment)
        self.posted[place] = replace(self.posted[place], body=body, updated=self.now)
        return self.posted[place]

    def delete_comment(self, repository: str, comment: int) -> None:
        self.writes += 1
        self.posted = [one for one in self.posted if one.id != comment]

    def has_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> bool:
        return (target, reaction) in self.reactions

    def add_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        self.reactions.append((target, reaction))

    def remove_reaction(self, repository: str, target: ReactionTarget, reaction: Reaction) -> None:
        self.reactions = [one for one in self.reactions if one != (target, reaction)]

    def list_labels(self, repository: str, number: int) -> tuple[str, ...]:
        return tuple(self.on.get(number, ()))

    def add_labels(self, repository: str, number: int, names: tuple[str, ...]) -> None:
        assert set(names) <= set(self.known_labels)
        self.on.setdefault(number, []).extend(names)

    def remove_label(self, repository: str, number: int, name: str) -> None:
        if name in self.on.get(number, []):
            self.on[number].remove(name)

    def ensure_label(self, repository: str, name: str, *, colour: str, description: str) -> None:
        self.known_labels.setdefault(name, colour)

    def fetch_settings(self, repository: str) -> bytes | None:
        return self.file

    def list_labelled_issues(self, repository: str, label: str) -> tuple[IssueBrief, ...]:
        return tuple(self._brief(number) for number, names in self.on.items() if label in names)

    def list_changed_issues(self, repository: str, since: datetime | None, etag: str | None = None) -> IssueListing:
        return IssueListing(issues=tuple(map(self._brief, self.issues)))

    def _brief(self, number: int) -> IssueBrief:
        issue = self.issues[number]
        return IssueBrief(
            number=number,
            author=issue.author,
            title=issue.title,
            labels=tuple(self.on.get(number, ())),
            open=True,
            locked=number in self.locked,
            is_pull_request=False,
            created=NOW,
            updated=self.now,
        )

    def ours(self) -> list[str]:
        return [comment.body for comment in self.posted if comment.author == ME]
