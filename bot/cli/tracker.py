"""``reprobot sweep`` and ``reprobot ledger``: put the parts of a sweep together."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from bot.cli import terminal
from bot.cli.context import get_now, open_local_catalogue, read_settings_file
from bot.cli.daemon import attach_if_allowed, check_repository, lock_folder, make_plan_runner
from bot.cli.shards import MAX_SHARDS, make_result_reader, write_plans
from bot.daemon.steps import RunPlan
from bot.forge import actions
from bot.forge.contract import Forge
from bot.forge.payloads import replace_surrogates
from bot.forge.workflow_run import refuse_unproven
from bot.issue import Issue
from bot.settings import load_settings
from bot.tracker.cost import SweepSummary, describe_estimate, describe_summary, estimate_cost
from bot.tracker.crosscheck import CrossChecker, confirm_duplicates
from bot.tracker.dashboard import write_dashboard
from bot.tracker.due import TEXT
from bot.tracker.fates import FateReader, refresh_fates
from bot.tracker.post import Posting, post_answers
from bot.tracker.rows import TrackedIssue
from bot.tracker.sources import FolderSource, GithubSource, IssueSource, Selection
from bot.tracker.state import TrackerState, open_tracker_state
from bot.tracker.sweep import SweepBudget, Task, TrackerSweep, list_tasks, merge_answers, plan_tasks, sweep_tracker
from runners.cells.cluster import check_address
from runners.cells.processes import CellProcesses
from runners.core.errors import InfraError, UserError
from runners.workbench.run_ledger import open_run_ledger

if TYPE_CHECKING:  # a sweep of a folder needs no forge, whose client takes a fifth of a second to import
    from bot.forge.github import GithubForge

STATE = "tracker.sqlite"


def make_selection(
    state: Literal["open", "closed", "all"],
    labels: Sequence[str],
    since: datetime | None,
    limit: int | None,
    shard: str,
) -> Selection:
    """Raise UserError for an invalid ``shard``."""
    found = re.fullmatch(r"(\d{1,3})/(\d{1,3})", shard, re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
        raise UserError(f"--shard {shard!r} is no shard: give I/N, as in 1/4, with at most {MAX_SHARDS} shards")
    return Selection(
        state=state,
        labels=tuple(labels),
        since=since.replace(tzinfo=UTC) if since is not None else None,
        limit=limit,
        shard=(int(found[1]), int(found[2])),
    )


def make_budget(minutes: float | None, runs: int | None, requests: int | None) -> SweepBudget:
    return SweepBudget(seconds=60 * minutes if minutes is not None else None, runs=runs, requests=requests)


def run_sweep(
    tracker: str,
    out: Path,
    selection: Selection,
    budget: SweepBudget,
    *,
    merge: Sequence[Path],
    jobs: int | None,
    ledger: Path | None,
    cluster: str,
    only_estimate: bool,
    settings_file: Path | None,
    post: bool,
    plans: Path | None,
    results: Path | None,
    shards: int,
    duplicates: bool,
    processes: CellProcesses,
) -> None:
    """Answer the issues of a tracker, or merge the answers of other sweeps. Close ``processes``, which run cells."""
    if merge:
        return _merge_sweeps(tracker, out, merge)
    if cluster:
        check_address(cluster)
    folder = Path(tracker) if Path(tracker).is_dir() else None
    if post and folder is not None:
        raise UserError(f"{tracker} is a folder, which takes no comments: leave out --post")
    if duplicates and (results is not None or plans is not None):
        raise UserError("--duplicates runs testcases: leave it out of the jobs that run none")
    forge = None if folder is not None else _open_forge(post=post)
    pause = _make_pause(time.monotonic(), budget.seconds)
    runs = ledger or out / "runs.sqlite"
    with lock_folder(out), closing(processes):
        kept = open_tracker_state(out / STATE)
        run_plan = make_plan_runner(processes, frozenset(), runs, cluster)
        cpu = processes.measure_cpu
        sweep = _open_sweep(
            tracker, folder, forge, out, kept, settings_file, runs, run_plan, cpu, jobs, budget, pause
        )
        if results is not None:
            reader = make_result_reader(results, shards, _refuse_shards(forge, shards))
            sweep = replace(sweep, run_plan=reader, is_elsewhere=True)
        issues, tasks = list_tasks(sweep, selection)
        hint = " (each is a Markdown file, .md)" if folder is not None and not issues else ""
        terminal.print_message(f"{sweep.source.name}: {len(issues)} issues{hint}")
        if only_estimate:
            rows = list(kept.list_rows().values())
            expected = estimate_cost(
                (task.reason or TEXT for task in tasks), rows, jobs=sweep.jobs, remote=forge is not None
            )
            return _print_lines(describe_estimate(expected))
        if plans is not None:
            return _write_plans(sweep, tasks, plans, shards)
        summary = sweep_tracker(sweep, issues, tasks)
        refresh_fates(FateReader(source=sweep.source, state=kept, now=get_now, log=sweep.log), issues)
        if duplicates:
            _confirm_duplicates(sweep)
        write_dashboard(out, sweep.source.name, kept, summary, sweep.catalogue, now=get_now())
        _print_lines(describe_summary(summary))
        if post and forge is not None:
            _post_answers(forge, sweep, issues, pause)
        terminal.print_message(f"dashboard: {out / 'index.html'}")
        if summary.failed and not any(kind != "failed" for kind in summary.verdicts):
            raise InfraError("every issue failed: see the messages above")


def _confirm_duplicates(sweep: TrackerSweep) -> None:
    """Compare similar issues by runs of their minimised testcases."""
    checker = CrossChecker(
        settings=sweep.settings, catalogue=sweep.catalogue, run_plan=sweep.run_plan, folder=sweep.out / "work"
    )

    def fetch(issue: TrackedIssue) -> Issue:
        return replace_surrogates(sweep.attach(sweep.source.fetch_issue(issue)))

    count = confirm_duplicates(checker, sweep.state, fetch, sweep.log)
    terminal.print_message(f"{count} pairs of issues that behave alike were compared by runs")


def _write_plans(sweep: TrackerSweep, tasks: Sequence[Task], plans: Path, shards: int) -> None:
    """Write the plans of the issues that need runs, for other machines, and pass them to the next job."""
    index, digest = write_plans(plan_tasks(sweep, tasks), plans, shards)
    matrix = index.list_shards()
    actions.set_outputs(
        actions.read_step(os.environ),
        {
            "act": "true" if matrix else "false",
            "sha256": digest,
            "cells": json.dumps({"any": matrix}, separators=(",", ":")),
            "shards": str(index.shards),
        },
    )
    terminal.print_message(f"{len(index.plans)} plans in {len(matrix)} shards of {index.shards}: {plans}")
    typer.echo(json.dumps({"sha256": digest, "shards": matrix, "of": index.shards}))


def _open_forge(*, post: bool) -> GithubForge:
    from bot.forge.github import open_forge, open_reader

    return open_forge(os.environ) if post else open_reader(os.environ)


def _refuse_shards(forge: GithubForge | None, shards: int) -> dict[str, str]:
    """Return shard → reason for each shard whose artifact has no proven origin. Empty outside of a workflow."""
    step = actions.read_step(os.environ)
    if forge is None or not step.run_id:
        return {}
    from bot.forge.github import fetch_workflow_run

    run = fetch_workflow_run(forge, step.repository, step.run_id.partition(".")[0])
    return refuse_unproven(map(str, range(1, shards + 1)), run)


def _merge_sweeps(tracker: str, out: Path, folders: Sequence[Path]) -> None:
    for folder in folders:
        if not (folder / STATE).is_file():
            raise UserError(f"{folder} has no {STATE}: name folders that sweeps wrote")
    with lock_folder(out):
        state = open_tracker_state(out / STATE)
        count = merge_answers(state, out, [(open_tracker_state(folder / STATE), folder) for folder in folders])
        rows = state.list_rows().values()
        summary = SweepSummary(
            sweep=0,
            listed=len(rows),
            answered=count,
            failed=0,
            unchanged=len(rows) - count,
            verdicts=dict(Counter(row.verdict for row in rows)),
            runs_made=sum(row.work.made for row in rows),
            runs_reused=sum(row.work.reused for row in rows),
            run_s=sum(row.work.run_s for row in rows),
            elsewhere_s=sum(row.work.seconds for row in rows),
        )
        name = Path(tracker).resolve().name if Path(tracker).is_dir() else tracker
        write_dashboard(out, name, state, summary, open_local_catalogue(), now=get_now())
    terminal.print_message(f"{count} answers merged; dashboard: {out / 'index.html'}")


def _open_sweep(
    tracker: str,
    folder: Path | None,
    forge: GithubForge | None,
    out: Path,
    state: TrackerState,
    settings_file: Path | None,
    runs: Path,
    run_plan: RunPlan,
    read_cpu: Callable[[], float],
    jobs: int | None,
    budget: SweepBudget,
    pause: Callable[[float], None],
) -> TrackerSweep:
    open_run_ledger(runs).close()  # refuse a file that is not a ledger before any work
    source: IssueSource
    if forge is None:
        assert folder is not None
        source = FolderSource(folder=folder, today=get_now().date())
        text = read_settings_file(settings_file) if settings_file is not None else None
    else:
        name = check_repository(tracker)
        source = GithubSource(
            name=name,
            forge=forge,
            pages=state,
            count_requests=forge.count_requests,
            pause=pause,
            log=terminal.print_message,
            url=os.environ.get("GITHUB_SERVER_URL", "https://github.com"),
        )
        text = read_settings_file(settings_file) if settings_file is not None else forge.fetch_settings(name)
    settings = load_settings(text, {})
    return TrackerSweep(
        source=source,
        settings=settings,
        catalogue=open_local_catalogue(),
        state=state,
        out=out,
        attach=(lambda issue: attach_if_allowed(issue, settings)) if forge is not None else (lambda issue: issue),
        run_plan=run_plan,
        now=get_now,
        clock=time.monotonic,
        read_cpu=read_cpu,
        measure_ledger=lambda: runs.stat().st_size,
        log=terminal.print_message,
        jobs=jobs or os.cpu_count() or 1,
        budget=budget,
    )


def _make_pause(began: float, seconds: float | None) -> Callable[[float], None]:
    """Return a function that waits, unless the sweep's time would end before."""

    def pause(wait: float) -> None:
        if seconds is not None and time.monotonic() + wait > began + seconds:
            raise InfraError(f"the forge asks to wait for {wait:.0f} s, and the time of the sweep ends before")
        time.sleep(wait)

    return pause


