"""The three jobs on the command line: ``plan`` reads, ``probe`` runs and holds no token, ``report`` answers."""

from __future__ import annotations

import json as json_
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import terminal
from bot.extract import Repro
from bot.forge import actions, github
from bot.forge.attachments import hosts_of, web_get, with_attachments
from bot.forge.contract import Forge
from bot.forge.source import read_source
from bot.issue import Issue, is_remote
from bot.plan import make_plan
from bot.report.assemble import Asked, report_without_run
from bot.report.files import Outputs, write_file, write_report
from bot.report.quote import prose
from bot.requests import deliver as answer
from bot.requests.commands import Command, Verb
from bot.requests.handle import Desk, Handled, handle
from bot.requests.plan_file import Case, Sealed, cells_of, encodable, judged, open_case, read_issue, seal
from bot.requests.request import Ignored, read_request
from bot.requests.result_files import read_results
from bot.requests.start_run import wishes_of
from bot.settings import Settings, load_settings
from bot.verdict.verdict import Report
from runners.cell import check_machine, run_cell
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan, write_result
from runners.core.protocol import MAX_PLAN_BYTES, JobCell
from runners.core.requirements import parse_allowance
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.workbench import Workbench, open_workbench

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_CACHE_URL")

PlanOption = Annotated[Path, typer.Option("--plan", help="The plan.", metavar="FILE")]
ShaOption = Annotated[str, typer.Option("--sha256", help="The plan's sha256, as `plan` gave it.", metavar="HEX")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of the result files.", metavar="DIR")]


def plan(
    issue: Annotated[
        str | None,
        typer.Argument(
            metavar="[ISSUE]", help="As for reproduce; without it, the event of this GitHub Actions step."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--plan", help="Where to write the plan.", metavar="FILE")] = Path("plan.json"),
    settings: Annotated[
        Path | None, typer.Option(help="Settings, as in .github/reprobot.yml; of an event, the repository's.")
    ] = None,
) -> None:
    """Job 1: read the issue, decide what may be run, and write it to plan.json. Runs nothing."""
    step = actions.step_of(os.environ)
    handled = _from_event(step) if issue is None else _from_source(issue, settings, step)
    sealed = handled.sealed
    if sealed is not None:
        write_file(out, sealed.data.decode())
    actions.set_outputs(
        step,
        {
            "act": "true" if sealed else "false",
            "issue": str(handled.number or ""),
            "sha256": sealed.sha256 if sealed else "",
            "cells": json_.dumps(sealed.matrix() if sealed else {}, separators=(",", ":")),
        },
    )
    actions.add_summary(step, "\n\n".join(handled.said))
    for line in handled.said:
        terminal.say(line)
    if sealed is not None:
        typer.echo(json_.dumps({"sha256": sealed.sha256, "cells": sealed.matrix()}))


def _from_event(step: actions.Step) -> Handled:
    payload, forge = actions.read_event(step), github.forge(os.environ)
    catalogue, now = open_catalogue(default_root() / "catalogue", ()), datetime.now(tz=UTC)
    settings = load_settings(forge.config(step.repository), step.inputs)
    request = read_request(
        step.event, payload, settings=settings, me=forge.whoami(), now=now, repository=step.repository
    )
    if isinstance(request, Ignored):
        return idle(request)
    desk = Desk(
        forge=forge,
        settings=settings,
        catalogue=catalogue,
        now=now,
        run_id=step.run_id,
        run_url=step.run_url,
        attach=lambda issue: _attached(issue, settings.toolchain),
    )
    return handle(desk, request)


def idle(request: Ignored) -> Handled:
    """Why nothing is done, as Markdown: the reason may quote the event, and goes into the summary of the job."""
    return Handled(number=0, said=(f"nothing to do: {prose(request.why)}",))


def _attached(issue: Issue, toolchain: str | None) -> Issue:
    hosts = hosts_of(os.environ)
    return with_attachments(issue, toolchain=toolchain, forge=hosts.forge, get=web_get(hosts.allow))


def _from_source(source: str, file: Path | None, step: actions.Step) -> Handled:
    """A plan without a forge: for a cluster, or to look at."""
    try:
        settings = load_settings(file.read_bytes() if file else None, step.inputs)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    today = datetime.now(tz=UTC).date()
    issue = encodable(
        read_source(source, today=today, fetch=lambda repo, n: github.fetch_issue(github.connect(), repo, n))
    )
    if is_remote(source) and settings.attachments:
        issue = encodable(_attached(issue, settings.toolchain))
    sealed = _sealed(issue, settings)
    return Handled(number=issue.number or 0, said=("nothing to run" if sealed is None else "planned",), sealed=sealed)


def _sealed(issue: Issue, settings: Settings) -> Sealed | None:
    wishes = wishes_of(settings, Command(verb=Verb.RUN))
    extraction = read_issue(issue, toolchain=settings.toolchain, allow=settings.allow)
    asked = Asked(issue=issue, toolchain=settings.toolchain, wishes=wishes, extraction=extraction)
    if report_without_run(asked) is not None or not isinstance(extraction, Repro):
        return None
    planned = make_plan(extraction, open_catalogue(default_root() / "catalogue", ()), wishes)
    case = Case(
        issue=issue,
        toolchain=settings.toolchain,
        blocks=(),
        wishes=wishes,
        plan=planned.plan,
        notes=planned.notes,
        settings=settings,
    )
    return seal(case, cells_of(planned.plan, settings))


def probe(
    plan: PlanOption,
    sha256: ShaOption,
    cell: Annotated[str, typer.Option(help="Which cell of the plan to run.", metavar="ID")],
    results: ResultsOption = Path("results"),
) -> None:
    """Job 2: run one cell of the plan in sandboxes and write results/<cell>.json. Takes no token."""
    if held := [name for name in TOKENS if os.environ.get(name)]:
        raise UserError(f"{held[0]} is set: what runs strangers' code must hold no token; start it without")
    check_machine(os.environ)
    catalogue = open_catalogue(default_root() / "catalogue", ())
    with terminal.progress() as progress:

        def open_bench(one: JobCell) -> Workbench:
            also = frozenset(parse_allowance(one.allow).values())
            return open_workbench(one.sandbox, catalogue, progress, also_allowed=also)

        result = run_cell(_read(plan), digest=sha256, cell=cell, open_bench=open_bench)
    path = write_result(result, results)
    typer.echo(f"{path}: {len(result.seen.observations)} runs" + (", a failure of ours" if result.problem else ""))


def report(
    plan: PlanOption,
    sha256: ShaOption,
    results: ResultsOption = Path("results"),
    json: Annotated[Path | None, typer.Option("--json", help="Write the JSON document here.", metavar="FILE")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page here.", metavar="FILE")] = None,
    comment: Annotated[Path | None, typer.Option(help="Write the Markdown comment here.", metavar="FILE")] = None,
) -> None:
    """Job 3: judge what the cells showed; for a plan made from an event, answer on the issue."""
    step = actions.step_of(os.environ)
    job = read_plan(_read(plan), sha256)
    case = open_case(job)
    forge = github.forge(os.environ) if case.run is not None else None
    try:
        made = judged(
            case, read_results(results, job.cells, sha256), open_catalogue(default_root() / "catalogue", ())
        )
    except InfraError as error:
        _tell(step, forge, case, str(error))
        raise
    text = write_report(made, Outputs(json=json, html=html, comment=comment))
    actions.add_summary(step, text)
    url = _post(forge, case, made) if forge is not None else ""
    actions.set_outputs(step, {"verdict": str(made.verdict.kind), "comment-url": url})
    if not step.output:
        terminal.show(made, text)


def _tell(step: actions.Step, forge: Forge | None, case: Case, why: str) -> None:
    actions.set_outputs(step, {"verdict": "", "comment-url": ""})
    if forge is not None:
        terminal.say(answer.deliver_failure(forge, case, why).said)


def _post(forge: Forge, case: Case, made: Report) -> str:
    delivered = answer.deliver(forge, case, made)
    terminal.say(delivered.said)
    return delivered.url


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
