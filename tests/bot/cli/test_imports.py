"""A command starts without the parts of the others: imports are most of the time before the first run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough  # new processes, each of which imports what a command needs

ROOT = Path(__file__).parents[3]
COMMANDS = {f"bot.cli.commands.{name}" for name in ("issue", "jobs", "machine", "report", "tracker")}
HELP = {
    *("bot", "bot.__main__", "bot.cli", "bot.cli.app", "bot.cli.commands", "bot.cli.options"),
    *("bot.report", "bot.report.quote"),
    *COMMANDS,
}
SHARED = {"runners", "runners.core", "runners.core.bench", "runners.core.errors"}
"""Our own modules that ``--help`` needs."""
HEAVY = {"github", "jwt", "libcst", "msgspec", "requests", "snowballstemmer", "urllib3", "yaml"}
REMOTE = {"github", "jwt", "requests", "urllib3"}
"""The client of GitHub, which an issue in a file does not need."""
READING = {"bot.extract", "bot.issue", "bot.report.assemble", "markdown_it", "yaml"}
"""Parts that read and judge an issue."""
ON_DEMAND = {"http.client", "snowballstemmer", "ssl", "urllib.request"}
"""Parts that neither reading an issue in a file nor opening the workbench needs."""


def list_imported(code: str) -> set[str]:
    listed = "import sys; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"try:\n {code}\nexcept SystemExit: pass\n{listed}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def list_ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] in ("bot", "runners")}


def test_help_imports_the_declarations_alone() -> None:
    imported = list_imported("import sys, bot.__main__; sys.argv[1:] = ['--help']; bot.__main__.main()")
    assert list_ours(imported) == HELP | SHARED
    assert imported & HEAVY == set()


def test_issue_in_a_file_needs_neither_the_client_of_github_nor_the_parser_of_rewrites() -> None:
    imported = list_imported("import bot.cli.context, bot.cli.terminal, bot.cli.verbs, bot.plan, runners.workbench")
    assert imported & {*REMOTE, "libcst"} == set()
    assert "bot.daemon" not in imported


def test_a_sweep_of_a_folder_needs_no_client_of_github() -> None:
    assert list_imported("import bot.cli.tracker, bot.cli.daemon") & REMOTE == set()


def test_the_workbench_opens_before_the_parts_that_read_issues_are_imported() -> None:
    """It opens in a thread while they are imported. Neither needs a network, or the stemmer of the ranking."""
    opening = "import bot.cli.app, bot.cli.context, runners.workbench"
    assert list_imported(opening) & READING == set()
    reading = list_imported(f"{opening}, bot.cli.terminal, bot.cli.verbs, bot.plan, bot.forge.source")
    assert reading >= READING
    assert reading & ON_DEMAND == set()


def test_client_of_github_would_be_noticed() -> None:
    assert list_imported("import bot.forge.github") >= {"github", "requests"}
