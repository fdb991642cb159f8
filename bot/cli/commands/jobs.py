"""Commands that are jobs of a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.options import PlanOption, ResultsOption, ShaOption


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


def run_commits(plan: PlanOption, sha256: ShaOption, results: ResultsOption = Path("results")) -> None:
    """Job commits: clone the compiler's repository without file contents, rank the commits of the changes that the
    results show, and write results/commits.json. Runs no testcase. Refuses to hold a token."""
    from bot.cli import jobs

    jobs.run_commits(plan, sha256, results)
