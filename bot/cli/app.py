"""The command line's app: commands for one issue on this machine, and commands that look after the machine.

The work of a command is in ``verbs.py``, its output in ``terminal.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bot.cli import daemon, jobs, terminal, verbs
from bot.cli.bug_report import ReportOptions, compose_bug_report, find_compiler, read_files
from bot.cli.context import (
    check_names,
    get_now,
    open_commit_log,
    open_local_catalogue,
    open_local_workbench,
    read_issue,
)
from bot.cli.preflight import check_outputs
from bot.extract import extract
from bot.issue import is_remote
from bot.plan import RunOptions
from bot.report.document import format_json, make_extract_document, make_smaller_document, make_suspects_document
from bot.report.files import Outputs, save_report, write_file
from bot.verdict.verdict import Report
from runners.builds.commit_log import CommitLog, open_log
from runners.core.bench import MOST_PROBES, MOST_SECONDS
from runners.core.catalogue import Catalogue
from runners.core.errors import UserError
from runners.core.progress import Sink
from runners.core.protocol import Budget
from runners.core.requirements import parse_allowance
from runners.doctor import check_machine_parts
from runners.environments.refresh import refresh_catalogue
from runners.environments.store import default_root, open_store
from runners.sandbox.select import remove_leftovers, remove_skeleton, use_image
from runners.toolchains import find_toolchain, list_compilers
from runners.workbench import Workbench

app = typer.Typer(
    name="reprobot",
    help="Answer a bug report for an ML compiler: run its testcase on many releases, and report a verdict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"reprobot {metadata.version('reprobot')}")
        raise typer.Exit


@app.callback()
def _set_globals(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version, and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Answer a bug report for an ML compiler: run its testcase on many releases, and report a verdict."""


IssueArgument = Annotated[
    str,
    typer.Argument(metavar="ISSUE", help="A Markdown file ('# title' first), '-', owner/repo#N, or an issue's URL."),
]
ToolchainOption = Annotated[
    str | None, typer.Option(help=f"{list_compilers()}; by default found from the text.", metavar="NAME")
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Let the testcase install one more package: 'package' or 'import=package'; repeatable.", metavar="NAME"
    ),
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the JSON document to FILE.", metavar="FILE")]
HistoryOption = Annotated[
    Path | None,
    typer.Option(help="Rank commits of this clone of the toolchain's repository.", metavar="DIR"),
]
SandboxOption = Annotated[
    str, typer.Option(help="Engine: auto, docker, podman, bubblewrap, gvisor or none.", metavar="ENGINE")
]
ImageOption = Annotated[
    str,
    typer.Option(
        help="Run in this runner image instead of the host's system (docker, podman).",
        metavar="NAME",
        envvar="REPROBOT_IMAGE",
        callback=use_image,
    ),
]
TimeoutOption = Annotated[
    float | None, typer.Option(help="Limit for one run, in seconds (120; 40 for a hang).", min=1, max=3600)
]
WheelsOption = Annotated[
    list[str] | None,
    typer.Option(help="Add the builds in this directory of wheels to the releases; repeatable.", metavar="DIR"),
]
HtmlOption = Annotated[Path | None, typer.Option(help="Write a self-contained page to FILE.", metavar="FILE")]
CommentOption = Annotated[Path | None, typer.Option(help="Write the Markdown comment to FILE.", metavar="FILE")]
FetchOption = Annotated[
    bool | None,
    typer.Option(
        "--fetch-attachments/--no-fetch-attachments",
        help="Fetch files that the issue links to on GitHub, if its text lacks them; default for GitHub issues.",
    ),
]


def _make_absolute(folders: list[str] | None) -> tuple[str, ...]:
    return tuple(str(Path(folder).expanduser().absolute()) for folder in folders or ())


def _prepare_bench(options: RunOptions, catalogue: Catalogue, sink: Sink) -> Callable[[], Workbench]:
    return lambda: open_local_workbench(
        options.sandbox, catalogue, sink, allow=options.allowed, history=options.history
    )


