"""Fit the weights of the grounds: ``python -m bench.proving.fit RESULTS.json [--write]``.

``RESULTS.json`` comes from ``python -m bench.proving corpus retellings planted --json RESULTS.json``. The first looks
whose outputs name their grounds are added, with the grounds that the product learnt to name later
(``bench/first_looks/later_grounds.json``). Each row is one answer: its grounds, and whether its verdict was right or
accepted. A withheld verdict counts like a stated verdict. All rows of one story weigh as much as one row, and a story
of a tuning set as much as a tenth of a real report.

The model is logistic, with three restrictions that keep it sober:

- A ground that speaks against a verdict cannot raise the confidence.
- A ridge pulls each weight to its value without data: 0 for what a verdict rests on, -0.6 for each ground against.
- Answers on tuning sets have an intercept of their own, which the product does not use: they shaped the rules.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bot.verdict
from bench.first_looks.score import FOLDER, list_rounds, load_round
from bench.proving.dummies import list_dummies
from bench.proving.grades import Answer
from bot.verdict.grounds import BASES, IN_FAVOUR, Ground
from bot.verdict.verdict import VerdictKind
from runners.core.protocol import FindingKind

WEIGHTS = Path(bot.verdict.__file__).with_name("weights.json")
INTERCEPT, TUNED = "intercept", "tuned"
AGAINST = -0.6
"""Log-odds of a ground against a verdict, before any data: from .90 to .83."""
NO_ANSWER = -3.0
"""Log-odds of runs that leave the question open."""
START = {INTERCEPT: math.log(0.9 / 0.1), TUNED: 0.0}
RIDGE = 1.0
TUNED_SHARE = 0.1
"""Weight of a story of a tuning set beside a real report, of the values that predict first looks best (0 to 1)."""
FOLDS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. ``features`` are names of grounds, ``INTERCEPT`` and ``TUNED``."""

    story: str
    features: frozenset[str]
    right: bool


def read_rows(results: Path) -> list[Row]:
    rows = []
    for one in json.loads(results.read_text(encoding="utf-8")):
        said = one["leaning"] or one["verdict"]
        if one["judge"] == next(iter(list_dummies())) and one["grade"] != "unrecorded" and _weighs(one["grounds"]):
            features = frozenset({*one["grounds"], INTERCEPT, TUNED})
            right = said in (one["truth"], *one["accepted"])
            rows.append(Row(one["name"].partition("@")[0], features, right))
    later = json.loads((FOLDER / "later_grounds.json").read_text(encoding="utf-8"))
    for number in list_rounds():
        for part in load_round(number).values():
            for graded in part:
                answer = graded.answer
                if _weighs(answer.grounds):
                    named = {ground for ground in Ground if graded.name in later.get(ground, {}).get(number, ())}
                    named |= _name_later(answer)
                    right = (answer.leaning or answer.verdict) in (graded.label.verdict, *graded.label.accepted)
                    rows.append(Row(graded.name, frozenset({*answer.grounds, *named, INTERCEPT}), right))
    return rows


def _name_later(answer: Answer) -> set[Ground]:
    """Return the grounds of an early answer that follow from its verdict and its findings."""
    said = answer.leaning or answer.verdict
    found: set[Ground] = set()
    if Ground.FAILS not in answer.grounds:
        return found
    if said in (VerdictKind.FIXED, VerdictKind.REGRESSION):
        found.add(Ground.RELEASES_DIFFER)
    if FindingKind.GUILTY_PASS in answer.findings and Ground.NO_PASS_CAUSES not in answer.grounds:
        found.add(Ground.PASS_NAMED)
    return found


def _weighs(grounds: Sequence[str]) -> bool:
    """True for an answer that leans to a verdict."""
    return bool(grounds) and Ground.NO_ANSWER not in grounds


