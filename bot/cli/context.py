"""Open the parts that the commands need on this machine: issue, settings, catalogue, workbench and history.

The workbench opens in a thread, beside the imports for the reading of issues: functions import those parts.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.preflight import check_cache
from runners.core.errors import ReprobotError, UserError
from runners.core.packages.catalogue import Catalogue
from runners.core.packages.requirements import parse_allowance
from runners.core.progress import Held, Sink
from runners.environments.config import read_config
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.sandbox.select import check_engine_name, use_image
from runners.toolchains import find_toolchain

if TYPE_CHECKING:
    from bot.issue import Issue
    from bot.plan import RunOptions
    from runners.builds.commit_log import CommitLog
    from runners.core.protocol import Commit
    from runners.workbench import Workbench

JOB_CLONE_S = 300.0
JOB_CLONE_BYTES = 2**30
"""Limits for the clone of a job. The histories of TVM and IREE without file contents are 150 to 300 MB."""


def get_now() -> datetime:
    return datetime.now(tz=UTC)


def check_names(toolchain: str | None, sandbox: str, allow: Sequence[str]) -> None:
    """Refuse an unknown toolchain or engine, or a faulty ``--allow``, before anything is fetched.

    Raises:
        UserError: with the known names.
    """
    if toolchain is not None:
        find_toolchain(toolchain)
    check_engine_name(sandbox)
    parse_allowance(allow)


def read_issue(source: str, toolchain: str | None, *, attach: bool | None = None) -> Issue:
    """Read the issue that a command names. ``attach`` fetches linked files; by default for issues on GitHub only.

    Raises:
        UserError: the file or issue does not exist, or the file's content is not an issue text.
        InfraError: GitHub does not answer.
    """
    from bot.forge.download import find_api_host, find_hosts
    from bot.forge.payloads import replace_surrogates
    from bot.forge.source import read_source
    from bot.issue import is_remote

    host = find_api_host(os.environ) or find_hosts(os.environ).forge
    issue = replace_surrogates(read_source(source, today=get_now().date(), fetch=_fetch_issue, host=host))
    if is_remote(source) if attach is None else attach:
        return replace_surrogates(attach_files(issue, toolchain))
    return issue


def _fetch_issue(repository: str, number: int) -> Issue:
    from bot.forge.github import open_reader  # takes 0.2 s, which an issue in a file does not need

    return open_reader(os.environ).fetch_issue(repository, number)


def attach_files(issue: Issue, toolchain: str | None) -> Issue:
    """Return the issue with the files it links to on the forge, if its text is not a complete testcase."""
    from bot.forge.attachments import add_attachments
    from bot.forge.download import find_hosts, make_downloader

    hosts = find_hosts(os.environ)
    return add_attachments(issue, toolchain=toolchain, forge=hosts.forge, download=make_downloader(hosts.is_allowed))


def read_settings_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def open_local_catalogue(wheels: Sequence[str] = ()) -> Catalogue:
    """Return the catalogue of this machine, with the builds in the directories ``wheels``."""
    return open_catalogue(default_root() / "catalogue", wheels)


def open_local_workbench(
    sandbox: str,
    catalogue: Catalogue,
    sink: Sink,
    *,
    image: str = "",
    allow: Sequence[str] = (),
    history: str = "",
) -> Workbench:
    """Return the workbench of this machine. The keywords are as in the options of the same names."""
    from runners.workbench import open_workbench

    use_image(image)
    check_cache(default_root())
    allowed = frozenset(parse_allowance(allow).values())
    return open_workbench(sandbox, catalogue, sink, also_allowed=allowed, history=history)


@dataclass(frozen=True, slots=True)
class Opening:
    """A workbench that is being opened in a thread."""

    wait: Callable[[], Workbench]
    held: Held

    def get_bench(self, sink: Sink) -> Workbench:
        """Wait for the workbench, which then reports to ``sink``.

        Raises:
            UserError: the requested sandbox does not work here, or with ``auto`` no sandbox does.
        """
        with sink.stage("choosing a sandbox"):
            bench = self.wait()
        self.held.release(sink)
        return replace(bench, progress=sink)


def begin_opening(
    sandbox: str, catalogue: Catalogue, *, image: str = "", allow: Sequence[str] = (), history: str = ""
) -> Opening:
    """Begin to open the workbench, beside the imports of a command and the reading of its issue.

    A machine without a sandbox is an error only when the workbench is requested.
    """
    import runners.workbench  # noqa: F401  # here, not in the thread, which mostly waits

    held = Held()
    open_bench = partial(open_local_workbench, sandbox, catalogue, held, image=image, allow=allow, history=history)
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # If memory runs out while a thread starts, the interpreter ends without our message.
        return Opening(open_bench, held)
    opener = ThreadPoolExecutor(1)
    pending = opener.submit(open_bench)
    opener.shutdown(wait=False)
    return Opening(pending.result, held)


def prepare_bench(options: RunOptions, catalogue: Catalogue, sink: Sink) -> Callable[[], Workbench]:
    """Begin to open the workbench with these options. Return how to get it."""
    opening = begin_opening(
        options.sandbox, catalogue, image=options.image, allow=options.allowed, history=options.history
    )
    return lambda: opening.get_bench(sink)


def open_named_log(history: Path | None) -> CommitLog | None:
    """Return the history in the clone of ``--history``; None without this option."""
    if history is None:
        return None
    from runners.builds.commit_log import open_log

    return open_log(history, default_root())


def open_commit_log(toolchain: str, catalogue: Catalogue, wanted: tuple[str, str]) -> CommitLog:
    """Return a toolchain's history: the configured repository, or the compiler's own, cloned without file contents.

    ``wanted`` are revisions that the clone must have.

    Raises:
        UserError: no repository is known.
    """
    from runners.builds.commit_log import CommitLog
    from runners.builds.history import open_history

    source = _find_repository(toolchain, catalogue)
    if not source:
        raise UserError("name a clone of the toolchain's repository with --history DIR")
    return CommitLog(open_history(source, default_root(), wanted=wanted).clone)


def _find_repository(toolchain: str, catalogue: Catalogue) -> str:
    """Return the configured repository, or the compiler's own; empty if none is known."""
    builds, repository = read_config().find_builds(toolchain), catalogue.get_listing(toolchain).repository
    return builds.repository if builds is not None else f"https://github.com/{repository}" if repository else ""


