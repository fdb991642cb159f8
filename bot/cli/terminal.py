"""Progress on stderr, the result on stdout: live on a terminal, plain lines in a log or a pipe.

Whatever is printed passes ``clean`` and never rich's own markup, so strangers' words can neither move the cursor nor
colour a line.
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
from typing import Protocol

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from bot.report.comment import sections
from bot.report.matrix import MARK, said
from bot.report.quote import clean, log_line
from bot.report.sections.headline import headline
from bot.report.sections.ranges import related
from bot.report.sections.shape import Section
from bot.report.sections.testcase import cut_down
from bot.verdict.verdict import Report
from runners.core.progress import Sink
from runners.core.protocol import Cell, CommitRange, Observation, Smaller, Suspect, Variant


@contextmanager
def progress() -> Iterator[Sink]:
    """The sink for one run, on stderr: spinners with their time on a terminal, else one line for each event."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield LineSink(console)
        return
    with spinners(console) as live:
        yield LiveSink(live)


def spinners(console: Console, *, refresh: bool = True) -> Progress:
    """What turns while something is under way. rich would read markup in names: here it does not."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, auto_refresh=refresh)


def say(message: str) -> None:
    """One line on stderr, in which nothing is left that a runner of GitHub's would take for a command of its own."""
    sys.stderr.write(log_line(message) + "\n")


def show(report: Report, comment: str) -> None:
    """The result on stdout: laid out on a terminal; the comment itself, word for word, in a pipe or a file."""
    console = Console(highlight=False)
    if console.is_terminal:
        lay_out(report, console)
    else:
        write(comment)


def write(text: str) -> None:
    """``text`` on stdout, safe where GitHub's runner reads along."""
    sys.stdout.write(word_for_word(text, os.environ))


def word_for_word(text: str, environment: Mapping[str, str]) -> str:
    """``text`` for standard output. In a step of GitHub Actions, whose runner reads along, its commands are stopped
    around it under a name that nobody could know when the text was written; elsewhere it is just the text.

    The rule is GitHub's ("Stopping and starting workflow commands"); disarming the text, as for a log, would change
    what a pipe is given.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return text
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text.rstrip(chr(10))}\n::{token}::\n"


def lay_out(report: Report, console: Console) -> None:
    """The comment's open sections, with a word on what it folds away."""
    parts = list(sections(report))
    if title := _line(report.issue.title):
        console.print(Text(title, style="dim"))
    console.print(_markdown("\n\n".join([headline(report.verdict), *map(_open, parts)])))
    if folded := [clean(part.title) for part in parts if part.folded]:
        console.print(Text(f"\nIn the full comment (--comment FILE, --html FILE): {'; '.join(folded)}", style="dim"))


def _open(section: Section) -> str:
    if section.folded:
        return ""
    return f"**{section.title}**\n\n{section.body}" if section.title else section.body


def _markdown(text: str) -> Markdown:
    # Without hyperlinks the address itself is shown, as in a log; with them only terminals that know OSC 8 would.
    return Markdown(text, code_theme="ansi_dark", hyperlinks=False)


def show_suspects(commits: CommitRange, suspects: Sequence[Suspect]) -> None:
    """The commits most related to a report on stdout, in the comment's words."""
    text = (
        related(commits, suspects, "have to do with it")
        or f"None of the {commits.count} commits shares a word with it."
    )
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(_markdown(text))
    else:
        write(text + "\n")


def show_smaller(smaller: Smaller) -> None:
    """A testcase that was cut down, on stdout."""
    text = f"{smaller.after} lines instead of {smaller.before}.\n\n{cut_down(smaller)}"
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(_markdown(text))
    else:
        write(text + "\n")


class Check(Protocol):
    """What ``reprobot doctor`` found out about one thing."""

    @property
    def area(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def detail(self) -> str: ...


def show_checks(checks: Sequence[Check]) -> None:
    """One line for each check on stdout, with a mark; what does not work says how to mend it."""
    console = Console(highlight=False)
    width = max((len(f"{check.area} {check.name}") for check in checks), default=0)
    for check in checks:
        mark, style = ("ok", "green") if check.works else ("no", "yellow")
        line = Text(f"{mark}  ", style=style).append(f"{check.area} {check.name}".ljust(width + 2), style="bold")
        console.print(line.append(clean(check.detail), style=""), soft_wrap=not console.is_terminal)


@dataclass(frozen=True, slots=True)
class LineSink:
    """For logs: a line when a stage begins and when a cell has ended."""

    console: Console

    def say(self, message: str) -> None:
        self._print(message)

    def stage(self, name: str) -> AbstractContextManager[None]:
        self._print(f"{name} …")
        return nullcontext()

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        if observation is not None:
            self._print(_ended(cell, observation))

    def _print(self, line: str) -> None:
        # One write for each line: several threads report at once. Logs are not to be wrapped.
        self.console.print(Text(_line(line)), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class LiveSink:
    """For a terminal: a spinner for each stage and cell under way, a line that stays for each cell that ended."""

    live: Progress
    _running: defaultdict[str, list[TaskID]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, message: str) -> None:
        self.live.console.print(Text(_line(message)))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        task = self.live.add_task(_line(name), total=None)
        try:
            yield
        finally:
            self.live.remove_task(task)

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        # A cell's id does not tell its devices apart, and one cell may run twice at once: any of its tasks will do.
        with self._lock:
            if observation is None:
                self._running[cell.id].append(self.live.add_task(f"  {_name(cell)}", total=None))
            elif self._running[cell.id]:
                self.live.remove_task(self._running[cell.id].pop(0))
        if observation is not None:
            self.live.console.print(Text(_ended(cell, observation), style="dim"))


def _name(cell: Cell) -> str:
    variant = "" if cell.variant is Variant.ORIGINAL else f" ({cell.variant})"
    return _line(f"{cell.toolchain} {cell.version} on {cell.device}{variant}")


def _ended(cell: Cell, seen: Observation) -> str:
    return _line(f"{MARK[seen.answer]} {_name(cell)}: {said(seen)}, {seen.seconds:.1f} s")


def _line(text: str) -> str:
    return log_line(text, 300)
