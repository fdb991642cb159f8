"""``reprobot sweep`` and ``reprobot ledger``: put the parts of a sweep together."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from bot.cli import terminal
from bot.cli.context import get_now, open_local_catalogue, read_settings_file
from bot.cli.daemon import attach_if_allowed, check_repository, lock_folder, make_plan_runner
from bot.cli.shards import MAX_SHARDS, make_result_reader, write_plans
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


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What a call of ``reprobot sweep`` asks for."""

    tracker: str
    """A repository, or a folder of Markdown files."""
    out: Path
    selection: Selection
    budget: SweepBudget
    merge: tuple[Path, ...] = ()
    jobs: int | None = None
    ledger: Path | None = None
    cluster: str = ""
    only_estimate: bool = False
    settings_file: Path | None = None
    post: bool = False
    plans: Path | None = None
    results: Path | None = None
    shards: int = 20
    duplicates: bool = False

    @property
    def folder(self) -> Path | None:
        """The folder of the issues. None for a repository."""
        return Path(self.tracker) if Path(self.tracker).is_dir() else None

    @property
    def runs(self) -> Path:
        """The file of the ledger of runs."""
        return self.ledger or self.out / "runs.sqlite"


def run_sweep(request: SweepRequest, processes: CellProcesses) -> None:
    """Answer the issues of a tracker, or merge the answers of other sweeps. Close ``processes``, which run cells."""
    if request.merge:
        return _merge_sweeps(request.tracker, request.out, request.merge)
    if request.cluster:
        check_address(request.cluster)
    if request.post and request.folder is not None:
        raise UserError(f"{request.tracker} is a folder, which takes no comments: leave out --post")
    forge = None if request.folder is not None else _open_forge(post=request.post)
    pause = _make_pause(time.monotonic(), request.budget.seconds)
    with (
        lock_folder(request.out),
        closing(processes),
        closing(open_tracker_state(request.out / STATE)) as kept,
    ):
        sweep = _open_sweep(request, forge, kept, processes, pause)
        issues, tasks = list_tasks(sweep, request.selection)
        hint = " (each is a Markdown file, .md)" if request.folder is not None and not issues else ""
        terminal.print_message(f"{sweep.source.name}: {len(issues)} issues{hint}")
        if request.only_estimate:
            rows = list(kept.list_rows().values())
            expected = estimate_cost(
                (task.reason or TEXT for task in tasks), rows, jobs=sweep.jobs, remote=forge is not None
            )
            return _print_lines(describe_estimate(expected))
        if request.plans is not None:
            return _write_plans(sweep, tasks, request.plans, request.shards)
        summary = sweep_tracker(sweep, issues, tasks)
        refresh_fates(FateReader(source=sweep.source, state=kept, now=get_now, log=sweep.log), issues)
        if request.duplicates:
            _confirm_duplicates(sweep)
        write_dashboard(request.out, sweep.source.name, kept, summary, sweep.catalogue, now=get_now())
        _print_lines(describe_summary(summary))
        if request.post and forge is not None:
            _post_answers(forge, sweep, issues, pause)
        terminal.print_message(f"dashboard: {request.out / 'index.html'}")
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
    with lock_folder(out), ExitStack() as opened:
        state, *others = (opened.enter_context(closing(open_tracker_state(one / STATE))) for one in (out, *folders))
        count = merge_answers(state, out, list(zip(others, folders, strict=True)))
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
    request: SweepRequest,
    forge: GithubForge | None,
    state: TrackerState,
    processes: CellProcesses,
    pause: Callable[[float], None],
) -> TrackerSweep:
    runs = request.runs
    open_run_ledger(runs).close()  # refuse a file that is not a ledger before any work
    text = read_settings_file(request.settings_file) if request.settings_file is not None else None
    source: IssueSource
    if forge is None:
        assert request.folder is not None
        source = FolderSource(folder=request.folder, today=get_now().date())
    else:
        name = check_repository(request.tracker)
        source = GithubSource(
            name=name,
            forge=forge,
            pages=state,
            count_requests=forge.count_requests,
            pause=pause,
            log=terminal.print_message,
            url=os.environ.get("GITHUB_SERVER_URL", "https://github.com"),
        )
        text = text if request.settings_file is not None else forge.fetch_settings(name)
    settings = load_settings(text, {})
    if request.results is not None:
        run_plan = make_result_reader(request.results, request.shards, _refuse_shards(forge, request.shards))
    else:
        run_plan = make_plan_runner(processes, frozenset(), runs, request.cluster)
    return TrackerSweep(
        source=source,
        settings=settings,
        catalogue=open_local_catalogue(),
        state=state,
        out=request.out,
        attach=(lambda issue: attach_if_allowed(issue, settings)) if forge is not None else (lambda issue: issue),
        run_plan=run_plan,
        is_elsewhere=request.results is not None,
        now=get_now,
        clock=time.monotonic,
        read_cpu=processes.measure_cpu,
        measure_ledger=lambda: runs.stat().st_size,
        log=terminal.print_message,
        jobs=request.jobs or os.cpu_count() or 1,
        budget=request.budget,
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
    with closing(open_run_ledger(ledger)) as runs:
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
        with lines.open("rb") as file, closing(open_run_ledger(ledger)) as runs:
            count = runs.import_lines(file)
    except OSError as error:
        raise UserError(f"{lines} cannot be read: {error.strerror}") from None
    terminal.print_message(f"{count} runs added to {ledger}")