def fit_weights(rows: Sequence[Row]) -> dict[str, float]:
    """Return the weights with the highest posterior: cyclic Newton steps, each projected on its bound."""
    names = [INTERCEPT, TUNED, *Ground]
    centre = {name: _find_centre(name) for name in names}
    weights = dict(centre)
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row.story] += 1
    shares = [(TUNED_SHARE if TUNED in row.features else 1) / counts[row.story] for row in rows]
    for _ in range(200):
        moved = 0.0
        for name in names:
            slope, bend = RIDGE * (centre[name] - weights[name]), RIDGE
            for row, share in zip(rows, shares, strict=True):
                if name in row.features:
                    guess = compute_probability(weights, row.features)
                    slope += share * (row.right - guess)
                    bend += share * guess * (1 - guess)
            new = _bound(name, weights[name] + slope / bend)
            moved, weights[name] = max(moved, abs(new - weights[name])), new
        if moved < 1e-4:
            break
    return weights


def _find_centre(name: str) -> float:
    if name in START:
        return START[name]
    if name == Ground.NO_ANSWER:
        return NO_ANSWER
    return 0.0 if name in BASES else -AGAINST if name in IN_FAVOUR else AGAINST


def _bound(name: str, weight: float) -> float:
    if name in START or name in BASES:
        return weight
    return max(0.0, weight) if name in IN_FAVOUR else min(0.0, weight)


def compute_probability(weights: Mapping[str, float], features: frozenset[str]) -> float:
    return 1 / (1 + math.exp(-sum(weights[name] for name in features)))


def cross_validate(rows: Sequence[Row]) -> list[tuple[float, Row]]:
    """Return for each row the probability that a fit without its story gives."""
    stories = sorted({row.story for row in rows})
    fold = {story: index % FOLDS for index, story in enumerate(stories)}
    guesses = []
    for index in range(FOLDS):
        weights = fit_weights([row for row in rows if fold[row.story] != index])
        guesses += [(compute_probability(weights, row.features), row) for row in rows if fold[row.story] == index]
    return guesses


def measure_loss(guesses: Sequence[tuple[float, Row]]) -> float:
    """Return the mean logarithmic loss per story, in nats."""
    losses: dict[str, list[float]] = defaultdict(list)
    for guess, row in guesses:
        losses[row.story].append(-math.log(guess if row.right else 1 - guess))
    return sum(sum(one) / len(one) for one in losses.values()) / max(1, len(losses))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true", help=f"write {WEIGHTS.name}")
    chosen = parser.parse_args()
    rows = read_rows(chosen.results)
    weights, stories = fit_weights(rows), {row.story for row in rows}
    seen = {name: {row.story for row in rows if name in row.features} for name in Ground}
    looks = {row.story for row in rows if TUNED not in row.features}
    untrained = {name: _find_centre(name) for name in weights}
    held_out = measure_loss(cross_validate(rows))
    before = measure_loss([(compute_probability(untrained, row.features), row) for row in rows])
    rate = sum(row.right for row in rows) / len(rows)
    flat = measure_loss([(rate, row) for row in rows])
    sys.stdout.write(
        f"{len(rows)} answers on {len(stories)} stories, {len(looks)} of them real reports\n"
        f"loss per story, held out: {held_out:.3f}; without data: {before:.3f}; one rate for all: {flat:.3f}\n"
        f"intercept {weights[INTERCEPT]:.2f}; on tuning sets {weights[TUNED]:+.2f}\n"
    )
    for name in Ground:
        sys.stdout.write(f"{name:24} {weights[name]:+.2f}  ({len(seen[name])} stories)\n")
    if chosen.write:
        provenance = (
            f"Fitted by bench/proving/fit.py on {len(rows)} answers to {len(stories)} stories, {len(looks)} of them"
            f" real reports. Loss per story, held out: {held_out:.3f}; one rate for all: {flat:.3f}."
        )
        model = {
            "provenance": provenance,
            "intercept": round(weights[INTERCEPT], 2),
            "grounds": {name: {"weight": round(weights[name], 2), "stories": len(seen[name])} for name in Ground},
        }
        WEIGHTS.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
