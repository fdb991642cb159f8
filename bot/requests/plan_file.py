"""Make ``plan.json`` from an issue, and the report from the results of its cells. Pure.

One cell of a plan is a whole investigation on one kind of machine. A search is never split over cells: each of its
runs depends on the previous answer, and starting a job takes longer than the five or six runs of a search among all
releases. Only releases that are all run, without a search, are split over several cells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from bot.extract import Repro
from bot.forge.run_record import RecordedRun
from bot.issue import Issue
from bot.plan import PlanWithNotes, RunOptions, make_plan
from bot.report.assemble import ReportInput, assemble_report, make_unrun_report
from bot.requests.commands import SlashCommand, Verb
from bot.requests.markdown_lines import CodeBlock
from bot.requests.result_files import JobResults
from bot.requests.testcase import extract_with_blocks, read_testcase
from bot.settings import Settings
from bot.suspects.commits_file import CommitsFile
from bot.suspects.ranges import CommitHistory
from bot.verdict.verdict import Report
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import MAX_PLAN_BYTES, JobCell, JobPlan, Plan, digest_of

ORDINARY = "any"
"""Name of the cell, and of the matrix, for machines that need no approval."""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The issue as it was when its run was planned. The reporting job reads it; the probing jobs never do."""

    issue: Issue
    toolchain: str | None
    blocks: tuple[CodeBlock, ...]
    options: RunOptions = msgspec.field(name="wishes")
    plan: Plan
    notes: tuple[str, ...]
    settings: Settings
    run: RecordedRun | None = None
    """The run in our comment's record; None if no comment is to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedPlan:
    """The bytes of ``plan.json``, their sha256, and the plan's case and cells."""

    data: bytes
    sha256: str
    case: Case
    cells: tuple[JobCell, ...]

    def group_cells(self) -> dict[str, list[str]]:
        """Return kind of machine → ids of the cells for that kind: the job matrices."""
        rows: dict[str, list[str]] = {}
        for cell in self.cells:
            rows.setdefault(cell.machine or ORDINARY, []).append(cell.id)
        return rows


def seal_plan(case: Case, machines: Sequence[str] = ()) -> SealedPlan:
    """Split the case's plan into cells, for ordinary machines and for ``machines`` (names in the settings).

    The later jobs trust the bytes of ``plan.json`` only if their sha256 is the one given here.

    Raises:
        UserError: the testcase with its attachments is too large for a job.
    """
    cells = split_into_cells(case.plan, case.settings, machines, minimize=case.options.minimize)
    data = msgspec.json.encode(JobPlan(cells=cells, case=msgspec.Raw(msgspec.json.encode(case))))
    if len(data) > MAX_PLAN_BYTES:
        size = f"{len(data):,} bytes, more than {MAX_PLAN_BYTES:,}"
        raise UserError(f"the testcase with its files makes a plan of {size}: make it smaller")
    return SealedPlan(data=data, sha256=sha256(data).hexdigest(), case=case, cells=cells)


def decode_case(plan: JobPlan) -> Case:
    """Return the case in a plan whose digest was checked.

    Raises:
        UserError: another version wrote the plan.
    """
    try:
        return msgspec.json.decode(plan.case, type=Case)
    except msgspec.DecodeError as error:
        raise UserError(
            f"the plan's case cannot be read ({str(error)[:200]}): use one version for all jobs"
        ) from None


# ---------------------------------------------------------------------------------------------- issue → case


def make_case(
    asked: ReportInput,
    planned: PlanWithNotes,
    settings: Settings,
    *,
    blocks: tuple[CodeBlock, ...] = (),
    notes: tuple[str, ...] = (),
    run: RecordedRun | None = None,
) -> Case:
    return Case(
        issue=asked.issue,
        toolchain=asked.toolchain,
        blocks=blocks,
        options=asked.options,
        plan=planned.plan,
        notes=(*planned.notes, *notes),
        settings=settings,
        run=run,
    )


