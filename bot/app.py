"""The shell: each verb reads as its own summary, and every effect it has arrives as an argument."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.change import bisections
from bot.comment import render_comment
from bot.document import document, dumps
from bot.extract import extract
from bot.extract.types import Repro
from bot.issue import Issue
from bot.judge import Evidence, judge, judge_without_running
from bot.page import render_page
from bot.plan import Wishes, make_plan
from bot.verdict import Report
from runners.catalogue import Catalogue
from runners.errors import InfraError, UserError
from runners.execute import Investigation
from runners.protocol import Observation, Outcome, Plan, Variant

RunPlan = Callable[[Plan], Investigation]
"""Runs a plan in sandboxes; the only thing here that executes anything, and not in this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Files to write, each if named."""

    json: Path | None = None
    html: Path | None = None
    comment: Path | None = None


def reproduce(
    issue: Issue,
    *,
    toolchain: str | None,
    wishes: Wishes,
    catalogue: Catalogue,
    run: RunPlan,
    conditions: Sequence[str],
) -> Report:
    """Issue → report.

    Raises:
        UserError: a version or toolchain that does not exist was asked for.
        InfraError: nothing could be run, through no fault of the testcase.
    """
    extraction = extract(issue, toolchain=toolchain)
    command = repeat_command(issue, toolchain, wishes)
    if (verdict := judge_without_running(extraction)) is not None:
        return Report(
            issue=issue,
            extraction=extraction,
            observations=(),
            findings=(),
            bisections=(),
            verdict=verdict,
            command=command,
        )
    assert isinstance(extraction, Repro)
    planned = make_plan(extraction, catalogue, wishes)
    seen = run(planned.plan)
    _refuse_mere_infrastructure(seen.observations)
    evidence = Evidence(plan=planned.plan, observations=seen.observations, findings=seen.findings)
    verdict = judge(evidence)
    return Report(
        issue=issue,
        extraction=extraction,
        observations=seen.observations,
        findings=seen.findings,
        bisections=bisections(evidence, verdict.kind, catalogue),
        verdict=verdict,
        command=command,
        notes=(*planned.notes, *conditions),
    )


def _refuse_mere_infrastructure(observations: Sequence[Observation]) -> None:
    """When every probe failed on our side there is no verdict to give, only an apology."""
    originals = [seen for seen in observations if seen.variant is Variant.ORIGINAL]
    if originals and all(seen.outcome is Outcome.INFRA for seen in originals):
        raise InfraError(originals[0].why)


def repeat_command(issue: Issue, toolchain: str | None, wishes: Wishes) -> str:
    """The shell line that repeats the run, with every option that shaped it."""
    words = ["reprobot", "reproduce", issue.source if issue.source != "standard input" else "-"]
    words += ["--toolchain", toolchain] if toolchain else []
    words += ["--versions", wishes.versions] if wishes.versions else []
    words += ["--devices", ",".join(wishes.devices)] if wishes.devices else []
    words += [] if wishes.bisect else ["--no-bisect"]
    return shlex.join(words)


def write(report: Report, outputs: Outputs) -> str:
    """Write the files asked for and return the comment.

    Raises:
        UserError: a file cannot be written.
    """
    comment = render_comment(report)
    if outputs.comment is not None:
        _write(outputs.comment, comment)
    if outputs.json is not None:
        _write(outputs.json, dumps(document(report, comment)))
    if outputs.html is not None:
        _write(outputs.html, render_page(report))
    return comment


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
