"""Runs and wrong answers of the search between builds, beside plain bisection and repeated steps, in one run.

``python -m bench.bisection [--trials N] [--quick]``: histories of 16, 200 and 2000 builds with one change at a random
place; a bad build fails with probability p, a good one with f. Compared on the same histories:

- *git*: the logic of ``git bisect run``, its way around skipped commits included; it believes every run;
- *repeat*: bisection that repeats each step until a sequential test is 95 % sure of the whole search;
- *ours*: `runners.bayes`, stopping at a belief of 95 % and of that with which a commit is named.

*bound* is log2 n over the channel's capacity: what no search can do with fewer runs, errors aside.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runners.bayes import Event, Finished, Goals, Line, Rates, advise, capacity, conclude
from runners.protocol import Answer

SIZES = (16, 200, 2000)
RATES = tuple(itertools.product((1.0, 0.8, 0.5), (0.0, 0.05)))
PUBLISH = Goals().publish
MOST_RUNS = 400
"""A search that has not ended by then is stopped, as a budget would."""


@dataclass(slots=True)
class History:
    """Builds 0 … n, of which 0 is good and n bad; the change came with ``change``."""

    size: int
    change: int
    rates: Rates
    skipped: frozenset[int]
    chance: random.Random
    runs: int = 0
    rounds: int = 0

    def run(self, build: int) -> Answer:
        self.runs += 1
        if build in self.skipped:
            return Answer.SKIP
        rate = self.rates.bad if build >= self.change else self.rates.good
        return Answer.BAD if self.chance.random() < rate else Answer.GOOD


@dataclass(frozen=True, slots=True)
class Outcome:
    """``older`` … ``newer``: the range that was answered; ``None`` when the search refused to answer."""

    older: int
    newer: int

    def holds(self, change: int) -> bool:
        return self.older < change <= self.newer


Search = Callable[[History], Outcome | None]


# ---------------------------------------------------------------------------------------------- the rivals


def git(history: History) -> Outcome:
    """``git bisect run``: every run is believed; around skips as bisect.c goes (``skip_away``)."""
    good, bad = 0, history.size
    skipped: set[int] = set()
    while any(b not in skipped for b in range(good + 1, bad)):
        total = bad - good
        ranked = sorted(range(good + 1, bad), key=lambda b: -min(b - good, total - (b - good)))
        if ranked[0] not in skipped:
            build = ranked[0]
        else:
            left = [b for b in ranked if b not in skipped]
            build = left[min(_away(len(left)), len(left) - 1)]
        history.rounds += 1
        match history.run(build):
            case Answer.GOOD:
                good = build
            case Answer.BAD:
                bad = build
            case Answer.SKIP:
                skipped.add(build)
    return Outcome(good, bad)


def _away(count: int) -> int:
    """bisect.c: an index that leans towards the best candidates, pseudo-random but the same each time."""
    number = (count * 1103515245 + 12345) // 65536 % 32768
    return int(count * number / 32768 * math.sqrt(number) / math.sqrt(32768))


def repeat(history: History) -> Outcome:
    """Each step until a sequential probability ratio test is sure enough that all of them together err 1 in 20."""
    good, bad = 0, history.size
    error = 0.05 / math.log2(history.size)
    high = math.log((1 - error) / error)
    p, f = min(history.rates.bad, 1 - 1e-9), max(history.rates.good, 1e-9)
    skipped: set[int] = set()
    while candidates := [b for b in range(good + 1, bad) if b not in skipped]:
        build = min(candidates, key=lambda b: abs(2 * b - good - bad))
        ratio = 0.0
        while abs(ratio) < high and build not in skipped:
            history.rounds += 1
            match history.run(build):
                case Answer.BAD:
                    ratio += math.log(p / f)
                case Answer.GOOD:
                    ratio += math.log((1 - p) / (1 - f))
                case Answer.SKIP:
                    skipped.add(build)
        if build not in skipped:
            good, bad = (good, build) if ratio > 0 else (build, bad)
    return Outcome(good, bad)


def ours(publish: float, *, workers: int = 1, known: bool = True) -> Search:
    def search(history: History) -> Outcome | None:
        line = Line(
            weights=(1 / history.size,) * history.size, commits=tuple(range(history.size + 1)), introduced=True
        )
        goals = Goals(publish=publish, rates=history.rates if known else None)
        seconds = [1.0] * len(line)
        events: list[Event] = []
        while history.runs < MOST_RUNS:
            step = advise(line, goals, events, seconds, workers=workers)
            if isinstance(step, Finished):
                break
            history.rounds += 1
            events += [(build, history.run(build)) for build in step.builds]
        found = conclude(line, goals, events)
        return None if isinstance(found, str) else Outcome(found.older, found.newer)

    return search


# ---------------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    runs: float
    rounds: float
    wrong: float
    left: float
    """Builds left in the answer, on average."""
    refused: float

    def __str__(self) -> str:
        return f"{self.runs:.1f} / {100 * self.wrong:.1f} %"


Skips = Callable[[random.Random, int], frozenset[int]]


def no_skips(chance: random.Random, size: int) -> frozenset[int]:
    return frozenset()


def scattered(chance: random.Random, size: int) -> frozenset[int]:
    """Three builds of ten, anywhere."""
    return frozenset(build for build in range(1, size) if chance.random() < 0.3)


def in_a_block(chance: random.Random, size: int) -> frozenset[int]:
    """Three builds of ten, in one piece."""
    length = int(0.3 * size)
    start = chance.randint(1, size - length - 1)
    return frozenset(range(start, start + length))


def measure(search: Search, size: int, rates: Rates, *, trials: int, skips: Skips = no_skips) -> Measured:
    """The same histories for every search: they are made from the trial's number."""
    runs = rounds = wrong = left = refused = 0
    for trial in range(trials):
        chance = random.Random(f"{trial} {size} {rates}")
        history = History(size, chance.randint(1, size), rates, skips(chance, size), chance)
        found = search(history)
        runs, rounds = runs + history.runs, rounds + history.rounds
        if found is None:
            refused += 1
        else:
            wrong += not found.holds(history.change)
            left += found.newer - found.older
    answered = max(1, trials - refused)
    return Measured(
        runs=runs / trials,
        rounds=rounds / trials,
        wrong=wrong / answered,
        left=left / answered,
        refused=refused / trials,
    )