def _open_log(history: Path | None) -> CommitLog | None:
    return None if history is None else open_log(history, default_root())


def _finish_report(report: Report, json: Path | None, html: Path | None, comment: Path | None) -> None:
    written = save_report(report, Outputs(json=json, html=html, comment=comment))
    terminal.show_report(report, written.comment)
    if written.problems:
        raise UserError("; ".join(written.problems))


@app.command(name="reproduce")
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
    options = RunOptions(
        versions=versions,
        devices=tuple(name for name in devices.replace(" ", "").split(",") if name),
        bisect=bisect,
        timeout_s=timeout,
        sandbox=sandbox,
        allowed=tuple(allow or ()),
        wheels=_make_absolute(wheels),
        history=str(history or ""),
        minimize=minimize,
        anyway=anyway,
    )
    check_names(toolchain, options.sandbox, options.allowed)
    check_outputs(json, html, comment)
    read = read_issue(issue, toolchain, attach=fetch_attachments)
    catalogue = open_local_catalogue(options.wheels)
    with terminal.show_progress() as sink:
        report = verbs.reproduce_issue(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=_prepare_bench(options, catalogue, sink),
            history=_open_log(history),
        )
    _finish_report(report, json, html, comment)


@app.command(name="bisect")
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
    options = RunOptions(
        ends=(good, bad),
        history=str(history or ""),
        minutes=minutes,
        timeout_s=timeout,
        sandbox=sandbox,
        allowed=tuple(allow or ()),
        wheels=_make_absolute(wheels),
        budget=Budget(workers=workers),
    )
    check_names(toolchain, options.sandbox, options.allowed)
    check_outputs(json, html, comment)
    if good == bad:
        raise UserError(f"--good and --bad are both {good}: name a version that passes and a version that fails")
    read = read_issue(issue, toolchain, attach=fetch_attachments)
    catalogue = open_local_catalogue(options.wheels)
    with terminal.show_progress() as sink:
        report = verbs.bisect_issue(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=_prepare_bench(options, catalogue, sink),
            history=_open_log(history),
        )
    _finish_report(report, json, html, comment)


@app.command(name="suspects")
def run_suspects(
    issue: IssueArgument,
    toolchain: Annotated[str, typer.Option(help=f"{list_compilers()}.", metavar="NAME")],
    start: Annotated[
        str, typer.Option("--from", help="Start of the range, exclusive: a release, tag or commit.", metavar="REV")
    ],
    end: Annotated[str, typer.Option("--to", help="End of the range, inclusive.", metavar="REV")],
    history: HistoryOption = None,
    json: JsonOption = None,
) -> None:
    """Rank the commits of a range by how related they are to an issue. Runs no testcase, and is no evidence."""
    find_toolchain(toolchain)
    check_outputs(json)
    catalogue = open_local_catalogue()
    read = read_issue(issue, toolchain)
    commits, related = verbs.find_suspects(
        read,
        toolchain=toolchain,
        start=start,
        end=end,
        catalogue=catalogue,
        history=_open_log(history) or open_commit_log(toolchain, catalogue, (start, end)),
        dated=is_remote(issue) or read.created < get_now().date(),
    )
    if json is not None:
        write_file(json, format_json(make_suspects_document(commits, related)))
    terminal.show_suspects(commits, related)


@app.command(name="minimize")
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
    options = RunOptions(versions=version, timeout_s=timeout, sandbox=sandbox, allowed=tuple(allow or ()))
    check_names(toolchain, options.sandbox, options.allowed)
    check_outputs(json, out)
    read = read_issue(issue, toolchain, attach=fetch_attachments)
    catalogue = open_local_catalogue()
    with terminal.show_progress() as sink:
        smaller = verbs.minimize_testcase(
            read,
            toolchain=toolchain,
            options=options,
            catalogue=catalogue,
            open_bench=_prepare_bench(options, catalogue, sink),
            good=good,
            probes=probes,
            seconds=60 * minutes,
        )
    if json is not None:
        write_file(json, format_json(make_smaller_document(read, smaller)))
    if out is not None:
        write_file(out, max(smaller.testcase.files.values(), key=len, default=""))
    terminal.show_smaller(smaller)


