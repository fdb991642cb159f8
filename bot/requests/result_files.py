"""Check the result files of the probing jobs, and turn them into observations for a verdict.

A job that ran strangers' code may be compromised: then its file can contain anything. So a file is read only under
the name that the plan gives it, and only if it is a plain file of limited size. Its content must be exactly of our
schema, and for this plan, cell, releases and devices. A refused file is a failure of ours in the report, never a
verdict. An accepted file is still a claim about its own cell, and about no other.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import msgspec

from bot.verdict.rules.phrases import quote_span
from runners.core.failure.outcomes import explains_outcome, get_answer
from runners.core.findings.kinds import CAUSES, KINDS
from runners.core.findings.record import add_evidence, is_shallow, read_evidence
from runners.core.findings.types import Confirmation
from runners.core.protocol import (
    SCHEMA,
    BuildRange,
    CellResult,
    Cost,
    Finding,
    Investigation,
    JobCell,
    Observation,
    Plan,
    RangeBuild,
    Smaller,
    Times,
    count_lines,
)
from runners.toolchains import find_toolchain

MAX_RESULT_BYTES = 4 * 1024 * 1024
MAX_SECONDS = 7 * 24 * 3600
MAX_WEIGHT = 1e9
"""Most weight of a build in a search, which is about the number of its commits: the sum must stay a number."""

Word = TypeVar("Word")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedResult:
    """A cell without a usable result. ``why`` may contain the cell's own words: quote them."""

    cell: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResults:
    """The results of all jobs, in the order of the plan's cells, and the cells without a usable result."""

    seen: Investigation
    problems: tuple[RefusedResult, ...] = ()


def read_results(
    folder: Path, cells: Sequence[JobCell], plan_sha256: str, refused: Mapping[str, str] | None = None
) -> JobResults:
    """Read the results of ``cells`` under ``folder``. A file's content never raises an error.

    The times are those of the cell that took longest: each cell counts from its own start.

    ``refused`` maps each cell whose artifact has no proven origin to the reason: its file is not read.
    """
    read = [_read_cell(folder, cell, plan_sha256, (refused or {}).get(cell.id)) for cell in cells]
    good = [one.seen for one in read if isinstance(one, CellResult)]
    return JobResults(
        seen=Investigation(
            observations=tuple(seen for one in good for seen in one.observations),
            findings=tuple(finding for one in good for finding in one.findings),
            trail=next((one.trail for one in good if one.trail is not None), None),
            smaller=next((one.smaller for one in good if one.smaller is not None), None),
            conditions=tuple(dict.fromkeys(text for one in good for text in one.conditions)),
            cost=Cost(
                made=sum(one.cost.made for one in good),
                reused=sum(one.cost.reused for one in good),
                seconds=sum(one.cost.seconds for one in good),
            ),
            times=max((one.times for one in good), key=lambda times: times.seconds, default=Times()),
        ),
        problems=tuple(one for one in read if isinstance(one, RefusedResult)),
    )


def _read_cell(folder: Path, cell: JobCell, plan_sha256: str, refused: str | None) -> CellResult | RefusedResult:
    """Read a result as the probe wrote it, or from the folder of the artifact that carried it."""
    content: bytes | str = "the job failed, was cancelled or ran out of time"
    for inner in ("", f"cell-{cell.id}"):
        read = read_plain_file(folder / inner, f"{cell.id}.json")
        if read is not None:
            content = read if refused is None else refused
            break
    if isinstance(content, str):
        return RefusedResult(cell=cell.id, why=content)
    checked = check_result(content, cell, plan_sha256)
    return RefusedResult(cell=cell.id, why=checked) if isinstance(checked, str) else checked


def read_plain_file(folder: Path, name: str) -> bytes | str | None:
    """Return a plain file's bytes, or why it is refused, or None if there is no file.

    Follows no symbolic link, and does not block on a pipe.
    """
    try:
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inside)
    except FileNotFoundError:
        return None
    except OSError:
        return "the result is not a regular file"
    finally:
        os.close(inside)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return "the result is not a regular file"
    with os.fdopen(file, "rb") as opened:
        data = opened.read(MAX_RESULT_BYTES + 1)
    return data if len(data) <= MAX_RESULT_BYTES else f"the result is larger than {MAX_RESULT_BYTES // 1024} KiB"


