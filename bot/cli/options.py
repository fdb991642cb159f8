"""The options that several commands share. Imports no part that only a run needs: see ``app.py``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

COMPILERS = "{compilers}"
"""Placeholder for the names of the compilers in the help of an option."""


class CommandOnCompilers(TyperCommand):
    """A command whose help names the compilers. Only the help imports the toolchains, which takes 0.1 s."""

    def get_help(self, ctx: Any) -> str:
        from runners.toolchains import list_compilers

        for option in self.params:
            if isinstance(option, TyperOption) and option.help is not None:
                option.help = option.help.replace(COMPILERS, list_compilers())
        return super().get_help(ctx)


IssueArgument = Annotated[
    str,
    typer.Argument(metavar="ISSUE", help="A Markdown file ('# title' first), '-', owner/repo#N, or an issue's URL."),
]
ToolchainOption = Annotated[
    str | None, typer.Option(help=f"{COMPILERS}; by default found from the text.", metavar="NAME")
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
StateOption = Annotated[
    Path, typer.Option("--state", help="Folder for the ledger, runs under way and reports.", metavar="DIR")
]
PlanOption = Annotated[Path, typer.Option("--plan", help="The plan file.", metavar="FILE")]
ShaOption = Annotated[str, typer.Option("--sha256", help="The plan's sha256, as printed by `plan`.", metavar="HEX")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of the result files.", metavar="DIR")]


def refuse_ignored(given: typer.Context, beside: str, ignored: Collection[str]) -> None:
    """Refuse options of the command line that have no effect beside another argument.

    ``ignored`` holds names of parameters. A default and a variable of the environment are no wish of this call.

    Raises:
        UserError: one of them was given.
    """
    for option in given.command.params:
        name = option.name or ""
        source = given.get_parameter_source(name) if name in ignored else None
        if source is not None and source.name == "COMMANDLINE":
            from runners.core.errors import UserError

            raise UserError(f"{option.opts[0]} has no effect with {beside}: leave one of the two out")
