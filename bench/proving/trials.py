"""Put reports to the product with recorded runs, and compare its answers with the truth.

A trial is one text of one story. The product's own code reads the text, plans, investigates and judges; only the runs
come from recordings.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

import msgspec

from bench.proving.corpus import HANG_TIMEOUT_S, choose_options, list_cases, make_story
from bench.proving.grades import Answer, Graded, Label, grade_answer
from bench.proving.planted.catalogue import planted_cases
from bench.proving.recordings import NOT_RECORDED, Recordings, Replay, load_story
from bench.proving.replay import replay_issue
from bench.proving.story import Story
from bench.proving.telling import Telling, draw, plain, render, shrink
from bot.extract import extract
from bot.extract.types import Extraction, Repro
from bot.forge.source import parse_issue
from bot.issue import Issue
from bot.plan import RunOptions
from runners.core.conditions import USUAL
from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Catalogue
from runners.core.protocol import FindingKind, Observation, Variant
from runners.core.runs import Execute

TODAY = date(2026, 11, 21)
CORPUS, PLANTED = "corpus", "planted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One text and the truth about it. ``story`` and ``telling`` are set where the text was rendered."""

    name: str
    issue: Issue
    label: Label
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Build → outcome of the testcase as posted, as far as it is known."""
    story: Story | None = None
    telling: Telling | None = None
    options: RunOptions = field(default_factory=RunOptions)


Play = Callable[[Trial, Recordings, Catalogue], Answer]
"""A judge under test: the product, or one of the dummies of `bench.proving.dummies`."""
UNRECORDED: Final = "unrecorded"


def play_product(
    trial: Trial,
    recordings: Recordings,
    catalogue: Catalogue,
    live: Execute | None = None,
    without: Collection[FindingKind] = (),
) -> Answer:
    """The product's answer. Runs that are not recorded go to ``live``; without it they give ``UNRECORDED``.

    Findings of the kinds ``without`` are withheld from the judge.
    """
    extraction = extract(trial.issue)
    if trial.story is not None:
        if trial.label.verdict == "incomplete" and isinstance(extraction, Repro) and extraction.missing:
            return Answer(verdict="incomplete", confidence=0.9)
        if difference := _compare_testcase(trial.story, extraction):
            return Answer(verdict=_judge_unread(extraction), fault=f"testcase: {difference}")
        assert isinstance(extraction, Repro)
        extraction = _without_remarks(trial.story, extraction)
    replay = Replay(recordings, live)
    try:
        report = replay_issue(trial.issue, replay, catalogue, trial.options, extraction, without)
    except ReprobotError as error:
        return Answer(verdict="", fault=UNRECORDED if NOT_RECORDED in str(error) else f"error: {str(error)[:200]}")
    verdict = str(report.verdict.kind)
    known = verdict in (trial.label.verdict, *trial.label.accepted)
    if replay.missing and not known:
        return Answer(verdict=verdict, fault=UNRECORDED)
    wrong = _compare_outcomes(trial.outcomes, report.observations) if trial.story is not None else ""
    return Answer(
        verdict=verdict,
        confidence=report.verdict.confidence,
        headline=report.verdict.headline,
        fault=f"behaviour: {wrong}" if wrong else "",
        grounds=tuple(map(str, report.verdict.grounds)),
        findings=tuple(dict.fromkeys(str(finding.kind) for finding in report.findings)),
        leaning=str(report.verdict.leaning or ""),
    )


def grade_trial(trial: Trial, answer: Answer) -> Graded:
    unknown = answer.fault == UNRECORDED
    return Graded(
        name=trial.name,
        label=trial.label,
        answer=answer,
        grade=UNRECORDED if unknown else grade_answer(trial.label, answer),
    )


# ---------------------------------------------------------------------------------------------- sets


def list_corpus() -> Iterator[Trial]:
    """The corpus as posted."""
    for case in list_cases():
        truth = case.truth
        yield Trial(
            name=truth.name,
            issue=case.issue,
            label=Label(verdict=truth.verdict, accepted=truth.accepted, never=truth.never),
            outcomes=truth.outcomes,
            options=choose_options(case),
        )


def list_planted() -> Iterator[Trial]:
    """The planted programs in their plainest telling, on the builds that they are about."""
    for case in planted_cases():
        name = case.story.name
        outcomes = {version: outcome for version, outcome in case.outcomes.items() if outcome in ("match", "pass")}
        bare = Trial(
            name=name,
            issue=parse_issue(b"# none\n", source=name, today=TODAY),
            label=replace(case.label, classes=(case.family,)),
            outcomes=outcomes,
            options=RunOptions(versions=",".join(case.versions), timeout_s=HANG_TIMEOUT_S),
        )
        yield tell(bare, case.story, plain(choose_seed(case.story, 0)))


def retell(trial: Trial, recordings: Recordings, catalogue: Catalogue, number: int) -> list[Trial]:
    """``number`` tellings of a corpus case; none where its reported failure is not recorded."""
    case = next(one for one in list_cases() if one.truth.name == trial.name)
    extraction = extract(case.issue)
    if not isinstance(extraction, Repro):
        return []
    story = make_story(case, extraction.testcase, recordings, catalogue)
    return [] if story is None else [tell(trial, story, draw(choose_seed(story, n))) for n in range(number)]


def choose_seed(story: Story, number: int) -> int:
    """The seed of a story's nth telling: other stories get other tellings."""
    return zlib.crc32(story.name.encode()) % 100_000 * 1_000 + number


