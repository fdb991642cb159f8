"""The commands that work on one issue on this machine: reproduce, bisect, minimize and suspects.

Each function reads as its own summary. Every effect arrives as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from bot.extract import extract
from bot.extract.types import Repro
from bot.issue import Issue
from bot.plan import RunOptions, make_plan, plan_commit_search
from bot.report.assemble import ReportInput, assemble_report, judge_so_far, make_unrun_report, require_testcase_runs
from bot.suspects.ranges import CommitHistory
from bot.suspects.rank import compute_beliefs, make_query, rank_commits, select_suspects
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import Report
from runners.cells.run import run_plan
from runners.core.bench import MOST_PROBES, MOST_SECONDS, Bench, DeepBench
from runners.core.bisection.commits import Prior
from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Catalogue
from runners.core.packages.requirements import parse_allowance
from runners.core.protocol import CommitRange, Observation, Smaller, Suspect


def reproduce_issue(
    issue: Issue,
    *,
    toolchain: str | None,
    options: RunOptions,
    catalogue: Catalogue,
    open_bench: Callable[[], Bench],
    history: CommitHistory | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> Report:
    """Run an issue's testcase on releases, and return the report.

    The bench is opened only if there is a testcase to run. With a ``history``, the commits between two builds are
    ranked. ``say`` gets the answer so far, before a search for the cause of a failure.

    Raises:
        UserError: the options name a version or toolchain that does not exist.
        InfraError: no run was possible, through no fault of the testcase.
    """
    asked = _read_testcase(issue, toolchain, options)
    if (report := make_unrun_report(asked)) is not None:
        return report
    assert isinstance(asked.extraction, Repro)
    planned = make_plan(asked.extraction, catalogue, options)

    def tell(observations: Sequence[Observation]) -> None:
        with suppress(InfraError):  # the report states why no run was possible
            say(f"so far: {judge_so_far(asked, planned.plan, observations).headline}")

    seen = run_plan(open_bench(), planned.plan, smaller=options.minimize, prior=_make_prior(asked), tell=tell)
    return assemble_report(asked, planned.plan, seen, notes=planned.notes, catalogue=catalogue, history=history)


def bisect_issue(
    issue: Issue,
    *,
    toolchain: str | None,
    options: RunOptions,
    catalogue: Catalogue,
    open_bench: Callable[[], DeepBench],
    history: CommitHistory | None = None,
) -> Report:
    """Search between the two ends in ``options``, to the commit if builds allow, and return the report.

    Raises:
        UserError: an end is not a version, tag or commit, or there is no build between the two.
        InfraError: no run was possible, through no fault of the testcase.
    """
    assert options.ends is not None
    asked = _read_testcase(issue, toolchain, options)
    if (report := make_unrun_report(asked)) is not None:
        return report
    assert isinstance(asked.extraction, Repro)
    bench = open_bench()
    builds = bench.list_builds(asked.extraction.testcase.toolchain, *options.ends, _make_prior(asked))
    plan = plan_commit_search(asked.extraction, builds, options)
    seen = run_plan(bench, plan)
    return assemble_report(asked, plan, seen, notes=(), catalogue=catalogue, history=history)


def minimize_testcase(
    issue: Issue,
    *,
    toolchain: str | None,
    options: RunOptions,
    catalogue: Catalogue,
    open_bench: Callable[[], Bench],
    good: str | None = None,
    probes: int = MOST_PROBES,
    seconds: float = MOST_SECONDS,
) -> Smaller:
    """Reduce the issue's testcase on the newest release in ``options`` where it fails as reported.

    Raises:
        UserError: there is no testcase, no release fails as reported, or a wrong result is minimized without a
            release that passes (``good``).
        InfraError: no run was possible, through no fault of the testcase.
    """
    from runners.minimization.minimize import choose_releases

    extraction = _read_testcase(issue, toolchain, options).extraction
    if (verdict := judge_without_running(extraction)) is not None or not isinstance(extraction, Repro):
        raise UserError(verdict.headline if verdict is not None else "the issue has no testcase to reduce")
    plan = make_plan(extraction, catalogue, replace(options, bisect=False)).plan
    control = catalogue.find(plan.testcase.toolchain, good).version if good else ""
    bench = open_bench()
    seen = bench.run(plan)
    require_testcase_runs(seen.observations)
    version, passing = choose_releases(plan, seen.observations)
    return bench.minimize(plan, version, control=control, passing=passing, probes=probes, seconds=seconds)


def find_suspects(
    issue: Issue,
    *,
    toolchain: str,
    start: str,
    end: str,
    catalogue: Catalogue,
    history: CommitHistory,
    dated: bool = True,
) -> tuple[CommitRange, tuple[Suspect, ...]]:
    """Return the range between two revisions or releases, and its commits most related to the issue.

    Likely fixes are looked for; if the report is later than the whole range, likely causes. ``dated`` is False if
    the issue's date is not the report's.

    Raises:
        UserError: a revision is not in this history.
    """
    older, newer = (_resolve_revision(text, toolchain, catalogue) for text in (start, end))
    between = history.between(older, newer)
    # The branch of a release has a few commits of its own, so a range in the wrong order need not be empty.
    if history.day(older) >= history.day(newer) and len(history.between(newer, older)) > len(between):
        raise UserError(_explain_order(start, end))
    repository = catalogue.get_listing(toolchain).repository
    query = make_query(issue, extract(issue, toolchain=toolchain), repository)
    query = query if dated else replace(query, day=None)
    is_late = query.day is not None and history.day(newer) < query.day
    first, last = history.resolve(older), history.resolve(newer)
    url = f"https://github.com/{repository}/compare/{first}...{last}" if repository else ""
    commits = CommitRange(start=first, end=last, count=len(between), compare_url=url)
    return commits, select_suspects(query, between, "introduced" if is_late else "fixed")


def check_order(toolchain: str, start: str, end: str, catalogue: Catalogue) -> None:
    """Refuse the ends of a range that are swapped, as far as the catalogue knows them: a clone takes minutes.

    Raises:
        UserError: with the right order.
    """
    try:
        older, newer = catalogue.find(toolchain, start), catalogue.find(toolchain, end)
    except UserError:
        return  # commits and branches: the history knows their order
    if older.order > newer.order:
        raise UserError(_explain_order(start, end))


def _explain_order(start: str, end: str) -> str:
    return f"{start} is newer than {end}: write --from {end} --to {start}"


def _read_testcase(issue: Issue, toolchain: str | None, options: RunOptions) -> ReportInput:
    extraction = extract(issue, toolchain=toolchain, allowed=parse_allowance(options.allowed))
    return ReportInput(issue=issue, toolchain=toolchain, options=options, extraction=extraction)


def _make_prior(asked: ReportInput) -> Prior:
    """Return the prior of a search between commits: the commits most related to the report first."""
    query = make_query(asked.issue, asked.extraction)
    return lambda commits, direction: compute_beliefs(rank_commits(query, commits, direction))


def _resolve_revision(text: str, toolchain: str, catalogue: Catalogue) -> str:
    """Return a release's commit if ``text`` is a version, else ``text`` itself: a revision of the repository."""
    try:
        release = catalogue.find(toolchain, text)
    except UserError:
        return text
    return release.commit or release.near or release.tag or text
