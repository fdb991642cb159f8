"""Check that issues that behave alike have one failure: run each minimised testcase on the other's builds.

Likeness compares the releases that both issues ran. Two failures with one message may differ on a release that only
one issue ran. The part of a testcase that is unrelated to the failure may hide a difference.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import msgspec

from bot.daemon.steps import RunPlan
from bot.extract import Repro
from bot.issue import Issue
from bot.plan import make_plan
from bot.requests.commands import SlashCommand, Verb
from bot.requests.plan_file import make_case, seal_plan
from bot.requests.result_files import read_results
from bot.requests.testcase import read_testcase
from bot.settings import Settings
from bot.tracker.duplicates import ALIKE, ANSWERS, MOST_SUGGESTIONS, list_candidates
from bot.tracker.rows import IssueRow, PairCheck, TrackedIssue
from bot.tracker.state import TrackerState
from bot.tracker.summary import BAD, GOOD, find_failure, summarize_cells
from runners.core.errors import InfraError, ReprobotError
from runners.core.failure.compare import compare_signatures
from runners.core.job_files import read_plan
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import Investigation, JobCell, JobPlan, Plan, Signature, digest_of
from runners.toolchains import find_toolchain

MAX_PAIRS = 60
"""Largest number of pairs that one sweep checks: a reduction may take 300 runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimised:
    """A plan whose testcase is as small as its failure allows, and the cell that runs it."""

    plan: Plan
    cell: JobCell


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossChecker:
    """Everything that a check needs; each effect is a field."""

    settings: Settings
    catalogue: Catalogue
    run_plan: RunPlan
    folder: Path
    """Folder for the files of active runs."""


def make_key(one: IssueRow, other: IssueRow) -> str:
    """Return the digest of the texts, the code and the releases that a check of two issues depends on."""
    parts = [
        msgspec.json.encode((row.testcase, sorted(row.cells.items()), row.fingerprint.product))
        for row in (one, other)
    ]
    return sha256(b"\0".join(parts)).hexdigest()[:16]


def confirm_duplicates(
    checker: CrossChecker,
    state: TrackerState,
    fetch: Callable[[TrackedIssue], Issue],
    log: Callable[[str], None],
) -> int:
    """Check the pairs that may have one failure, and keep the confirmed ones. Return the number of new checks.

    A pair that cannot be checked because of our failure is not confirmed. The next sweep tries it again.
    """
    rows = list(state.list_rows().values())
    known = state.list_pair_checks()
    small: dict[str, Minimised] = {}
    same: dict[str, list[str]] = defaultdict(list)
    new = 0
    for one, other in list_candidates(rows):
        name = (one.issue.id, other.issue.id)
        if max(len(same[id]) for id in name) >= MOST_SUGGESTIONS:
            continue
        if (check := known.get(name)) is not None and check.key == make_key(one, other):
            _add_pair(same, name, check)
            continue
        if new >= MAX_PAIRS:
            continue
        try:
            for row in (one, other):
                if one.testcase != other.testcase and row.issue.id not in small:
                    small[row.issue.id] = minimise_issue(checker, fetch(row.issue), row.testcase)
            if one.testcase == other.testcase:
                check = PairCheck(key=make_key(one, other), same=True, why="the testcases are identical")
            else:
                check = check_pair(checker, (one, other), (small[one.issue.id], small[other.issue.id]))
        except ReprobotError as error:
            log(f"{one.issue.id}, {other.issue.id}: not compared: {error}")
            continue
        log(f"{one.issue.id}, {other.issue.id}: {'the same failure' if check.same else 'not the same'}: {check.why}")
        state.keep_pair_check(name, check)
        _add_pair(same, name, check)
        new += 1
    state.keep_rows(msgspec.structs.replace(row, same=tuple(same[row.issue.id])) for row in rows)
    return new


def _add_pair(same: dict[str, list[str]], pair: tuple[str, str], check: PairCheck) -> None:
    if check.same:
        same[pair[0]].append(pair[1])
        same[pair[1]].append(pair[0])


