"""One active request: its issue, our comment there, the replies, and the commands that run no testcase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from bot.forge.contract import (
    CommentTarget,
    Forge,
    ForgeRefused,
    Gone,
    IssueTarget,
    Permission,
    PostedComment,
    Reaction,
    ReactionTarget,
)
from bot.forge.payloads import replace_surrogates
from bot.forge.run_record import IssueRecord, RecordedRun, RunState, VoidedVerdict
from bot.forge.sticky_comment import (
    RUNNING,
    StickyComment,
    find_current_comment,
    parse_sticky_comment,
    publish_comment,
    read_records,
)
from bot.issue import Comment, Issue
from bot.report.quote import quote_code
from bot.requests.commands import PREFIX, SlashCommand
from bot.requests.labels import update_labels
from bot.requests.permissions import Requester, count_use
from bot.requests.plan_file import SealedPlan
from bot.requests.request import Request, Trigger
from bot.settings import Settings
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Catalogue

STALE = timedelta(hours=6)
"""A run that has not ended after this time will never end: GitHub stops a hosted job after six hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Everything that handling a request needs; each effect is a field."""

    forge: Forge
    settings: Settings
    catalogue: Catalogue
    now: datetime
    run_id: str
    """Unique to this attempt: GitHub's run id and attempt, or a random name."""
    repeats: bool
    """True if an earlier attempt at this request may have been stopped. A second delivery is not an attempt."""
    run_url: str
    """Address of the run's log; empty if there is none."""
    attach: Callable[[Issue], Issue]
    """Adds the files that an issue links to, if its text lacks any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledRequest:
    """The outcome of a request. ``messages`` are Markdown for the log of the job."""

    number: int
    messages: tuple[str, ...]
    sealed: SealedPlan | None = None
    """The plan to run; None without a run."""


class IssueConversation:
    """One active request. Loads the issue and our comment; collects replies and messages for the log."""

    def __init__(self, context: RequestContext, request: Request, number: int) -> None:
        self.context = context
        self.request = request
        self.repository, self.number = request.repository, number
        self.forge, self.settings = context.forge, context.settings
        self.login = context.forge.get_login()
        self.comments = context.forge.list_comments(self.repository, number)
        self.sticky = _load_sticky_comment(self.comments, self.login)
        state = context.forge.fetch_state(self.repository, number)
        if isinstance(state, Gone):
            raise ForgeRefused(f"{self.repository}#{number} cannot be read: it is {state.reason}")
        self.issue = replace_surrogates(_add_reply(state.issue, request, self.comments))
        self.is_locked = state.locked
        self.replies: list[str] = []
        self.messages: list[str] = []
        self.has_refused = False

    @property
    def record(self) -> IssueRecord:
        return self.sticky.record

    @property
    def has_comment(self) -> bool:
        """True if we have a comment on the issue, replies not counted."""
        return find_current_comment(self.comments, self.login) is not None

    def fetch_requester(self) -> Requester:
        """Return the account behind the request. Its role comes from the permission API, not `author_association`."""
        login = self.request.actor
        # A request without an account is the schedule's, which is ours.
        permission = self.forge.fetch_permission(self.repository, login) if login else Permission.ADMIN
        return Requester(login=login, permission=permission, is_author=self.issue.is_by(login))

    def refuse_command(self, why: str) -> None:
        self.has_refused = True
        self.add_reply(why)

    def add_reply(self, text: str) -> None:
        """Log ``text``, and reply with it if a person asked."""
        self.messages.append(text)
        if self.request.asked:
            self.replies.append(text)

    def publish_sticky(self, sticky: StickyComment) -> PostedComment:
        self.sticky = sticky
        return publish_comment(self.forge, self.repository, self.number, sticky, login=self.login)

    def find_own_run(self) -> RecordedRun | None:
        """Return the run of this request if it is recorded as running."""
        run = self.record.find_run(self.context.run_id)
        return run if run is not None and run.state is RunState.RUNNING else None

    def find_active_run(self) -> RecordedRun | None:
        """Return the newest run that has not ended."""
        runs = [
            run for run in self.record.runs if run.state is RunState.RUNNING and run.at > self.context.now - STALE
        ]
        return runs[-1] if runs else None


def _add_reply(issue: Issue, request: Request, comments: Sequence[PostedComment]) -> Issue:
    """Return the issue with the reply that caused the request. A later comment may have removed it from the list."""
    reply = next((one for one in comments if one.id == request.comment), None)
    if request.trigger is not Trigger.REPLY or reply is None:
        return issue
    comment = Comment(author=reply.author, body=reply.body)
    return issue if comment in issue.comments else replace(issue, comments=(*issue.comments, comment))


def _load_sticky_comment(comments: Sequence[PostedComment], login: str) -> StickyComment:
    """Return our current comment, with the merged record of all our comments on this issue."""
    current = find_current_comment(comments, login)
    if current is None:
        return StickyComment()
    return replace(parse_sticky_comment(current.body), record=read_records(comments, login)[current.number])


def find_target(request: Request, number: int) -> ReactionTarget:
    """Return the target of our reactions: the comment with the request, else the issue."""
    return IssueTarget(number=number) if request.comment is None else CommentTarget(id=request.comment)


def add_reaction(context: RequestContext, request: Request, number: int, reaction: Reaction) -> None:
    """Acknowledge the request. Ignore a failure: it is not a reason to stop."""
    with suppress(InfraError, UserError):
        context.forge.add_reaction(request.repository, find_target(request, number), reaction)


def remove_eyes(forge: Forge, repository: str, target: ReactionTarget) -> None:
    """Remove the sign of an active request. Ignore a failure."""
    with suppress(InfraError, UserError):
        forge.remove_reaction(repository, target, Reaction.EYES)


def link_log(url: str) -> str:
    return f" ([log]({url}))" if url else ""


# ---------------------------------------------------------------------------------------------- status, cancel, void


def describe_status(conversation: IssueConversation) -> str:
    """Return the reply to ``status``."""
    lines = []
    if (active := conversation.find_active_run()) is not None:
        lines.append(f"Running since {active.at:%H:%M} UTC{link_log(active.url)}.")
    past = [run for run in conversation.record.runs if run.verdict]
    if past:
        lines.append(f"Last answer: {past[-1].verdict}, {past[-1].at:%Y-%m-%d %H:%M} UTC{link_log(past[-1].url)}.")
    if conversation.record.void is not None:
        lines.append("That verdict was voided by a maintainer.")
    is_unrecorded = is_running_unrecorded(conversation)
    if not lines:
        lines = ["The testcase is running." if is_unrecorded else "Nothing was run here yet."]
    used = count_use(
        {conversation.number: conversation.record},
        number=conversation.number,
        user="",
        now=conversation.context.now,
        unrecorded={conversation.number: conversation.issue.author} if is_unrecorded else {},
    ).issue
    left = max(0, conversation.settings.budgets.issue - used)
    return " ".join([*lines, f"{left} of {conversation.settings.budgets.issue} runs are left here for today."])


def is_running_unrecorded(conversation: IssueConversation) -> bool:
    """True if the run on opening the issue is active. Our reaction shows this: such a run has no progress note."""
    return not conversation.has_comment and conversation.forge.has_reaction(
        conversation.repository, IssueTarget(number=conversation.number), Reaction.EYES
    )


def cancel_run(conversation: IssueConversation) -> None:
    """Mark the active runs as cancelled, so that their answers are not posted."""
    active = conversation.find_active_run()
    actor = quote_code(conversation.request.actor)
    note = f"> The run under way was cancelled by {actor}; `{PREFIX} rerun` starts another."
    if conversation.sticky.note == note:
        return  # this command did it before the process was killed
    if active is None and not is_running_unrecorded(conversation):
        conversation.add_reply("Nothing is running here.")
        return
    record = msgspec.structs.replace(conversation.record, cancelled=conversation.context.now)
    if active is not None:
        record = record.end_run(active.id, RunState.CANCELLED)
    conversation.publish_sticky(replace(conversation.sticky, record=record, note=note, code=""))
    conversation.messages.append("the run under way is cancelled: its answer will not be posted")


def void_verdict(conversation: IssueConversation, command: SlashCommand, requester: Requester) -> None:
    """Withdraw the verdict. It stays readable below the maintainer's name and reason until the next answer."""
    if conversation.sticky.verdict == RUNNING:
        conversation.add_reply("There is no verdict here to void.")
        return
    void = VoidedVerdict(by=requester.login[:100], at=conversation.context.now, why=command.words[:400])
    conversation.publish_sticky(
        replace(conversation.sticky, record=msgspec.structs.replace(conversation.record, void=void))
    )
    update_labels(conversation.forge, conversation.repository, conversation.number, conversation.settings, None)
    conversation.messages.append("the verdict is voided")