def _print_lines(lines: tuple[str, ...]) -> None:
    for line in lines:
        terminal.print_message(line)


def _post_answers(
    forge: Forge, sweep: TrackerSweep, issues: Sequence[TrackedIssue], pause: Callable[[float], None]
) -> None:
    """Edit the comments whose verdict changed, and write first answers."""
    posting = Posting(
        forge=forge,
        repository=sweep.source.name,
        settings=sweep.settings,
        state=sweep.state,
        out=sweep.out,
        pause=pause,
        now=sweep.now,
        log=sweep.log,
    )
    count = post_answers(posting, [issue.id for issue in issues if not issue.locked])
    terminal.print_message(
        f"{count.created} comments written, {count.edited} edited"
        + (f"; {count.postponed} issues are looked at again by the next sweep" if count.postponed else "")
    )


# ---------------------------------------------------------------------------------------------- the ledger of runs


def export_runs(ledger: Path, out: Path | None) -> None:
    """Write every recorded run as a line of JSON, to standard output if ``out`` is None."""
    if not ledger.is_file():
        raise UserError(f"there is no ledger {ledger}: name the file that a sweep wrote")
    runs = open_run_ledger(ledger)
    if out is None:
        sys.stdout.buffer.writelines(runs.export_lines())
        return
    try:
        with out.open("wb") as file:
            file.writelines(runs.export_lines())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from None
    terminal.print_message(f"{runs.count_runs()} runs in {out}")


def import_runs(ledger: Path, lines: Path) -> None:
    """Add recorded runs to a ledger."""
    try:
        with lines.open("rb") as file:
            count = open_run_ledger(ledger).import_lines(file)
    except OSError as error:
        raise UserError(f"{lines} cannot be read: {error.strerror}") from None
    terminal.print_message(f"{count} runs added to {ledger}")
