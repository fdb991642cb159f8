"""The command that makes an issue of a script, and the job that answers with the results of other jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.options import (
    AllowOption,
    CommentOption,
    HtmlOption,
    ImageOption,
    JsonOption,
    ResultsOption,
    SandboxOption,
    TimeoutOption,
    ToolchainOption,
    refuse_ignored,
)

_OF_JOB = frozenset({"plan", "sha256", "results", "json", "html", "comment"})
"""Arguments of the job. All others are for a script."""


def run_report(
    given: typer.Context,
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
        refuse_ignored(given, "--plan", set(given.params) - _OF_JOB)
        from bot.cli import jobs

        return jobs.run_report(plan, sha256, results, json=json, html=html, comment=comment)
    if not script or plan is not None:
        raise UserError("name either a script that fails, or the job's --plan and --sha256")
    refuse_ignored(given, "a script", _OF_JOB)
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