def tell(trial: Trial, story: Story, telling: Telling) -> Trial:
    text = render(story, telling)
    issue = parse_issue(text.encode(), source=f"{story.name}.md", today=TODAY)
    return replace(trial, name=f"{trial.name}@{telling.seed % 1000}", issue=issue, story=story, telling=telling)


def explain_miss(trial: Trial, recordings: Recordings, catalogue: Catalogue) -> Mapping[str, str]:
    """The options of a missed telling that matter: the trial still gets the same grade with all others set back."""
    assert trial.story is not None
    assert trial.telling is not None
    story = trial.story
    fault = _name_fault(play_product(trial, recordings, catalogue))

    def still_fails(telling: Telling) -> bool:
        again = tell(trial, story, telling)
        return _name_fault(play_product(again, recordings, catalogue)) == fault

    return shrink(trial.telling, still_fails).unusual


def _name_fault(answer: Answer) -> tuple[str, str]:
    return answer.verdict, answer.fault.partition(":")[0]


def load_recordings(trial: Trial, kind: str = CORPUS) -> Recordings:
    return load_story(kind, trial.name.partition("@")[0])


# ---------------------------------------------------------------------------------------------- invariants


def _judge_unread(extraction: Extraction) -> str:
    if not isinstance(extraction, Repro):
        return "no-repro"
    return "incomplete" if extraction.missing else "other-testcase"


def _compare_testcase(story: Story, extraction: Extraction) -> str:
    """The first difference between the story's testcase and the one that was read; empty if there is none."""
    if not isinstance(extraction, Repro):
        return f"none found, {extraction.reason}"
    if extraction.missing:
        return f"missing {', '.join(one.name for one in extraction.missing)}"[:200]
    read = extraction.testcase
    texts = sorted(_strip_comments(text) for text in read.files.values())
    told = sorted(_strip_comments(text) for text in story.files.values())
    if texts != told:
        return f"other files, {sorted(read.files)}"
    if [step[0] for step in read.steps] != [step[0] for step in story.steps]:
        return f"other steps, {read.steps}"[:200]
    return ""


def _without_remarks(story: Story, repro: Repro) -> Repro:
    """The testcase without the comments that a telling adds: its runs are recorded under the story's own text."""
    own = {_strip_comments(text): text for text in story.files.values()}
    files = {name: own.get(_strip_comments(text), text) for name, text in repro.testcase.files.items()}
    return replace(repro, testcase=msgspec.structs.replace(repro.testcase, files=files))


def _strip_comments(text: str) -> str:
    """Without comment lines that a telling adds, blank lines and trailing blanks."""
    lines = (line.rstrip() for line in text.split("\n"))
    kept = (line for line in lines if line and not line.lstrip().startswith("# needs nothing beyond"))
    return "\n".join(line.partition("  # gives ")[0].rstrip() for line in kept)


def _compare_outcomes(outcomes: Mapping[str, str], observations: tuple[Observation, ...]) -> str:
    """Builds on which the reported behaviour was seen and is not there, or the reverse.

    The truth is about the usual conditions: a fault that depends on the number of threads is absent under others.
    """
    wrong = []
    for seen in observations:
        told = outcomes.get(seen.version)
        usual = msgspec.structs.replace(seen.varied, hash_seed=0) == USUAL
        decided = usual and seen.variant is Variant.ORIGINAL and {told, str(seen.outcome)} <= {"match", "pass"}
        if decided and told != str(seen.outcome):
            wrong.append(f"{seen.version} {seen.outcome} instead of {told}")
    return ", ".join(dict.fromkeys(wrong))
