"""The jobs of a workflow: ``plan`` reads, ``probe`` runs, ``commits`` ranks, ``report`` answers.

``probe`` and ``commits`` hold no token.
"""

from __future__ import annotations

import json as json_
import os
from pathlib import Path

import msgspec
import typer

from bot.cli import terminal
from bot.cli.context import (
    attach_files,
    get_now,
    open_late_log,
    open_local_catalogue,
    open_local_workbench,
    read_issue,
    read_settings_file,
)
from bot.cli.preflight import check_results
from bot.cli.shards import run_shard
from bot.forge import actions
from bot.forge.github import fetch_workflow_run, open_forge
from bot.forge.workflow_run import COMMITS_JOB, refuse_artifact, refuse_unproven
from bot.report.files import Outputs, save_report, write_file
from bot.report.quote import escape_prose
from bot.requests.conversation import HandledRequest, RequestContext
from bot.requests.deliver import deliver_failure, deliver_report, render_failure
from bot.requests.handle import handle_request
from bot.requests.plan_file import Case, SealedPlan, decode_case, judge_results, plan_issue
from bot.requests.request import IgnoredEvent, read_request
from bot.requests.result_files import read_plain_file, read_results
from bot.settings import load_settings
from bot.suspects.commits_file import (
    FILE as COMMITS_FILE,
    CommitsFile,
    Unranked,
    make_commits_file,
    read_commits_file,
)
from runners.cells.run import check_machine, run_cell
from runners.core.errors import InfraError, ReprobotError, UserError
from runners.core.job_files import read_plan, write_result
from runners.core.protocol import MAX_PLAN_BYTES, JobCell
from runners.workbench import Workbench

TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_CACHE_URL")
UNJUDGED = "the results could not be judged, by a fault of Reprobot; the log of the workflow run shows where"


def run_plan(issue: str | None, out: Path, settings: Path | None) -> None:
    """Read the issue, choose the runs, and write the plan to ``out``, in the job ``plan``."""
    step = actions.read_step(os.environ)
    handled = _plan_event(step) if issue is None else _plan_source(issue, settings, step)
    sealed = handled.sealed
    if sealed is not None:
        write_file(out, sealed.data.decode())
    actions.set_outputs(
        step,
        {
            "act": "true" if sealed else "false",
            "issue": str(handled.number or ""),
            "sha256": sealed.sha256 if sealed else "",
            "cells": json_.dumps(sealed.group_cells() if sealed else {}, separators=(",", ":")),
            "commits": "true" if sealed is not None and sealed.case.settings.commits else "false",
        },
    )
    actions.add_summary(step, "\n\n".join(handled.messages))
    for message in handled.messages:
        terminal.print_message(message)
    if sealed is not None:
        typer.echo(json_.dumps({"sha256": sealed.sha256, "cells": sealed.group_cells()}))


def _plan_event(step: actions.ActionsStep) -> HandledRequest:
    payload, forge = actions.read_event(step), open_forge(os.environ)
    catalogue, now = open_local_catalogue(), get_now()
    settings = load_settings(forge.fetch_settings(step.repository), step.inputs)
    request = read_request(
        step.event, payload, settings=settings, login=forge.get_login(), now=now, repository=step.repository
    )
    if isinstance(request, IgnoredEvent):
        return report_ignored(request)
    context = RequestContext(
        forge=forge,
        settings=settings,
        catalogue=catalogue,
        now=now,
        run_id=step.run_id,
        run_url=step.run_url,
        repeats=not step.run_id.endswith(".1"),
        attach=lambda issue: attach_files(issue, settings.toolchain),
    )
    return handle_request(context, request)


def report_ignored(event: IgnoredEvent) -> HandledRequest:
    """Return why an event is ignored as Markdown for the job's summary. The reason may quote the event."""
    return HandledRequest(number=0, messages=(f"nothing to do: {escape_prose(event.why)}",))


def _plan_source(source: str, file: Path | None, step: actions.ActionsStep) -> HandledRequest:
    """Plan an issue that is named on the command line, for a cluster or for inspection."""
    settings = load_settings(read_settings_file(file) if file else None, step.inputs)
    issue = read_issue(source, settings.toolchain, attach=None if settings.attachments else False)
    planned = plan_issue(issue, settings, open_local_catalogue())
    sealed = planned if isinstance(planned, SealedPlan) else None
    message = "nothing to run" if sealed is None else "planned"
    return HandledRequest(number=issue.number or 0, messages=(message,), sealed=sealed)


