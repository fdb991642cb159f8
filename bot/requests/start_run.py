"""A run that was asked for → its sealed plan; or the reason why there is none, said to whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from bot.extract import Repro
from bot.forge import sticky_comment
from bot.forge.run_record import Run, RunState, short
from bot.plan import Planned, Wishes, make_plan
from bot.report.assemble import Asked, report_without_run
from bot.report.comment import render_comment
from bot.report.quote import code, prose
from bot.requests import labels
from bot.requests.commands import PREFIX, VERBS, Command, Verb
from bot.requests.conversation import Talk, log_of
from bot.requests.permissions import DAY, Denied, Standing, approved, approves, machines_for, spent, within
from bot.requests.plan_file import Case, Sealed, cells_of, encodable, read_issue, seal
from bot.requests.replies import under_way
from bot.requests.request import Request, Trigger
from bot.settings import Settings, WithoutCode
from bot.verdict.verdict import Report, VerdictKind
from runners.core.errors import UserError
from runners.core.protocol import Budget, digest_of
from runners.toolchains import find_toolchain


def plan_run(talk: Talk, command: Command, standing: Standing) -> Sealed | None:
    """The plan of one run, or None with the reason said."""
    settings, trigger = talk.settings, talk.request.trigger
    issue = encodable(talk.desk.attach(talk.issue)) if settings.attachments else talk.issue
    wishes = wishes_of(settings, command)
    extraction = read_issue(issue, toolchain=settings.toolchain, blocks=command.blocks, allow=settings.allow)
    asked = Asked(issue=issue, toolchain=settings.toolchain, wishes=wishes, extraction=extraction)
    if (report := report_without_run(asked)) is not None:
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
    if command.verb is Verb.APPROVE and not _wanted(talk, planned):
        talk.refuse(
            "Nothing here waits for approval: no machine in the settings has a device that this is to run on."
        )
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
        url=talk.desk.run_url[:200],
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
    cells = cells_of(planned.plan, settings, machines, minimize=wishes.minimize)
    try:
        sealed = seal(case, cells)
    except UserError as error:
        talk.refuse(f"{prose(str(error))}.")
        return None
    talk.publish(replace(talk.sheet, record=talk.record.with_run(run), note=_noterunning(planned, run, notes)))
    talk.said.append(f"planned {len(cells)} job(s) for {trigger} by {code(standing.login or 'the clock')}")
    return sealed


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
        minimize=command.verb is Verb.MINIMIZE,
        timeout_s=float(timeout) if timeout is not None else None,
        sandbox=settings.sandbox,
        allowed=settings.allow,
        budget=Budget(probes=limits.probes, wall_s=60.0 * limits.minutes),
    )


def _without_code(talk: Talk, report: Report) -> None:
    """Silence, or one polite request: our one comment says exactly what is missing."""
    kind, when = report.verdict.kind, talk.settings.without_code
    by_itself = when is WithoutCode.ASK or (when is WithoutCode.INCOMPLETE and kind is VerdictKind.INCOMPLETE)
    talk.said.append(f"nothing to run: {prose(report.verdict.headline)}")
    if not (talk.request.asked or by_itself):
        return
    sheet = sticky_comment.of_report(render_comment(report, sticky_comment.ROOM))
    talk.publish(replace(sheet, record=talk.record))
    labels.apply(talk.forge, talk.repository, talk.number, talk.settings, kind)


def _known(talk: Talk, command: Command, testcase: str) -> str:
    """Why this run is not needed: it was asked for by the same event, is under way, or has its answer."""
    cause = _cause(talk.request)
    # A run of our own id is this one: the process that had begun it was killed, and it is planned anew.
    others = [run for run in talk.record.runs if run.id != talk.desk.run_id]
    if cause and any(run.cause == cause for run in others):
        return "This was asked for already."
    same = [run for run in others if run.testcase == short(testcase) and run.asked == _options(command)]
    if command.verb is Verb.APPROVE:
        same = [run for run in same if run.machines]  # it asks for machines that earlier runs did not have
    alive = under_way(talk)
    if alive is not None and alive in same:
        return f"This very testcase is running since {alive.at:%H:%M} UTC{log_of(alive.url)}."
    done = [run for run in same if run.state is RunState.DONE]
    if command.verb is Verb.RUN and done and talk.record.void is None:
        return (
            f"This very testcase has its answer above, from {done[-1].at:%Y-%m-%d}; `{PREFIX} rerun` runs it again."
        )
    return ""


def _options(command: Command) -> str:
    """The options as one short text, the same for the same question."""
    verb = [str(command.verb)] if command.verb in (Verb.BISECT, Verb.MINIMIZE) else []
    text = " ".join([*verb, *(f"{name}={value}" for name, value in sorted(command.options.items()))])
    return text if len(text) <= 80 else f"{text[:60]}… {sha256(text.encode()).hexdigest()[:12]}"


def _cause(request: Request) -> str:
    """The event, by something that a second delivery of it has too; empty where there is nothing of the kind."""
    if request.comment is not None:
        return f"comment-{request.comment}"
    return "opened" if request.trigger is Trigger.OPENED else ""


def _over_budget(talk: Talk, standing: Standing) -> Denied | None:
    if standing.trusted:
        return None
    since = talk.desk.now - DAY
    everywhere = dict(sticky_comment.records(talk.forge.recent_comments(talk.repository, since), talk.me))
    everywhere[talk.number] = talk.record
    everywhere = {number: record.without(talk.desk.run_id) for number, record in everywhere.items()}
    used = spent(everywhere, number=talk.number, user=standing.login, now=talk.desk.now)
    return within(talk.settings.budgets, used, standing)


def _wanted(talk: Talk, planned: Planned) -> tuple[str, ...]:
    """The machines that need approval and have a device of the plan."""
    return machines_for(talk.settings.machines, (planned.plan.device, *planned.plan.devices))


def _machines(
    talk: Talk, command: Command, planned: Planned, testcase: str, standing: Standing
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The machines that need approval and have it, and what is to be said of those that do not."""
    wanted = _wanted(talk, planned)
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


def _noterunning(planned: Planned, run: Run, notes: Sequence[str]) -> str:
    title = find_toolchain(planned.plan.testcase.toolchain).TITLE
    by = f" for {code(run.by)}" if run.by else ""
    many = len(planned.plan.order)
    what = f"> **Running** the testcase{by} on up to {many} release{'' if many == 1 else 's'} of {title}"
    lines = [
        f"{what}{log_of(run.url)}. This comment will hold the answer.",
        *(f"> {prose(note[:1].upper() + note[1:])}." for note in notes),
    ]
    return "\n>\n".join(lines)


def _sentence(denied: Denied) -> str:
    return f"{denied.why[0].upper()}{denied.why[1:]}."
