"""``reprobot watch`` and ``reprobot sweep`` on the command line: the parts are put together here."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import terminal
from bot.daemon.feed import key_of, sweep_event, unlabeled
from bot.daemon.ledger import Ledger, open_ledger
from bot.daemon.watch import Probe, Watcher, watch as run_watch
from bot.daemon.webhook import Receive, receiver
from bot.forge import github
from bot.forge.attachments import hosts_of, web_get, with_attachments
from bot.forge.contract import IssueBrief
from bot.issue import Issue
from bot.settings import Settings, load_settings
from bot.tracker.sweep import Sweep, sweep as read_tracker
from runners.__main__ import run_in_child
from runners.core.catalogue import Catalogue
from runners.core.errors import UserError
from runners.core.job_files import write_result
from runners.core.protocol import CellResult, JobPlan
from runners.environments.store import default_root
from runners.environments.wheel_sources import open_catalogue

LEAST_POLL_S = 5

RepositoryArgument = Annotated[str, typer.Argument(metavar="OWNER/REPO", help="Whose issues.")]
StateOption = Annotated[
    Path, typer.Option("--state", help="Folder for the ledger, runs under way and reports.", metavar="DIR")
]


def watch(
    repositories: Annotated[list[str], typer.Argument(metavar="OWNER/REPO…", help="Repositories to answer in.")],
    state: StateOption = Path("reprobot-state"),
    every: Annotated[
        float, typer.Option(help="Seconds between looks at the issues.", min=LEAST_POLL_S, metavar="SECONDS")
    ] = 60,
    listen: Annotated[
        str | None,
        typer.Option(help="Also take webhooks here, signed with REPROBOT_WEBHOOK_SECRET.", metavar="HOST:PORT"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Investigations at the same time.", min=1, max=64)] = 1,
    machine: Annotated[
        list[str] | None,
        typer.Option(help="A kind of machine in the settings that this one is; repeatable.", metavar="NAME"),
    ] = None,
) -> None:
    """The bot on a machine of one's own: answers issues and commands until stopped; after a crash it goes on."""
    forge = github.forge(os.environ)
    names = tuple(map(_repository, repositories))
    stop, wake = threading.Event(), threading.Event()
    with _alone(state), _stopped_by_signals(stop, wake):
        receive = _receive(state, names, wake)
        server = receiver(_address(listen), _secret(os.environ), receive) if listen is not None else None
        if server is not None:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            terminal.say(f"webhooks at {server.server_address[0]!s}:{server.server_port}")
        terminal.say(f"watching {', '.join(names)} as {forge.whoami()}, every {every:g} s; state in {state}")
        watcher = _watcher(forge, state, names, frozenset(machine or ()))
        run_watch(watcher, stop, wake, poll_s=every, jobs=jobs)
        if server is not None:
            server.server_close()
    terminal.say("stopped; what was under way goes on at the next start")


def sweep(
    repository: RepositoryArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder for reports and the ledger.", metavar="DIR")] = Path(
        "reprobot-sweep"
    ),
    limit: Annotated[int, typer.Option(help="At most this many issues, the last changed first.", min=1)] = 100,
    closed: Annotated[bool, typer.Option("--closed", help="Closed issues too.")] = False,
    since: Annotated[
        datetime | None, typer.Option(help="Only issues that changed since.", formats=["%Y-%m-%d"], metavar="DATE")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="Settings, as in .github/reprobot.yml; else the repository's.", metavar="FILE")
    ] = None,
    post: Annotated[bool, typer.Option("--post", help="Answer on the issues too; needs a token.")] = False,
) -> None:
    """A whole tracker: runs each issue's testcase. Writes files only, unless told to post; run again, it goes on."""
    name = _repository(repository)
    forge = github.forge(os.environ) if post else github.reader(os.environ)
    moment = since.replace(tzinfo=UTC) if since is not None else None
    found = [one for one in forge.issues_since(name, moment).issues if one.open or closed]
    briefs = sorted(found, key=lambda one: one.updated, reverse=True)[:limit]
    terminal.say(f"{name}: {len(briefs)} issues")
    with _alone(out):
        if post:
            _post_all(forge, out, name, briefs)
        else:
            _read_all(forge, out, name, briefs, settings)


