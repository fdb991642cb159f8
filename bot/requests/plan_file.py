"""An issue → ``plan.json``; results → a report. What the three jobs have in common with one run on one machine. Pure.

A search needs its last answer before it can ask the next question, so a search is never spread over jobs: starting
one costs more than the five or six runs that a search among all releases takes. One cell is a whole investigation on
one kind of machine. Only releases that are all to be run, without a search, are dealt out in packs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from bot.extract import Extraction, NoRepro, Repro, extract
from bot.forge.run_record import Run
from bot.issue import Issue
from bot.plan import Wishes
from bot.report.assemble import Asked, assemble_report
from bot.requests.commands import Block
from bot.requests.result_files import Results
from bot.settings import Settings
from bot.verdict.verdict import Report
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.protocol import MAX_PLAN_BYTES, Claim, ClaimKind, JobCell, JobPlan, Plan, digest_of
from runners.core.requirements import parse_allowance

ORDINARY = "any"
"""The cell for machines that need no approval; also the name of its matrix."""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the reporting job must know and the probing jobs never read: the issue as it was when planned."""

    issue: Issue
    toolchain: str | None
    blocks: tuple[Block, ...]
    wishes: Wishes
    plan: Plan
    notes: tuple[str, ...]
    settings: Settings
    run: Run | None = None
    """As our comment remembers it; None when nobody is to be told but the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """``plan.json`` and what the next jobs are told of it."""

    data: bytes
    sha256: str
    cells: tuple[JobCell, ...]

    def matrix(self) -> dict[str, list[str]]:
        """Kind of machine → the cells for it: all that a job matrix is made of."""
        rows: dict[str, list[str]] = {}
        for cell in self.cells:
            rows.setdefault(cell.machine or ORDINARY, []).append(cell.id)
        return rows


def seal(case: Case, cells: Sequence[JobCell]) -> Sealed:
    """The bytes of ``plan.json``; later jobs believe them by their sha256 alone.

    Raises:
        UserError: the testcase, with what is attached, is too large for any job.
    """
    data = msgspec.json.encode(JobPlan(cells=tuple(cells), case=msgspec.Raw(msgspec.json.encode(case))))
    if len(data) > MAX_PLAN_BYTES:
        size = f"{len(data):,} bytes, more than {MAX_PLAN_BYTES:,}"
        raise UserError(f"the testcase with its files makes a plan of {size}: make it smaller")
    return Sealed(data=data, sha256=sha256(data).hexdigest(), cells=tuple(cells))


def open_case(plan: JobPlan) -> Case:
    """The case in a plan whose digest was checked.

    Raises:
        UserError: another version wrote it.
    """
    try:
        return msgspec.json.decode(plan.case, type=Case)
    except msgspec.DecodeError as error:
        raise UserError(
            f"the plan's case cannot be read ({str(error)[:200]}): use one version for all jobs"
        ) from None


def encodable(issue: Issue) -> Issue:
    """The issue with U+FFFD for every lone surrogate, which JSON from a forge may hold and no file can."""
    made: Issue = msgspec.convert(_sayable(msgspec.to_builtins(issue)), Issue)
    return made


def _sayable(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {key: _sayable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_sayable(inner) for inner in value]
        case _:
            return value


# ---------------------------------------------------------------------------------------------- reading


def read_issue(
    issue: Issue, *, toolchain: str | None, blocks: Sequence[Block] = (), allow: Sequence[str] = ()
) -> Extraction:
    """The testcase of an issue, or of ``blocks`` in its place; what the report claims stays the issue's."""
    allowed = parse_allowance(allow)
    said = extract(issue, toolchain=toolchain, allowed=allowed)
    if not blocks:
        return said
    known = said.testcase.toolchain if isinstance(said, Repro) else said.toolchain
    stand_in = replace(issue, body="\n\n".join(map(_fenced, blocks)), comments=(), attachments=(), refused=())
    read = extract(stand_in, toolchain=known, allowed=allowed)
    claim = _with_claim(read.claim, said.claim)
    return replace(read, claim=claim) if isinstance(read, NoRepro) else replace(read, claim=claim, spans=())


def _fenced(block: Block) -> str:
    ticks = "```"
    while ticks in block.text:
        ticks += "`"
    return f"{ticks}{block.info}\n{block.text.rstrip()}\n{ticks}"


def _with_claim(own: Claim, said: Claim) -> Claim:
    """The issue's, unless it says nothing of how it fails and the code does (by a check of its own, for one)."""
    if said.kind is ClaimKind.UNKNOWN and own.kind is not ClaimKind.UNKNOWN:
        return msgspec.structs.replace(own, versions=own.versions or said.versions)
    return said


# ---------------------------------------------------------------------------------------------- dealing out


def cells_of(
    plan: Plan, settings: Settings, machines: Sequence[str] = (), *, minimize: bool = False
) -> tuple[JobCell, ...]:
    """The cells of a plan: ordinary machines first, then one for each of ``machines`` (names in the settings)."""
    elsewhere = {device for has in settings.machines.values() for device in has}
    here = msgspec.structs.replace(plan, devices=tuple(d for d in plan.devices if d not in elsewhere))
    packs = packed(here, settings.limits.versions_per_job)
    names = [ORDINARY] if len(packs) == 1 else [f"{ORDINARY}-{i}" for i in range(1, len(packs) + 1)]
    parts = [(name, "", pack) for name, pack in zip(names, packs, strict=True)]
    parts += [(f"on-{name}", name, plan) for name in machines]
    return tuple(
        JobCell(
            id=id,
            machine=machine,
            plan=part,
            testcase_sha256=digest_of(plan.testcase),
            sandbox=settings.sandbox,
            allow=settings.allow,
            minimize=minimize and id == names[-1],  # once, where the newest releases are
        )
        for id, machine, part in parts
    )


def packed(plan: Plan, size: int) -> tuple[Plan, ...]:
    """``plan`` as plans of at most ``size`` releases each, if all of them are to be run; else itself."""
    every = set(plan.first) >= set(plan.order)
    if plan.bisect or not every or len(plan.order) <= size:
        return (plan,)
    packs = [plan.order[i : i + size] for i in range(0, len(plan.order), size)]
    return tuple(
        msgspec.structs.replace(
            plan, order=pack, first=pack, reported=plan.reported if plan.reported in pack else None
        )
        for pack in packs
    )


# ---------------------------------------------------------------------------------------------- and back


def judged(case: Case, results: Results, catalogue: Catalogue) -> Report:
    """The report of a case from what its jobs showed.

    Raises:
        InfraError: nothing was run anywhere, through failures of ours.
    """
    extraction = read_issue(case.issue, toolchain=case.toolchain, blocks=case.blocks, allow=case.wishes.allowed)
    if not results.seen.observations and results.problems:
        raise InfraError("; ".join(f"{one.cell}: {one.why}" for one in results.problems))
    return assemble_report(
        Asked(issue=case.issue, toolchain=case.toolchain, wishes=case.wishes, extraction=extraction),
        case.plan,
        results.seen,
        notes=(*case.notes, *_said(results)),
        catalogue=catalogue,
    )


def _said(results: Results) -> Iterable[str]:
    return (f"a part of the runs is missing ({one.cell}): {one.why[:300]}" for one in results.problems)