@app.command(name="extract")
def run_extract(
    issue: IssueArgument,
    toolchain: ToolchainOption = None,
    fetch_attachments: FetchOption = None,
    allow: AllowOption = None,
    json: JsonOption = None,
) -> None:
    """Extract an issue's testcase, its missing parts, and the reporter's claim. Runs no testcase."""
    check_outputs(json)
    read = read_issue(issue, toolchain, attach=fetch_attachments)
    extraction = extract(read, toolchain=toolchain, allowed=parse_allowance(allow or []))
    text = format_json(make_extract_document(read, extraction))
    if json is None:
        terminal.write_stdout(text + "\n")
    else:
        write_file(json, text)


def run_report(
    script: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SCRIPT [FILE…]]", help="A script that fails (.py or .sh), and the files it needs."),
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
    results: jobs.ResultsOption = Path("results"),
    json: JsonOption = None,
    html: HtmlOption = None,
    comment: CommentOption = None,
) -> None:
    """Make an issue of a SCRIPT: run and reduce it, and check the newest release. With --plan, job 3: answer."""
    if plan is not None and not script:
        return jobs.report_job(plan, sha256, results, Outputs(json=json, html=html, comment=comment))
    if not script or plan is not None:
        raise UserError("name either a script that fails, or the job's --plan and --sha256")
    check_names(toolchain, sandbox, allow or ())
    check_outputs(out)
    files = read_files(script)
    run = RunOptions(sandbox=sandbox, timeout_s=timeout, allowed=tuple(allow or ()))
    catalogue = open_local_catalogue()
    options = ReportOptions(
        toolchain=find_compiler(toolchain, files),
        version=version,
        title=title,
        expected=expected,
        minimize=minimize,
        run=run,
    )
    with terminal.show_progress() as sink:
        made = compose_bug_report(
            files,
            options,
            catalogue=catalogue,
            open_bench=_prepare_bench(run, catalogue, sink),
            today=get_now().date(),
        )
    if out is None:
        terminal.write_stdout(made.render())
    else:
        write_file(out, made.render())


@app.command(name="doctor")
def run_doctor(json: JsonOption = None) -> None:
    """Check this machine: which parts of Reprobot work here, and why the others do not."""
    check_outputs(json)
    checks = check_machine_parts()
    if json is not None:
        write_file(json, format_json({"schema": 1, "checks": [msgspec.to_builtins(check) for check in checks]}))
    terminal.show_checks(checks)


@app.command(name="clean")
def run_clean(
    keep: Annotated[
        float | None,
        typer.Option(help="Keep this many GiB of environments, the most recently used.", min=0, metavar="GIB"),
    ] = None,
) -> None:
    """Remove leftovers of runs, and the cached environments: all, or those over --keep."""
    for leftover in remove_leftovers():
        typer.echo(f"removed {leftover}")
    store = open_store(default_root())
    if keep is None and not remove_skeleton():
        typer.echo("kept podman's base directory: a probe is running in it. Clean again when the probe has ended")
    freed = store.clean() if keep is None else store.trim(int(keep * 2**30))
    typer.echo(f"freed {freed / 2**20:.0f} MiB in {default_root()}")


@app.command(name="refresh")
def run_refresh() -> None:
    """Ask the package index and the configured sources for builds that the catalogue does not have yet."""
    with terminal.show_progress() as sink:
        for name, count in refresh_catalogue(sink):
            typer.echo(f"{name}: {count} releases known")


app.command(name="plan")(jobs.run_plan)
app.command(name="probe")(jobs.run_probe)
app.command(name="report")(run_report)
app.command(name="watch")(daemon.run_watch)
app.command(name="sweep")(daemon.run_sweep)