def _read_all(forge: github.GithubForge, out: Path, name: str, briefs: list[IssueBrief], file: Path | None) -> None:
    try:
        read = load_settings(file.read_bytes() if file is not None else forge.config(name), {})
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    ledger = open_ledger(out / "ledger.sqlite")
    counts = read_tracker(
        Sweep(
            repository=name,
            settings=read,
            catalogue=_catalogue(),
            ledger=ledger,
            out=out,
            fetch=lambda number: _attached(forge.issue(name, number), read),
            probe=_probe(frozenset()),
            now=_now,
            say=terminal.say,
        ),
        briefs,
    )
    for kind, many in counts.most_common():
        terminal.say(f"{many:5} {kind}")


def _post_all(forge: github.GithubForge, out: Path, name: str, briefs: list[IssueBrief]) -> None:
    ledger = open_ledger(out / "ledger.sqlite")
    stop, wake = threading.Event(), threading.Event()
    for brief in briefs:
        if not brief.locked:
            ledger.add(*_sweep_event(name, brief.number), _now())
    ledger.close()
    with _stopped_by_signals(stop, wake):
        run_watch(_watcher(forge, out, (name,), frozenset()), stop, wake, poll_s=60, jobs=1, drain=True)


def _sweep_event(name: str, number: int) -> tuple[str, str, bytes]:
    key, payload = sweep_event(name, number)
    return f"{key}:{_now():%Y-%m-%d}", "sweep", payload


# ---------------------------------------------------------------------------------------------- the parts


def _watcher(forge: github.GithubForge, state: Path, names: tuple[str, ...], machines: frozenset[str]) -> Watcher:
    return Watcher(
        forge=forge,
        ledger=open_ledger(state / "ledger.sqlite"),
        folder=state,
        repositories=names,
        catalogue=_catalogue,
        attach=_attached,
        probe=_probe(machines),
        now=_now,
        say=terminal.say,
        log=lambda trace: typer.echo(trace, err=True),
    )


def _probe(machines: frozenset[str]) -> Probe:
    """Each cell in a child of its own, one after the other; those for other machines are left, and it is said."""

    def probe(folder: Path, plan: JobPlan, sha256: str) -> None:
        results = folder / "results"
        for cell in plan.cells:
            if (results / f"{cell.id}.json").is_file():
                continue  # run before we were stopped
            if cell.machine and cell.machine not in machines:
                why = f"this bot runs on no machine of the kind {cell.machine}"
                write_result(CellResult(cell=cell.id, plan_sha256=sha256, problem=why), results)
            else:
                run_in_child(folder / "plan.json", sha256, cell, results, os.environ)

    return probe


def _catalogue() -> Catalogue:
    return open_catalogue(default_root() / "catalogue", ())


def _attached(issue: Issue, settings: Settings) -> Issue:
    if not settings.attachments:
        return issue
    hosts = hosts_of(os.environ)
    return with_attachments(issue, toolchain=settings.toolchain, forge=hosts.forge, get=web_get(hosts.allow))


def _receive(state: Path, names: tuple[str, ...], wake: threading.Event) -> Receive:
    """Into the ledger; a connection for each delivery, since each comes in a thread of its own."""

    def receive(kind: str, payload: bytes) -> bool:
        ledger: Ledger = open_ledger(state / "ledger.sqlite")
        try:
            if (undone := unlabeled(kind, payload, names)) is not None:
                ledger.forget(undone)
            key = key_of(kind, payload, names)
            new = key is not None and ledger.add(key, kind, payload, _now())
        finally:
            ledger.close()
        if new:
            wake.set()
        return new

    return receive


def _repository(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}/[\w.-]{1,100}", text, re.ASCII):
        raise UserError(f"{text!r} names no repository: give OWNER/REPO")
    return text


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"--listen {text!r} is no address: give HOST:PORT, 127.0.0.1:8080 behind a proxy")
    return host.strip("[]"), int(port)


def _secret(environment: Mapping[str, str]) -> bytes:
    secret = environment.get("REPROBOT_WEBHOOK_SECRET", "")
    if len(secret) < 16:
        raise UserError("REPROBOT_WEBHOOK_SECRET has fewer than 16 characters: set the one you gave GitHub")
    return secret.encode()


def _now() -> datetime:
    return datetime.now(tz=UTC)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Only one process for one folder; the lock goes with the process, however it ends."""
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (state / "lock").open("w")
    except OSError as error:
        raise UserError(f"{state} cannot be used ({error.strerror}): name another folder") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"another process works in {state}: stop it, or name another folder") from None
        yield


@contextmanager
def _stopped_by_signals(stop: threading.Event, wake: threading.Event) -> Iterator[None]:
    def end(number: int, frame: object) -> None:
        stop.set()
        wake.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