def plan_issue(
    issue: Issue,
    settings: Settings,
    catalogue: Catalogue,
    *,
    workers: int | None = None,
    answered: Collection[str] = (),
) -> Report | SealedPlan:
    """Plan the run of an issue without a conversation. Return its report if there is no testcase to run.

    ``workers`` is the number of runs at the same time. ``answered`` are the releases of an earlier answer to the same
    text.

    Raises:
        UserError: the settings name a version or device that does not exist, or the testcase is too large.
    """
    asked = read_testcase(issue, settings, SlashCommand(verb=Verb.RUN))
    if (report := make_unrun_report(asked)) is not None:
        return report
    assert isinstance(asked.extraction, Repro)
    if workers is not None:
        budget = msgspec.structs.replace(asked.options.budget, workers=workers)
        asked = replace(asked, options=replace(asked.options, budget=budget))
    assert isinstance(asked.extraction, Repro)
    return seal_plan(
        make_case(asked, make_plan(asked.extraction, catalogue, asked.options, answered=answered), settings)
    )


# ---------------------------------------------------------------------------------------------- plan → cells


def split_into_cells(
    plan: Plan, settings: Settings, machines: Sequence[str] = (), *, minimize: bool = False
) -> tuple[JobCell, ...]:
    """Return the cells of a plan: for ordinary machines first, then one for each of ``machines``."""
    special = {device for devices in settings.machines.values() for device in devices}
    ordinary = msgspec.structs.replace(plan, devices=tuple(d for d in plan.devices if d not in special))
    parts = split_releases(ordinary, settings.limits.versions_per_job)
    names = [ORDINARY] if len(parts) == 1 else [f"{ORDINARY}-{i}" for i in range(1, len(parts) + 1)]
    cells = [(name, "", part) for name, part in zip(names, parts, strict=True)]
    cells += [(f"on-{name}", name, plan) for name in machines]
    return tuple(
        JobCell(
            id=id,
            machine=machine,
            plan=part,
            testcase_sha256=digest_of(plan.testcase),
            sandbox=settings.sandbox,
            allow=settings.allow,
            download_mib=settings.limits.download,
            minimize=minimize and id == names[-1],  # only the cell with the newest releases
        )
        for id, machine, part in cells
    )


def split_releases(plan: Plan, size: int) -> tuple[Plan, ...]:
    """Return ``plan`` as plans of at most ``size`` releases each. A plan that searches is not split."""
    runs_all = set(plan.first) >= set(plan.order)
    if plan.bisect or not runs_all or len(plan.order) <= size:
        return (plan,)
    parts = [plan.order[i : i + size] for i in range(0, len(plan.order), size)]
    return tuple(
        msgspec.structs.replace(
            plan, order=part, first=part, reported=plan.reported if plan.reported in part else None
        )
        for part in parts
    )


# ---------------------------------------------------------------------------------------------- results → report


def judge_results(
    case: Case,
    results: JobResults,
    catalogue: Catalogue,
    *,
    history: CommitHistory | None = None,
    ranking: CommitsFile | None = None,
) -> Report:
    """Return the report of a case from the results of its cells. The last two are as in `assemble_report`.

    Raises:
        InfraError: no cell ran the testcase, through failures of ours.
    """
    extraction = extract_with_blocks(
        case.issue, toolchain=case.toolchain, blocks=case.blocks, allow=case.options.allowed
    )
    if not results.seen.observations and results.problems:
        raise InfraError("; ".join(f"{one.cell}: {one.why}" for one in results.problems))
    missing = (f"the runs of cell {one.cell} are missing: {one.why}" for one in results.problems)
    return assemble_report(
        ReportInput(issue=case.issue, toolchain=case.toolchain, options=case.options, extraction=extraction),
        case.plan,
        results.seen,
        notes=(*case.notes, *missing),
        catalogue=catalogue,
        history=history,
        ranking=ranking,
    )
