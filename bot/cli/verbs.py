"""The shell: each verb reads as its own summary, and every effect it has arrives as an argument."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bot.extract import extract
from bot.extract.types import Extraction, Missing, Repro
from bot.forge.source import is_remote
from bot.issue import Issue
from bot.plan import Wishes, follow_plan, make_plan
from bot.report.comment import render_comment
from bot.report.document import document, dumps
from bot.report.page import render_page
from bot.suspects.ranges import History, Lineup, line_up
from bot.suspects.rank import beliefs, query_of, rank, suspects
from bot.verdict.bisections import bisections
from bot.verdict.evidence import Evidence
from bot.verdict.judge import judge, judge_without_running
from bot.verdict.verdict import Report
from runners.core.bisection.commits import Prior
from runners.core.catalogue import Catalogue
from runners.core.errors import InfraError, UserError
from runners.core.protocol import (
    Answer,
    CommitRange,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Plan,
    Smaller,
    Suspect,
    Trail,
    Variant,
)
from runners.investigation.investigate import Investigation
from runners.minimization.minimize import MOST_PROBES, MOST_SECONDS, cut_down, ends


class Bench(Protocol):
    """Runs plans in sandboxes: the only thing here that executes anything, and not of this package."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What a reader of the verdict must know of how it was run."""

    def run(self, plan: Plan, *, prior: Prior | None = None) -> Investigation: ...

    def minimize(
        self,
        plan: Plan,
        version: str,
        *,
        control: str = "",
        passing: str = "",
        probes: int = MOST_PROBES,
        seconds: float = MOST_SECONDS,
    ) -> Smaller:
        """Cut the testcase down.

        Raises:
            NotReducible: there is nothing to go by.
        """


