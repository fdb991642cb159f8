"""An issue → its report, from recorded runs: the product's own code, with recordings in place of sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import Any

import msgspec

from bot.extract import extract
from bot.extract.types import Extraction, Repro
from bot.issue import Issue
from bot.plan import RunOptions, make_plan
from bot.report.assemble import ReportInput, assemble_report, make_unrun_report
from bot.verdict.verdict import Report
from runners.core.packages.catalogue import Catalogue
from runners.core.progress import Silent
from runners.core.protocol import FindingKind, Investigation, Plan
from runners.core.runs import Execute
from runners.investigation.investigate import investigate_plan
from runners.toolchains import find_toolchain
from runners.workbench.ahead import NoRunsAhead
from runners.workbench.tools import make_tools


class Inline(Executor):
    """Runs each task at once, in the caller's thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def replay_plan(plan: Plan, execute: Execute) -> Investigation:
    stand_ins = find_toolchain(plan.testcase.toolchain).STAND_INS
    return investigate_plan(plan, make_tools(plan, NoRunsAhead(execute), Inline(), Silent(), stand_ins=stand_ins))


def replay_issue(
    issue: Issue,
    execute: Execute,
    catalogue: Catalogue,
    options: RunOptions | None = None,
    extraction: Extraction | None = None,
    without: Collection[FindingKind] = (),
) -> Report:
    """The report of an issue whose runs are made by ``execute``. Findings of the kinds ``without`` are not judged.

    Raises:
        InfraError: no run that the verdict needs is recorded.
    """
    chosen = options or RunOptions()
    read = extraction if extraction is not None else extract(issue)
    asked = ReportInput(issue=issue, toolchain=None, options=chosen, extraction=read)
    if (report := make_unrun_report(asked)) is not None:
        return report
    assert isinstance(read, Repro)
    planned = make_plan(read, catalogue, chosen)
    seen = replay_plan(planned.plan, execute)
    kept = tuple(finding for finding in seen.findings if finding.kind not in without)
    seen = msgspec.structs.replace(seen, findings=kept)
    return assemble_report(asked, planned.plan, seen, notes=planned.notes, catalogue=catalogue)
