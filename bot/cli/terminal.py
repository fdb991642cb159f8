"""Print progress on stderr and the result on stdout: live on a terminal, plain lines in a log or a pipe.

All text passes ``clean_text``, and rich's markup is off: strangers' words can neither move the cursor nor colour a
line.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.text import Text

from bot.report.comment import list_sections
from bot.report.matrix import describe_run, mark_run
from bot.report.quote import clean_text, format_log_line
from bot.report.sections.headline import render_headline
from bot.report.sections.ranges import render_suspects
from bot.report.sections.shape import Section
from bot.report.sections.testcase import render_cut_down
from bot.verdict.verdict import Report, VerdictKind
from runners.core.progress import Sink
from runners.core.protocol import Cell, CommitRange, Observation, Smaller, Suspect, Variant

if TYPE_CHECKING:  # a log or a pipe needs neither: 0.1 s before the first run
    from rich.markdown import Markdown
    from rich.progress import Progress, TaskID


@contextmanager
def show_progress() -> Iterator[Sink]:
    """Yield the sink for one run, on stderr: spinners with their time on a terminal, else one line for each event."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield LineSink(console)
        return
    with make_spinners(console) as live:
        yield LiveSink(live)


def make_spinners(console: Console, *, refresh: bool = True) -> Progress:
    """Return a display with one spinner for each running stage and cell. Markup in their names is not read."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, auto_refresh=refresh)


def print_message(message: str) -> None:
    """Print one line on stderr, escaped so that GitHub's runner does not read it as a workflow command."""
    sys.stderr.write(format_log_line(message) + "\n")


def show_report(report: Report, comment: str) -> None:
    """Print the result on stdout: formatted on a terminal; the comment itself, unchanged, in a pipe or a file."""
    console = Console(highlight=False)
    if console.is_terminal:
        print_report(report, console)
    else:
        write_stdout(comment)
    if report.verdict.kind is VerdictKind.NO_CLAIM:
        print_message("on a forge, this issue gets no comment; --anyway runs the testcase")


def write_stdout(text: str) -> None:
    """Print ``text`` on stdout. In GitHub Actions, its runner does not read workflow commands in the text."""
    sys.stdout.write(stop_commands(text, os.environ))


def stop_commands(text: str, environment: Mapping[str, str]) -> str:
    """Return ``text`` between a stop and a start of workflow commands; outside GitHub Actions, only ``text``.

    The token of the stop is random, so the text cannot contain it (GitHub: "Stopping and starting workflow
    commands"). Escaping the text instead, as for a log, would change the output in a pipe.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return text
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text.rstrip(chr(10))}\n::{token}::\n"


def print_report(report: Report, console: Console) -> None:
    """Print the comment's open sections, and the titles of its folded ones."""
    parts = list(list_sections(report))
    if title := _clean_line(report.issue.title):
        console.print(Text(title, style="dim"))
    console.print(_make_markdown("\n\n".join([render_headline(report.verdict), *map(_render_open, parts)])))
    if report.observations:
        console.print(Text(f"\nRun it again: {_clean_line(report.command)}", style="dim"), soft_wrap=True)
    if folded := [clean_text(part.title) for part in parts if part.folded]:
        listed = "".join(f"\n  {title}" for title in folded)
        console.print(
            Text(f"\nIn the full comment (--comment FILE, --html FILE):{listed}", style="dim"), soft_wrap=True
        )


def _render_open(section: Section) -> str:
    if section.folded:
        return ""
    return f"**{section.title}**\n\n{section.body}" if section.title else section.body


def _make_markdown(text: str) -> Markdown:
    from rich.markdown import Markdown

    # Hyperlinks need a terminal with OSC 8. Without them, rich shows the URL itself.
    return Markdown(text, code_theme="ansi_dark", hyperlinks=False)


def show_suspects(commits: CommitRange, suspects: Sequence[Suspect]) -> None:
    """Print the commits most related to a report on stdout, worded as in the comment."""
    text = (
        render_suspects(commits, suspects, "have to do with it")
        or f"None of the {commits.count} commits shares a word with it."
    )
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(_make_markdown(text))
    else:
        write_stdout(text + "\n")


def show_smaller(smaller: Smaller) -> None:
    """Print a reduced testcase on stdout."""
    text = f"{smaller.after} lines instead of {smaller.before}.\n\n{render_cut_down(smaller)}"
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(_make_markdown(text))
    else:
        write_stdout(text + "\n")


class CheckResult(Protocol):
    """The result of one check of ``reprobot doctor``."""

    @property
    def area(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def detail(self) -> str: ...


def show_checks(checks: Sequence[CheckResult]) -> None:
    """Print one line for each check on stdout. A failed check states how to repair it."""
    console = Console(highlight=False)
    width = max((len(f"{check.area} {check.name}") for check in checks), default=0)
    for check in checks:
        mark, style = ("ok", "green") if check.works else ("no", "yellow")
        line = Text(f"{mark}  ", style=style).append(f"{check.area} {check.name}".ljust(width + 2), style="bold")
        console.print(line.append(clean_text(check.detail), style=""), soft_wrap=not console.is_terminal)


@dataclass(frozen=True, slots=True)
class LineSink:
    """For logs: one line for each stage that begins and each cell that ends."""

    console: Console

    def say(self, message: str) -> None:
        self._print_line(message)

    def stage(self, name: str) -> AbstractContextManager[None]:
        self._print_line(f"{name} …")
        return nullcontext()

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        if observation is not None:
            self._print_line(_describe_end(cell, observation))

    def _print_line(self, line: str) -> None:
        # One write for each line, since several threads report at once. Lines of a log are not wrapped.
        self.console.print(Text(_clean_line(line)), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class LiveSink:
    """For a terminal: a spinner for each running stage and cell, and a line for each cell that ended."""

    live: Progress
    _running: defaultdict[str, list[TaskID]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, message: str) -> None:
        self.live.console.print(Text(_clean_line(message)))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        task = self.live.add_task(_clean_line(name), total=None)
        try:
            yield
        finally:
            self.live.remove_task(task)

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        # Cells that differ in the device share an id, and one cell may run twice at once: take any task of the id.
        with self._lock:
            if observation is None:
                self._running[cell.id].append(self.live.add_task(f"  {_describe_cell(cell)}", total=None))
            elif self._running[cell.id]:
                self.live.remove_task(self._running[cell.id].pop(0))
        if observation is not None:
            self.live.console.print(Text(_describe_end(cell, observation), style="dim"))


_VARIANTS = {
    Variant.PORTED: "ported",
    Variant.RETARGETED: "testcase adapted",
    Variant.CONTROL: "control, with one change",
}


def _describe_cell(cell: Cell) -> str:
    variant = f" ({_VARIANTS[cell.variant]})" if cell.variant in _VARIANTS else ""
    return _clean_line(f"{cell.toolchain} {cell.version} on {cell.device}{variant}")


def _describe_end(cell: Cell, seen: Observation) -> str:
    return _clean_line(f"{mark_run(seen)} {_describe_cell(cell)}: {describe_run(seen)}, {seen.seconds:.1f} s")


def _clean_line(text: str) -> str:
    return format_log_line(text, 300)