def run_probe(plan: Path, sha256: str, cell: str, results: Path) -> None:
    """Run one cell of the plan in sandboxes, in the job ``probe``. Refuse to hold a token."""
    _refuse_tokens("runs strangers' code")
    check_machine(os.environ)
    check_results(results)
    if plan.is_dir():
        return run_shard(plan, sha256, cell, results)
    catalogue = open_local_catalogue()
    with terminal.show_progress() as sink:

        def open_bench(one: JobCell) -> Workbench:
            return open_local_workbench(one.sandbox, catalogue, sink, allow=one.allow)

        result = run_cell(_read_plan_file(plan), digest=sha256, cell=cell, open_bench=open_bench)
    path = write_result(result, results)
    typer.echo(f"{path}: {len(result.seen.observations)} runs" + (", a failure of ours" if result.problem else ""))


def _refuse_tokens(does: str) -> None:
    if held := [name for name in TOKENS if os.environ.get(name)]:
        raise UserError(f"{held[0]} is set: a process that {does} must hold no token; unset it")


def run_commits(plan: Path, sha256: str, results: Path) -> None:
    """Rank the commits of the changes that the results show, in the job ``commits``. Refuse to hold a token."""
    _refuse_tokens("reads a compiler's repository and unproven results")
    job = read_plan(_read_plan_file(plan), sha256)
    case, catalogue = decode_case(job), open_local_catalogue()
    history = open_late_log(case.plan.testcase.toolchain, catalogue)
    file = make_commits_file(sha256)
    if history is not None:
        try:
            report = judge_results(case, read_results(results, job.cells, sha256), catalogue, history=history)
        except InfraError as error:  # no run gave an answer: the report states this
            terminal.print_message(str(error))
        else:
            problem = Unranked.FETCH if history.problem else Unranked.RANGE if report.unranked else None
            file = make_commits_file(sha256, report.bisections, report.likely, problem)
            if report.unranked:
                terminal.print_message(f"the commits are not ranked: {report.unranked}")
    results.mkdir(parents=True, exist_ok=True)
    write_file(results / COMMITS_FILE, msgspec.json.encode(file).decode())
    count = sum(len(one.suspects) for one in file.changes) + len(file.likely.suspects if file.likely else ())
    typer.echo(f"{results / COMMITS_FILE}: {count} commits")


def run_report(
    plan: Path, sha256: str, results: Path, *, json: Path | None, html: Path | None, comment: Path | None
) -> None:
    """Judge the results of all cells, in the job ``report``. For a plan made from an event, answer on the issue."""
    step = actions.read_step(os.environ)
    job = read_plan(_read_plan_file(plan), sha256)
    case = decode_case(job)
    forge = open_forge(os.environ) if case.run is not None else None
    refused: dict[str, str] = {}
    is_proven = True

    def give_up(why: str) -> None:
        actions.set_outputs(step, {"verdict": "", "comment-url": ""})
        actions.add_summary(step, render_failure(why))
        if forge is not None:
            terminal.print_message(deliver_failure(forge, case, why).message)

    try:
        if forge is not None and step.run_id:
            run = fetch_workflow_run(forge, step.repository, step.run_id.partition(".")[0])
            refused = refuse_unproven([cell.id for cell in job.cells], run)
            is_proven = refuse_artifact(COMMITS_JOB, COMMITS_JOB, run) is None
        read = read_results(results, job.cells, sha256, refused)
        ranking = read_ranking(results, case, sha256, is_proven=is_proven)
        report = judge_results(case, read, open_local_catalogue(), ranking=ranking)
        written = save_report(report, Outputs(json=json, html=html, comment=comment))
    except (InfraError, UserError) as error:
        give_up(str(error))
        raise
    except Exception:  # results are claims of strangers: whatever they break, the issue gets an answer
        give_up(UNJUDGED)
        raise
    actions.add_summary(step, written.comment)
    url = ""
    if forge is not None:
        try:
            delivery = deliver_report(forge, case, report)
        except ReprobotError:  # the forge refuses: what it took may be the answer
            raise
        except Exception:
            give_up(UNJUDGED)
            raise
        terminal.print_message(delivery.message)
        url = delivery.url
    actions.set_outputs(step, {"verdict": str(report.verdict.kind), "comment-url": url})
    if not step.output:
        terminal.show_report(report, written.comment)
    if written.problems:
        raise UserError("; ".join(written.problems))


def read_ranking(results: Path, case: Case, sha256: str, *, is_proven: bool) -> CommitsFile | None:
    """Return the ranking of the job ``commits``; None if the settings want none, or outside of a GitHub job."""
    data = next(
        filter(None, (read_plain_file(results / at, COMMITS_FILE) for at in ("", f"cell-{COMMITS_JOB}"))), None
    )
    if not case.settings.commits or (data is None and case.run is None):
        return None
    return read_commits_file(data if isinstance(data, bytes) and is_proven else None, sha256)


def _read_plan_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_PLAN_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
