"""The project's own corpus as stories: the facts of each case, with outputs from recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, get_args

from bench.proving.recordings import Recordings
from bench.proving.story import Claim, Story
from bot.issue import Issue
from bot.plan import RunOptions
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import StepResult, Testcase
from runners.core.runs import RunRequest, RunResult
from runners.sandbox.contract import WORK
from tests.corpus.cases import Case, cases

MAX_FAILURE_LINES = 60
HANG_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is right about a case, found by hand. ``outcomes`` are of the testcase as posted."""

    name: str
    verdict: str
    accepted: tuple[str, ...]
    never: tuple[str, ...]
    outcomes: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusCase:
    issue: Issue
    truth: Truth
    expected: dict[str, Any]


def list_cases() -> Iterator[CorpusCase]:
    """The cases that have a verdict, in order of name; held-out ones aside."""
    for case in cases():
        if case.expected.get("verdict"):
            yield CorpusCase(issue=case.issue, truth=_read_truth(case), expected=case.expected)


def choose_options(case: CorpusCase) -> RunOptions:
    """The options of every run of a case. A program that hangs is stopped early: it would cost a minute per run."""
    kinds = case.expected.get("claim", {}).get("kind") or ""
    return RunOptions(timeout_s=HANG_TIMEOUT_S if "hang" in kinds else None)


def _read_truth(case: Case) -> Truth:
    expected = case.expected
    return Truth(
        name=case.name,
        verdict=expected["verdict"],
        accepted=(expected["verdict"], *expected.get("also_acceptable", ())),
        never=tuple(expected.get("never", ())),
        outcomes=expected.get("outcomes", {}),
    )


def make_story(case: CorpusCase, testcase: Testcase, recordings: Recordings, catalogue: Catalogue) -> Story | None:
    """The story of a case whose reported failure is recorded; None where no telling would show a failure.

    ``testcase`` is the one that extraction reads from the case's own text: a retelling must lead to the same.
    """
    failing = _find_run(case, testcase, recordings, "match")
    if failing is None:
        return None
    version, run = failing
    passing = _find_run(case, testcase, recordings, "pass")
    claim = _read_claim(case, run)
    if claim is None:
        return None
    failure, wrong, right = _describe(run, passing[1] if passing else None)
    reported = next((name for name in _list_versions(case) if name in case.truth.outcomes), version)
    return Story(
        name=case.truth.name,
        toolchain=testcase.toolchain,
        title=case.issue.title.partition("] ")[2] or case.issue.title,
        files=testcase.files,
        steps=testcase.steps,
        claim=claim,
        failure=failure,
        wrong=wrong,
        right=right,
        version=reported,
        created=_choose_date(testcase.toolchain, reported, catalogue),
    )


def _find_run(
    case: CorpusCase, testcase: Testcase, recordings: Recordings, outcome: str
) -> tuple[str, RunResult] | None:
    device = str(case.expected.get("device", ""))
    for version, told in case.truth.outcomes.items():
        if told == outcome:
            for name in filter(None, (device, "llvm", "llvm-cpu", "cpu")):
                request = RunRequest(version=version, device=name, testcase=testcase)
                if (found := recordings.find(request.key, 0)) is not None and found.steps:
                    return version, found
    return None


def _list_versions(case: CorpusCase) -> list[str]:
    versions = case.expected.get("claim", {}).get("versions", [])
    return [name for entry in versions for name in (entry if isinstance(entry, list) else [entry])]


def _read_claim(case: CorpusCase, run: RunResult) -> Claim | None:
    kinds = case.expected.get("claim", {}).get("kind", "")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    return kind if kind in get_args(Claim) else None


def _describe(run: RunResult, good: RunResult | None) -> tuple[str, str, str]:
    """The failure as printed; or, of runs that end well, the lines in which a bad run differs from a good one."""
    step = run.steps[-1]
    if not _is_clean(step):
        text = step.stderr.strip() or step.stdout.strip()
        lines = [line.replace(f"{WORK}/", "") for line in text.split("\n")]
        return "\n".join(lines[-MAX_FAILURE_LINES:]), "", ""
    printed = [line for line in step.stdout.split("\n") if line.strip()]
    if good is None or not _is_clean(good.steps[-1]):
        return "", "\n".join(printed[-3:]), ""
    right = [line for line in good.steps[-1].stdout.split("\n") if line.strip()]
    wrong_lines = [line for line in printed if line not in right][:6]
    right_lines = [line for line in right if line not in printed][:6]
    return "", "\n".join(wrong_lines), "\n".join(right_lines)


def _is_clean(step: StepResult) -> bool:
    return getattr(step.ended, "code", None) == 0 and type(step.ended).__name__ == "Exited"


def _choose_date(toolchain: str, version: str, catalogue: Catalogue) -> date | None:
    """A week after the release that the report is about."""
    try:
        released = catalogue.find(toolchain, version).released
    except UserError:
        return None
    return released + timedelta(days=7)
