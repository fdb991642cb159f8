"""Answer the issues of a tracker, several at once. Issues with a valid answer do not run again.

Each answer is on disk before the next issue begins, so that a stopped or killed sweep continues where it was. One
failing issue is one row.
"""

from __future__ import annotations

import queue
import re
import shutil
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from bot.daemon.steps import RunPlan
from bot.forge.payloads import replace_surrogates
from bot.forge.sticky_comment import MAX_BODY_BYTES
from bot.issue import Issue
from bot.report.comment import render_comment
from bot.report.files import Outputs, write_file, write_report
from bot.requests.plan_file import SealedPlan, judge_results, plan_issue
from bot.requests.result_files import read_results
from bot.settings import Settings
from bot.tracker.cost import SweepSummary, format_time
from bot.tracker.due import RELEASE, TEXT, digest_builds, digest_product, digest_settings, digest_text, explain_due
from bot.tracker.rows import FAILED, Change, Fingerprint, IssueRow, TrackedIssue, Work
from bot.tracker.sources import IssueSource, Selection
from bot.tracker.state import TrackerState
from bot.tracker.summary import make_row
from bot.verdict.verdict import Report, VerdictKind
from runners.core.errors import InfraError, ReprobotError, UserError
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import Cost, JobPlan

REPORTS = "issues"
"""Folder of the reports, below the sweep's folder."""
SLOW_RUN_S = 20.0
"""An issue whose mean run takes this number of seconds starts before the others. Most runs take less than 3 s, and a
testcase that hangs takes its whole limit on each build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBudget:
    """The limits of one sweep. Active issues are finished when a limit is reached."""

    seconds: float | None = None
    runs: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSweep:
    """Everything that a sweep needs; each effect is a field."""

    source: IssueSource
    settings: Settings
    catalogue: Catalogue
    state: TrackerState
    out: Path
    """Folder for the reports, and the files of active runs."""
    attach: Callable[[Issue], Issue]
    """Adds the files that an issue links to."""
    run_plan: RunPlan
    now: Callable[[], datetime]
    clock: Callable[[], float]
    read_cpu: Callable[[], float]
    """Processor seconds of this process and its children so far."""
    measure_ledger: Callable[[], int]
    log: Callable[[str], None]
    jobs: int = 1
    is_elsewhere: bool = False
    """True if other machines have made the runs."""
    budget: SweepBudget = SweepBudget()
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Lock for reading, planning and judging: only runs are concurrent. msgspec 0.22 ends the process with SIGSEGV if
    two threads are the first to read one type, and Python would run only one of them at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An issue to check. ``reason`` is empty if only its text decides whether it runs."""

    issue: TrackedIssue
    row: IssueRow | None
    reason: str


def merge_answers(state: TrackerState, out: Path, others: Sequence[tuple[TrackerState, Path]]) -> int:
    """Add the answers and reports of other sweeps; of two answers, keep the later. Return the number of new rows.

    Raises:
        InfraError: a report cannot be copied.
    """
    rows = state.list_rows()
    taken: dict[str, IssueRow] = {}
    for other, folder in others:
        for id, row in other.list_rows().items():
            if (known := taken.get(id, rows.get(id))) is None or known.answered < row.answered:
                taken[id] = msgspec.structs.replace(row, foreign=True)
                _copy_report(row, folder, out)
    state.keep_merged(tuple(taken.values()))
    return len(taken)


