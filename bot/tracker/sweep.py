"""A whole tracker, read only: every issue that holds a testcase is run, and what came of it is written to files.

Resumable: what was finished is in the ledger, under the digest of the issue's text, so an edited issue is run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.daemon.ledger import Ledger
from bot.daemon.watch import Probe
from bot.extract import Repro
from bot.forge.contract import IssueBrief
from bot.issue import Issue
from bot.plan import make_plan
from bot.report.assemble import Asked, report_without_run
from bot.report.files import Outputs, write_report
from bot.report.quote import code
from bot.report.sections.headline import under_its_label
from bot.requests.commands import Command, Verb
from bot.requests.plan_file import Case, cells_of, encodable, judged, read_issue, seal
from bot.requests.result_files import read_results
from bot.requests.start_run import wishes_of
from bot.settings import Settings
from bot.verdict.verdict import Report
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.job_files import read_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Everything a sweep needs, each effect as an argument."""

    repository: str
    settings: Settings
    catalogue: Catalogue
    ledger: Ledger
    out: Path
    fetch: Callable[[int], Issue]
    probe: Probe
    now: Callable[[], datetime]
    say: Callable[[str], None]


def sweep(one: Sweep, briefs: Iterable[IssueBrief]) -> Counter[str]:
    """Run what was not run yet; how often each verdict was given, failures of ours under ``failed``.

    A failure of ours is noted and the next issue taken; a later sweep tries it again.
    """
    counts: Counter[str] = Counter()
    for brief in briefs:
        try:
            counts[_one(one, brief.number)] += 1
        except (InfraError, UserError) as error:
            counts["failed"] += 1
            one.say(f"{one.repository}#{brief.number}: {error}")
    return counts


def _one(sweep: Sweep, number: int) -> str:
    issue = encodable(sweep.fetch(number))
    key = f"{sweep.repository}#{number}:read:{issue.sha256}"
    if (known := sweep.ledger.said(key)) is not None:
        return known
    report = _report(sweep, issue, number)
    name = sweep.repository.replace("/", "-")
    write_report(
        report,
        Outputs(
            json=sweep.out / f"{name}-{number}.json",
            html=sweep.out / f"{name}-{number}.html",
            comment=sweep.out / f"{name}-{number}.md",
        ),
    )
    _note(sweep, issue, number, report)
    with sweep.ledger.together():
        sweep.ledger.add(key, "read", b"", sweep.now())
        sweep.ledger.done(key, report.verdict.kind)
    return report.verdict.kind


def _note(sweep: Sweep, issue: Issue, number: int, report: Report) -> None:
    """A line in ``index.md``; of an issue that was run twice the last line counts."""
    line = f"- #{number} {code(issue.title, 100)}: **{report.verdict.kind}**. {under_its_label(report.verdict)}\n"
    with (sweep.out / "index.md").open("a", encoding="utf-8") as file:
        file.write(line)
    sweep.say(f"{sweep.repository}#{number}: {report.verdict.kind}")


def _report(sweep: Sweep, issue: Issue, number: int) -> Report:
    settings = sweep.settings
    wishes = wishes_of(settings, Command(verb=Verb.RUN))
    extraction = read_issue(issue, toolchain=settings.toolchain, allow=settings.allow)
    asked = Asked(issue=issue, toolchain=settings.toolchain, wishes=wishes, extraction=extraction)
    if (report := report_without_run(asked)) is not None:
        return report
    assert isinstance(extraction, Repro)
    planned = make_plan(extraction, sweep.catalogue, wishes)
    case = Case(
        issue=issue,
        toolchain=settings.toolchain,
        blocks=(),
        wishes=wishes,
        plan=planned.plan,
        notes=planned.notes,
        settings=settings,
    )
    cells = cells_of(planned.plan, settings)
    sealed = seal(case, cells)
    folder = sweep.out / "work" / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(sealed.data)
    sweep.probe(folder, read_plan(sealed.data, sealed.sha256), sealed.sha256)
    return judged(case, read_results(folder / "results", sealed.cells, sealed.sha256), sweep.catalogue)
