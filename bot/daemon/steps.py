"""The steps of one event: *plan* (read, check permissions, announce the run) and *report* (judge, answer).

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

from bot.daemon.ledger import KEPT_DAYS, EventState, Ledger, LedgerEvent
from bot.forge.contract import Forge, ForgeRefused, Gone, RateLimited
from bot.issue import Issue
from bot.report.files import Outputs, write_report
from bot.requests.conversation import RequestContext
from bot.requests.deliver import abandon_run, deliver_failure, deliver_report
from bot.requests.handle import handle_request
from bot.requests.plan_file import Case, decode_case, judge_results
from bot.requests.request import IgnoredEvent, Request, read_request
from bot.requests.result_files import read_results
from bot.settings import Settings, load_settings
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import JobPlan

MAX_ATTEMPTS = 10
"""Attempts at a run, or at a step that fails because of a bug of ours. They take about three hours."""
PATIENCE = timedelta(days=3)
"""Time for which a step is repeated if the forge refuses or does not answer. A token may expire over a weekend."""
KEPT = timedelta(days=KEPT_DAYS)
"""Time after which an event ends even if the forge accepts no comment about it."""
FIRST_WAIT = timedelta(seconds=30)
LAST_WAIT = timedelta(hours=1)

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
    """Plan a new event, or report an event that ran. A failed step is tried again later.

    Raises:
        InfraError: the ledger cannot be changed. Its state is then the one before the step.
    """
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
    except ForgeRefused as error:
        _end_or_postpone(services, event, str(error))
    except RateLimited as error:
        postpone_step(services, event, str(error), wait_s=error.wait)
    except (InfraError, UserError, OSError) as error:
        postpone_step(services, event, str(error))
    except Exception as error:
        # One issue must not stop the others. The event is kept, and its traceback is logged.
        services.log_traceback(traceback.format_exc())
        retry_step(services, event, f"a bug of ours ({type(error).__name__}): please report it with the log")


def _plan_event(services: Services, event: LedgerEvent) -> None:
    repository, _ = _get_issue(event)
    settings = load_settings(services.forge.fetch_settings(repository), {})
    request = _read_event(services, event, settings)
    if isinstance(request, IgnoredEvent):
        return _finish_event(services, event, request.why)
    context = RequestContext(
        forge=services.forge,
        settings=settings,
        catalogue=services.open_catalogue(),
        now=services.now(),
        run_id=_make_run_id(event),
        run_url="",
        repeats=True,
        attach=lambda issue: services.attach(issue, settings),
    )
    handled = handle_request(context, request)
    services.log(f"{event.key}: {'; '.join(handled.messages) or 'nothing to do'}")
    if handled.sealed is None:
        return _finish_event(services, event, "; ".join(handled.messages))
    services.ledger.mark_planned(event.key, handled.sealed.data, handled.sealed.sha256)


def _read_event(services: Services, event: LedgerEvent, settings: Settings) -> Request | IgnoredEvent:
    login = services.forge.get_login()
    repository, _ = _get_issue(event)
    try:
        return read_request(
            event.kind, event.payload, settings=settings, login=login, now=event.received, repository=repository
        )
    except UserError as error:
        return IgnoredEvent(why=str(error))  # the payload does not change: another attempt would fail too


def _report_event(services: Services, event: LedgerEvent) -> None:
    plan = read_plan(event.plan, event.sha256)
    case = decode_case(plan)
    results = read_results(get_event_folder(services, event) / "results", plan.cells, event.sha256)
    try:
        report = judge_results(case, results, services.open_catalogue())
    except InfraError as error:
        return _give_up(services, event, str(error))
    delivery = deliver_report(services.forge, case, report)
    folder = services.folder / "reports"
    folder.mkdir(exist_ok=True)
    name = (case.issue.source or event.key).replace("/", "-").replace("#", "-")
    write_report(report, Outputs(json=folder / f"{name}.json", html=folder / f"{name}.html"))
    services.log(f"{event.key}: {delivery.message}")
    _finish_event(services, event, delivery.message)


# ---------------------------------------------------------------------------------------------- what fails


def _end_or_postpone(services: Services, event: LedgerEvent, why: str) -> None:
    """Finish the event if its issue was deleted, transferred or locked. Any other refusal may be temporary."""
    try:
        end = _find_end(services, event)
    except (InfraError, UserError) as error:
        return postpone_step(services, event, f"{why}; {error}")
    if not end:
        return postpone_step(services, event, why)
    services.log(f"{event.key}: {end}")
    _finish_event(services, event, end)


def _find_end(services: Services, event: LedgerEvent) -> str:
    """Return why the event's issue can no longer be answered; empty if it can."""
    state = services.forge.fetch_state(*_get_issue(event))
    if isinstance(state, Gone):
        return "" if state.reason == "hidden" else f"the issue was {state.reason}"
    return "the issue was locked" if state.locked else ""


