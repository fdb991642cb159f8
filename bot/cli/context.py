"""Open the parts that the commands need on this machine: issue, settings, catalogue, workbench and history."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.preflight import check_cache
from bot.forge.attachments import add_attachments
from bot.forge.download import find_api_host, find_hosts, make_downloader
from bot.forge.payloads import replace_surrogates
from bot.forge.source import read_source
from bot.issue import Issue, is_remote
from runners.core.catalogue import Catalogue
from runners.core.errors import UserError
from runners.core.progress import Held, Sink
from runners.core.requirements import parse_allowance
from runners.environments.config import read_config
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue
from runners.sandbox.select import check_engine_name
from runners.toolchains import find_toolchain

if TYPE_CHECKING:
    from bot.plan import RunOptions
    from runners.builds.commit_log import CommitLog
    from runners.workbench import Workbench


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
        UserError: there is no such file or issue, or the file's content is no issue text.
        InfraError: GitHub does not answer.
    """
    host = find_api_host(os.environ) or find_hosts(os.environ).forge
    issue = read_source(source, today=get_now().date(), fetch=_fetch_issue, host=host)
    issue = replace_surrogates(issue)
    if is_remote(source) if attach is None else attach:
        return replace_surrogates(attach_files(issue, toolchain))
    return issue


def _fetch_issue(repository: str, number: int) -> Issue:
    from bot.forge.github import open_reader  # 0.2 s, which an issue in a file need not take

    return open_reader(os.environ).fetch_issue(repository, number)


def attach_files(issue: Issue, toolchain: str | None) -> Issue:
    """Return the issue with the files it links to on the forge, if its text is no complete testcase."""
    hosts = find_hosts(os.environ)
    return add_attachments(issue, toolchain=toolchain, forge=hosts.forge, download=make_downloader(hosts.is_allowed))


def read_settings_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def open_local_catalogue(wheels: Sequence[str] = ()) -> Catalogue:
    """Return the releases that this machine knows, and the builds in the directories ``wheels``."""
    return open_catalogue(default_root() / "catalogue", wheels)


def open_local_workbench(
    sandbox: str, catalogue: Catalogue, sink: Sink, *, allow: Sequence[str] = (), history: str = ""
) -> Workbench:
    """Return the workbench of this machine. ``allow`` is as in ``--allow``, ``history`` as in ``--history``."""
    from runners.workbench import open_workbench

    check_cache(default_root())
    allowed = frozenset(parse_allowance(allow).values())
    return open_workbench(sandbox, catalogue, sink, also_allowed=allowed, history=history)


def prepare_bench(options: RunOptions, catalogue: Catalogue, sink: Sink) -> Callable[[], Workbench]:
    """Begin to open the workbench with these options, beside the reading of the issue. Return how to get it.

    A machine without a sandbox is an error only when the workbench is requested.
    """
    held = Held()
    opener = ThreadPoolExecutor(1)
    opening = opener.submit(
        open_local_workbench, options.sandbox, catalogue, held, allow=options.allowed, history=options.history
    )
    opener.shutdown(wait=False)

    def get_bench() -> Workbench:
        with sink.stage("choosing a sandbox"):
            bench = opening.result()
        held.release(sink)
        return replace(bench, progress=sink)

    return get_bench


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

    builds, repository = read_config().find_builds(toolchain), catalogue.get_listing(toolchain).repository
    if builds is None and repository is None:
        raise UserError("name a clone of the toolchain's repository with --history DIR")
    source = builds.repository if builds is not None else f"https://github.com/{repository}"
    return CommitLog(open_history(source, default_root(), wanted=wanted).clone)
