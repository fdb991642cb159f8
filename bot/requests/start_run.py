"""Plan the run that a command asks for, and announce it on the issue, or reply why it does not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from bot.extract import Repro
from bot.forge.contract import MAX_COMMENTS, MAX_RECENT, IssueBrief, IssueTarget, Permission, PostedComment, Reaction
from bot.forge.payloads import replace_surrogates
from bot.forge.run_record import IssueRecord, RecordedApproval, RecordedRun, RunState, merge_records
from bot.forge.sticky_comment import MAX_BODY_BYTES, RUNNING, find_later_first_runs, parse_report, read_records
from bot.plan import PlanWithNotes, make_plan
from bot.report.assemble import make_unrun_report
from bot.report.comment import render_comment
from bot.report.quote import escape_prose, quote_code
from bot.report.sections.testcase import render_unapproved
from bot.requests.commands import PREFIX, VERBS, SlashCommand, Verb
from bot.requests.conversation import IssueConversation, add_reaction, link_log
from bot.requests.labels import update_labels
from bot.requests.permissions import (
    DAY,
    Denied,
    Requester,
    check_approval,
    check_budgets,
    count_use,
    find_approval,
    is_approved,
    select_machines,
)
from bot.requests.plan_file import SealedPlan, make_case, seal_plan
from bot.requests.request import Request, Trigger
from bot.requests.testcase import read_testcase
from bot.settings import UnaskedAnswers, WithoutCode
from bot.verdict.verdict import Report, VerdictKind
from runners.core.errors import UserError
from runners.core.protocol import digest_of
from runners.toolchains import find_toolchain


def plan_run(conversation: IssueConversation, command: SlashCommand, requester: Requester) -> SealedPlan | None:
    """Publish the progress note and return the plan of the run. Without a run, reply why, and return None."""
    settings = conversation.settings
    issue = conversation.issue
    if settings.attachments:
        issue = replace_surrogates(conversation.context.attach(issue))
    asked = read_testcase(issue, settings, command, anyway=conversation.request.asked)
    if (report := make_unrun_report(asked)) is not None:
        _answer_without_run(conversation, report)
        return None
    assert isinstance(asked.extraction, Repro)
    testcase = digest_of(asked.extraction.testcase)
    if _is_delivered_twice(conversation):
        conversation.add_reply("This was asked for already.")
        return None
    if _refuse_run(conversation, command, requester, asked.extraction):
        return None
    try:
        planned = make_plan(asked.extraction, conversation.context.catalogue, asked.options)
    except UserError as error:
        conversation.refuse_command(f"{escape_prose(str(error))}.")
        return None
    if command.verb is Verb.APPROVE and not _select_machines(conversation, planned):
        conversation.refuse_command(
            "Nothing here waits for approval: no machine in the settings has a device that this is to run on."
        )
        return None
    machines, notes = _choose_machines(conversation, command, planned, testcase, requester)
    before = conversation.sticky
    room = MAX_BODY_BYTES - len(before.body.encode())
    code = render_unapproved(asked.extraction, room) if notes else ""
    run = _record_run(conversation, command, requester, testcase, machines)
    notes_on_code = _note_other_code(command)
    case = make_case(asked, planned, settings, blocks=command.blocks, notes=(*notes, *notes_on_code), run=run)
    try:
        sealed = seal_plan(case, machines)
    except UserError as error:
        conversation.refuse_command(f"{escape_prose(str(error))}.")
        return None
    actor = quote_code(requester.login or "the clock")
    conversation.messages.append(f"planned {len(sealed.cells)} job(s) for {conversation.request.trigger} by {actor}")
    if conversation.request.trigger is not Trigger.SCHEDULE:
        add_reaction(conversation.context, conversation.request, conversation.number, Reaction.EYES)
    if conversation.request.trigger is Trigger.OPENED and not notes and not conversation.has_comment:
        return sealed  # a progress note would notify all subscribers before there is an answer
    record = _record_approval(conversation, testcase, requester).add_run(run)
    note = _render_progress(planned, run, notes, is_first=before.verdict == RUNNING)
    posted = conversation.publish_sticky(replace(before, record=record, note=note, code=code))
    if (denied := _check_all_budgets(conversation, requester, posted)) is not None:
        # Another job, for another issue, has recorded its run since the first check: withdraw this one.
        why = _format_denial(denied)
        conversation.publish_sticky(replace(before, note=before.note or f"> {why}"))
        conversation.refuse_command(why)
        return None
    return sealed


def _is_delivered_twice(conversation: IssueConversation) -> bool:
    """True if another delivery of the event that opened the issue has started the run. Our reaction shows this."""
    if conversation.request.trigger is not Trigger.OPENED or conversation.context.repeats:
        return False
    target = IssueTarget(number=conversation.number)
    return conversation.forge.has_reaction(conversation.repository, target, Reaction.EYES)


def _refuse_run(conversation: IssueConversation, command: SlashCommand, requester: Requester, repro: Repro) -> bool:
    """Reply and return True if the run is refused, or unnecessary after an earlier run. False otherwise."""
    testcase = digest_of(repro.testcase)
    if command.verb is Verb.APPROVE and (denied := check_approval(command, testcase)) is not None:
        conversation.refuse_command(f"{_format_denial(denied)} Its sha256 is `{testcase}`.")
        if conversation.request.asked:
            conversation.replies.append(render_unapproved(repro, MAX_BODY_BYTES))
        return True
    if why := _find_earlier_run(conversation, command, testcase):
        conversation.add_reply(why)
        return True
    if (denied := _check_all_budgets(conversation, requester)) is not None:
        conversation.refuse_command(_format_denial(denied))
        return True
    return False


def _record_run(
    conversation: IssueConversation,
    command: SlashCommand,
    requester: Requester,
    testcase: str,
    machines: tuple[str, ...],
) -> RecordedRun:
    context = conversation.context
    return RecordedRun(
        id=context.run_id,
        at=context.now,
        by=requester.login[:100],
        testcase=testcase,
        counted=not requester.is_trusted,
        machines=machines,
        asked=_format_options(command),
        cause=_name_cause(conversation.request),
        unasked=conversation.request.trigger in (Trigger.OPENED, Trigger.SCHEDULE),
        url=context.run_url[:200],
    )


def _answer_without_run(conversation: IssueConversation, report: Report) -> None:
    """Ask for the missing parts in our comment, if the settings or a command want an answer. Else stay silent."""
    kind, when = report.verdict.kind, conversation.settings.without_code
    is_wanted = (when is WithoutCode.ASK and kind is not VerdictKind.NO_CLAIM) or (
        when is WithoutCode.INCOMPLETE and kind is VerdictKind.INCOMPLETE
    )
    conversation.messages.append(f"nothing to run: {escape_prose(report.verdict.headline)}")
    is_wanted = is_wanted and conversation.settings.events.post is not UnaskedAnswers.NOTHING
    if not (conversation.request.asked or is_wanted):
        return
    here = replace(report, follows=conversation.settings.events.follows)
    sticky = parse_report(render_comment(here, MAX_BODY_BYTES))
    conversation.publish_sticky(replace(sticky, record=conversation.record))
    update_labels(conversation.forge, conversation.repository, conversation.number, conversation.settings, kind)


def _find_earlier_run(conversation: IssueConversation, command: SlashCommand, testcase: str) -> str:
    """Return the reply if an earlier run makes this one unnecessary; else empty.

    An earlier run has the same cause, or is the same run: still active, or done with a valid answer.
    """
    cause = _name_cause(conversation.request)
    # A run with our own id is this one: the process that began it was killed, and it is planned anew.
    others = [run for run in conversation.record.runs if run.id != conversation.context.run_id]
    if cause and any(run.cause == cause for run in others):
        return "This was asked for already."
    same = [run for run in others if run.testcase == testcase and run.asked == _format_options(command)]
    if command.verb is Verb.APPROVE:
        same = [run for run in same if run.machines]  # earlier runs without machines do not answer an approval
    active = conversation.find_active_run()
    if active is not None and active in same:
        return f"This very testcase is running since {active.at:%H:%M} UTC{link_log(active.url)}."
    done = [run for run in same if run.state is RunState.DONE]
    if command.verb is Verb.RUN and done and conversation.record.void is None:
        return (
            f"This very testcase has its answer above, from {done[-1].at:%Y-%m-%d}; `{PREFIX} rerun` runs it again."
        )
    return ""


def _format_options(command: SlashCommand) -> str:
    """Return the options as one short text, which is equal for equal requests."""
    verb = [str(command.verb)] if command.verb in (Verb.BISECT, Verb.MINIMIZE) else []
    text = " ".join([*verb, *(f"{name}={value}" for name, value in sorted(command.options.items()))])
    return text if len(text) <= 80 else f"{text[:60]}… {sha256(text.encode()).hexdigest()[:12]}"


def _name_cause(request: Request) -> str:
    """Return a name of the event that is the same for a second delivery; empty if the event has no such name."""
    if request.comment is not None:
        return f"comment-{request.comment}"
    return "opened" if request.trigger is Trigger.OPENED else ""


def _check_all_budgets(
    conversation: IssueConversation, requester: Requester, posted: PostedComment | None = None
) -> Denied | None:
    """Return a refusal if a run of this request exceeds a budget.

    Jobs for several issues run at the same time, so each checks twice: before it records its run, and after, with the
    comment that has the record, ``posted``. The later of two jobs always sees the other's record.

    A run is refused if a list of comments is too long to be read as a whole: our comments may be in the other part.
    """
    if requester.is_trusted:
        return None
    context = conversation.context
    recent = conversation.forge.list_changed_comments(conversation.repository, context.now - DAY).comments
    opened = conversation.forge.list_changed_issues(conversation.repository, context.now - DAY).issues
    if len(conversation.comments) >= MAX_COMMENTS or max(len(recent), len(opened)) >= MAX_RECENT:
        return Denied(why="there are too many comments to count today's runs; a maintainer may start a run")
    records = dict(read_records(recent, conversation.login))
    if posted is not None:
        for number in find_later_first_runs(recent, conversation.login, posted):
            del records[number]  # these jobs see this record, and withdraw theirs
    known = records.get(conversation.number, IssueRecord())
    records[conversation.number] = merge_records([known, conversation.record])
    records = {number: record.remove_run(context.run_id) for number, record in records.items()}
    unrecorded = _list_unrecorded(conversation, opened, records)
    used = count_use(
        records, number=conversation.number, user=requester.login, now=context.now, unrecorded=unrecorded
    )
    return check_budgets(conversation.settings.budgets, used, requester)


def _list_unrecorded(
    conversation: IssueConversation, issues: Sequence[IssueBrief], records: Mapping[int, IssueRecord]
) -> dict[int, str]:
    """Return number → author of the issues whose run on opening may be active, or has ended without a comment.

    Such a run has no comment yet. So each issue opened within a day that has none counts as one run of its author. Of
    issues opened at the same time, the issue with the higher number is refused.
    """
    if not conversation.settings.events.opened:
        return {}
    is_opening = conversation.request.trigger is Trigger.OPENED
    by_author: dict[str, list[int]] = {}
    for brief in issues:
        if (
            brief.created > conversation.context.now - DAY
            and not (brief.number in records and brief.number != conversation.number)
            and not (brief.number == conversation.number and (is_opening or conversation.has_comment))
            and not (is_opening and brief.number > conversation.number)
        ):
            by_author.setdefault(brief.author, []).append(brief.number)
    most = conversation.settings.budgets.user  # more of its issues were not run
    return {number: author for author, numbers in by_author.items() for number in sorted(numbers)[:most]}


def _select_machines(conversation: IssueConversation, planned: PlanWithNotes) -> tuple[str, ...]:
    """Return the machines that need approval and have a device of the plan."""
    return select_machines(conversation.settings.machines, (planned.plan.device, *planned.plan.devices))


def _choose_machines(
    conversation: IssueConversation,
    command: SlashCommand,
    planned: PlanWithNotes,
    testcase: str,
    requester: Requester,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the approved machines, and notes on the machines that still need an approval."""
    machines = _select_machines(conversation, planned)
    if not machines:
        return (), ()
    if _approves_now(conversation, testcase, requester) or (bool(command.blocks) and _may_approve(requester)):
        return machines, ()
    forge, repository = conversation.forge, conversation.repository

    def fetch_permission(login: str) -> Permission:
        return forge.fetch_permission(repository, login)

    if find_approval(conversation.record, conversation.comments, testcase, fetch_permission):
        return machines, ()
    ask = f"after a look at it, a maintainer lets it run with `{PREFIX} approve {testcase}`"
    return (), (f"not run on {', '.join(machines)}, which needs approval for each testcase: {ask}",)