def postpone_step(services: Services, event: LedgerEvent, why: str, *, wait_s: float = 0) -> None:
    """Repeat the step later, each time after twice the wait, for `PATIENCE`. Then post that there is no answer."""
    wait = min(LAST_WAIT, FIRST_WAIT * 2 ** min(event.attempts, 10))
    wait = max(wait, timedelta(seconds=min(wait_s, LAST_WAIT.total_seconds())))
    age = services.now() - event.received
    if event.attempts + 1 >= MAX_ATTEMPTS and age > PATIENCE and _try_to_give_up(services, event, why):
        return
    services.log(f"{event.key}: {why}; again in {wait.total_seconds():.0f} s")
    services.ledger.postpone_event(event.key, services.now() + wait, why)


def retry_step(services: Services, event: LedgerEvent, why: str) -> None:
    """Repeat the step as `postpone_step` does, but at most `MAX_ATTEMPTS` times."""
    if event.attempts + 1 >= MAX_ATTEMPTS and _try_to_give_up(services, event, why):
        return
    postpone_step(services, event, why)


def _try_to_give_up(services: Services, event: LedgerEvent, why: str) -> bool:
    """Post that there is no answer, and finish the event. Return False if the forge does not accept it now."""
    try:
        _give_up(services, event, why)
    except (InfraError, UserError) as error:
        services.log(f"{event.key}: {error}")
        if services.now() - event.received <= KEPT:
            return False
        _finish_event(services, event, why)
    return True


def _give_up(services: Services, event: LedgerEvent, why: str) -> None:
    if (case := _decode_case(event)) is not None:
        message = deliver_failure(services.forge, case, why).message
    else:
        abandon_run(services.forge, *_get_issue(event), _make_run_id(event), why)
        message = "given up"
    services.log(f"{event.key}: {message}: {why}")
    _finish_event(services, event, why)


def _decode_case(event: LedgerEvent) -> Case | None:
    """Return the planned case; None before the plan, and for a plan of another version."""
    try:
        return decode_case(read_plan(event.plan, event.sha256)) if event.plan else None
    except UserError:
        return None


# ---------------------------------------------------------------------------------------------- the end


def _finish_event(services: Services, event: LedgerEvent, note: str) -> None:
    services.ledger.mark_done(event.key, note)
    shutil.rmtree(get_event_folder(services, event), ignore_errors=True)


def _get_issue(event: LedgerEvent) -> tuple[str, int]:
    """Return the repository and the number of the event's issue, which begin its key."""
    repository, _, rest = event.key.partition("#")
    return repository, int(rest.partition(":")[0])


def _make_run_id(event: LedgerEvent) -> str:
    """Return the same id when the step is repeated, so that its run is recognised."""
    return f"watch-{_shorten_key(event)}"


def _shorten_key(event: LedgerEvent) -> str:
    return sha256(event.key.encode()).hexdigest()[:20]


def get_event_folder(services: Services, event: LedgerEvent) -> Path:
    """Return the folder for the plan and the results of an event's run."""
    return services.folder / "work" / _shorten_key(event)


def has_unfinished_events(services: Services) -> bool:
    """True if an event is not done, unless it waits after `MAX_ATTEMPTS` failed attempts."""
    return any(event.attempts < MAX_ATTEMPTS for event in services.ledger.list_unfinished())


def remove_leftovers(services: Services) -> None:
    """Delete old events, and folders of events that were done when the process was stopped."""
    services.ledger.delete_old_events(services.now())
    live = {get_event_folder(services, event).name for event in services.ledger.list_unfinished()}
    for folder in (services.folder / "work").glob("*"):
        if folder.name not in live:
            shutil.rmtree(folder, ignore_errors=True)
