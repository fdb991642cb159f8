"""The steps of one event: *plan* (read, check permissions, say that it runs) and *report* (judge, answer).

Between them the plan is run in a child process without the token, see ``watch.py``. Every step is kept in the ledger
before the next begins. After a kill the step is repeated: it looks for its own writes first, so no event is lost and
no comment is written twice.
"""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import assert_never

from bot.daemon.feed import RECHECK, read_recheck
from bot.daemon.ledger import EventState, Ledger, LedgerEvent
from bot.forge.contract import Forge
from bot.issue import Issue
from bot.report.files import Outputs, write_report
from bot.requests.conversation import RequestContext
from bot.requests.deliver import deliver_failure, deliver_report
from bot.requests.handle import handle_request
from bot.requests.plan_file import Case, decode_case, judge_results
from bot.requests.request import IgnoredEvent, Request, read_request
from bot.requests.result_files import read_results
from bot.settings import Settings, load_settings
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan
from runners.core.protocol import JobPlan

MAX_ATTEMPTS = 8
FIRST_WAIT = timedelta(seconds=30)
LAST_WAIT = timedelta(minutes=30)

RunPlan = Callable[[Path, JobPlan, str], None]
"""Folder with ``plan.json``, the plan, its sha256 → result files in ``results/`` of that folder.

Raises InfraError.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything that the daemon needs; each effect is a field."""

    forge: Forge
    ledger: Ledger
    folder: Path
    """The state folder, used by one process alone: ``work/`` for runs under way, ``reports/`` for answers."""
    repositories: tuple[str, ...]
    open_catalogue: Callable[[], Catalogue]
    attach: Callable[[Issue, Settings], Issue]
    """Adds the files that an issue links to."""
    run_plan: RunPlan
    now: Callable[[], datetime]
    log: Callable[[str], None]
    """Prints one line."""
    log_traceback: Callable[[str], None] = field(default=lambda _: None)


def advance_event(services: Services, event: LedgerEvent) -> None:
    """Plan a new event, or report an event that ran. Raises no error: a failed step is tried again later."""
    try:
        match event.state:
            case EventState.NEW:
                _plan_event(services, event)
            case EventState.RAN:
                _report_event(services, event)
            case EventState.PLANNED | EventState.DONE:
                pass
            case _:
                assert_never(event.state)
    except UserError as error:
        services.log(f"{event.key}: {error}")
        _finish_event(services, event, str(error))
    except InfraError as error:
        postpone_step(services, event, str(error))
    except Exception as error:
        # One issue must not stop the others. The event is kept, and its traceback is logged.
        services.log_traceback(traceback.format_exc())
        postpone_step(services, event, f"a bug of ours ({type(error).__name__}): please report it with the log")


def _plan_event(services: Services, event: LedgerEvent) -> None:
    request = _read_event(services, event)
    if isinstance(request, IgnoredEvent):
        return _finish_event(services, event, request.why)
    settings = load_settings(services.forge.fetch_settings(request.repository), {})
    context = RequestContext(
        forge=services.forge,
        settings=settings,
        catalogue=services.open_catalogue(),
        now=services.now(),
        run_id=f"watch-{_shorten_key(event)}",  # the same when the step is repeated, so that its run is recognised
        run_url="",
        attach=lambda issue: services.attach(issue, settings),
    )
    handled = handle_request(context, request)
    services.log(f"{event.key}: {'; '.join(handled.messages) or 'nothing to do'}")
    if handled.sealed is None:
        return _finish_event(services, event, "; ".join(handled.messages))
    services.ledger.mark_planned(event.key, handled.sealed.data, handled.sealed.sha256)


def _read_event(services: Services, event: LedgerEvent) -> Request | IgnoredEvent:
    if event.kind == RECHECK:
        return read_recheck(event.payload, at=event.received)
    repository = event.key.partition("#")[0]
    settings = load_settings(services.forge.fetch_settings(repository), {})
    return read_request(
        event.kind,
        event.payload,
        settings=settings,
        login=services.forge.get_login(),
        now=event.received,
        repository=repository,
    )


def _report_event(services: Services, event: LedgerEvent) -> None:
    plan = read_plan(event.plan, event.sha256)
    case = decode_case(plan)
    results = read_results(get_event_folder(services, event) / "results", plan.cells, event.sha256)
    try:
        report = judge_results(case, results, services.open_catalogue())
    except InfraError as error:
        return _give_up(services, event, case, str(error))
    delivery = deliver_report(services.forge, case, report)
    folder = services.folder / "reports"
    folder.mkdir(exist_ok=True)
    name = (case.issue.source or event.key).replace("/", "-").replace("#", "-")
    write_report(report, Outputs(json=folder / f"{name}.json", html=folder / f"{name}.html"))
    services.log(f"{event.key}: {delivery.message}")
    _finish_event(services, event, delivery.message)


def postpone_step(services: Services, event: LedgerEvent, why: str) -> None:
    """Repeat the step later, each time after twice the wait. After `MAX_ATTEMPTS`, post that there is no answer."""
    if event.attempts + 1 < MAX_ATTEMPTS:
        wait = min(LAST_WAIT, FIRST_WAIT * 2**event.attempts)
        services.log(f"{event.key}: {why}; again in {wait.total_seconds():.0f} s")
        return services.ledger.postpone_event(event.key, services.now() + wait, why)
    if not event.plan:
        return _finish_event(services, event, f"given up: {why}")
    _give_up(services, event, decode_case(read_plan(event.plan, event.sha256)), why)


def _give_up(services: Services, event: LedgerEvent, case: Case, why: str) -> None:
    try:
        services.log(f"{event.key}: {deliver_failure(services.forge, case, why).message}: {why}")
    except (InfraError, UserError) as error:
        services.log(f"{event.key}: {error}")
    _finish_event(services, event, why)


def _finish_event(services: Services, event: LedgerEvent, note: str) -> None:
    services.ledger.mark_done(event.key, note)
    shutil.rmtree(get_event_folder(services, event), ignore_errors=True)


def _shorten_key(event: LedgerEvent) -> str:
    return sha256(event.key.encode()).hexdigest()[:20]


def get_event_folder(services: Services, event: LedgerEvent) -> Path:
    """Return the folder for the plan and the results of an event's run."""
    return services.folder / "work" / _shorten_key(event)


def has_unfinished_events(services: Services) -> bool:
    """True if an event is not done, also if it is postponed."""
    return bool(_list_unfinished(services))


def _list_unfinished(services: Services) -> tuple[LedgerEvent, ...]:
    later = services.now() + 2 * LAST_WAIT
    return services.ledger.list_due(later, EventState.NEW, EventState.PLANNED, EventState.RAN)


def remove_leftovers(services: Services) -> None:
    """Delete old events, and folders of events that were done when the process was stopped."""
    services.ledger.delete_old_events(services.now())
    live = {get_event_folder(services, event).name for event in _list_unfinished(services)}
    for folder in (services.folder / "work").glob("*"):
        if folder.name not in live:
            shutil.rmtree(folder, ignore_errors=True)
