"""The command line's app: every command with its arguments.

A command imports the parts that it needs when it runs, so that ``reprobot --help`` and each command start without the
parts of the others. The work of a command is in ``verbs.py``, ``jobs.py`` or ``daemon.py``, its output in
``terminal.py``.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot.cli.options import (
    COMPILERS,
    AllowOption,
    CommandOnCompilers,
    CommentOption,
    FetchOption,
    HistoryOption,
    HtmlOption,
    ImageOption,
    IssueArgument,
    JsonOption,
    PlanOption,
    ResultsOption,
    SandboxOption,
    ShaOption,
    StateOption,
    TimeoutOption,
    ToolchainOption,
    WheelsOption,
)
from runners.core.bench import MOST_PROBES, MOST_SECONDS

if TYPE_CHECKING:
    from bot.verdict.verdict import Report

app = typer.Typer(
    name="reprobot",
    help="Answer a bug report for an ML compiler: run its testcase on many releases, and report a verdict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's boxes cut long option names, and take half of the time of --help
)

MIN_POLL_S = 5
MAX_JOBS = 256
"""Largest number of issues that a sweep runs at the same time."""


def _make_absolute(folders: list[str] | None) -> tuple[str, ...]:
    return tuple(str(Path(folder).expanduser().absolute()) for folder in folders or ())


def _finish_report(report: Report, json: Path | None, html: Path | None, comment: Path | None) -> None:
    from bot.cli import terminal
    from bot.report.files import Outputs, save_report
    from runners.core.errors import UserError

    written = save_report(report, Outputs(json=json, html=html, comment=comment))
    terminal.show_report(report, written.comment)
    if written.problems:
        raise UserError("; ".join(written.problems))


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib import metadata

        typer.echo(f"reprobot {metadata.version('reprobot')}")
        raise typer.Exit


@app.callback()
def _set_globals(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version, and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Answer a bug report for an ML compiler: run its testcase on many releases, and report a verdict."""


@app.command(
    name="reproduce", short_help="Run an issue's testcase on releases, and report a verdict.", cls=CommandOnCompilers
)
def run_reproduce(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    versions: Annotated[
        str | None,
        typer.Option(
            help="Releases to run: '0.25.0,0.26.0', '3.4.0..3.8.0', '>=3.4,<3.8', 'latest' or 'all'.",
            metavar="LIST|RANGE",
        ),
    ] = None,
    devices: Annotated[
        str, typer.Option(help="Run on these devices too, separated by commas: 'vulkan'.", metavar="LIST")
    ] = "",
    bisect: Annotated[
        bool, typer.Option("--bisect/--no-bisect", help="Search for the releases where the behaviour changes.")
    ] = True,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    wheels: WheelsOption = None,
    history: HistoryOption = None,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Also reduce the testcase to the part that its failure needs.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run the testcase even if the text reports no failure.")
    ] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Run an issue's testcase on releases, in sandboxes, and report a verdict with its range of releases."""
    from bot.cli import context
    from bot.cli.preflight import check_outputs

    allowed, folders = tuple(allow or ()), _make_absolute(wheels)
    context.check_names(toolchain, sandbox, allowed)
    check_outputs(json, html, comment)
    catalogue = context.open_local_catalogue(folders)
    opening = context.begin_opening(sandbox, catalogue, image=image, allow=allowed, history=str(history or ""))
    from bot.cli import terminal, verbs  # beside the opening, which mostly waits
    from bot.plan import RunOptions

    options = RunOptions(
        versions=versions,
        devices=tuple(name for name in devices.replace(" ", "").split(",") if name),
        bisect=bisect,
        timeout_s=timeout,
        sandbox=sandbox,
        image=image,
        allowed=allowed,
        wheels=folders,
        history=str(history or ""),
        minimize=minimize,
        anyway=anyway,
    )
    read = context.read_issue(issue, toolchain, attach=fetch_attachments)
    with terminal.show_progress() as sink:
        report = verbs.reproduce_issue(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=lambda: opening.get_bench(sink),
            history=context.open_named_log(history),
            say=sink.say,
        )
    _finish_report(report, json, html, comment)