@dataclass
class LateLog:
    """A toolchain's history that is cloned when a range is first read from it, because most answers have no range.

    Every method is as in `CommitLog`. A clone that a machine has kept is fetched for the ends of a newer range.
    """

    source: str
    root: Path
    problem: str = ""
    """Why the history could not be fetched; empty if it was, or if no range was read."""
    _log: CommitLog | None = None

    def between(self, start: str, end: str) -> Sequence[Commit]:
        return self._open(start, end).between(start, end)

    def resolve(self, revision: str) -> str:
        return self._open().resolve(revision)

    def day(self, revision: str) -> date:
        return self._open().day(revision)

    def last_before(self, day: date, end: str) -> str | None:
        return self._open().last_before(day, end)

    def list_files(self, revision: str) -> Sequence[str]:
        return self._open().list_files(revision)

    def _open(self, *wanted: str) -> CommitLog:
        from runners.builds.commit_log import CommitLog
        from runners.builds.history import CloneBudget, open_history

        if self._log is None or wanted:
            budget = CloneBudget(seconds=JOB_CLONE_S, file_bytes=JOB_CLONE_BYTES)
            try:
                self._log = CommitLog(open_history(self.source, self.root, wanted=wanted, budget=budget).clone)
            except ReprobotError as error:
                self.problem = str(error)
                raise
        return self._log


def open_late_log(toolchain: str, catalogue: Catalogue) -> LateLog | None:
    """Return a toolchain's history for a job; None if no repository is known."""
    source = _find_repository(toolchain, catalogue)
    return LateLog(source, default_root()) if source else None
