"""Handle one request: reply to it at once, and plan its run. Used by the planning job and by the daemon.

Reads the issue as data, checks permissions, writes replies and the progress note. Starts no process: the sealed plan
is run by other jobs, which have none of our permissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from bot.forge.contract import Forge, Reaction
from bot.forge.sticky_comment import read_records
from bot.requests.commands import PREFIX, SlashCommand, Verb, render_help
from bot.requests.conversation import (
    HandledRequest,
    IssueConversation,
    RequestContext,
    add_reaction,
    cancel_run,
    describe_status,
    find_target,
    remove_eyes,
    void_verdict,
)
from bot.requests.deliver import abandon_run
from bot.requests.follow_up import find_follow_up
from bot.requests.labels import choose_labels
from bot.requests.permissions import DAY, Requester, check_permission
from bot.requests.plan_file import SealedPlan
from bot.requests.request import Request, Trigger
from bot.requests.start_run import plan_run
from bot.settings import Settings
from bot.verdict.verdict import VerdictKind

OPEN_ENDED = (VerdictKind.REGRESSION, VerdictKind.CONFIRMED, VerdictKind.FLAKY, VerdictKind.INCONCLUSIVE)
"""Verdicts that a newer release may change."""
MIN_AGE = timedelta(days=1)
MAX_READ = 20
"""Largest number of issues whose comments are read in one tick: each costs a request."""
RUNS = frozenset({Verb.RUN, Verb.RERUN, Verb.BISECT, Verb.MINIMIZE, Verb.APPROVE})
_REPLY = "<!-- reprobot:reply"
"""Start of the hidden line that identifies our replies."""
_TRUSTED = " trusted -->"
"""End of this line in a reply that is not counted, because its requester has triage permission."""


def handle_request(context: RequestContext, request: Request) -> HandledRequest:
    """Reply to the request, and plan the run that it asks for.

    Raises:
        ForgeRefused: the forge refuses, or the issue is gone.
        InfraError: the forge does not answer.
    """
    number = request.number
    if number is None:
        number = find_due_issue(context.forge, request.repository, context.settings, now=context.now)
    if number is None:
        return HandledRequest(number=0, messages=("no issue is due",))
    if request.asked:
        add_reaction(context, request, number, Reaction.EYES)  # before all slow steps: people expect it at once
    conversation = IssueConversation(context, request, number)
    if conversation.is_locked:
        return HandledRequest(number=number, messages=("the issue is locked",))
    for mistake in request.mistakes:
        conversation.refuse_command(f"Line {mistake.line}: {mistake.why}{'' if mistake.why.endswith('?') else '.'}")
    requester = conversation.fetch_requester()
    sealed = _run_commands(conversation, _choose_commands(conversation), requester)
    if sealed is None and conversation.find_own_run() is not None:
        # An earlier attempt at this request was stopped after its progress note, and the issue changed since.
        abandon_run(context.forge, request.repository, number, context.run_id, "the issue changed meanwhile")
    elif sealed is None and request.trigger is Trigger.SCHEDULE:
        _record_idle_turn(conversation)
    if conversation.has_refused and request.asked:
        add_reaction(context, request, number, Reaction.CONFUSED)
    elif request.comment is not None and request.asked:
        add_reaction(context, request, number, Reaction.ROCKET if sealed else Reaction.PLUS_ONE)
    if sealed is None and (request.asked or context.repeats):
        remove_eyes(context.forge, request.repository, find_target(request, number))
    _post_replies(conversation, requester)
    return HandledRequest(number=number, messages=tuple(conversation.messages), sealed=sealed)


def _choose_commands(conversation: IssueConversation) -> tuple[SlashCommand, ...]:
    """Return the commands of the request; none for an edit or a reply that changes no testcase."""
    match conversation.request.trigger:
        case Trigger.EDITED | Trigger.REPLY:
            command = find_follow_up(conversation)
            if command is None:
                conversation.messages.append("nothing to do: the testcase is as it was")
            return () if command is None else (command,)
        case _:
            return _order_commands(conversation.request)


def _order_commands(request: Request) -> tuple[SlashCommand, ...]:
    """Return the commands without a run, in their order, then the last command with a run."""
    if request.trigger is Trigger.SCHEDULE:
        return (SlashCommand(verb=Verb.RERUN),)
    others = [command for command in request.commands if command.verb not in RUNS]
    runs = [command for command in request.commands if command.verb in RUNS]
    return (*others, *runs[-1:])


def _run_commands(
    conversation: IssueConversation, commands: Sequence[SlashCommand], requester: Requester
) -> SealedPlan | None:
    sealed = None
    for command in commands:
        if (denied := check_permission(command, requester)) is not None:
            conversation.refuse_command(f"{denied.why}.")
            continue
        match command.verb:
            case Verb.HELP:
                conversation.add_reply(render_help())
            case Verb.STATUS:
                conversation.add_reply(describe_status(conversation))
            case Verb.CANCEL:
                cancel_run(conversation)
            case Verb.VOID:
                void_verdict(conversation, command, requester)
            case Verb.RUN | Verb.RERUN | Verb.BISECT | Verb.MINIMIZE | Verb.APPROVE:
                sealed = plan_run(conversation, command, requester)
    return sealed


def _post_replies(conversation: IssueConversation, requester: Requester) -> None:
    """Post all replies as one comment, once for each event, to strangers within the budget of replies."""
    if not conversation.replies:
        return
    event = conversation.request.comment or f"{conversation.request.trigger}-{conversation.request.at:%Y%m%d%H%M%S}"
    start = f"{_REPLY} to={event}"
    own = [
        (comment.created, line)
        for comment in conversation.comments
        if comment.author == conversation.login
        for line in [comment.body.rstrip().rpartition("\n")[2]]  # only the last line is ours alone
        if line.startswith(_REPLY)
    ]
    if any(line.startswith(f"{start} ") for _, line in own):
        return
    since = conversation.context.now - DAY
    counted = [line for created, line in own if created > since and not line.endswith(_TRUSTED)]
    if not requester.is_trusted and len(counted) >= conversation.settings.budgets.replies:
        return
    marker = f"{start}{_TRUSTED if requester.is_trusted else ' -->'}"
    text = "\n\n".join(conversation.replies)
    hint = f"\n\n`{PREFIX} help` lists the commands." if conversation.has_refused else ""
    conversation.forge.create_comment(conversation.repository, conversation.number, f"{text}{hint}\n\n{marker}\n")


# ---------------------------------------------------------------------------------------------- the schedule


def find_due_issue(forge: Forge, repository: str, settings: Settings, *, now: datetime) -> int | None:
    """Return the open issue with the oldest last turn, at least ``MIN_AGE`` ago; None if there is no such issue."""
    login = forge.get_login()
    labels = dict.fromkeys(name for kind in OPEN_ENDED for name in choose_labels(settings, kind))
    briefs = {brief.number: brief for label in labels for brief in forge.list_labelled_issues(repository, label)}
    candidates = sorted(briefs.values(), key=lambda brief: brief.updated)[:MAX_READ]
    turns = {
        brief.number: turn
        for brief in candidates
        if brief.open and not brief.locked and not brief.is_pull_request
        for turn in [_find_last_turn(forge, repository, brief.number, login)]
        if turn is not None and now - turn >= MIN_AGE
    }
    return min(turns, key=lambda number: turns[number], default=None)


def _find_last_turn(forge: Forge, repository: str, number: int, login: str) -> datetime | None:
    """Return the time of the last run, or of a later turn without a run; None before the first run."""
    record = read_records(forge.list_comments(repository, number), login).get(number)
    if record is None or not record.runs:
        return None
    return max(record.runs[-1].at, record.idle or record.runs[-1].at)


def _record_idle_turn(conversation: IssueConversation) -> None:
    """Record that the schedule had no run to make here. Otherwise the same issue would be next forever.

    An issue without a run has no turn, and gets no comment.
    """
    if conversation.record.runs:
        record = msgspec.structs.replace(conversation.record, idle=conversation.context.now)
        conversation.publish_sticky(replace(conversation.sticky, record=record))