def minimise_issue(checker: CrossChecker, issue: Issue, testcase: str) -> Minimised:
    """Return the minimised testcase of an issue; the testcase as posted if it cannot be made smaller.

    ``testcase`` is the digest of the testcase that the issue's answer is about.

    Raises:
        UserError: the testcase is too large for a plan.
        InfraError: no run was possible.
    """
    asked = read_testcase(issue, checker.settings, SlashCommand(verb=Verb.MINIMIZE))
    budget = msgspec.structs.replace(asked.options.budget, workers=1)
    asked = replace(asked, options=replace(asked.options, budget=budget))
    found = asked.extraction
    if not isinstance(found, Repro) or digest_of(found.testcase) != testcase:
        raise InfraError(f"{issue.source} was edited meanwhile")
    planned = make_plan(found, checker.catalogue, asked.options)
    sealed = seal_plan(make_case(asked, planned, checker.settings))
    seen = _run_sealed(checker, sealed.data, sealed.sha256)
    cell, plan = sealed.cells[-1], planned.plan
    if seen.smaller is None:
        return Minimised(plan=plan, cell=cell)
    return Minimised(plan=msgspec.structs.replace(plan, testcase=seen.smaller.testcase), cell=cell)


def check_pair(
    checker: CrossChecker, pair: tuple[IssueRow, IssueRow], small: tuple[Minimised, Minimised]
) -> PairCheck:
    """Run each minimised testcase on the builds of both, and compare answer by answer.

    Raises:
        InfraError: no run was possible.
    """
    key = make_key(*pair)
    builds = _list_builds(pair, checker.catalogue)
    seen = tuple(_run_on(checker, one, builds) for one in small)
    cells = tuple(summarize_cells(one.observations, each.plan.device) for one, each in zip(seen, small, strict=True))
    failures = tuple(find_failure(one.observations) for one in seen)
    common = [build for build in builds if all(one.get(build) in ANSWERS for one in cells)]
    if apart := next((build for build in common if cells[0][build] != cells[1][build]), ""):
        why = f"on {apart} the minimised testcase of {_name_good(pair, cells, apart)} passes, and the other fails"
        return PairCheck(key=key, same=False, why=why, builds=tuple(common))
    if not any(cells[0][build] == BAD for build in common):
        why = "no build shows both failures"
    elif any(GOOD in own.values() for own in cells) and not any(cells[0][build] == GOOD for build in common):
        why = "one minimised testcase passes somewhere, and no build shows that the other passes there"
    elif not _are_alike(failures, pair[0].toolchain):
        why = "the minimised testcases fail in different words"
    else:
        return PairCheck(key=key, same=True, why=f"alike on {len(common)} builds", builds=tuple(common))
    return PairCheck(key=key, same=False, why=why, builds=tuple(common))


def _name_good(pair: Sequence[IssueRow], cells: Sequence[Mapping[str, str]], build: str) -> str:
    return next(row.issue.id for row, own in zip(pair, cells, strict=True) if own[build] == GOOD)


def _list_builds(pair: tuple[IssueRow, IssueRow], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the builds that one of the two was tried on, oldest first.

    A minimised testcase may run on a build that cannot run the posted testcase, and distinguish two failures there.
    """
    ran = {build for row in pair for build in row.cells}
    every = catalogue.list_releases(pair[0].toolchain, prereleases=True)
    return tuple(one.version for one in every if one.version in ran)


def _are_alike(failures: Sequence[Signature | None], toolchain: str) -> bool:
    one, other = failures
    if one is None or other is None or one.type != other.type:
        return False
    vocabulary = find_toolchain(toolchain).FAILURES
    scores = (compare_signatures(*each, vocabulary).score for each in ((one, other), (other, one)))
    return min(scores) >= ALIKE


def _run_on(checker: CrossChecker, small: Minimised, builds: tuple[str, ...]) -> Investigation:
    """Run a minimised testcase on all these builds, without search and diagnosis."""
    plan = msgspec.structs.replace(
        small.plan,
        order=builds,
        first=builds,
        reported=small.plan.reported if small.plan.reported in builds else None,
        devices=(),
        bisect=False,
        deepen=False,
        diagnose=False,
        chosen=True,
    )
    cell = msgspec.structs.replace(small.cell, plan=plan, testcase_sha256=digest_of(plan.testcase), minimize=False)
    data = msgspec.json.encode(JobPlan(cells=(cell,), case=msgspec.Raw(b"null")))
    return _run_sealed(checker, data, sha256(data).hexdigest())


def _run_sealed(checker: CrossChecker, data: bytes, digest: str) -> Investigation:
    plan = read_plan(data, digest)
    folder = checker.folder / digest[:20]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        (folder / "plan.json").write_bytes(data)
        checker.run_plan(folder, plan, digest)
        results = read_results(folder / "results", plan.cells, digest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not results.seen.observations:
        raise InfraError("; ".join(one.why for one in results.problems) or "no run was made")
    return results.seen
