"""The shell: each verb reads as its own summary, and every effect it has arrives as an argument."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.change import bisections
from bot.comment import render_comment
from bot.document import document, dumps
from bot.evidence import Evidence
from bot.extract import extract
from bot.extract.types import Extraction, Missing, Repro
from bot.issue import Issue
from bot.judge import judge, judge_without_running
from bot.page import render_page
from bot.plan import Wishes, make_plan
from bot.source import is_remote
from bot.verdict import Report
from runners.catalogue import Catalogue
from runners.errors import InfraError, UserError
from runners.execute import Investigation
from runners.protocol import Answer, Finding, FindingKind, Observation, Outcome, Plan, Variant


class Bench(Protocol):
    """Runs plans in sandboxes: the only thing here that executes anything, and not of this package."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """What a reader of the verdict must know of how it was run."""

    def run(self, plan: Plan) -> Investigation: ...


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
) -> Report:
    """Issue → report. The bench is opened only when there is something to run.

    ``allowed`` maps imports to distributions that may be installed besides those on the list.

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
    seen = bench.run(planned.plan)
    return finished(asked, planned.plan, seen, notes=(*planned.notes, *bench.conditions), catalogue=catalogue)


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
    asked: Asked, plan: Plan, seen: Investigation, *, notes: tuple[str, ...], catalogue: Catalogue
) -> Report:
    """The report of what was seen, wherever it was run.

    Raises:
        InfraError: nothing could be run, through no fault of the testcase.
    """
    _refuse_mere_infrastructure(seen.observations)
    evidence = Evidence(plan=plan, observations=seen.observations, findings=seen.findings)
    verdict = judge(evidence)
    return Report(
        issue=asked.issue,
        extraction=asked.extraction,
        observations=seen.observations,
        findings=seen.findings,
        bisections=bisections(evidence, verdict.kind, catalogue),
        verdict=verdict,
        command=asked.command,
        notes=notes,
    )


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
    words = ["reprobot", "reproduce", issue.source if issue.source != "standard input" else "-"]
    words += ["--toolchain", toolchain] if toolchain else []
    words += ["--versions", wishes.versions] if wishes.versions else []
    words += ["--devices", ",".join(wishes.devices)] if wishes.devices else []
    words += [] if wishes.bisect else ["--no-bisect"]
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
