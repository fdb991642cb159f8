"""A request → what is said at once, and the plan of what is to be run. The planning job, and the head of the daemon.

Reads the issue as data, asks the forge who may, writes replies and the progress note. Starts nothing: what leaves
here is a sealed plan, which other jobs run without any of our permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from bot import labels, sticky
from bot.app import Asked, unrun
from bot.commands import PREFIX, VERBS, Command, Verb, help_text
from bot.comment import render_comment
from bot.due import due
from bot.extract import Repro
from bot.forge import CommentTarget, Forge, IssueTarget, Permission, PostedComment, Reaction
from bot.gate import DAY, Denied, Standing, approved, approves, machines_for, may_say, spent, within
from bot.issue import Issue
from bot.jobs import Case, Sealed, cells_of, encodable, read_issue, seal
from bot.plan import Planned, Wishes, make_plan
from bot.quote import code, fence, prose
from bot.record import Record, Run, RunState, Void, short
from bot.request import Request, Trigger
from bot.settings import Settings, WithoutCode
from bot.verdict import Report, VerdictKind
from runners.catalogue import Catalogue
from runners.errors import InfraError, UserError
from runners.protocol import Budget, digest_of
from runners.toolchains import find_toolchain

RUNS = frozenset({Verb.RUN, Verb.RERUN, Verb.BISECT, Verb.MINIMIZE, Verb.APPROVE})
STALE = timedelta(hours=6)
"""A run that has not ended by then never will: GitHub stops a hosted job after six hours."""
_REPLY = "<!-- reprobot:reply to={to} -->"


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


class _Talk:
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

    def react(self, reaction: Reaction) -> None:
        """An acknowledgement that fails is no reason to stop."""
        comment = self.request.comment
        target = IssueTarget(number=self.number) if comment is None else CommentTarget(id=comment)
        with suppress(InfraError, UserError):
            self.forge.react(self.repository, target, reaction)

    def publish(self, sheet: sticky.Sheet) -> None:
        self.sheet = sheet
        sticky.publish(self.forge, self.repository, self.number, sheet, me=self.me)


def _sheet(comments: Sequence[PostedComment], me: str) -> sticky.Sheet:
    """Our comment as it stands, with everything that any comment of ours remembers of this issue."""
    old = sticky.standing(comments, me)
    if old is None:
        return sticky.Sheet()
    return replace(sticky.take_apart(old.body), record=sticky.records(comments, me)[old.number])


def handle(desk: Desk, request: Request) -> Handled:
    """Answer the request, as far as words go, and plan what it wants run.

    Raises:
        UserError: the forge refuses, or the issue is gone.
        InfraError: the forge does not answer.
    """
    number = request.number
    if number is None:
        number = due(desk.forge, request.repository, desk.settings, now=desk.now)
    if number is None:
        return Handled(number=0, said=("no issue is due",))
    talk = _Talk(desk, request, number)
    if request.asked:
        talk.react(Reaction.EYES)
    for mistake in request.mistakes:
        talk.refuse(f"Line {mistake.line}: {mistake.why}.")
    sealed = _obey(talk, _commands(request))
    if talk.confused:
        talk.react(Reaction.CONFUSED)
    elif request.comment is not None:
        talk.react(Reaction.ROCKET if sealed else Reaction.PLUS_ONE)
    _say(talk)
    return Handled(number=number, said=tuple(talk.said), sealed=sealed)


def _commands(request: Request) -> tuple[Command, ...]:
    """Words first, in their order; of several runs asked for in one comment the last one counts."""
    if request.trigger is Trigger.SCHEDULE:
        return (Command(verb=Verb.RERUN),)
    words = [command for command in request.commands if command.verb not in RUNS]
    runs = [command for command in request.commands if command.verb in RUNS]
    return (*words, *runs[-1:])


def _obey(talk: _Talk, commands: Sequence[Command]) -> Sealed | None:
    standing = talk.standing()
    sealed = None
    for command in commands:
        if (denied := may_say(command, standing)) is not None:
            talk.refuse(f"{denied.why}.")
            continue
        match command.verb:
            case Verb.HELP:
                talk.reply(help_text())
            case Verb.STATUS:
                talk.reply(_status(talk))
            case Verb.CANCEL:
                _cancel(talk)
            case Verb.VOID:
                _void(talk, command, standing)
            case Verb.MINIMIZE:
                where = f"{talk.repository}#{talk.number}"
                talk.refuse(
                    f"Testcases are not made smaller here yet; on your own machine: `reprobot minimize {where}`."
                )
            case Verb.RUN | Verb.RERUN | Verb.BISECT | Verb.APPROVE:
                sealed = _plan(talk, command, standing)
    return sealed


def _say(talk: _Talk) -> None:
    """One reply for everything, once for each event, within the budget of replies."""
    if not talk.replies:
        return
    to = talk.request.comment or f"{talk.request.trigger}-{talk.request.at:%Y%m%d%H%M%S}"
    mark = _REPLY.format(to=to)
    mine = [
        comment for comment in talk.comments if comment.author == talk.me and "<!-- reprobot:reply" in comment.body
    ]
    recent = [comment for comment in mine if comment.created > talk.desk.now - DAY]
    if any(mark in comment.body for comment in mine) or len(recent) >= talk.settings.budgets.replies:
        return
    text = "\n\n".join(talk.replies)
    hint = f"\n\n`{PREFIX} help` lists the commands." if talk.confused else ""
    talk.forge.create_comment(talk.repository, talk.number, f"{text}{hint}\n\n{mark}\n")


# ---------------------------------------------------------------------------------------------- words


def _running(talk: _Talk) -> Run | None:
    """The run under way, if there is one."""
    alive = [r for r in talk.record.runs if r.state is RunState.RUNNING and r.at > talk.desk.now - STALE]
    return alive[-1] if alive else None


def _status(talk: _Talk) -> str:
    lines = []
    if (running := _running(talk)) is not None:
        lines.append(f"Running since {running.at:%H:%M} UTC{_log(running.url)}.")
    past = [run for run in talk.record.runs if run.verdict]
    if past:
        lines.append(f"Last answer: {past[-1].verdict}, {past[-1].at:%Y-%m-%d %H:%M} UTC{_log(past[-1].url)}.")
    if talk.record.void is not None:
        lines.append("That verdict was voided by a maintainer.")
    lines = lines or ["Nothing was run on this issue yet."]
    used = spent({talk.number: talk.record}, number=talk.number, user="", now=talk.desk.now).issue
    left = max(0, talk.settings.budgets.issue - used)
    return " ".join([*lines, f"{left} of {talk.settings.budgets.issue} runs are left here for today."])


def _log(url: str) -> str:
    return f" ([log]({url}))" if url else ""


def _cancel(talk: _Talk) -> None:
    running = _running(talk)
    if running is None:
        talk.reply("Nothing is running here.")
        return
    record = talk.record.ended(running.id, RunState.CANCELLED)
    talk.publish(replace(talk.sheet, record=record, note=_note_cancelled(talk)))
    talk.said.append(f"run {running.id} is cancelled: its answer will not be posted")


def _note_cancelled(talk: _Talk) -> str:
    return f"> The run under way was cancelled by {code(talk.request.actor)}; `{PREFIX} rerun` starts another."


def _void(talk: _Talk, command: Command, standing: Standing) -> None:
    """Withdraw the verdict; it stays readable, under who withdrew it and why."""
    if talk.sheet.verdict == sticky.RUNNING:
        talk.reply("There is no verdict here to void.")
        return
    void = Void(by=standing.login[:100], at=talk.desk.now, why=command.words[:400])
    record = msgspec.structs.replace(talk.record, void=void)
    talk.publish(replace(talk.sheet, record=record, note=note_voided(void)))
    labels.apply(talk.forge, talk.repository, talk.number, talk.settings, None)
    talk.said.append("the verdict is voided")


def note_voided(void: Void) -> str:
    """What stands above a verdict that was withdrawn."""
    reason = "\n".join(f"> {line}" for line in fence(void.why).splitlines())
    return f"> **Voided** by {code(void.by)} on {void.at:%Y-%m-%d}. The answer below no longer stands:\n>\n{reason}"


# ---------------------------------------------------------------------------------------------- runs


def _plan(talk: _Talk, command: Command, standing: Standing) -> Sealed | None:
    """The plan of one run, or None with the reason said."""
    settings, trigger = talk.settings, talk.request.trigger
    issue = encodable(talk.desk.attach(talk.issue)) if settings.attachments else talk.issue
    wishes = wishes_of(settings, command)
    extraction = read_issue(issue, toolchain=settings.toolchain, blocks=command.blocks, allow=settings.allow)
    asked = Asked(issue=issue, toolchain=settings.toolchain, wishes=wishes, extraction=extraction)
    if (report := unrun(asked)) is not None:
        _without_code(talk, report)
        return None
    assert isinstance(extraction, Repro)
    testcase = digest_of(extraction.testcase)
    if command.verb is Verb.APPROVE and (denied := approves(command, testcase)) is not None:
        talk.refuse(f"{_sentence(denied)} Its sha256 begins with `{short(testcase)}`.")
        return None
    if why := _known(talk, command, testcase):
        talk.reply(why)
        return None
    if (denied := _over_budget(talk, standing)) is not None:
        talk.refuse(_sentence(denied))
        return None
    try:
        planned = make_plan(extraction, talk.desk.catalogue, wishes)
    except UserError as error:
        talk.refuse(f"{prose(str(error))}.")
        return None
    machines, notes = _machines(talk, command, planned, testcase, standing)
    run = Run(
        id=talk.desk.run_id,
        at=talk.desk.now,
        by=standing.login[:100],
        testcase=short(testcase),
        counted=not standing.trusted,
        machines=machines,
        asked=_options(command),
        cause=_cause(talk.request),
        url=talk.desk.run_url,
    )
    case = Case(
        issue=issue,
        toolchain=settings.toolchain,
        blocks=command.blocks,
        wishes=wishes,
        plan=planned.plan,
        notes=(*planned.notes, *notes, *_whose_code(command)),
        settings=settings,
        run=run,
    )
    cells = cells_of(planned.plan, settings, machines, sandbox=settings.sandbox, allow=settings.allow)
    talk.publish(replace(talk.sheet, record=talk.record.with_run(run), note=_note_running(planned, run, notes)))
    talk.said.append(f"planned {len(cells)} job(s) for {trigger} by {code(standing.login or 'the clock')}")
    return seal(case, cells)


def wishes_of(settings: Settings, command: Command) -> Wishes:
    """What the command asks for, over what the settings say."""
    options = command.options
    versions = options.get("versions", settings.versions)
    if command.verb is Verb.BISECT:
        versions = f"{options['good']}..{options['bad']}"
    devices = tuple(options["devices"].split(",")) if "devices" in options else settings.devices
    limits = settings.limits
    timeout = options.get("timeout", limits.timeout)
    return Wishes(
        versions=versions,
        devices=devices,
        bisect=settings.bisect or command.verb is Verb.BISECT,
        timeout_s=float(timeout) if timeout is not None else None,
        sandbox=settings.sandbox,
        allowed=settings.allow,
        budget=Budget(probes=limits.probes, wall_s=60.0 * limits.minutes),
    )


def _without_code(talk: _Talk, report: Report) -> None:
    """Silence, or one polite request: our one comment says exactly what is missing."""
    kind, when = report.verdict.kind, talk.settings.without_code
    by_itself = when is WithoutCode.ASK or (when is WithoutCode.INCOMPLETE and kind is VerdictKind.INCOMPLETE)
    talk.said.append(f"nothing to run: {prose(report.verdict.headline)}")
    if not (talk.request.asked or by_itself):
        return
    sheet = sticky.of_report(render_comment(report, sticky.ROOM))
    talk.publish(replace(sheet, record=talk.record))


def _known(talk: _Talk, command: Command, testcase: str) -> str:
    """Why this run is not needed: it was asked for by the same event, is under way, or has its answer."""
    cause = _cause(talk.request)
    if cause and any(run.cause == cause for run in talk.record.runs):
        return "This was asked for already."
    same = [run for run in talk.record.runs if run.testcase == short(testcase) and run.asked == _options(command)]
    if command.verb is Verb.APPROVE:
        same = [run for run in same if run.machines]  # it asks for machines that earlier runs did not have
    if same and (running := _running(talk)) in same and running is not None:
        return f"This very testcase is running since {running.at:%H:%M} UTC{_log(running.url)}."
    done = [run for run in same if run.state is RunState.DONE]
    if command.verb is Verb.RUN and done and talk.record.void is None:
        return (
            f"This very testcase has its answer above, from {done[-1].at:%Y-%m-%d}; `{PREFIX} rerun` runs it again."
        )
    return ""


def _options(command: Command) -> str:
    """The options as one text, the same for the same question."""
    return " ".join(f"{name}={value}" for name, value in sorted(command.options.items()))[:300]


def _cause(request: Request) -> str:
    """The event, by something that a second delivery of it has too; empty where there is nothing of the kind."""
    if request.comment is not None:
        return f"comment-{request.comment}"
    return "opened" if request.trigger is Trigger.OPENED else ""


def _over_budget(talk: _Talk, standing: Standing) -> Denied | None:
    if standing.trusted:
        return None
    since = talk.desk.now - DAY
    everywhere = dict(sticky.records(talk.forge.recent_comments(talk.repository, since), talk.me))
    everywhere[talk.number] = talk.record
    used = spent(everywhere, number=talk.number, user=standing.login, now=talk.desk.now)
    return within(talk.settings.budgets, used, standing)


def _machines(
    talk: _Talk, command: Command, planned: Planned, testcase: str, standing: Standing
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The machines that need approval and have it, and what is to be said of those that do not."""
    plan = planned.plan
    wanted = machines_for(talk.settings.machines, (plan.device, *plan.devices))
    if not wanted:
        return (), ()
    mine = command.verb is Verb.APPROVE or (bool(command.blocks) and standing.permission >= VERBS[Verb.APPROVE].needs)
    if mine or approved(talk.comments, testcase, lambda login: talk.forge.permission(talk.repository, login)):
        return wanted, ()
    ask = f"after a look at it, a maintainer lets it run with `{PREFIX} approve {short(testcase)}`"
    return (), (f"not run on {', '.join(wanted)}, which needs approval for each testcase: {ask}",)


def _whose_code(command: Command) -> tuple[str, ...]:
    return (
        ("the testcase is the code in the comment that asked for this run, not the issue's",)
        if command.blocks
        else ()
    )


def _note_running(planned: Planned, run: Run, notes: Sequence[str]) -> str:
    title = find_toolchain(planned.plan.testcase.toolchain).TITLE
    by = f" for {code(run.by)}" if run.by else ""
    many = len(planned.plan.order)
    what = f"> **Running** the testcase{by} on up to {many} release{'' if many == 1 else 's'} of {title}"
    lines = [f"{what}{_log(run.url)}. This comment will hold the answer.", *(f"> {prose(note)}" for note in notes)]
    return "\n>\n".join(lines)


def _sentence(denied: Denied) -> str:
    return f"{denied.why[0].upper()}{denied.why[1:]}."
