"""Assemble a report from an issue, the runs and the verdict on them. Pure.

Both the command line and the jobs on GitHub make their reports here.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from bot.extract.types import REST, Extraction, Missing, Repro
from bot.issue import Issue, is_remote
from bot.plan import RunOptions
from bot.suspects.commits_file import CommitsFile, adopt_ranking
from bot.suspects.ranges import CommitHistory, RankedRanges, rank_ranges
from bot.suspects.rank import make_query
from bot.suspects.sources import read_sources
from bot.verdict.bisections import find_bisections
from bot.verdict.evidence import Evidence, Gaps
from bot.verdict.judge import judge, judge_without_running
from bot.verdict.other_values import accept_other_values, accept_voted_values, refuse_other_values
from bot.verdict.same_failure import match_posted_calls, match_same_failures
from bot.verdict.verdict import Report, Verdict
from runners.core.errors import InfraError
from runners.core.failure.costs import mark_costly_runs
from runners.core.failure.printed.marks import mark_printed
from runners.core.findings.record import make_finding
from runners.core.findings.types import MissingEvidence
from runners.core.packages.catalogue import Catalogue, Release
from runners.core.protocol import Answer, Finding, Investigation, Observation, Outcome, Plan, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInput:
    """An issue, its extraction, and the options of the run."""

    issue: Issue
    toolchain: str | None
    options: RunOptions
    extraction: Extraction

    @property
    def command(self) -> str:
        """The shell command that repeats the run."""
        return format_command(self.issue, self.toolchain, self.options)


def make_unrun_report(asked: ReportInput) -> Report | None:
    """Return the report of an issue without a complete testcase; None if there is a testcase to run."""
    if (verdict := judge_without_running(asked.extraction, anyway=asked.options.anyway)) is None:
        return None
    return Report(
        issue=asked.issue,
        extraction=asked.extraction,
        observations=(),
        findings=tuple(_make_missing_finding(item) for item in asked.extraction.missing),
        bisections=(),
        verdict=verdict,
        command=asked.command,
    )


def assemble_report(
    asked: ReportInput,
    plan: Plan,
    seen: Investigation,
    *,
    notes: tuple[str, ...],
    catalogue: Catalogue,
    history: CommitHistory | None = None,
    ranking: CommitsFile | None = None,
) -> Report:
    """Judge the runs of ``plan`` and return the report.

    The commits of its changes are ranked with a ``history``, or taken from the ``ranking`` of another job.

    Raises:
        InfraError: no run gave an answer, and the infrastructure failed in at least half of them.
    """
    require_testcase_runs(seen.observations)
    evidence = _make_evidence(asked, plan, seen)
    observations = evidence.observations
    evidence = evidence.follow_target()
    verdict = judge(evidence)
    found = find_bisections(evidence, verdict.kind, catalogue)
    repository = catalogue.get_listing(plan.testcase.toolchain).repository
    ranked = RankedRanges(bisections=found)
    if history is not None:
        query = make_query(asked.issue, asked.extraction, repository)
        ranked = rank_ranges(evidence, verdict.kind, found, query, catalogue, history)
    elif ranking is not None:
        ranked = adopt_ranking(ranking, evidence, verdict.kind, found)
    return Report(
        issue=asked.issue,
        extraction=asked.extraction,
        observations=observations,
        findings=seen.findings,
        bisections=ranked.bisections,
        verdict=verdict,
        command=asked.command,
        notes=(
            *(*notes, *seen.conditions, *_list_software_devices(seen.observations)),
            *([f"the commits of the change are not ranked: {ranked.problem}"] if ranked.problem else []),
        ),
        likely=ranked.likely,
        smaller=seen.smaller,
        plan=evidence.plan,
        releases=_list_releases(catalogue, plan.testcase.toolchain, observations),
        repository=repository or "",
        sources=read_sources(evidence),
        unranked=ranked.problem,
        times=seen.times,
    )


def judge_so_far(asked: ReportInput, plan: Plan, observations: Sequence[Observation]) -> Verdict:
    """Return the verdict on the runs before the diagnosis, whose findings may change it.

    Raises:
        InfraError: as in `assemble_report`.
    """
    require_testcase_runs(observations)
    return judge(_make_evidence(asked, plan, Investigation(observations=tuple(observations))))


def _make_evidence(asked: ReportInput, plan: Plan, seen: Investigation) -> Evidence:
    assumed = isinstance(asked.extraction, Repro) and bool(asked.extraction.assumed)
    runs = refuse_other_values(accept_other_values(plan.claim, seen.observations))
    runs = mark_printed(plan, runs)
    runs = accept_voted_values(plan.order[-1], runs, seen.findings)
    runs = match_posted_calls(plan, runs, assumed=assumed)
    return Evidence(
        plan=plan,
        observations=mark_costly_runs(plan, match_same_failures(plan, runs)),
        findings=seen.findings,
        trail=seen.trail,
        gaps=_find_gaps(asked.extraction),
        defences=asked.extraction.defences if isinstance(asked.extraction, Repro) else (),
    )


def _find_gaps(found: Extraction) -> Gaps:
    if not isinstance(found, Repro):
        return Gaps()
    return Gaps(
        left_out=found.left_out,
        generates_inputs=found.generates_inputs,
        assumed_device=found.assumed_device,
        has_open_command=found.has_open_command,
        is_wrapped=found.is_wrapped,
        has_open_end=found.has_open_end,
        only_defines=found.only_defines,
        shows_elsewhere=found.shows_elsewhere,
    )


def _list_releases(catalogue: Catalogue, toolchain: str, observations: Sequence[Observation]) -> tuple[Release, ...]:
    """Return the catalogue's facts about the builds that ran. A nightly or a commit may not be in the catalogue."""
    ran = {seen.version for seen in observations}
    return tuple(one for one in catalogue.list_releases(toolchain, prereleases=True) if one.version in ran)