def _copy_report(row: IssueRow, source: Path, target: Path) -> None:
    """Copy the files of a report. Their names are made anew: a row of another machine is a claim."""
    name = Path(row.page).stem
    if not name or row.page != f"{REPORTS}/{name}.html":
        return
    (target / REPORTS).mkdir(parents=True, exist_ok=True)
    for suffix in (".html", ".json", ".md"):
        if (file := source / REPORTS / f"{name}{suffix}").is_file():
            try:
                shutil.copyfile(file, target / REPORTS / f"{name}{suffix}")
            except OSError as error:
                raise InfraError(f"{file} cannot be copied: {error.strerror}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    task: Task
    row: IssueRow
    reason: str
    """Why the issue was answered; empty if its old answer is still valid."""


def list_tasks(sweep: TrackerSweep, selection: Selection) -> tuple[list[TrackedIssue], list[Task]]:
    """List the selected issues, and those of them that may need an answer.

    The list has open issues, and closed issues whose failure a sweep has found fixed: a release may bring it back.

    Raises:
        UserError: the tracker has issues, and none of them is selected.
    """
    issues = []
    for issue in sweep.source.list_issues(selection):
        issues.append(issue)
        if selection.limit is not None and len(issues) >= selection.limit:
            break
    if not issues and sweep.source.has_issues():
        raise UserError(f"no issue of {sweep.source.name} is selected: try --state all, other labels or another date")
    rows = sweep.state.list_rows()
    issues += _list_fixed(selection, rows.values(), {issue.id for issue in issues})
    number, shards = selection.shard
    issues = issues[number - 1 :: shards]
    tasks = (_make_task(sweep, issue, rows.get(issue.id)) for issue in issues)
    return issues, [task for task in tasks if task is not None]


def _list_fixed(selection: Selection, rows: Iterable[IssueRow], listed: Set[str]) -> list[TrackedIssue]:
    """Return the closed issues whose failure was fixed, where the selection is about the state now."""
    if selection.state != "open" or selection.limit is not None or selection.since is not None:
        return []
    found = [
        row.issue
        for row in rows
        if row.verdict == VerdictKind.FIXED
        and not row.issue.open
        and row.issue.id not in listed
        and set(selection.labels) <= set(row.issue.labels)
    ]
    return sorted(found, key=lambda issue: (issue.created, issue.id), reverse=True)


def _make_task(sweep: TrackerSweep, issue: TrackedIssue, row: IssueRow | None) -> Task | None:
    text = row.fingerprint.text if row is not None else ""
    reason = explain_due(
        row, _make_fingerprint(sweep, text, row.toolchain if row is not None else ""), is_open=issue.open
    )
    is_known = row is not None and row.issue == issue
    return None if is_known and not reason else Task(issue=issue, row=row, reason=reason)


def _make_fingerprint(sweep: TrackerSweep, text: str, toolchain: str) -> Fingerprint:
    return Fingerprint(
        text=text,
        settings=digest_settings(sweep.settings),
        product=digest_product(),
        builds=digest_builds(sweep.catalogue, toolchain),
    )


def sweep_tracker(sweep: TrackerSweep, issues: Sequence[TrackedIssue], tasks: Sequence[Task]) -> SweepSummary:
    """Do the tasks within the budget, and return the results."""
    began, cpu = sweep.clock(), sweep.read_cpu()
    number = sweep.state.begin_sweep(sweep.now())
    progress = _Progress(sweep, len(tasks), began)
    crew = _Crew(sweep)
    waiting = deque(order_tasks(tasks) if sweep.budget == SweepBudget() else tasks)
    stopped = ""
    while waiting or crew.active:
        while waiting and crew.active < sweep.jobs and not stopped:
            stopped = progress.find_spent_budget()
            if not stopped:
                crew.start(waiting.popleft())
        if not crew.active:
            break
        done = crew.wait()
        change = _find_change(done)
        sweep.state.keep_answer(number, done.row, change)
        progress.add(done)
    selected = {issue.id for issue in issues}
    rows = [row for id, row in sweep.state.list_rows().items() if id in selected]
    summary = SweepSummary(
        sweep=number,
        listed=len(issues),
        answered=progress.answered,
        failed=progress.failed,
        unchanged=len(issues) - progress.answered - progress.failed - len(waiting),
        left=len(waiting),
        stopped=stopped,
        verdicts=dict(Counter(row.verdict for row in rows)),
        changed=len(sweep.state.list_changes(number)),
        runs_made=progress.made,
        runs_reused=progress.reused,
        run_s=round(progress.run_s, 1),
        wall_s=round(sweep.clock() - began, 1),
        cpu_s=round(sweep.read_cpu() - cpu, 1),
        jobs=sweep.jobs,
        elsewhere_s=round(progress.run_s, 1) if sweep.is_elsewhere else 0.0,
        requests=sweep.source.count_requests(),
        ledger_bytes=sweep.measure_ledger(),
    )
    if not waiting:
        sweep.state.end_sweep(number, sweep.now(), msgspec.json.encode(summary))
        shutil.rmtree(sweep.out / "work", ignore_errors=True)
    return summary


def order_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Put issues with slow runs first, if an earlier sweep knows them: the other jobs would wait for the last.

    A sweep with a budget keeps the order of the list, because it may not reach the other issues.
    """
    return sorted(tasks, key=lambda task: not _is_slow(task.row))


def _is_slow(row: IssueRow | None) -> bool:
    return row is not None and row.work.made > 0 and row.work.run_s / row.work.made >= SLOW_RUN_S


def _find_change(done: Answered) -> Change | None:
    before = done.task.row
    if not done.reason or before is None or FAILED in (before.verdict, done.row.verdict):
        return None
    if before.verdict == done.row.verdict:
        return None
    return Change(id=done.row.issue.id, before=before.verdict, after=done.row.verdict, why=done.reason)


class _Crew:
    """Threads that answer issues, each at most one at a time.

    They are daemon threads: an interrupt does not wait for them, and the child processes end with the threads that
    started them.
    """

    def __init__(self, sweep: TrackerSweep) -> None:
        self._sweep = sweep
        self._done: queue.SimpleQueue[Answered] = queue.SimpleQueue()
        self.active = 0

    def start(self, task: Task) -> None:
        self.active += 1
        threading.Thread(target=lambda: self._done.put(answer_task(self._sweep, task)), daemon=True).start()

    def wait(self) -> Answered:
        done = self._done.get()
        self.active -= 1
        return done


class _Progress:
    """The work of one sweep so far, and the rest of its budget."""

    def __init__(self, sweep: TrackerSweep, total: int, began: float) -> None:
        self._sweep, self._total, self._began = sweep, total, began
        self._done = 0
        self.answered = self.failed = self.made = self.reused = 0
        self.run_s = 0.0

    def add(self, done: Answered) -> None:
        self._done += 1
        if not done.reason:
            return
        work = done.row.work
        self.answered += done.row.verdict != FAILED
        self.failed += done.row.verdict == FAILED
        self.made += work.made
        self.reused += work.reused
        self.run_s += work.run_s
        left = self._total - self._done
        rest = (self._sweep.clock() - self._began) / self._done * left
        runs = f"{work.made} runs" + (f", {work.reused} from the ledger" if work.reused else "")
        self._sweep.log(
            f"[{self._done}/{self._total}] {done.row.issue.id}: {done.row.verdict} ({runs}, {work.seconds:.0f} s)"
            + (f": {done.row.why}" if done.row.verdict == FAILED else "")
            + (f"; about {format_time(rest)} left" if left else "")
        )

    def find_spent_budget(self) -> str:
        """Return the limit that is reached; empty if there is none."""
        budget = self._sweep.budget
        if budget.seconds is not None and self._sweep.clock() - self._began >= budget.seconds:
            return f"the {format_time(budget.seconds)} are used"
        if budget.runs is not None and self.made >= budget.runs:
            return f"the {budget.runs} runs are used"
        if budget.requests is not None and self._sweep.source.count_requests() >= budget.requests:
            return f"the {budget.requests} requests are used"
        return ""


# ---------------------------------------------------------------------------------------------- one issue


def answer_task(sweep: TrackerSweep, task: Task) -> Answered:
    """Answer an issue, if its text or anything else changed. Never raises: a failure is a row."""
    began = sweep.clock()
    try:
        return _answer_issue(sweep, task, began)
    except ReprobotError as error:
        why = str(error)
    except Exception as error:
        # One issue must not stop the others, whatever error its text causes in our code.
        why = f"a bug of ours ({type(error).__name__}): see errors.log"
        _keep_traceback(sweep, task.issue)
    row = IssueRow(
        issue=task.issue,
        verdict=FAILED,
        why=why[:500],
        answered=sweep.now().isoformat(timespec="seconds"),
        posted=task.row.posted if task.row is not None else "",
        work=Work(seconds=round(sweep.clock() - began, 1)),
    )
    return Answered(task=task, row=row, reason=task.reason or TEXT)


def _keep_traceback(sweep: TrackerSweep, issue: TrackedIssue) -> None:
    try:
        with (sweep.out / "errors.log").open("a", encoding="utf-8") as file:
            file.write(f"{sweep.now().isoformat()} {issue.id}\n{traceback.format_exc()}\n")
    except OSError:
        sweep.log(traceback.format_exc())


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedTask:
    """An issue that was read. ``planned`` is None if its answer is still valid."""

    text: str
    reason: str
    planned: Report | SealedPlan | None
    plan: JobPlan | None = None


def plan_tasks(sweep: TrackerSweep, tasks: Sequence[Task]) -> dict[str, SealedPlan]:
    """Return name → plan of each task that needs runs. An issue that cannot be read or planned is left out.

    The names are those of the folders that `sweep_tracker` runs the plans in.
    """
    sealed = {}
    for task in tasks:
        try:
            planned = _plan_task(sweep, task).planned
        except ReprobotError as error:
            sweep.log(f"{task.issue.id}: not planned: {error}")
        except Exception:
            _keep_traceback(sweep, task.issue)  # the sweep that reads the results makes a row of it
        else:
            if isinstance(planned, SealedPlan):
                sealed[_name_report(sweep.source.name, task.issue.id)] = planned
    return sealed


def _plan_task(sweep: TrackerSweep, task: Task) -> _PlannedTask:
    fetched = sweep.attach(sweep.source.fetch_issue(task.issue))
    with sweep.turn:
        issue = replace_surrogates(fetched)
        text = digest_text(issue)
        reason = task.reason
        if task.row is not None and not reason:
            if task.row.fingerprint.text == text:
                return _PlannedTask(text=text, reason="", planned=None)
            reason = TEXT
        answered = task.row.cells if task.row is not None and reason == RELEASE else {}
        planned = plan_issue(issue, sweep.settings, sweep.catalogue, workers=1, answered=answered)
        plan = None if isinstance(planned, Report) else read_plan(planned.data, planned.sha256)
        return _PlannedTask(text=text, reason=reason, planned=planned, plan=plan)


def _answer_issue(sweep: TrackerSweep, task: Task, began: float) -> Answered:
    read = _plan_task(sweep, task)
    planned, plan = read.planned, read.plan
    if planned is None:
        assert task.row is not None
        return Answered(task=task, row=msgspec.structs.replace(task.row, issue=task.issue), reason="")
    folder = sweep.out / "work" / _name_report(sweep.source.name, task.issue.id)
    if plan is not None and isinstance(planned, SealedPlan):
        shutil.rmtree(folder, ignore_errors=True)  # of a sweep that was killed: its runs are in the ledger
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(planned.data)
        sweep.run_plan(folder, plan, planned.sha256)
    with sweep.turn:
        report, cost = _judge_runs(sweep, planned, folder)
        row = msgspec.structs.replace(
            _write_answer(sweep, task.issue, report, read.text, cost, began),
            reason=read.reason,
            posted=task.row.posted if task.row is not None else "",
        )
    shutil.rmtree(folder, ignore_errors=True)
    return Answered(task=task, row=row, reason=read.reason)


def _judge_runs(sweep: TrackerSweep, planned: Report | SealedPlan, folder: Path) -> tuple[Report, Cost]:
    """Return the report on the runs in the folder; without a testcase, the report which states this."""
    if isinstance(planned, Report):
        return planned, Cost()
    results = read_results(folder / "results", planned.cells, planned.sha256)
    return judge_results(planned.case, results, sweep.catalogue), results.seen.cost


def _write_answer(
    sweep: TrackerSweep, tracked: TrackedIssue, report: Report, text: str, cost: Cost, began: float
) -> IssueRow:
    name = _name_report(sweep.source.name, tracked.id)
    folder = sweep.out / REPORTS
    folder.mkdir(parents=True, exist_ok=True)
    write_report(report, Outputs(json=folder / f"{name}.json", html=folder / f"{name}.html"))
    write_file(folder / f"{name}.md", render_comment(report, MAX_BODY_BYTES))  # as it is posted, record not counted
    row = make_row(
        tracked,
        report,
        Fingerprint(text=text),
        page=f"{REPORTS}/{name}.html",
        answered=sweep.now().isoformat(timespec="seconds"),
        work=Work(
            made=cost.made,
            reused=cost.reused,
            run_s=round(cost.seconds, 1),
            seconds=round(sweep.clock() - began, 1),
        ),
    )
    return msgspec.structs.replace(row, fingerprint=_make_fingerprint(sweep, text, row.toolchain))


def _name_report(tracker: str, id: str) -> str:
    """Return a file name for an issue. Ids that differ have names that differ."""
    plain = f"{tracker}-{id.removesuffix('.md')}".replace("/", "-")
    safe = re.sub(r"[^\w.-]", "_", plain, flags=re.ASCII)[:120]
    is_unique = safe == plain and "/" not in id and id.removesuffix(".md").isalnum()
    return safe if is_unique else f"{safe}-{sha256(id.encode()).hexdigest()[:8]}"