class DeepBench(Bench, Protocol):
    """A bench that also knows of builds between releases."""

    def lay(self, toolchain: str, good: str, bad: str, prior: Prior | None = None) -> Trail:
        """The builds between two versions, tags or commits.

        Raises:
            UserError: one of the two means nothing, or there is nothing between them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Files to write, each if named."""

    json: Path | None = None
    html: Path | None = None
    comment: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An issue, what was read from it, and what the caller wants to know."""

    issue: Issue
    toolchain: str | None
    wishes: Wishes
    extraction: Extraction

    @property
    def command(self) -> str:
        return repeat_command(self.issue, self.toolchain, self.wishes)


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
    if (report := unrun(asked)) is not None:
        return report
    assert isinstance(asked.extraction, Repro)
    planned = make_plan(asked.extraction, catalogue, wishes)
    bench = open_bench()
    seen = bench.run(planned.plan, prior=_prior(asked))
    smaller, why = cut_down(bench, planned.plan, seen.observations) if wishes.minimize else (None, ())
    notes = (*planned.notes, *bench.conditions, *why)
    report = finished(asked, planned.plan, seen, notes=notes, catalogue=catalogue, history=history)
    return replace(report, smaller=smaller)


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
    _refuse_mere_infrastructure(seen.observations)
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
    if (report := unrun(asked)) is not None:
        return report
    assert isinstance(extraction, Repro)
    bench = open_bench()
    trail = bench.lay(extraction.testcase.toolchain, *wishes.ends, _prior(asked))
    plan = follow_plan(extraction, trail, wishes)
    return finished(asked, plan, bench.run(plan), notes=bench.conditions, catalogue=catalogue, history=history)


def _prior(asked: Asked) -> Prior:
    """Where a search along commits looks first: at those most related to the report."""
    query = query_of(asked.issue, asked.extraction)
    return lambda commits, direction: beliefs(rank(query, commits, direction))


def unrun(asked: Asked) -> Report | None:
    """The report of an issue in which there is nothing to run; None when there is."""
    if (verdict := judge_without_running(asked.extraction)) is None:
        return None
    return Report(
        issue=asked.issue,
        extraction=asked.extraction,
        observations=(),
        findings=tuple(_missing(item) for item in asked.extraction.missing),
        bisections=(),
        verdict=verdict,
        command=asked.command,
    )


def finished(
    asked: Asked,
    plan: Plan,
    seen: Investigation,
    *,
    notes: tuple[str, ...],
    catalogue: Catalogue,
    history: History | None = None,
) -> Report:
    """The report of what was seen, wherever it was run.

    Raises:
        InfraError: nothing could be run, through no fault of the testcase.
    """
    _refuse_mere_infrastructure(seen.observations)
    evidence = Evidence(plan=plan, observations=seen.observations, findings=seen.findings, trail=seen.trail)
    verdict = judge(evidence)
    found = bisections(evidence, verdict.kind, catalogue)
    lineup = Lineup(bisections=found)
    if history is not None:
        query = query_of(asked.issue, asked.extraction)
        lineup = line_up(evidence, verdict.kind, found, query, catalogue, history)
    return Report(
        issue=asked.issue,
        extraction=asked.extraction,
        observations=seen.observations,
        findings=seen.findings,
        bisections=lineup.bisections,
        verdict=verdict,
        command=asked.command,
        notes=(*notes, *_stand_for_hardware(seen.observations), *lineup.notes),
        likely=lineup.likely,
    )


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


def _stand_for_hardware(observations: Sequence[Observation]) -> tuple[str, ...]:
    """Devices of the matrix that are software here."""
    used = {seen.device: seen.driver for seen in observations if seen.driver}
    return tuple(f"{device} here is {driver}" for device, driver in used.items())


def _missing(item: Missing) -> Finding:
    return Finding(
        kind=FindingKind.MISSING,
        summary=f"the testcase needs the {item.kind} {item.name}, which the report does not give"
        + (f": it {item.why}" if item.why else ""),
        evidence={"kind": item.kind, "name": item.name},
    )


def _refuse_mere_infrastructure(observations: Sequence[Observation]) -> None:
    """Without any answer, and mostly failures of ours, there is no verdict to give, only an apology."""
    originals = [seen for seen in observations if seen.variant is Variant.ORIGINAL]
    ours = [seen for seen in originals if seen.outcome is Outcome.INFRA]
    answered = any(seen.answer is not Answer.SKIP for seen in observations)
    if not answered and 2 * len(ours) >= len(originals) > 0:
        raise InfraError(ours[0].why)


def repeat_command(issue: Issue, toolchain: str | None, wishes: Wishes) -> str:
    """The shell line that repeats the run, with every option that shaped it."""
    verb = "reproduce" if wishes.ends is None else "bisect"
    words = ["reprobot", verb, issue.source if issue.source != "standard input" else "-"]
    words += ["--toolchain", toolchain] if toolchain else []
    words += ["--good", wishes.ends[0], "--bad", wishes.ends[1]] if wishes.ends is not None else []
    words += ["--history", wishes.history] if wishes.history else []
    words += ["--minutes", f"{wishes.minutes:g}"] if wishes.minutes is not None else []
    words += ["--versions", wishes.versions] if wishes.versions else []
    words += ["--devices", ",".join(wishes.devices)] if wishes.devices else []
    words += [] if wishes.bisect else ["--no-bisect"]
    words += ["--minimize"] if wishes.minimize else []
    words += ["--sandbox", wishes.sandbox] if wishes.sandbox != "auto" else []
    words += ["--timeout", f"{wishes.timeout_s:g}"] if wishes.timeout_s is not None else []
    words += [word for name in wishes.allowed for word in ("--allow", name)]
    words += [word for folder in wishes.wheels for word in ("--wheels", folder)]
    words += ["--fetch-attachments"] if issue.attachments and not is_remote(issue.source) else []
    return shlex.join(words)


def write(report: Report, outputs: Outputs) -> str:
    """Write the files asked for and return the comment.

    Raises:
        UserError: a file cannot be written.
    """
    comment = render_comment(report)
    if outputs.comment is not None:
        write_file(outputs.comment, comment)
    if outputs.json is not None:
        write_file(outputs.json, dumps(document(report, comment)))
    if outputs.html is not None:
        write_file(outputs.html, render_page(report))
    return comment


def write_file(path: Path, text: str) -> None:
    """Write one output.

    Raises:
        UserError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
