"""One request under way: the issue it is about, our comment there, and what will be replied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from bot.forge import sticky_comment
from bot.forge.contract import CommentTarget, Forge, IssueTarget, Permission, PostedComment, Reaction
from bot.forge.run_record import Record
from bot.issue import Issue
from bot.requests.permissions import Standing
from bot.requests.plan_file import Sealed, encodable
from bot.requests.request import Request
from bot.settings import Settings
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything the conversation needs, each effect as an argument."""

    forge: Forge
    settings: Settings
    catalogue: Catalogue
    now: datetime
    run_id: str
    """Unique to this attempt: GitHub's run id and attempt, or a random name."""
    run_url: str
    """Where people can watch it; empty when nowhere."""
    attach: Callable[[Issue], Issue]
    """The issue with the files it links to, if it lacks any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What became of a request. ``said`` is Markdown for the log of the job."""

    number: int
    said: tuple[str, ...]
    sealed: Sealed | None = None


class Talk:
    """One request under way: what is known of its issue, and what will be replied."""

    def __init__(self, desk: Desk, request: Request, number: int) -> None:
        self.desk = desk
        self.request = request
        self.repository, self.number = request.repository, number
        self.forge, self.settings = desk.forge, desk.settings
        self.me = desk.forge.whoami()
        self.comments = desk.forge.comments(self.repository, number)
        self.sheet = _sheet(self.comments, self.me)
        self.issue = encodable(desk.forge.issue(self.repository, number))
        self.replies: list[str] = []
        self.said: list[str] = []
        self.confused = False

    @property
    def record(self) -> Record:
        return self.sheet.record

    def standing(self) -> Standing:
        """Asked of the permission API, never of ``author_association``."""
        login = self.request.actor
        permission = self.forge.permission(self.repository, login) if login else Permission.ADMIN  # the clock: us
        return Standing(login=login, permission=permission, author=login == self.issue.author)

    def refuse(self, why: str) -> None:
        self.confused = True
        self.reply(why)

    def reply(self, text: str) -> None:
        self.said.append(text)
        if self.request.asked:
            self.replies.append(text)

    def publish(self, sheet: sticky_comment.Sheet) -> None:
        self.sheet = sheet
        sticky_comment.publish(self.forge, self.repository, self.number, sheet, me=self.me)


def _sheet(comments: Sequence[PostedComment], me: str) -> sticky_comment.Sheet:
    """Our comment as it stands, with everything that any comment of ours remembers of this issue."""
    old = sticky_comment.standing(comments, me)
    if old is None:
        return sticky_comment.Sheet()
    return replace(sticky_comment.take_apart(old.body), record=sticky_comment.records(comments, me)[old.number])


def react(desk: Desk, request: Request, number: int, reaction: Reaction) -> None:
    """An acknowledgement that fails is no reason to stop."""
    target = IssueTarget(number=number) if request.comment is None else CommentTarget(id=request.comment)
    with suppress(InfraError, UserError):
        desk.forge.react(request.repository, target, reaction)


def log_of(url: str) -> str:
    return f" ([log]({url}))" if url else ""