def check_result(data: bytes, cell: JobCell, plan_sha256: str) -> CellResult | str:
    """Return the result in ``data`` if it belongs to this cell of this plan, else a clause on why it does not.

    The result's sentences are quoted: the report shows them among our own.
    """
    try:
        result = msgspec.json.decode(data, type=CellResult)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "the result does not follow the schema"
    fault = next(_find_faults(result, cell, plan_sha256), None)
    if fault is not None:
        return fault
    return msgspec.structs.replace(result, seen=_quote_sentences(result.seen, cell.plan))


def _quote_sentences(seen: Investigation, plan: Plan) -> Investigation:
    """Put the sentences of a result into code spans, except those of our own closed sets."""
    trail = seen.trail
    if trail is not None and trail != plan.trail:
        notes = tuple(quote_span(text) for text in trail.notes)
        trail = msgspec.structs.replace(trail, notes=notes, over=quote_span(trail.over))
    return msgspec.structs.replace(
        seen,
        conditions=tuple(quote_span(text) for text in seen.conditions),
        trail=trail,
        findings=tuple(map(_quote_refutation, seen.findings)),
        observations=tuple(
            msgspec.structs.replace(run, findings=tuple(map(_quote_refutation, run.findings)))
            for run in seen.observations
        ),
    )


def _quote_refutation(finding: Finding) -> Finding:
    """Quote what would disprove a finding, unless it is the sentence of its kind or of its cause."""
    said = read_evidence(finding).refuted_by
    own = (KINDS[finding.kind].refuted_by, *(one.refuted_by for one in CAUSES.values()))
    if not said or said in own:
        return finding
    return add_evidence(finding, Confirmation(refuted_by=quote_span(said)))


def _find_faults(result: CellResult, cell: JobCell, plan_sha256: str) -> Iterator[str]:
    if result.schema != SCHEMA:
        yield "the result has another schema version"
    if result.cell != cell.id:
        yield "the result names another cell"
    if result.plan_sha256 != plan_sha256:
        yield "the result belongs to another plan"
    if result.problem:
        yield "the cell could not run: " + quote_span(result.problem)
    own = (finding for run in result.seen.observations for finding in run.findings)
    if not all(is_shallow(finding.evidence) for finding in (*result.seen.findings, *own)):
        yield "the result contains evidence that is nested too deeply"  # and no reader below may recurse into it
    if _has_huge_number(msgspec.to_builtins(result)):
        yield "the result contains a number that no run can produce"
    seen = result.seen
    if len(seen.observations) > count_allowed_runs(cell):
        yield "the result contains more runs than the budget allows"
    if min(seen.cost.made, seen.cost.reused) < 0 or not _is_duration(seen.cost.seconds):
        yield "the result contains a number that no run can produce"
    if (smaller := seen.smaller) is not None and not _is_planned_reduction(smaller, cell):
        yield "the smaller testcase is no reduction of the planned testcase"
    if (between := seen.trail) is not None and not _is_planned_range(between, cell.plan):
        yield "the builds between releases are outside the planned range"
    builds = {*cell.plan.order, *(build.name for build in between.builds)} if between else set(cell.plan.order)
    devices = _list_devices(cell)
    for run in seen.observations:
        if run.toolchain != cell.plan.testcase.toolchain or run.version not in builds:
            yield "the result contains runs of a release that was not planned"
        if run.device not in devices:
            yield "the result contains runs on a device that was not planned"
        if run.answer is not get_answer(run.outcome):
            yield "the result contains an answer that contradicts its outcome"
        if not explains_outcome(run.reason, run.outcome):
            yield "the result contains an outcome without a reason for it"
        if not _is_known_setup(run):
            yield "the result names an unknown fork, sandbox or driver"
        if run.attempt < 1 or not _is_duration(run.seconds) or run.peak_bytes < 0:
            yield "the result contains a number that no run can produce"
    if not all(run.version in builds and run.device in devices for run in seen.times.runs):
        yield "the result contains times of runs that were not planned"
    spans = [*((one.begin, one.end) for one in seen.times.stages), *((one.begin, one.end) for one in seen.times.runs)]
    if any(end < begin for begin, end in spans):
        yield "the result contains a number that no run can produce"


_FORK = re.compile(r"[0-9a-f]{7,40}, carried by [A-Za-z][\w.-]{0,60} \d[\w.+]{0,40}", re.ASCII)
ENGINES = frozenset({"", "docker", "podman", "bubblewrap", "gvisor", "none"})
DRIVERS = frozenset({"", "lavapipe, a Vulkan driver that runs on the CPU"})


def _is_known_setup(run: Observation) -> bool:
    """True if the names of fork, sandbox and driver are a probe's own: sentences show them as our words."""
    return run.engine in ENGINES and run.driver in DRIVERS and bool(not run.fork or _FORK.fullmatch(run.fork))


