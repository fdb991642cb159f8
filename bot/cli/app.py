"""The command line's app: every command.

The modules of ``commands/`` declare the arguments. A command imports the parts that it needs when it runs, so that
``reprobot --help`` and each command start without the parts of the others. The work of a command is in ``verbs.py``,
``jobs.py``, ``tracker.py`` or ``daemon.py``, its output in ``terminal.py``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli.commands import issue, jobs, machine, report, tracker
from bot.cli.options import CommandOnCompilers

app = typer.Typer(
    name="reprobot",
    help="Answer a bug report for an ML compiler: run its testcase on many releases, and report a verdict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's boxes cut long option names, and take half of the time of --help
)


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


app.command(
    name="reproduce", short_help="Run an issue's testcase on releases, and report a verdict.", cls=CommandOnCompilers
)(issue.run_reproduce)
app.command(
    name="bisect", short_help="Find the nightly or the commit that changes the behaviour.", cls=CommandOnCompilers
)(issue.run_bisect)
app.command(
    name="suspects", short_help="Rank the commits of a range by relation to an issue.", cls=CommandOnCompilers
)(issue.run_suspects)
app.command(
    name="minimize", short_help="Reduce an issue's testcase to what its failure needs.", cls=CommandOnCompilers
)(issue.run_minimize)
app.command(name="extract", short_help="Show an issue's testcase, missing parts and claim.", cls=CommandOnCompilers)(
    issue.run_extract
)
app.command(name="doctor", short_help="Check which parts of Reprobot work on this machine.")(machine.run_doctor)
app.command(name="clean", short_help="Remove leftovers of runs, and cached environments.")(machine.run_clean)
app.command(name="refresh", short_help="Ask the package index and nightly indexes for new builds.")(
    machine.run_refresh
)
app.command(name="plan", short_help="Job plan: read the issue and write plan.json.")(jobs.run_plan)
app.command(name="probe", short_help="Job probe: run one cell of the plan, in sandboxes.")(jobs.run_probe)
app.command(name="commits", short_help="Job commits: rank the commits of the changes.")(jobs.run_commits)
app.command(
    name="report", short_help="Make an issue of a SCRIPT; or job report: judge the results.", cls=CommandOnCompilers
)(report.run_report)
app.command(name="watch", short_help="Answer issues and commands until stopped.")(tracker.run_watch)
app.command(name="sweep", short_help="Run a whole tracker's testcases; write a dashboard.")(tracker.run_sweep)
app.add_typer(tracker.ledger_app, name="ledger")
