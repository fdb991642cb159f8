"""Grade answers against labels, and render the grades as tables. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from runners.core.bisection.rate import compute_interval

SILENT = "silent"
"""The verdict on a text that claims no failure: the product stays quiet."""
HUMBLE = frozenset({"inconclusive", "untestable", "incomplete", "no-repro", SILENT})
"""Verdicts that accuse neither the compiler nor the testcase."""
SURE = 0.9

Grade = Literal["right", "accepted", "useless", "wrong", "harmful", "unrecorded"]
"""``unrecorded``: the answer needs a run that is not recorded. Such a trial says nothing about the product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The truth about one report, found by hand or known by construction."""

    verdict: str
    accepted: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    decidable: bool = False
    """True if a person can decide the report with the builds at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The product's answer to one report."""

    verdict: str
    confidence: float = 0.0
    headline: str = ""
    fault: str = ""
    """An invariant beside the verdict that the answer breaks; empty if all hold."""
    grounds: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    """The kinds of the findings, each once."""
    leaning: str = ""
    """The verdict that an ``inconclusive`` answer withholds; empty for every other answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    name: str
    label: Label
    answer: Answer
    grade: Grade

    @property
    def good(self) -> bool:
        return self.grade in ("right", "accepted")

    @property
    def bad(self) -> bool:
        return self.grade in ("wrong", "harmful")

    @property
    def accuses(self) -> bool:
        return self.answer.verdict not in HUMBLE


def grade_answer(label: Label, answer: Answer) -> Grade:
    """The grade of an answer by its verdict. A fault beside a right verdict makes the answer useless."""
    if answer.verdict in (label.verdict, *label.accepted):
        if answer.fault:
            return "useless"
        return "right" if answer.verdict == label.verdict else "accepted"
    if answer.verdict in label.never:
        return "harmful"
    return "useless" if answer.verdict in HUMBLE or not answer.verdict else "wrong"


HEAD = (
    "| set | n | right | accepted | useless | wrong | harmful | right or accepted | wrong or harmful "
    "| wrong at ≥ .9 | decidable decided |\n| --- | --: | --: | --: | --: | --: | --: | --- | --- | --- | --- |"
)


def render_row(name: str, graded: Sequence[Graded]) -> str:
    """One row of Markdown: n, the number of each grade, and shares with their intervals of 95 %."""
    known = [one for one in graded if one.grade != "unrecorded"]
    counts = Counter(one.grade for one in known)
    sure = [one for one in known if one.answer.confidence >= SURE and one.accuses]
    decidable = [one for one in known if one.label.decidable and one.label.verdict != SILENT]
    decided = sum(one.good and one.answer.verdict != "inconclusive" for one in decidable)
    size = str(len(known)) + (f" (+{len(graded) - len(known)} unrecorded)" if len(known) < len(graded) else "")
    cells = [
        name,
        size,
        *(str(counts[grade]) for grade in get_args(Grade)[:5]),
        share(sum(one.good for one in known), len(known)),
        share(sum(one.bad for one in known), len(known)),
        f"{sum(one.bad for one in sure)} of {len(sure)}",
        share(decided, len(decidable)) if decidable else "–",
    ]
    return f"| {' | '.join(cells)} |"


def share(part: int, whole: int) -> str:
    """``26 of 40, 65 % (50–78)``: the share with its Wilson interval."""
    low, high = compute_interval(part, whole)
    return f"{part} of {whole}, {100 * part / max(1, whole):.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def render_unchanged(stories: Iterable[Graded], tellings: Iterable[Graded]) -> str:
    """Return how many tellings get the verdict of the story in its own words, whether it is right or not."""
    own = {one.name: one.answer.verdict for one in stories if one.grade != "unrecorded"}
    told = [
        (own.get(one.name.rpartition("@")[0]), one.answer.verdict) for one in tellings if one.grade != "unrecorded"
    ]
    known = [(before, after) for before, after in told if before is not None]
    return f"retellings with the verdict of their story: {share(sum(a == b for a, b in known), len(known))}."


def render_reliability(graded: Iterable[Graded]) -> str:
    """Confidence in bins beside the share that was right or accepted, of answers that accuse."""
    accusing = [one for one in graded if one.accuses and one.grade != "unrecorded"]
    rows = ["| confidence | n | mean | right or accepted |", "| --- | --: | --: | --- |"]
    for low, high in ((0.0, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 0.96), (0.96, 1.01)):
        binned = [one for one in accusing if low <= one.answer.confidence < high]
        mean = sum(one.answer.confidence for one in binned) / max(1, len(binned))
        good = sum(one.good for one in binned)
        rows.append(f"| {low:.2f} – {min(high, 1.0):.2f} | {len(binned)} | {mean:.2f} | {share(good, len(binned))} |")
    return "\n".join(rows)


def render_misses(graded: Iterable[Graded], of: Collection[Grade] = ("harmful", "wrong", "useless")) -> str:
    """One line per answer that was neither right nor accepted, the worst first."""
    rows = []
    for one in sorted((one for one in graded if one.grade in of), key=lambda one: (one.grade, one.name)):
        classes = f" ({', '.join(one.label.classes)})" if one.label.classes else ""
        fault = f"; {one.answer.fault}" if one.answer.fault else ""
        rows.append(
            f"- {one.grade}: {one.name} is {one.label.verdict}, got {one.answer.verdict or 'no verdict'} at "
            f"{one.answer.confidence:.2f}{classes}: {one.answer.headline[:160]}{fault}"
        )
    return "\n".join(rows)


def count_classes(graded: Iterable[Graded]) -> str:
    """The classes of labels, by how many of their reports were missed."""
    missed: Counter[str] = Counter()
    every: Counter[str] = Counter()
    for one in graded:
        every.update(one.label.classes)
        missed.update(one.label.classes if not one.good else ())
    rows = ["| class | missed | of |", "| --- | --: | --: |"]
    return "\n".join([*rows, *(f"| {name} | {number} | {every[name]} |" for name, number in missed.most_common(25))])