def bound(size: int, rates: Rates) -> float:
    return math.log2(size) / capacity(rates)


# ---------------------------------------------------------------------------------------------- tables


def beside_others(trials: int, sizes: Sequence[int]) -> Iterator[str]:
    yield "| n | p | f | bound | git: runs / wrong | repeat | ours, 95 % | ours, to publish |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(sizes, RATES):
        rates = Rates(bad=p, good=f)
        seen = (measure(search, size, rates, trials=trials) for search in (git, repeat, ours(0.95), ours(PUBLISH)))
        yield f"| {size} | {p:g} | {f:g} | {bound(size, rates):.1f} | {' | '.join(map(str, seen))} |"


def side_by_side(trials: int, sizes: Sequence[int]) -> Iterator[str]:
    yield "| n | p | f | 1 worker: rounds / runs / wrong | 4 workers | 8 workers |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(sizes, ((1.0, 0.0), (0.8, 0.0), (0.5, 0.0))):
        found = [measure(ours(PUBLISH, workers=w), size, Rates(bad=p, good=f), trials=trials) for w in (1, 4, 8)]
        cells = " | ".join(f"{one.rounds:.1f} / {one.runs:.1f} / {100 * one.wrong:.1f} %" for one in found)
        yield f"| {size} | {p:g} | {f:g} | {cells} |"


def around_skips(trials: int, sizes: Sequence[int]) -> Iterator[str]:
    yield "| n | skips | p | git: runs / builds left / wrong | ours, to publish |"
    yield "| --- | --- | --- | --- | --- |"
    patterns = (("30 % anywhere", scattered), ("30 % in a block", in_a_block))
    for size, (name, skips), p in itertools.product(sizes, patterns, (1.0, 0.8)):
        found = [
            measure(search, size, Rates(bad=p, good=0.0), trials=trials, skips=skips)
            for search in (git, ours(PUBLISH))
        ]
        cells = " | ".join(f"{one.runs:.1f} / {one.left:.1f} / {100 * one.wrong:.1f} %" for one in found)
        yield f"| {size} | {name} | {p:g} | {cells} |"


def unknown_rates(trials: int, sizes: Sequence[int]) -> Iterator[str]:
    yield "| n | p | f | runs, those of the ends included | wrong | refused |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(sizes, RATES):
        seen = measure(ours(PUBLISH, known=False), size, Rates(bad=p, good=f), trials=trials)
        yield f"| {size} | {p:g} | {f:g} | {seen.runs:.1f} | {100 * seen.wrong:.1f} % | {100 * seen.refused:.0f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="16 and 200 builds only")
    chosen = parser.parse_args()
    sizes = SIZES[:2] if chosen.quick else SIZES
    for title, table in (
        ("Beside others", beside_others),
        ("Side by side", side_by_side),
        ("Around builds that answer nothing", around_skips),
        ("Failure rates not known beforehand", unknown_rates),
    ):
        sys.stdout.write(f"\n{title} ({chosen.trials} histories each)\n\n")
        for line in table(chosen.trials, sizes):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