def _may_approve(requester: Requester) -> bool:
    return requester.permission >= VERBS[Verb.APPROVE].needs


def _approves_now(conversation: IssueConversation, testcase: str, requester: Requester) -> bool:
    """True if the handled comment approves this testcase, perhaps beside another command."""
    return _may_approve(requester) and is_approved(conversation.request.commands, testcase)


def _record_approval(conversation: IssueConversation, testcase: str, requester: Requester) -> IssueRecord:
    """Return the record with the approval of the handled comment, so that later runs find it."""
    comment = conversation.request.comment
    if comment is None or not _approves_now(conversation, testcase, requester):
        return conversation.record
    return conversation.record.add_approval(
        RecordedApproval(testcase=testcase, by=requester.login[:100], comment=comment)
    )


def _note_other_code(command: SlashCommand) -> tuple[str, ...]:
    if not command.blocks:
        return ()
    return ("the testcase is the code in the comment that asked for this run, not the issue's",)


def _render_progress(planned: PlanWithNotes, run: RecordedRun, notes: Sequence[str], *, is_first: bool) -> str:
    title = find_toolchain(planned.plan.testcase.toolchain).TITLE
    requester = f" for {quote_code(run.by)}" if run.by else ""
    count = len(planned.plan.order)
    releases = f"{count} release{'' if count == 1 else 's'} of {title}"
    answer = "The answer will be a new comment." if is_first else "Another answer than the one below will be new."
    lines = [
        f"> **Running** the testcase{requester} on up to {releases}{link_log(run.url)}. {answer}",
        *(f"> {escape_prose(note[:1].upper() + note[1:])}." for note in notes),
    ]
    return "\n>\n".join(lines)


def _format_denial(denied: Denied) -> str:
    return f"{denied.why[0].upper()}{denied.why[1:]}."
