"""Runs and wrong answers of the search between builds, beside plain bisection and repeated steps, in one run.

``python -m bench.bisection [--trials N] [--quick] [--seed WORD] [--table NAME]``: histories of 16, 200 and 2000
builds with one change at a random place; a bad build fails with probability p, a good one with f. Compared on the
same histories:

- *git*: the logic of ``git bisect run``, its way around skipped commits included; it believes every run;
- *repeat*: bisection that repeats each step until a sequential test is 95 % sure of the whole search;
- *ours*: `runners.core.bisection.noisy`, stopping at a belief of 95 %, before and after its answer is verified by
  runs of its own, and at the belief with which a commit is named.

*bound* is log2 n over the channel's capacity: what no search can do with fewer runs, errors aside.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from bench.bisection.channel import bound_runs
from runners.core.bisection.noisy import (
    Event,
    Finished,
    Goals,
    Line,
    Rates,
    State,
    assess_search,
    choose_next,
    conclude_search,
)
from runners.core.protocol import Answer

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """`runners.core.bisection.noisy`; with ``known`` it is told both failure rates, else it runs both ends to find
    them out."""

    publish: float
    workers: int = 1
    known: bool = True
    verified: bool = True
    """Both sides of the answer are run by themselves, and what contradicts it again; False: the search alone."""

    def __call__(self, history: History) -> Outcome | None:
        line = Line(
            weights=(1 / history.size,) * history.size, commits=tuple(range(history.size + 1)), introduced=True
        )
        goals = Goals(publish=self.publish, rates=history.rates if self.known else None)
        seconds = [1.0] * len(line)
        events: list[Event] = []
        while history.runs < MOST_RUNS:
            if not self.verified and self._believes(line, goals, events):
                break
            step = choose_next(line, goals, events, seconds, workers=self.workers)
            if isinstance(step, Finished):
                break
            history.rounds += 1
            events += [(build, history.run(build)) for build in step.builds]
        found = conclude_search(line, goals, events)
        return None if isinstance(found, str) else Outcome(found.older, found.newer)

    def _believes(self, line: Line, goals: Goals, events: Sequence[Event]) -> bool:
        state = assess_search(line, goals, events)
        return isinstance(state, State) and state.find_gap()[2] >= self.publish


ALONE = Ours(publish=0.95, verified=False)
AT_95 = Ours(publish=0.95)
TO_PUBLISH = Ours(publish=PUBLISH)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One search on many histories; those of the same seed, size and rates are the same for every search."""

    search: Search
    size: int
    rates: Rates
    skips: Skips = no_skips
    seed: str = ""

    def trial(self, number: int) -> tuple[int, int, Outcome | None, bool]:
        """Runs, rounds, the answer, and whether it holds."""
        chance = random.Random(f"{self.seed}{number} {self.size} {self.rates}")
        history = History(self.size, chance.randint(1, self.size), self.rates, self.skips(chance, self.size), chance)
        found = self.search(history)
        return history.runs, history.rounds, found, found is not None and found.holds(history.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """How much is measured, and with what."""

    trials: int
    sizes: Sequence[int]
    seed: str
    pool: ProcessPoolExecutor

    def measure(self, search: Search, size: int, rates: Rates, skips: Skips = no_skips) -> Measured:
        cell = Cell(search=search, size=size, rates=rates, skips=skips, seed=self.seed)
        seen = list(self.pool.map(cell.trial, range(self.trials), chunksize=max(1, self.trials // 32)))
        found = [outcome for _, _, outcome, _ in seen if outcome is not None]
        answered = max(1, len(found))
        return Measured(
            runs=sum(runs for runs, _, _, _ in seen) / self.trials,
            rounds=sum(rounds for _, rounds, _, _ in seen) / self.trials,
            wrong=(len(found) - sum(holds for _, _, _, holds in seen)) / answered,
            left=sum(outcome.newer - outcome.older for outcome in found) / answered,
            refused=1 - len(found) / self.trials,
        )


# ---------------------------------------------------------------------------------------------- tables


def beside_others(study: Study) -> Iterator[str]:
    yield "| n | p | f | bound | git: runs / wrong | repeat | ours, 95 % | verified | ours, to publish |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(study.sizes, RATES):
        rates = Rates(bad=p, good=f)
        seen = (study.measure(search, size, rates) for search in (git, repeat, ALONE, AT_95, TO_PUBLISH))
        yield f"| {size} | {p:g} | {f:g} | {bound_runs(size, rates):.1f} | {' | '.join(map(str, seen))} |"


def side_by_side(study: Study) -> Iterator[str]:
    yield "| n | p | f | 1 worker: rounds / runs / wrong | 4 workers | 8 workers |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(study.sizes, ((1.0, 0.0), (0.8, 0.0), (0.5, 0.0))):
        found = [study.measure(replace(TO_PUBLISH, workers=w), size, Rates(bad=p, good=f)) for w in (1, 4, 8)]
        cells = " | ".join(f"{one.rounds:.1f} / {one.runs:.1f} / {100 * one.wrong:.1f} %" for one in found)
        yield f"| {size} | {p:g} | {f:g} | {cells} |"


def around_skips(study: Study) -> Iterator[str]:
    yield "| n | skips | p | git: runs / builds left / wrong | ours, to publish |"
    yield "| --- | --- | --- | --- | --- |"
    patterns = (("30 % anywhere", scattered), ("30 % in a block", in_a_block))
    for size, (name, skips), p in itertools.product(study.sizes, patterns, (1.0, 0.8)):
        found = [study.measure(search, size, Rates(bad=p, good=0.0), skips) for search in (git, TO_PUBLISH)]
        cells = " | ".join(f"{one.runs:.1f} / {one.left:.1f} / {100 * one.wrong:.1f} %" for one in found)
        yield f"| {size} | {name} | {p:g} | {cells} |"


def unknown_rates(study: Study) -> Iterator[str]:
    yield "| n | p | f | runs, those of the ends included | wrong | refused |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for size, (p, f) in itertools.product(study.sizes, RATES):
        seen = study.measure(replace(TO_PUBLISH, known=False), size, Rates(bad=p, good=f))
        yield f"| {size} | {p:g} | {f:g} | {seen.runs:.1f} | {100 * seen.wrong:.1f} % | {100 * seen.refused:.0f} % |"


TABLES = {
    "others": ("Beside others", beside_others),
    "workers": ("Side by side", side_by_side),
    "skips": ("Around builds that answer nothing", around_skips),
    "rates": ("Failure rates not known beforehand", unknown_rates),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="16 and 200 builds only")
    parser.add_argument("--seed", default="", help="other histories than those that the search was tuned on")
    parser.add_argument("--table", choices=TABLES, action="append", help="only this one; repeatable")
    chosen = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        study = Study(trials=chosen.trials, sizes=SIZES[:2] if chosen.quick else SIZES, seed=chosen.seed, pool=pool)
        for name in chosen.table or TABLES:
            title, table = TABLES[name]
            sys.stdout.write(f"\n{title} ({chosen.trials} histories each)\n\n")
            for line in table(study):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
