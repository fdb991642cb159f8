"""The shell: each verb reads as its own summary, and every effect it has arrives as an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.extract import extract
from bot.extract.types import Repro
from bot.issue import Issue
from bot.plan import Wishes, follow_plan, make_plan
from bot.report.assemble import Asked, assemble_report, refuse_mere_infrastructure, report_without_run
from bot.suspects.ranges import History
from bot.suspects.rank import beliefs, query_of, rank, suspects
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import Report
from runners.cell import run_plan
from runners.core.bench import MOST_PROBES, MOST_SECONDS, Bench, DeepBench
from runners.core.bisection.commits import Prior
from runners.core.catalogue import Catalogue
from runners.core.errors import UserError
from runners.core.protocol import CommitRange, Smaller, Suspect
from runners.minimization.minimize import ends


def reproduce(
    issue: Issue,
    *,
    toolchain: str | None,
    wishes: Wishes,
    catalogue: Catalogue,
    open_bench: Callable[[], Bench],
    allowed: Mapping[str, str] | None = None,
    history: History | None = None,
) -> Report:
    """Issue → report. The bench is opened only when there is something to run.

    ``allowed`` maps imports to distributions that may be installed besides those on the list. With a ``history`` the
    commits between two builds are ranked.

    Raises:
        UserError: a version or toolchain that does not exist was asked for.
        InfraError: nothing could be run, through no fault of the testcase.
    """
    asked = Asked(
        issue=issue,
        toolchain=toolchain,
        wishes=wishes,
        extraction=extract(issue, toolchain=toolchain, allowed=allowed),
    )
    if (report := report_without_run(asked)) is not None:
        return report
    assert isinstance(asked.extraction, Repro)
    planned = make_plan(asked.extraction, catalogue, wishes)
    seen = run_plan(open_bench(), planned.plan, smaller=wishes.minimize, prior=_prior(asked))
    return assemble_report(asked, planned.plan, seen, notes=planned.notes, catalogue=catalogue, history=history)


def minimize(
    issue: Issue,
    *,
    toolchain: str | None,
    wishes: Wishes,
    catalogue: Catalogue,
    open_bench: Callable[[], Bench],
    allowed: Mapping[str, str] | None = None,
    good: str | None = None,
    probes: int = MOST_PROBES,
    seconds: float = MOST_SECONDS,
) -> Smaller:
    """The issue's testcase, cut down on the newest release asked for where it fails as reported.

    Raises:
        UserError: there is no testcase, it fails nowhere as reported, or only a release that passes (``good``) could
            tell a smaller one from a wrong one.
        InfraError: nothing could be run, through no fault of the testcase.
    """
    extraction = extract(issue, toolchain=toolchain, allowed=allowed)
    if (verdict := judge_without_running(extraction)) is not None or not isinstance(extraction, Repro):
        raise UserError(verdict.headline if verdict is not None else "there is nothing to cut down")
    plan = make_plan(extraction, catalogue, replace(wishes, bisect=False)).plan
    control = catalogue.find(plan.testcase.toolchain, good).version if good else ""
    bench = open_bench()
    seen = bench.run(plan)
    refuse_mere_infrastructure(seen.observations)
    version, passing = ends(plan, seen.observations)
    return bench.minimize(plan, version, control=control, passing=passing, probes=probes, seconds=seconds)


def bisect(
    issue: Issue,
    *,
    toolchain: str | None,
    wishes: Wishes,
    catalogue: Catalogue,
    open_bench: Callable[[], DeepBench],
    allowed: Mapping[str, str] | None = None,
    history: History | None = None,
) -> Report:
    """Issue → report of where it changes between the two ends that ``wishes`` name, to the commit if builds allow.

    Raises:
        UserError: an end means nothing, or nothing between the two can be had.
        InfraError: nothing could be run, through no fault of the testcase.
    """
    assert wishes.ends is not None
    extraction = extract(issue, toolchain=toolchain, allowed=allowed)
    asked = Asked(issue=issue, toolchain=toolchain, wishes=wishes, extraction=extraction)
    if (report := report_without_run(asked)) is not None:
        return report
    assert isinstance(extraction, Repro)
    bench = open_bench()
    trail = bench.list_builds(extraction.testcase.toolchain, *wishes.ends, _prior(asked))
    plan = follow_plan(extraction, trail, wishes)
    seen = run_plan(bench, plan)
    return assemble_report(asked, plan, seen, notes=(), catalogue=catalogue, history=history)


def _prior(asked: Asked) -> Prior:
    """Where a search along commits looks first: at those most related to the report."""
    query = query_of(asked.issue, asked.extraction)
    return lambda commits, direction: beliefs(rank(query, commits, direction))


def find_suspects(
    issue: Issue, *, toolchain: str, start: str, end: str, catalogue: Catalogue, history: History, dated: bool = True
) -> tuple[CommitRange, tuple[Suspect, ...]]:
    """The commits between two revisions or releases that are most related to an issue.

    A fix is looked for, or a cause where the report came after the whole range. Without ``dated`` the issue's date is
    not the report's.

    Raises:
        UserError: a revision means nothing in this history.
    """
    older, newer = (_revision(text, toolchain, catalogue) for text in (start, end))
    between = history.between(older, newer)
    query = query_of(issue, extract(issue, toolchain=toolchain))
    query = query if dated else replace(query, day=None)
    late = query.day is not None and history.day(newer) < query.day
    first, last = history.resolve(older), history.resolve(newer)
    repository = catalogue.listing(toolchain).repository
    link = f"https://github.com/{repository}/compare/{first}...{last}" if repository else ""
    commits = CommitRange(start=first, end=last, count=len(between), compare_url=link)
    return commits, suspects(query, between, "introduced" if late else "fixed")


def _revision(text: str, toolchain: str, catalogue: Catalogue) -> str:
    """A release's commit where ``text`` is a version, else ``text`` itself: a revision of the repository."""
    try:
        release = catalogue.find(toolchain, text)
    except UserError:
        return text
    return release.commit or release.near or release.tag or text
