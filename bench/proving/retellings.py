"""Tell each story in many ways and check that the product's answer stays the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from bench.proving.corpus import Truth
from bench.proving.recordings import NOT_RECORDED, Recordings, Replay
from bench.proving.replay import replay_issue
from bench.proving.story import Story
from bench.proving.telling import AXES, Telling, render, shrink
from bot.extract import extract
from bot.extract.types import Repro
from bot.forge.source import parse_issue
from bot.plan import RunOptions
from runners.core.catalogue import Catalogue
from runners.core.errors import ReprobotError
from runners.core.protocol import Observation, Variant
from runners.core.runs import Execute

TODAY = date(2026, 11, 21)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One telling of one story. ``fault`` is empty if all invariants hold."""

    story: str
    telling: Telling
    verdict: str
    confidence: float
    headline: str
    fault: str
    """``testcase``, ``behaviour``, ``verdict``, ``unrecorded`` or ``error``; the first that does not hold."""
    detail: str = ""

    @property
    def harmful(self) -> bool:
        return self.fault.startswith("verdict!")


def check_telling(
    story: Story,
    truth: Truth,
    telling: Telling,
    recordings: Recordings,
    catalogue: Catalogue,
    options: RunOptions | None = None,
    live: Execute | None = None,
) -> Checked:
    """Render a telling, run the product on it with recorded runs, and compare with the truth."""
    text = render(story, telling)
    issue = parse_issue(text.encode(), source=f"{story.name}.md", today=TODAY)

    def checked(
        fault: str, verdict: str = "", confidence: float = 0.0, headline: str = "", detail: str = ""
    ) -> Checked:
        return Checked(
            story=story.name, telling=telling, verdict=verdict, confidence=confidence, headline=headline,
            fault=fault, detail=detail,
        )  # fmt: skip

    extraction = extract(issue)
    if difference := _compare_testcase(story, extraction):
        return checked("testcase", detail=difference)
    assert isinstance(extraction, Repro)
    replay = Replay(recordings, live)
    try:
        report = replay_issue(issue, replay, catalogue, options, _without_remarks(story, extraction))
    except ReprobotError as error:
        return checked("unrecorded" if NOT_RECORDED in str(error) else "error", detail=str(error)[:200])
    verdict = str(report.verdict.kind)
    given = (verdict, report.verdict.confidence, report.verdict.headline)
    if verdict in truth.accepted:
        wrong = _compare_outcomes(truth, report.observations)
        return checked("behaviour" if wrong else "", *given, detail=wrong)
    if replay.missing:
        return checked("unrecorded", *given, detail=", ".join(sorted({one.version for one in replay.missing})))
    return checked("verdict!" if verdict in truth.never else "verdict", *given)


def _compare_testcase(story: Story, extraction: object) -> str:
    """The first difference between the story's testcase and the one that was read; empty if there is none."""
    if not isinstance(extraction, Repro):
        return f"no testcase: {getattr(extraction, 'reason', '')}"
    if extraction.missing:
        return f"missing {', '.join(one.name for one in extraction.missing)}"[:200]
    read = extraction.testcase
    texts = sorted(_strip_comments(text) for text in read.files.values())
    told = sorted(_strip_comments(text) for text in story.files.values())
    if texts != told:
        return f"other files: {sorted(read.files)}"
    if [step[0] for step in read.steps] != [step[0] for step in story.steps]:
        return f"other steps: {read.steps}"[:200]
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


def _compare_outcomes(truth: Truth, observations: Sequence[Observation]) -> str:
    """Releases on which the reported behaviour was seen and is not, or the reverse, by the truth found by hand."""
    wrong = []
    for seen in observations:
        told = truth.outcomes.get(seen.version)
        decided = seen.variant is Variant.ORIGINAL and {told, str(seen.outcome)} <= {"match", "pass"}
        if decided and told != str(seen.outcome):
            wrong.append(f"{seen.version}: {seen.outcome} instead of {told}")
    return ", ".join(dict.fromkeys(wrong))


def explain(story: Story, truth: Truth, bad: Checked, recordings: Recordings, catalogue: Catalogue) -> dict[str, str]:
    """The options of a failing telling that matter: it still fails in the same way, all others set back."""

    def still_fails(telling: Telling) -> bool:
        return check_telling(story, truth, telling, recordings, catalogue).fault == bad.fault

    return shrink(bad.telling, still_fails).unusual


def tabulate(checks: Iterable[Checked]) -> str:
    """Shares by fault, and the options of each axis by how often a telling with them fails."""
    all_checks = list(checks)
    counts = Counter(one.fault or "right" for one in all_checks)
    rows = [f"- {name}: {number} of {len(all_checks)}" for name, number in counts.most_common()]
    rows += ["", "| axis | option | tellings | fail |", "| --- | --- | --: | --: |"]
    shares = []
    for axis, options in AXES.items():
        for option in options:
            with_it = [one for one in all_checks if one.telling[axis] == option]
            failing = sum(bool(one.fault) for one in with_it)
            if with_it:
                shares.append((failing / len(with_it), axis, option, len(with_it)))
    rows += [
        f"| {axis} | {option} | {number} | {100 * share:.1f} % |"
        for share, axis, option, number in sorted(shares, reverse=True)[:15]
    ]
    return "\n".join(rows)
