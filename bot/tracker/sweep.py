"""Run the testcase of every issue of a tracker, and write the reports to files. The forge is only read.

A stopped sweep can be resumed: finished issues are in the ledger, under the digest of their text, so an edited issue
is run again.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.daemon.ledger import Ledger
from bot.daemon.steps import RunPlan
from bot.forge.contract import IssueBrief
from bot.forge.payloads import replace_surrogates
from bot.issue import Issue
from bot.report.files import Outputs, write_report
from bot.report.quote import quote_code
from bot.report.sections.headline import render_sentence
from bot.requests.plan_file import judge_results, plan_issue
from bot.requests.result_files import read_results
from bot.settings import Settings
from bot.verdict.verdict import Report
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerSweep:
    """Everything that a sweep needs; each effect is a field."""

    repository: str
    settings: Settings
    catalogue: Catalogue
    ledger: Ledger
    out: Path
    """Folder for the reports, ``index.md``, and the files of runs under way."""
    fetch_issue: Callable[[int], Issue]
    run_plan: RunPlan
    now: Callable[[], datetime]
    log: Callable[[str], None]


def sweep_issues(sweep: TrackerSweep, briefs: Iterable[IssueBrief]) -> Counter[str]:
    """Run the issues that were not run yet. Return the number of each verdict; our own failures are ``failed``.

    A failed issue is logged, and a later sweep tries it again.
    """
    counts: Counter[str] = Counter()
    for brief in briefs:
        try:
            counts[_answer_issue(sweep, brief.number)] += 1
        except (InfraError, UserError) as error:
            counts["failed"] += 1
            sweep.log(f"{sweep.repository}#{brief.number}: {error}")
    return counts


def _answer_issue(sweep: TrackerSweep, number: int) -> str:
    """Return the verdict of an issue, from the ledger if its text was run before."""
    issue = replace_surrogates(sweep.fetch_issue(number))
    key = f"{sweep.repository}#{number}:read:{issue.sha256}"
    if (known := sweep.ledger.read_note(key)) is not None:
        return known
    report = _make_report(sweep, issue, number)
    name = sweep.repository.replace("/", "-")
    write_report(
        report,
        Outputs(
            json=sweep.out / f"{name}-{number}.json",
            html=sweep.out / f"{name}-{number}.html",
            comment=sweep.out / f"{name}-{number}.md",
        ),
    )
    _add_to_index(sweep, issue, number, report)
    _remove_work(sweep, number)
    with sweep.ledger.begin_transaction():
        sweep.ledger.add_event(key, "read", b"", sweep.now())
        sweep.ledger.mark_done(key, report.verdict.kind)
    return report.verdict.kind


def _add_to_index(sweep: TrackerSweep, issue: Issue, number: int, report: Report) -> None:
    """Append a line to ``index.md``. If an issue was run twice, its last line counts."""
    line = (
        f"- #{number} {quote_code(issue.title, 100)}: **{report.verdict.kind}**. {render_sentence(report.verdict)}\n"
    )
    with (sweep.out / "index.md").open("a", encoding="utf-8") as file:
        file.write(line)
    sweep.log(f"{sweep.repository}#{number}: {report.verdict.kind}")


def _make_report(sweep: TrackerSweep, issue: Issue, number: int) -> Report:
    """Run the issue's testcase and return the report; without a testcase, return the report that says so."""
    planned = plan_issue(issue, sweep.settings, sweep.catalogue)
    if isinstance(planned, Report):
        return planned
    folder = _get_work_folder(sweep, number)
    if _read_plan_file(folder) != planned.data:  # the results there are of another text or another catalogue
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(planned.data)
    sweep.run_plan(folder, read_plan(planned.data, planned.sha256), planned.sha256)
    results = read_results(folder / "results", planned.cells, planned.sha256)
    return judge_results(planned.case, results, sweep.catalogue)


def _get_work_folder(sweep: TrackerSweep, number: int) -> Path:
    return sweep.out / "work" / str(number)


def _read_plan_file(folder: Path) -> bytes:
    """Return the plan that a stopped sweep left; empty if there is none."""
    try:
        return (folder / "plan.json").read_bytes()
    except FileNotFoundError:
        return b""


def _remove_work(sweep: TrackerSweep, number: int) -> None:
    """Remove the plan and the results of an issue whose report is written."""
    folder = _get_work_folder(sweep, number)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # other issues have folders there, or there is none
        folder.parent.rmdir()