@app.command(
    name="bisect", short_help="Find the nightly or the commit that changes the behaviour.", cls=CommandOnCompilers
)
def run_bisect(
    issue: IssueArgument,
    good: Annotated[str, typer.Option(help="A version, tag or commit that passes.", metavar="V")],
    bad: Annotated[str, typer.Option(help="A version, tag or commit that fails as reported.", metavar="V")],
    toolchain: ToolchainOption = None,
    history: HistoryOption = None,
    minutes: Annotated[
        float | None, typer.Option(help="Limit for the search, in minutes (240).", min=1, max=10_000, metavar="N")
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs at the same time.", min=1, max=64, metavar="N")] = 2,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    wheels: WheelsOption = None,
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Find the nightly or the commit between two versions where the behaviour changes, as far as builds exist."""
    from bot.cli import context, terminal, verbs
    from bot.cli.preflight import check_outputs
    from bot.plan import RunOptions
    from runners.core.errors import UserError
    from runners.core.protocol import Budget

    options = RunOptions(
        ends=(good, bad),
        history=str(history or ""),
        minutes=minutes,
        timeout_s=timeout,
        sandbox=sandbox,
        image=image,
        allowed=tuple(allow or ()),
        wheels=_make_absolute(wheels),
        budget=Budget(workers=workers),
    )
    context.check_names(toolchain, options.sandbox, options.allowed)
    check_outputs(json, html, comment)
    if good == bad:
        raise UserError(f"--good and --bad are both {good}: name a version that passes and a version that fails")
    read = context.read_issue(issue, toolchain, attach=fetch_attachments)
    catalogue = context.open_local_catalogue(options.wheels)
    with terminal.show_progress() as sink:
        report = verbs.bisect_issue(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=context.prepare_bench(options, catalogue, sink),
            history=context.open_named_log(history),
        )
    _finish_report(report, json, html, comment)


@app.command(
    name="suspects", short_help="Rank the commits of a range by relation to an issue.", cls=CommandOnCompilers
)
def run_suspects(
    issue: IssueArgument,
    toolchain: Annotated[str, typer.Option(help=f"{COMPILERS}.", metavar="NAME")],
    start: Annotated[
        str, typer.Option("--from", help="Start of the range, exclusive: a release, tag or commit.", metavar="REV")
    ],
    end: Annotated[str, typer.Option("--to", help="End of the range, inclusive.", metavar="REV")],
    history: HistoryOption = None,
    json: JsonOption = None,
) -> None:
    """Rank the commits of a range by how related they are to an issue. Runs no testcase, and is no evidence."""
    from bot.cli import context, terminal, verbs
    from bot.cli.preflight import check_outputs
    from bot.issue import is_remote
    from bot.report.document import format_json, make_suspects_document
    from bot.report.files import write_file
    from runners.toolchains import find_toolchain

    find_toolchain(toolchain)
    check_outputs(json)
    catalogue = context.open_local_catalogue()
    verbs.check_order(toolchain, start, end, catalogue)
    read = context.read_issue(issue, toolchain)
    commits, related = verbs.find_suspects(
        read,
        toolchain=toolchain,
        start=start,
        end=end,
        catalogue=catalogue,
        history=context.open_named_log(history) or context.open_commit_log(toolchain, catalogue, (start, end)),
        dated=is_remote(issue) or read.created < context.get_now().date(),
    )
    if json is not None:
        write_file(json, format_json(make_suspects_document(commits, related)))
    terminal.show_suspects(commits, related)


@app.command(
    name="minimize", short_help="Reduce an issue's testcase to what its failure needs.", cls=CommandOnCompilers
)
def run_minimize(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    version: Annotated[
        str | None,
        typer.Option(help="Release for the reduction; by default the newest that fails.", metavar="V"),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(help="A release on which every step must pass; needed for some wrong results.", metavar="V"),
    ] = None,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    probes: Annotated[int, typer.Option(help="Limit for the number of runs.", min=5, max=10_000)] = MOST_PROBES,
    minutes: Annotated[float, typer.Option(help="Limit for the time, in minutes.", min=0.1, max=600)] = MOST_SECONDS
    / 60,
    timeout: TimeoutOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    json: JsonOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the longest file of the smaller testcase to FILE.", metavar="FILE")
    ] = None,
) -> None:
    """Reduce an issue's testcase to the part that its failure needs; each step must keep the same failure."""
    from bot.cli import context, terminal, verbs
    from bot.cli.preflight import check_outputs
    from bot.plan import RunOptions
    from bot.report.document import format_json, make_smaller_document
    from bot.report.files import write_file

    options = RunOptions(
        versions=version, timeout_s=timeout, sandbox=sandbox, image=image, allowed=tuple(allow or ())
    )
    context.check_names(toolchain, options.sandbox, options.allowed)
    check_outputs(json, out)
    read = context.read_issue(issue, toolchain, attach=fetch_attachments)
    catalogue = context.open_local_catalogue()
    with terminal.show_progress() as sink:
        smaller = verbs.minimize_testcase(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=context.prepare_bench(options, catalogue, sink),
            good=good,
            probes=probes,
            seconds=60 * minutes,
        )
    if json is not None:
        write_file(json, format_json(make_smaller_document(read, smaller)))
    if out is not None:
        write_file(out, max(smaller.testcase.files.values(), key=len, default=""))
    terminal.show_smaller(smaller)


@app.command(name="extract", short_help="Show an issue's testcase, missing parts and claim.", cls=CommandOnCompilers)
def run_extract(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    json: JsonOption = None,
) -> None:
    """Extract an issue's testcase, its missing parts, and the reporter's claim. Runs no testcase."""
    from bot.cli import context, terminal
    from bot.cli.preflight import check_outputs
    from bot.extract import extract
    from bot.report.document import format_json, make_extract_document
    from bot.report.files import write_file
    from runners.core.packages.requirements import parse_allowance

    check_outputs(json)
    read = context.read_issue(issue, toolchain, attach=fetch_attachments)
    extraction = extract(read, toolchain=toolchain, allowed=parse_allowance(allow or []))
    text = format_json(make_extract_document(read, extraction))
    if json is None:
        terminal.write_stdout(text + "\n")
    else:
        write_file(json, text)


@app.command(name="doctor", short_help="Check which parts of Reprobot work on this machine.")
def run_doctor(json: JsonOption = None) -> None:
    """Check this machine: which parts of Reprobot work here, and why the others do not."""
    import msgspec

    from bot.cli import terminal
    from bot.cli.preflight import check_outputs
    from bot.report.document import format_json
    from bot.report.files import write_file
    from runners.doctor import check_machine_parts

    check_outputs(json)
    checks = check_machine_parts()
    if json is not None:
        write_file(json, format_json({"schema": 1, "checks": [msgspec.to_builtins(check) for check in checks]}))
    terminal.show_checks(checks)


@app.command(name="clean", short_help="Remove leftovers of runs, and cached environments.")
def run_clean(
    keep: Annotated[
        float | None,
        typer.Option(help="Keep this many GiB of environments, the most recently used.", min=0, metavar="GIB"),
    ] = None,
) -> None:
    """Remove leftovers of runs, and the cached environments: all, or those over --keep."""
    from runners.environments.store import default_root, open_store
    from runners.sandbox.select import remove_leftovers, remove_skeleton

    for leftover in remove_leftovers():
        typer.echo(f"removed {leftover}")
    store = open_store(default_root())
    if keep is None and not remove_skeleton():
        typer.echo("kept podman's base directory: a probe is running in it. Clean again when the probe has ended")
    freed = store.clean() if keep is None else store.trim(int(keep * 2**30))
    typer.echo(f"freed {freed / 2**20:.0f} MiB in {default_root()}")


@app.command(name="refresh", short_help="Ask the package index and nightly indexes for new builds.")
def run_refresh() -> None:
    """Ask the package index and the configured sources for builds that the catalogue does not have yet."""
    from bot.cli import terminal
    from runners.environments.refresh import refresh_catalogue

    with terminal.show_progress() as sink:
        for name, count in refresh_catalogue(sink):
            typer.echo(f"{name}: {count} releases known")


@app.command(name="plan", short_help="Job plan: read the issue and write plan.json.")
def run_plan(
    issue: Annotated[
        str | None,
        typer.Argument(metavar="[ISSUE]", help="As for reproduce; by default the event of this GitHub Actions step."),
    ] = None,
    out: Annotated[Path, typer.Option("--plan", help="Write the plan to FILE.", metavar="FILE")] = Path("plan.json"),
    settings: Annotated[
        Path | None,
        typer.Option(help="Settings file for ISSUE, as .github/reprobot.yml; an event uses the repository's."),
    ] = None,
) -> None:
    """Job plan: read the issue, choose the runs, and write plan.json. Runs no testcase."""
    from bot.cli import jobs

    jobs.run_plan(issue, out, settings)


@app.command(name="probe", short_help="Job probe: run one cell of the plan, in sandboxes.")
def run_probe(
    plan: PlanOption,
    sha256: ShaOption,
    cell: Annotated[
        str, typer.Option(help="Cell of the plan to run; of the plans of a sweep, the shard.", metavar="ID")
    ],
    results: ResultsOption = Path("results"),
) -> None:
    """Job probe: run one cell of the plan in sandboxes and write results/<cell>.json. Refuses to hold a token.

    If the plan is a folder, which `sweep --plans` wrote, run all plans of the shard that --cell names.
    """
    from bot.cli import jobs

    jobs.run_probe(plan, sha256, cell, results)


@app.command(name="commits", short_help="Job commits: rank the commits of the changes.")
def run_commits(plan: PlanOption, sha256: ShaOption, results: ResultsOption = Path("results")) -> None:
    """Job commits: clone the compiler's repository without file contents, rank the commits of the changes that the
    results show, and write results/commits.json. Runs no testcase. Refuses to hold a token."""
    from bot.cli import jobs

    jobs.run_commits(plan, sha256, results)


@app.command(
    name="report", short_help="Make an issue of a SCRIPT; or job report: judge the results.", cls=CommandOnCompilers
)
def run_report(
    script: Annotated[
        list[Path] | None,
        typer.Argument(metavar="SCRIPT [FILE…]", help="A script that fails (.py or .sh), and the files it needs."),
    ] = None,
    toolchain: ToolchainOption = None,
    version: Annotated[
        str, typer.Option(help="Release on which the script fails; by default the newest.", metavar="V")
    ] = "",
    title: Annotated[str, typer.Option(help="Title; by default the failure's message.", metavar="TEXT")] = "",
    expected: Annotated[str, typer.Option(help="What should happen instead.", metavar="TEXT")] = "",
    minimize: Annotated[
        bool, typer.Option("--minimize/--no-minimize", help="Reduce the script to what the failure needs.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="Write the issue to FILE; by default to standard output.", metavar="FILE")
    ] = None,
    sandbox: SandboxOption = "auto",
    image: ImageOption = "",
    timeout: TimeoutOption = None,
    allow: AllowOption = None,
    plan: Annotated[Path | None, typer.Option("--plan", help="For the job: the plan file.", metavar="FILE")] = None,
    sha256: Annotated[
        str, typer.Option("--sha256", help="For the job: the plan's sha256, as printed by `plan`.", metavar="HEX")
    ] = "",
    results: ResultsOption = Path("results"),
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Make an issue of a SCRIPT: run and reduce it, and check the newest release. With --plan, job report: answer."""
    from bot.cli.preflight import check_outputs
    from runners.core.errors import UserError

    if plan is not None and not script:
        from bot.cli import jobs

        return jobs.run_report(plan, sha256, results, json=json, html=html, comment=comment)
    if not script or plan is not None:
        raise UserError("name either a script that fails, or the job's --plan and --sha256")
    from bot.cli import bug_report, context, terminal
    from bot.plan import RunOptions
    from bot.report.files import write_file

    run = RunOptions(sandbox=sandbox, image=image, timeout_s=timeout, allowed=tuple(allow or ()))
    context.check_names(toolchain, run.sandbox, run.allowed)
    check_outputs(out)
    files = bug_report.read_files(script)
    options = bug_report.ReportOptions(
        toolchain=bug_report.find_compiler(toolchain, files),
        version=version,
        title=title,
        expected=expected,
        minimize=minimize,
        run=run,
    )
    catalogue = context.open_local_catalogue()
    with terminal.show_progress() as sink:
        made = bug_report.compose_bug_report(
            files,
            options,
            catalogue=catalogue,
            open_bench=context.prepare_bench(run, catalogue, sink),
            today=context.get_now().date(),
        )
    if out is None:
        terminal.write_stdout(made.render())
    else:
        write_file(out, made.render())
        terminal.print_message(f"{out} holds the issue: read it, and paste it into the repository's issue form")


@app.command(name="watch", short_help="Answer issues and commands until stopped.")
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


@app.command(name="sweep", short_help="Run a whole tracker's testcases; write a dashboard.")
def run_sweep(
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

    with closing(CellProcesses(os.environ)) as processes:
        if not (merge or estimate or plans or results):
            processes.start_ahead()
        from bot.cli import tracker as sweeps

        sweeps.run_sweep(
            tracker,
            out,
            sweeps.make_selection("all" if closed else state, label or [], since, limit, shard),
            sweeps.make_budget(minutes, runs, requests),
            merge=merge or [],
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
            processes=processes,
        )


ledger_app = typer.Typer(rich_markup_mode=None, help="Copy recorded runs between ledgers.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")
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