def _has_huge_number(value: object, limit: int = 2**64) -> bool:
    """True if a whole number in ``value`` is too large for arithmetic. Evidence may contain any number."""
    match value:
        case int():
            return abs(value) > limit
        case dict():
            return any(_has_huge_number(one, 2**1000 if name == "evidence" else limit) for name, one in value.items())
        case list() | tuple():
            return any(_has_huge_number(one, limit) for one in value)
        case _:
            return False


def _is_planned_range(between: BuildRange, plan: Plan) -> bool:
    """True if a build range is the plan's own, or is between two of its releases with a planned search.

    Every number of a range is shown or used in a calculation, so each must be one that a search can have.
    """
    if plan.trail is not None:
        return between == plan.trail
    ends = {between.builds[0].name, between.builds[-1].name}
    beliefs = (between.confidence, between.publish)
    return (
        plan.deepen
        and ends <= set(plan.order)
        and all(0.5 <= belief < 1 for belief in beliefs)
        and 0 <= between.calibration <= 100
        and 0 < between.probes <= 10_000
        and all(_is_plausible(build, plan) for build in between.builds)
        and all(earlier.commits <= later.commits for earlier, later in pairwise(between.builds))
        and between.repository in ("", find_toolchain(plan.testcase.toolchain).REPOSITORY)
    )


_BUILD = re.compile(
    r"\d{1,9}(?:\.\d{1,9}){0,5}(?:(?:a|b|rc|\.dev|\.post)\d{1,12}){0,3}(?:\+(?:g?[0-9a-f.]{1,40}|cpu|cu\d{1,4}))?",
    re.ASCII,
)
"""A version as builds have: ``3.10.0rc20251203``, ``0.26.1.post137+g1a2b3c4d5e6f``. It has no room for a message."""
_COMMIT = re.compile(r"(?:[0-9a-f]{7,64})?", re.ASCII)


def _is_plausible(build: RangeBuild, plan: Plan) -> bool:
    """True for a build with a version, a commit and numbers that a list of builds can have: sentences name them."""
    return (
        (build.name in plan.order or _BUILD.fullmatch(build.name) is not None)
        and _COMMIT.fullmatch(build.commit) is not None
        and 0 <= build.commits < 10_000_000
        and 0 <= build.weight <= MAX_WEIGHT
    )


def _is_planned_reduction(smaller: Smaller, cell: JobCell) -> bool:
    """True if the plan asks for a smaller testcase, and this one has the plan's files, steps and releases.

    A reduction removes commands and flags. Only the text of files is its own: the comment calls it data.
    """
    plan, made = cell.plan, smaller.testcase
    numbers = (smaller.before, smaller.after, smaller.probes, smaller.confirmed)
    return (
        cell.minimize
        and made.kind == plan.testcase.kind
        and made.toolchain == plan.testcase.toolchain
        and made.requirements == plan.testcase.requirements
        and (made.variables, made.filters) == (plan.testcase.variables, plan.testcase.filters)
        and made.files.keys() <= plan.testcase.files.keys()  # no file is new
        and _is_subsequence(made.steps, plan.testcase.steps, _has_fewer_flags)
        and smaller.before == count_lines(plan.testcase)
        and smaller.after == count_lines(made)
        and smaller.version in plan.order
        and smaller.control in ("", *plan.order)
        and smaller.device == plan.device
        and all(number >= 0 for number in numbers)
        and _is_duration(smaller.seconds)
    )


def _is_subsequence(some: Sequence[Word], planned: Sequence[Word], matches: Callable[[Word, Word], bool]) -> bool:
    """True if each of ``some`` matches one of ``planned``, in the same order."""
    left = iter(planned)
    return all(any(matches(one, other) for other in left) for one in some)


def _has_fewer_flags(step: Sequence[str], planned: Sequence[str]) -> bool:
    """True if ``step`` is the command ``planned`` without some of its flags (``-o`` goes with its word)."""
    return step[:1] == planned[:1] and _is_subsequence(step, planned, str.__eq__)


def count_allowed_runs(cell: JobCell) -> int:
    """Return the largest number of runs that a cell may report: each may run twice, and a diagnosis adds controls."""
    return 2 * cell.plan.budget.probes + 40


def _list_devices(cell: JobCell) -> frozenset[str]:
    toolchain = find_toolchain(cell.plan.testcase.toolchain)
    return frozenset({cell.plan.device, *cell.plan.devices, *(device.name for device in toolchain.DEVICES)})


def _is_duration(seconds: float) -> bool:
    return math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS
