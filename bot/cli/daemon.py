"""``reprobot watch``: put the parts of the daemon together."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import typer

from bot.cli import terminal
from bot.cli.context import attach_files, get_now, open_local_catalogue
from bot.daemon.feed import find_undone_key, make_event_key
from bot.daemon.ledger import open_ledger
from bot.daemon.steps import RunPlan, Services
from bot.daemon.watch import watch_repositories
from bot.daemon.webhook import Receive, open_server
from bot.forge.contract import Forge
from bot.issue import Issue
from bot.settings import Settings
from runners.cells.processes import CellProcesses
from runners.core.errors import UserError
from runners.core.job_files import write_result
from runners.core.protocol import CellResult, JobPlan


def run_watch(
    repositories: list[str], state: Path, every: float, listen: str | None, jobs: int, machines: frozenset[str]
) -> None:
    """Answer issues and commands until stopped."""
    from bot.forge.github import open_forge  # slow to import, and sweeps of folders share this module

    names = tuple(map(check_repository, repositories))
    forge = open_forge(os.environ)
    stop, wake = threading.Event(), threading.Event()
    with lock_folder(state), closing(CellProcesses(os.environ)) as processes, stop_on_signals(stop, wake):
        processes.start_ahead()
        receive = _make_receiver(state, names, wake)
        server = None
        if listen is not None:
            server = open_server(_parse_address(listen), _read_secret(os.environ), receive)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            terminal.print_message(f"webhooks at {server.server_address[0]!s}:{server.server_port}")
        terminal.print_message(
            f"watching {', '.join(names)} as {forge.get_login()}, every {every:g} s; state in {state}"
        )
        services = make_services(forge, state, names, make_plan_runner(processes, machines))
        watch_repositories(services, stop, wake, poll_s=every, jobs=jobs)
        if server is not None:
            server.server_close()
    terminal.print_message("stopped; runs under way go on at the next start")


# ---------------------------------------------------------------------------------------------- the parts


def make_services(forge: Forge, state: Path, names: tuple[str, ...], run_plan: RunPlan) -> Services:
    return Services(
        forge=forge,
        ledger=open_ledger(state / "ledger.sqlite"),
        folder=state,
        repositories=names,
        open_catalogue=open_local_catalogue,
        attach=attach_if_allowed,
        run_plan=run_plan,
        now=get_now,
        log=terminal.print_message,
        log_traceback=lambda trace: typer.echo(trace, err=True),
    )


def make_plan_runner(
    processes: CellProcesses, machines: frozenset[str], ledger: Path | None = None, cluster: str = ""
) -> RunPlan:
    """Return a function that runs each cell of a plan in a child process, one after the other. Thread-safe.

    A cell for a kind of machine that is not in ``machines`` gets a result that states this. Runs that ``ledger`` has
    are not made again. With ``cluster``, cells run on workers of the Dask scheduler at this address.
    """

    def run_cells(folder: Path, plan: JobPlan, sha256: str) -> None:
        results = folder / "results"
        for cell in plan.cells:
            if (results / f"{cell.id}.json").is_file():
                continue  # run before the process was stopped
            if cell.machine and cell.machine not in machines:
                why = f"this bot runs on no machine of the kind {cell.machine}"
                write_result(CellResult(cell=cell.id, plan_sha256=sha256, problem=why), results)
            else:
                processes.run(folder / "plan.json", sha256, cell, results, ledger, cluster=cluster)

    return run_cells


def attach_if_allowed(issue: Issue, settings: Settings) -> Issue:
    return attach_files(issue, settings.toolchain) if settings.attachments else issue


def _make_receiver(state: Path, names: tuple[str, ...], wake: threading.Event) -> Receive:
    """Return a function that adds a webhook to the ledger.

    Each call opens its own connection, since each webhook arrives in its own thread.
    """

    def receive_event(kind: str, payload: bytes) -> bool:
        ledger = open_ledger(state / "ledger.sqlite")
        try:
            if (undone := find_undone_key(kind, payload, names)) is not None:
                ledger.forget_event(undone)
            key = make_event_key(kind, payload, names)
            is_new = key is not None and ledger.add_event(key, kind, payload, get_now())
        finally:
            ledger.close()
        if is_new:
            wake.set()
        return is_new

    return receive_event


def check_repository(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}/[\w.-]{1,100}", text, re.ASCII):
        raise UserError(f"{text!r} is no repository{_explain_name(text)}: give OWNER/REPO")
    return text


def _explain_name(text: str) -> str:
    """Return why a text does not name a repository, if it looks like something else."""
    if "://" in text:
        return ", but an address"
    return ", and no folder is there" if "/" in text or text.startswith((".", "~")) else ""


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"--listen {text!r} is no address: give HOST:PORT, 127.0.0.1:8080 behind a proxy")
    return host.strip("[]"), int(port)


def _read_secret(environment: Mapping[str, str]) -> bytes:
    secret = environment.get("REPROBOT_WEBHOOK_SECRET", "")
    if len(secret) < 16:
        raise UserError("REPROBOT_WEBHOOK_SECRET has fewer than 16 characters: set the secret that you gave GitHub")
    return secret.encode()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder for this process. The lock ends with the process, even if the process is killed."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise UserError(f"{folder} cannot be used ({error.strerror}): name another folder") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"another process uses {folder}: stop it, or name another folder") from None
        yield


@contextmanager
def stop_on_signals(stop: threading.Event, wake: threading.Event) -> Iterator[None]:
    """Set both events on SIGINT and SIGTERM."""

    def request_stop(_number: int, _frame: object) -> None:
        stop.set()
        wake.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
