"""The bot as one long-running process: events in, comments out, and everything in between on the disk.

Three steps for each event, each kept in the ledger before the next begins: *plan* (read, ask who may, say that it
runs), *probe* (in a child without the token), *report* (judge, answer). Killed between or within steps, the step is
done again; what it would write it looks for first, so nothing is lost and nothing is said twice.
"""

from __future__ import annotations

import shutil
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import assert_never

from bot.daemon.feed import SWEEP, Hub, poll, swept
from bot.daemon.ledger import Event, Ledger, State
from bot.issue import Issue
from bot.report.files import Outputs, write_report
from bot.requests.deliver import deliver, deliver_failure
from bot.requests.handle import Desk, handle
from bot.requests.plan_file import Case, judged, open_case
from bot.requests.request import Ignored, Request, read_request
from bot.requests.result_files import read_results
from bot.settings import Settings, load_settings
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan
from runners.core.protocol import JobPlan

MAX_ATTEMPTS = 8
FIRST_WAIT = timedelta(seconds=30)
LAST_WAIT = timedelta(minutes=30)
TICK_S = 1.0


Probe = Callable[[Path, JobPlan, str], None]
"""Folder with ``plan.json``, the plan, its sha256 → ``results/`` in that folder. Raises InfraError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Everything the watch needs, each effect as an argument."""

    forge: Hub
    ledger: Ledger
    folder: Path
    """Ours alone: ``work/`` for runs under way, ``reports/`` for what came of them."""
    repositories: tuple[str, ...]
    catalogue: Callable[[], Catalogue]
    attach: Callable[[Issue, Settings], Issue]
    probe: Probe
    now: Callable[[], datetime]
    say: Callable[[str], None]
    log: Callable[[str], None] = field(default=lambda _: None)
    """Where the traceback of a bug goes."""


def watch(
    watcher: Watcher, stop: threading.Event, wake: threading.Event, *, poll_s: float, jobs: int, drain: bool = False
) -> None:
    """Until ``stop``; with ``drain`` only until nothing is left to do, and without polling.

    ``wake`` is set by whoever put something into the ledger.
    """
    _tidy(watcher)
    runs = _Runs(watcher, wake, jobs)
    next_poll = time.monotonic()
    while not stop.is_set():
        if not drain and time.monotonic() >= next_poll:
            for repository in watcher.repositories:
                _try_poll(watcher, repository)
            next_poll = time.monotonic() + poll_s
        wake.clear()
        for event in watcher.ledger.due(watcher.now(), State.NEW, State.RAN):
            if not stop.is_set():
                advance(watcher, event)
        runs.collect()
        runs.start()
        if drain and not runs.threads and not _left(watcher):
            return
        wake.wait(TICK_S)


def _left(watcher: Watcher) -> bool:
    """Whether anything is unfinished, also what waits for a later attempt."""
    return bool(watcher.ledger.due(watcher.now() + 2 * LAST_WAIT, State.NEW, State.PLANNED, State.RAN))


def _try_poll(watcher: Watcher, repository: str) -> None:
    try:
        found = poll(watcher.forge, watcher.ledger, repository, now=watcher.now())
        if found:
            watcher.say(f"{repository}: {found} new event(s)")
    except (InfraError, UserError) as error:
        watcher.say(str(error))


# ---------------------------------------------------------------------------------------------- one step of one event


def advance(watcher: Watcher, event: Event) -> None:
    """Plan a new event, or report one that ran. Never raises: what fails is tried again later, then given up."""
    try:
        match event.state:
            case State.NEW:
                _plan(watcher, event)
            case State.RAN:
                _report(watcher, event)
            case State.PLANNED | State.DONE:
                pass
            case _:
                assert_never(event.state)
    except UserError as error:
        watcher.say(f"{event.key}: {error}")
        _finish(watcher, event, str(error))
    except InfraError as error:
        put_off(watcher, event, str(error))
    except Exception as error:
        # One issue must not stop the others; the event stays, and so does the trace.
        watcher.log(traceback.format_exc())
        put_off(watcher, event, f"a bug of ours ({type(error).__name__}): please report it with the log")


def _plan(watcher: Watcher, event: Event) -> None:
    request = _request(watcher, event)
    if isinstance(request, Ignored):
        return _finish(watcher, event, request.why)
    settings = load_settings(watcher.forge.config(request.repository), {})
    desk = Desk(
        forge=watcher.forge,
        settings=settings,
        catalogue=watcher.catalogue(),
        now=watcher.now(),
        run_id=f"watch-{_name(event)}",  # the same when the step is done again: the run is known by it
        run_url="",
        attach=lambda issue: watcher.attach(issue, settings),
    )
    handled = handle(desk, request)
    watcher.say(f"{event.key}: {'; '.join(handled.said) or 'nothing to do'}")
    if handled.sealed is None:
        return _finish(watcher, event, "; ".join(handled.said))
    watcher.ledger.planned(event.key, handled.sealed.data, handled.sealed.sha256)


