"""The loop of the daemon: poll for events, advance them, and run their plans in threads."""

from __future__ import annotations

import threading
import time
import traceback

from bot.daemon.feed import poll_repository
from bot.daemon.ledger import EventState, LedgerEvent
from bot.daemon.steps import (
    LAST_WAIT,
    Services,
    advance_event,
    get_event_folder,
    has_unfinished_events,
    remove_leftovers,
    retry_step,
)
from bot.forge.contract import RateLimited
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan

TICK_S = 1.0
LEDGER_WAIT_S = 10.0


def watch_repositories(
    services: Services, stop: threading.Event, wake: threading.Event, *, poll_s: float, jobs: int, drain: bool = False
) -> None:
    """Answer events until ``stop`` is set. With ``drain``, do not poll, and return when all events are done.

    ``wake`` is set by code that adds an event to the ledger. ``jobs`` is the largest number of runs at the same time.
    If the ledger cannot be used, for example on a full disk, the loop continues after `LEDGER_WAIT_S`.
    """
    runs = _RunThreads(services, wake, jobs)
    next_poll = time.monotonic()
    is_clean = False
    while not stop.is_set():
        wake.clear()
        try:
            if not is_clean:
                remove_leftovers(services)
                is_clean = True
            if not drain and time.monotonic() >= next_poll:
                next_poll = time.monotonic() + max(
                    poll_s, *(_try_poll(services, name) for name in services.repositories)
                )
            for event in services.ledger.list_due(services.now(), EventState.NEW, EventState.RAN):
                if not stop.is_set():
                    advance_event(services, event)
            runs.collect_finished()
            runs.start_planned()
            if drain and not runs.threads and not has_unfinished_events(services):
                return
        except InfraError as error:
            services.log(str(error))
            stop.wait(LEDGER_WAIT_S)
        wake.wait(TICK_S)


def _try_poll(services: Services, repository: str) -> float:
    """Poll once. Return the seconds that the forge asks to wait for; 0 if it asks for none."""
    try:
        count = poll_repository(services.forge, services.ledger, repository, now=services.now())
        if count:
            services.log(f"{repository}: {count} new event(s)")
    except RateLimited as error:
        services.log(str(error))
        return min(error.wait, LAST_WAIT.total_seconds())
    except (InfraError, UserError) as error:
        services.log(str(error))
    return 0


class _RunThreads:
    """One thread for each run; the thread waits for its child process.

    The threads are daemon threads: a stop does not wait for them, and the child processes end with the threads that
    started them.
    """

    def __init__(self, services: Services, wake: threading.Event, jobs: int) -> None:
        self._services, self._wake, self._jobs = services, wake, jobs
        self.threads: dict[str, tuple[threading.Thread, LedgerEvent]] = {}
        self._failed: dict[str, str] = {}

    def start_planned(self) -> None:
        """Start a thread for each planned event, up to the number of free slots."""
        for event in self._services.ledger.list_due(self._services.now(), EventState.PLANNED):
            if len(self.threads) >= self._jobs:
                return
            if event.key not in self.threads:
                thread = threading.Thread(target=self._run_event, args=(event,), daemon=True)
                self.threads[event.key] = (thread, event)
                thread.start()

    def collect_finished(self) -> None:
        """Mark the events whose threads have ended as run, or postpone them."""
        for key, (thread, event) in list(self.threads.items()):
            if thread.is_alive():
                continue
            if (why := self._failed.get(key)) is None:
                self._services.ledger.mark_ran(key)
                self._wake.set()
            else:
                retry_step(self._services, event, why)
            del self.threads[key]  # only now: if the ledger cannot be changed, the next tick tries again
            self._failed.pop(key, None)

    def _run_event(self, event: LedgerEvent) -> None:
        try:
            folder = get_event_folder(self._services, event)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "plan.json").write_bytes(event.plan)
            self._services.run_plan(folder, read_plan(event.plan, event.sha256), event.sha256)
        except (InfraError, UserError, OSError) as error:
            self._failed[event.key] = str(error)
        except Exception as error:
            self._services.log_traceback(traceback.format_exc())
            self._failed[event.key] = f"a bug of ours ({type(error).__name__})"
        finally:
            self._wake.set()
