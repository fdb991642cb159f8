"""Commands on one issue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.options import (
    COMPILERS,
    AllowOption,
    CommentOption,
    FetchOption,
    HistoryOption,
    HtmlOption,
    ImageOption,
    IssueArgument,
    JsonOption,
    SandboxOption,
    TimeoutOption,
    ToolchainOption,
    WheelsOption,
)
from runners.core.bench import MOST_PROBES, MOST_SECONDS

if TYPE_CHECKING:
    from bot.verdict.verdict import Report


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