def _request(watcher: Watcher, event: Event) -> Request | Ignored:
    if event.kind == SWEEP:
        return swept(event.payload, at=event.received)
    repository = event.key.partition("#")[0]
    settings = load_settings(watcher.forge.config(repository), {})
    return read_request(
        event.kind,
        event.payload,
        settings=settings,
        me=watcher.forge.whoami(),
        now=event.received,
        repository=repository,
    )


def _report(watcher: Watcher, event: Event) -> None:
    plan = read_plan(event.plan, event.sha256)
    case = open_case(plan)
    try:
        report = judged(
            case, read_results(folder_of(watcher, event) / "results", plan.cells, event.sha256), watcher.catalogue()
        )
    except InfraError as error:
        return _give_up(watcher, event, case, str(error))
    delivered = deliver(watcher.forge, case, report)
    place = watcher.folder / "reports"
    place.mkdir(exist_ok=True)
    name = (case.issue.source or event.key).replace("/", "-").replace("#", "-")
    write_report(report, Outputs(json=place / f"{name}.json", html=place / f"{name}.html"))
    watcher.say(f"{event.key}: {delivered.said}")
    _finish(watcher, event, delivered.said)


def put_off(watcher: Watcher, event: Event, why: str) -> None:
    """Try the step again later, each time after twice as long; at last say on the issue that there is no answer."""
    if event.attempts + 1 < MAX_ATTEMPTS:
        wait = min(LAST_WAIT, FIRST_WAIT * 2**event.attempts)
        watcher.say(f"{event.key}: {why}; again in {wait.total_seconds():.0f} s")
        return watcher.ledger.postpone(event.key, watcher.now() + wait, why)
    if not event.plan:
        return _finish(watcher, event, f"given up: {why}")
    _give_up(watcher, event, open_case(read_plan(event.plan, event.sha256)), why)


def _give_up(watcher: Watcher, event: Event, case: Case, why: str) -> None:
    try:
        watcher.say(f"{event.key}: {deliver_failure(watcher.forge, case, why).said}: {why}")
    except (InfraError, UserError) as error:
        watcher.say(f"{event.key}: {error}")
    _finish(watcher, event, why)


def _finish(watcher: Watcher, event: Event, said: str) -> None:
    watcher.ledger.done(event.key, said)
    shutil.rmtree(folder_of(watcher, event), ignore_errors=True)


def _name(event: Event) -> str:
    return sha256(event.key.encode()).hexdigest()[:20]


def folder_of(watcher: Watcher, event: Event) -> Path:
    """Where the run of an event keeps its plan and its results."""
    return watcher.folder / "work" / _name(event)


def _tidy(watcher: Watcher) -> None:
    """Folders of runs that were finished when we were stopped."""
    watcher.ledger.tidy(watcher.now())
    later = watcher.now() + 2 * LAST_WAIT
    live = {_name(event) for event in watcher.ledger.due(later, State.NEW, State.PLANNED, State.RAN)}
    for left in (watcher.folder / "work").glob("*"):
        if left.name not in live:
            shutil.rmtree(left, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- runs under way


class _Runs:
    """One thread for each run, which waits for its child.

    Daemon threads: when we are told to stop, nothing waits, and the children end with the threads that started them.
    """

    def __init__(self, watcher: Watcher, wake: threading.Event, jobs: int) -> None:
        self._watcher, self._wake, self._jobs = watcher, wake, jobs
        self.threads: dict[str, tuple[threading.Thread, Event]] = {}
        self._failed: dict[str, str] = {}

    def start(self) -> None:
        for event in self._watcher.ledger.due(self._watcher.now(), State.PLANNED):
            if len(self.threads) >= self._jobs:
                return
            if event.key not in self.threads:
                thread = threading.Thread(target=self._run, args=(event,), daemon=True)
                self.threads[event.key] = (thread, event)
                thread.start()

    def collect(self) -> None:
        for key, (thread, event) in list(self.threads.items()):
            if thread.is_alive():
                continue
            del self.threads[key]
            why = self._failed.pop(key, None)
            if why is None:
                self._watcher.ledger.ran(key)
                self._wake.set()
            else:
                put_off(self._watcher, event, why)

    def _run(self, event: Event) -> None:
        try:
            folder = folder_of(self._watcher, event)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "plan.json").write_bytes(event.plan)
            self._watcher.probe(folder, read_plan(event.plan, event.sha256), event.sha256)
        except (InfraError, UserError, OSError) as error:
            self._failed[event.key] = str(error)
        except Exception as error:
            self._watcher.log(traceback.format_exc())
            self._failed[event.key] = f"a bug of ours ({type(error).__name__})"
        finally:
            self._wake.set()
