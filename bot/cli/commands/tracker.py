"""Commands that answer a whole tracker, and the ledger of its runs."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from bot.cli.options import StateOption, refuse_ignored

MIN_POLL_S = 5
MAX_JOBS = 256
"""Largest number of issues that a sweep runs at the same time."""


def run_watch(
    repositories: Annotated[list[str], typer.Argument(metavar="OWNER/REPO…", help="Repositories to answer in.")],
    state: StateOption = Path("reprobot-state"),
    every: Annotated[float, typer.Option(help="Seconds between two polls.", min=MIN_POLL_S, metavar="SECONDS")] = 60,
    listen: Annotated[
        str | None,
        typer.Option(
            help="Also receive webhooks at this address, signed with REPROBOT_WEBHOOK_SECRET.", metavar="HOST:PORT"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Investigations at the same time.", min=1, max=64)] = 1,
    machine: Annotated[
        list[str] | None,
        typer.Option(help="Kind of this machine, as named in the settings; repeatable.", metavar="NAME"),
    ] = None,
) -> None:
    """Answer issues and commands as a long-running process, until stopped. A restart continues after a crash."""
    from bot.cli import daemon

    daemon.run_watch(repositories, state, every, listen, jobs, frozenset(machine or ()))


def run_sweep(
    given: typer.Context,
    tracker: Annotated[
        str, typer.Argument(metavar="OWNER/REPO|DIR", help="Repository, or folder of Markdown files with issues.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the dashboard, the reports and the state.", metavar="DIR")
    ] = Path("reprobot-sweep"),
    state: Annotated[
        Literal["open", "closed", "all"], typer.Option(help="State of the issues. The newest come first.")
    ] = "open",
    label: Annotated[
        list[str] | None,
        typer.Option(help="Only issues with this label; repeatable, for all of them.", metavar="NAME"),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            help="Only issues that changed since this date; in a folder, that were created since.",
            formats=["%Y-%m-%d"],
            metavar="DATE",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Most issues, newest first.", min=1)] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Issues at the same time; by default one for each core.", min=1, max=MAX_JOBS)
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Start no issue after so many minutes.", min=0)] = None,
    runs: Annotated[int | None, typer.Option(help="Start no issue after so many runs.", min=1)] = None,
    requests: Annotated[
        int | None, typer.Option(help="Start no issue after so many requests to GitHub.", min=1)
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger of runs, which several sweeps may share; by default DIR/runs.sqlite.", metavar="FILE"
        ),
    ] = None,
    cluster: Annotated[
        str,
        typer.Option(
            help="Run on the workers of a Dask scheduler, tls://HOST:PORT; needs the package distributed.",
            metavar="ADDRESS",
        ),
    ] = "",
    shard: Annotated[
        str, typer.Option(help="Only each Nth issue of the list, from the Ith, for N machines.", metavar="I/N")
    ] = "1/1",
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Take over the answers of the sweep in this folder; repeatable.", metavar="DIR"),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only list the issues, and estimate runs, time and requests.")
    ] = False,
    settings: Annotated[
        Path | None,
        typer.Option(help="Settings file, as .github/reprobot.yml; by default the repository's.", metavar="FILE"),
    ] = None,
    post: Annotated[
        bool,
        typer.Option("--post", help="Also write first answers on the issues, and edit changed ones; needs a token."),
    ] = False,
    plans: Annotated[
        Path | None,
        typer.Option(help="Only plan: write the plans into DIR, for `probe` on other machines.", metavar="DIR"),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Run nothing: take the result files that `probe` wrote for the plans.", metavar="DIR"),
    ] = None,
    shards: Annotated[
        int,
        typer.Option(
            help="With --plans, the most shards; with --results, the number that was printed.", min=1, max=256
        ),
    ] = 20,
    duplicates: Annotated[
        bool,
        typer.Option(
            "--duplicates", help="Minimise the testcases of issues that behave alike; run each on the other's builds."
        ),
    ] = False,
    closed: Annotated[bool, typer.Option("--closed", help="Same as --state all.", hidden=True)] = False,
) -> None:
    """Run the testcases of a whole tracker, and write a dashboard. Makes only the runs whose result can have changed.

    Writes files only, unless --post is given. A stopped sweep continues where it was.
    """
    from runners.cells.processes import CellProcesses

    for mode in filter(given.params.get, _IGNORED):
        refuse_ignored(given, f"--{mode}", _IGNORED[mode])
    if not (plans or results):
        refuse_ignored(given, "a sweep that neither writes --plans nor takes --results", {"shards"})
    with closing(CellProcesses(os.environ)) as processes:
        if not (merge or estimate or plans or results):
            processes.start_ahead()
        from bot.cli import tracker as sweeps

        request = sweeps.SweepRequest(
            tracker=tracker,
            out=out,
            selection=sweeps.make_selection("all" if closed else state, label or [], since, limit, shard),
            budget=sweeps.make_budget(minutes, runs, requests),
            merge=tuple(merge or ()),
            jobs=jobs,
            ledger=ledger,
            cluster=cluster,
            only_estimate=estimate,
            settings_file=settings,
            post=post,
            plans=plans,
            results=results,
            shards=shards,
            duplicates=duplicates,
        )
        sweeps.run_sweep(request, processes)


_RUNS = frozenset({"runs", "requests", "cluster", "duplicates"})
"""Options of a sweep that runs testcases."""
_SELECTION = frozenset({"state", "label", "since", "limit", "shard", "closed"})
_IGNORED = {
    "merge": _RUNS
    | _SELECTION
    | {*("jobs", "minutes", "ledger", "settings", "estimate", "post")}
    | {"plans", "results"},
    "estimate": _RUNS | {"post", "plans", "results"},
    "plans": _RUNS | {"jobs", "post", "results"},
    "results": {"cluster", "duplicates"},
}
"""Option that chooses another kind of sweep → the options that have no effect there."""


ledger_app = typer.Typer(rich_markup_mode=None, help="Copy recorded runs between ledgers.", no_args_is_help=True)
LedgerArgument = Annotated[Path, typer.Argument(metavar="LEDGER", help="Ledger of runs, as sweep --ledger.")]


@ledger_app.command(name="export")
def run_export(
    ledger: LedgerArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="File for the lines; by default standard output.", metavar="FILE")
    ] = None,
) -> None:
    """Write every recorded run as a line of JSON."""
    from bot.cli import tracker

    tracker.export_runs(ledger, out)


@ledger_app.command(name="import")
def run_import(
    ledger: LedgerArgument,
    lines: Annotated[Path, typer.Argument(metavar="LINES", help="File that `ledger export` wrote.")],
) -> None:
    """Add recorded runs to a ledger. Runs that it has stay. Verdicts rest on runs: import trusted runs only."""
    from bot.cli import tracker

    tracker.import_runs(ledger, lines)