def _list_software_devices(observations: Sequence[Observation]) -> tuple[str, ...]:
    """Return one sentence per device that a software driver replaces."""
    used = {seen.device: seen.driver for seen in observations if seen.driver}
    return tuple(f"{device} here is {driver}" for device, driver in used.items())


def _make_missing_finding(item: Missing) -> Finding:
    kind = "rest of" if item.kind == REST else item.kind
    return make_finding(
        MissingEvidence(kind=item.kind, name=item.name),
        f"the testcase needs the {kind} {item.name}, which the report does not contain"
        + (f": it {item.why}" if item.why else ""),
    )


def require_testcase_runs(observations: Sequence[Observation]) -> None:
    """Refuse to judge runs that show only failures of the infrastructure.

    Raises:
        InfraError: no run gave an answer, and the infrastructure failed in at least half of them.
    """
    originals = [seen for seen in observations if seen.variant is Variant.ORIGINAL]
    ours = [seen for seen in originals if seen.outcome is Outcome.INFRA]
    answered = any(seen.answer is not Answer.SKIP for seen in observations)
    if not answered and 2 * len(ours) >= len(originals) > 0:
        raise InfraError(ours[0].why)


def format_command(issue: Issue, toolchain: str | None, options: RunOptions) -> str:
    """Return the shell command that repeats the run, with every option that affects the result."""
    verb = "reproduce" if options.ends is None else "bisect"
    words = ["reprobot", verb, issue.source if issue.source != "standard input" else "-"]
    words += ["--toolchain", toolchain] if toolchain else []
    words += ["--good", options.ends[0], "--bad", options.ends[1]] if options.ends is not None else []
    words += ["--history", options.history] if options.history else []
    words += ["--minutes", f"{options.minutes:g}"] if options.minutes is not None else []
    words += ["--versions", options.versions] if options.versions else []
    words += ["--devices", ",".join(options.devices)] if options.devices else []
    words += [] if options.bisect else ["--no-bisect"]
    words += ["--minimize"] if options.minimize else []
    words += ["--anyway"] if options.anyway else []
    words += ["--sandbox", options.sandbox] if options.sandbox != "auto" else []
    words += ["--image", options.image] if options.image else []
    words += ["--timeout", f"{options.timeout_s:g}"] if options.timeout_s is not None else []
    words += [word for name in options.allowed for word in ("--allow", name)]
    words += [word for folder in options.wheels for word in ("--wheels", folder)]
    words += ["--fetch-attachments"] if issue.attachments and not is_remote(issue.source) else []
    return shlex.join(words)
