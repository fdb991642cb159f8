"""Where a behaviour changes along many builds, when a run may lie and a build may not answer. Pure.

Builds are numbered from the older end, 0, to the newer, n-1; the change point is the first build that behaves like
the newer end. A run of a bad build fails with probability ``Rates.bad``, one of a good build with ``Rates.good``; a
skip says nothing. The belief over the change point follows from every answer known (the order of runs doesn't
matter), and the next run is the one that teaches most per second: for steady failures plain bisection, for unsteady
ones within some 5 % of what is possible at all (log2 n over the capacity of the channel that such runs are).

Nothing is remembered between calls, so a search can be resumed, and checked from its record by someone else.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runners.core.protocol import Answer

Event = tuple[int, Answer]
"""One run: the build's number, and what it answered."""

FLOOR = 0.1
"""Share of a prior that is spread evenly: what a ranking is worth at its worst is bounded by it."""
TOO_CLOSE = 0.15
"""Failure rates nearer to each other than this cannot be told apart in any number of runs worth paying."""
SOLID = 1000.0
"""So much likelier under one behaviour than under the other, a build's runs stand whatever lies around it."""
MOST_REPEATS = 12
"""A build whose runs contradict their surroundings is run this often at most."""
CAUGHT = math.log(20)
"""Each side of the answer is run until its own runs are so much likelier on that side of the change."""
_CHOICES = 256
_SURE = 1e-9
"""No rate is believed to be exactly 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often a run fails as reported: on a bad build, and on a good one."""

    bad: float
    good: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is searched. ``weights`` has one entry for each build but the first: that it is the first changed one."""

    weights: tuple[float, ...]
    commits: tuple[int, ...]
    """Commits from the older end up to each build: 0 first, ascending."""
    introduced: bool
    """The newer end is bad. False: it is good, and what is sought is a fix."""

    def __len__(self) -> int:
        return len(self.commits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """When it is enough."""

    stop: float = 0.95
    """Belief in a range of builds with which the search ends."""
    publish: float = 0.993
    """Belief in one commit with which it may be named: at most one wrong name in a hundred, as measured."""
    calibration: int = 10
    """Runs of each end, before anything between them is run."""
    patience: int = 12
    """Builds in a row that answer nothing, after which those between them are given up."""
    rates: Rates | None = None
    """Known beforehand; None: found out by calibration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNext:
    """Run these builds next, side by side; one may stand there more than once."""

    builds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Nothing more is worth a run. ``refused`` says why there is no answer; empty when there is one."""

    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What the runs say: the change came after ``older`` and with ``newer`` at the latest."""

    older: int
    newer: int
    confidence: float
    verified: bool
    """Both ends were run as often as the failure rates demand, and answered accordingly."""
    single: bool
    """One commit lies between them, and the belief in it reaches the publishing threshold."""
    unsteady: tuple[int, ...] = ()
    """Builds that certainly behave like the newer end and lie before one that certainly does not."""
    rates: Rates | None = None


@dataclass(slots=True)
class RunCounts:
    """Runs of one build."""

    fails: int = 0
    passes: int = 0
    skips: int = 0

    @property
    def runs(self) -> int:
        return self.fails + self.passes


def count_runs(events: Iterable[Event]) -> dict[int, RunCounts]:
    """What each build that was run answered."""
    found: dict[int, RunCounts] = {}
    for build, answer in events:
        one = found.setdefault(build, RunCounts())
        match answer:
            case Answer.BAD:
                one.fails += 1
            case Answer.GOOD:
                one.passes += 1
            case Answer.SKIP:
                one.skips += 1
    return found


def mix_prior(weights: Sequence[float], floor: float = FLOOR) -> tuple[float, ...]:
    """A prior from any weights, none negative: normalised, and mixed with an even one."""
    total, even = math.fsum(weights), 1 / len(weights)
    return tuple((1 - floor) * (weight / total if total > 0 else even) + floor * even for weight in weights)


# ---------------------------------------------------------------------------------------------- failure rates


def estimate_rates(bad: RunCounts, good: RunCounts) -> Rates | None:
    """Careful rates from runs of both ends: steadier than it is must not be assumed; None where they are too close.

    Taking a failure for steadier than it is makes half of all answers wrong, flakier costs a few runs (simulated).
    """
    rates = Rates(bad=_at_least(bad.fails, bad.runs), good=1 - _at_least(good.passes, good.runs))
    return rates if rates.bad - rates.good >= TOO_CLOSE else None


def _at_least(hits: int, runs: int) -> float:
    """The rate that the true one exceeds with 80 % (uniform prior); with nothing but hits near the observed 1."""
    if runs == 0:
        return 0.0
    if hits == runs:
        return max(runs / (runs + 0.5) if runs >= 3 else 0.0, math.pow(0.2, 1 / (runs + 1)))
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        # Beta(hits + 1, misses + 1) lies below x as often as hits + 1 or more of runs + 1 trials succeed at x.
        low, high = (middle, high) if _at_or_above(hits + 1, runs + 1, middle) < 0.2 else (low, middle)
    return low


def _at_or_above(hits: int, runs: int, rate: float) -> float:
    """Probability of ``hits`` or more successes."""
    return math.fsum(math.comb(runs, n) * rate**n * (1 - rate) ** (runs - n) for n in range(hits, runs + 1))


# ---------------------------------------------------------------------------------------------- belief


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """``changed[i]``: probability that build i behaves like the newer end; 0 at the older end, 1 at the newer."""

    changed: list[float]
    since: int
    """The last build that certainly does not: nothing before it matters to the newest change."""


@dataclass(frozen=True, slots=True)
class _Model:
    """Probability of a failing run before and after the change."""

    old: float
    new: float

    def ratio(self, seen: RunCounts) -> float:
        """log of how much likelier the runs are before the change than after it."""
        return seen.fails * math.log(self.old / self.new) + seen.passes * math.log((1 - self.old) / (1 - self.new))

    def step(self, sign: float) -> float:
        """What one run adds to the ratio of a build before the change (+1), after it (-1), answering as it should."""
        one = RunCounts(fails=1) if (self.old > self.new) == (sign > 0) else RunCounts(passes=1)
        return sign * self.ratio(one)


def _model(line: Line, rates: Rates) -> _Model:
    bad, good = (min(max(rate, _SURE), 1 - _SURE) for rate in (rates.bad, rates.good))
    return _Model(old=good, new=bad) if line.introduced else _Model(old=bad, new=good)


def compute_belief(line: Line, rates: Rates, tallies: Mapping[int, RunCounts]) -> Belief:
    """The posterior over the newest change."""
    model = _model(line, rates)
    evidence = {build: model.ratio(seen) for build, seen in tallies.items() if seen.runs}
    solid = math.log(SOLID)
    since = max((b for b, ratio in evidence.items() if ratio >= solid and b < len(line) - 1), default=0)
    steps = [0.0] * (len(line) - since)
    for build, ratio in evidence.items():
        if build > since:
            steps[build - since] = ratio
    logs = list(itertools.accumulate(steps))  # of the runs up to and including each build, had it not changed yet
    top = max(logs[:-1])
    mass = [weight * math.exp(log - top) for weight, log in zip(line.weights[since:], logs[:-1], strict=True)]
    total = math.fsum(mass)
    if total <= 0:  # the prior excludes all that the runs allow: believe the runs
        mass = [math.exp(log - top) for log in logs[:-1]]
        total = math.fsum(mass)
    changed = [0.0] * (since + 1) + [min(part / total, 1.0) for part in itertools.accumulate(mass)]
    changed[-1] = 1.0
    return Belief(changed=changed, since=since)


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def compute_gain(model: _Model, changed: float) -> float:
    """Bits that one run of a build is expected to teach, when it is changed with this probability."""
    fails = changed * model.new + (1 - changed) * model.old
    return max(0.0, _entropy(fails) - changed * _entropy(model.new) - (1 - changed) * _entropy(model.old))


# ---------------------------------------------------------------------------------------------- builds that skip


@dataclass(frozen=True, slots=True)
class _Chances:
    """How likely each build is to answer, from those that did and did not: skips come in blocks.

    Inside a run of r skips the rule of succession says 1 in r + 2; towards a build that answered it rises to 1.
    """

    tried: list[int]
    answered: dict[int, bool]
    runs: dict[int, int]
    """Skipped build → how many skips in a row, among the builds that were tried, it is one of."""

    def of(self, build: int) -> float:
        if build in self.answered:
            return 1.0 if self.answered[build] else 0.0
        at = bisect_left(self.tried, build)
        left, right = self.tried[at - 1], self.tried[at]
        below, above = self._at(left), self._at(right)
        return below + (above - below) * (build - left) / (right - left)

    def _at(self, build: int) -> float:
        return 1.0 if self.answered[build] else 1 / (self.runs[build] + 2)


def _chances(line: Line, tallies: Mapping[int, RunCounts]) -> _Chances | None:
    """None while nothing was skipped."""
    answered = {0: True, len(line) - 1: True}
    answered |= {build: seen.runs > 0 for build, seen in tallies.items() if seen.runs or seen.skips}
    if all(answered.values()):
        return None
    tried = sorted(answered)
    runs: dict[int, int] = {}
    for skipped, group in itertools.groupby(tried, key=lambda build: not answered[build]):
        row = list(group)
        runs |= {build: len(row) for build in row if skipped}
    return _Chances(tried, answered, runs)


# ---------------------------------------------------------------------------------------------- what to run next


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that follows from the runs so far, computed once for one decision."""

    line: Line
    goals: Goals
    rates: Rates
    model: _Model
    tallies: dict[int, RunCounts]
    belief: Belief
    chances: _Chances | None

    def chance(self, build: int) -> float:
        return 1.0 if self.chances is None else self.chances.of(build)

    def hopeful(self, build: int) -> bool:
        """Whether a run of it is likely enough to answer."""
        return self.chances is None or self.chances.of(build) >= 1 / (self.goals.patience + 2)

    def steady(self) -> bool:
        """Neither end ever answered both ways."""
        ends = (self.tallies.get(build, RunCounts()) for build in (0, len(self.line) - 1))
        return not any(seen.fails and seen.passes for seen in ends)

    def open_builds(self) -> list[int]:
        """Builds whose runs can still teach something."""
        changed = self.belief.changed
        first, last = bisect_right(changed, 1e-6), bisect_left(changed, 1 - 1e-6)
        wanted = range(max(first - 1, self.belief.since, 1), min(last + 1, len(self.line) - 1))
        return [build for build in wanted if self.hopeful(build)]

    def gap(self) -> tuple[int, int, float]:
        """The neighbours, among builds that answer, between which the change most likely came; and how likely."""
        changed = self.belief.changed
        ends = [self.belief.since, *(b for b in self.open_builds() if b > self.belief.since), len(self.line) - 1]
        pairs = itertools.pairwise(ends)
        older, newer = max(pairs, key=lambda pair: changed[pair[1]] - changed[pair[0]])
        return older, newer, changed[newer] - changed[older]


def assess_search(line: Line, goals: Goals, events: Iterable[Event]) -> State | Finished:
    """The state of a search whose ends are known; or why there is nothing to search."""
    tallies = count_runs(events)
    rates = goals.rates or _rates(line, tallies)
    if isinstance(rates, str):
        return Finished(refused=rates)
    if goals.rates is None:
        rates = _pooled(line, rates, tallies)
    return State(
        line=line,
        goals=goals,
        rates=rates,
        model=_model(line, rates),
        tallies=tallies,
        belief=compute_belief(line, rates, tallies),
        chances=_chances(line, tallies),
    )


def _pooled(line: Line, rates: Rates, tallies: Mapping[int, RunCounts]) -> Rates:
    """The rates again, from the runs of every build whose side is certain by now: the ends alone may have misled."""
    belief = compute_belief(line, rates, tallies)
    older, newer = RunCounts(), RunCounts()
    for build, seen in tallies.items():
        changed = belief.changed[build]
        if (build == 0 or build >= belief.since) and (changed <= 1e-3 or changed >= 1 - 1e-3):
            side = older if changed < 0.5 else newer
            side.fails += seen.fails
            side.passes += seen.passes
    bad, good = (newer, older) if line.introduced else (older, newer)
    return estimate_rates(bad, good) or rates


def _rates(line: Line, tallies: Mapping[int, RunCounts]) -> Rates | str:
    older, newer = tallies.get(0, RunCounts()), tallies.get(len(line) - 1, RunCounts())
    bad, good = (newer, older) if line.introduced else (older, newer)
    if not bad.runs or not good.runs:
        which = "bad" if not bad.runs else "good"
        return f"the {which} end cannot run the testcase"
    if not bad.fails:
        return f"the bad end does not fail as reported (0 of {bad.runs} runs)"
    if good.fails == good.runs:
        return f"the good end fails as reported ({good.fails} of {good.runs} runs)"
    rates = estimate_rates(bad, good)
    if rates is None:
        return (
            f"it fails too irregularly: {bad.fails} of {bad.runs} runs on the bad end, "
            f"{good.fails} of {good.runs} on the good one"
        )
    return rates


def choose_next(
    line: Line, goals: Goals, events: Sequence[Event], seconds: Sequence[float], *, workers: int = 1
) -> RunNext | Finished:
    """What to run next. ``seconds``: what a run of each build takes, having the build included."""
    ends = _uncalibrated(line, goals, count_runs(events)) if goals.rates is None else ()
    if ends:
        return RunNext(builds=ends[: max(2, workers)])
    state = assess_search(line, goals, events)
    if isinstance(state, Finished):
        return state
    older, newer, mass = state.gap()
    if mass >= goals.stop:
        missing = (*_missing_runs(state, older, newer), *_contradicting(state))
        if missing:
            return RunNext(builds=missing[:workers])
        if mass >= _target(state, older, newer):
            return Finished()
    builds = _batch(state, seconds, workers)
    return RunNext(builds=builds) if builds else Finished()


def _uncalibrated(line: Line, goals: Goals, tallies: Mapping[int, RunCounts]) -> tuple[int, ...]:
    """Runs that the ends still need, alternating. An end that skips twice and never answers is not run again.

    Ends whose rates differ, but not surely enough yet, get up to three times the runs.
    """
    older, newer = tallies.get(0, RunCounts()), tallies.get(len(line) - 1, RunCounts())
    wanted = goals.calibration
    while wanted < 3 * goals.calibration and min(older.runs, newer.runs) >= wanted and _promising(line, older, newer):
        wanted += max(1, goals.calibration // 2)
    needs = [
        [] if seen.skips >= 2 and not seen.runs else [end] * (wanted - seen.runs - seen.skips)
        for end, seen in ((0, older), (len(line) - 1, newer))
    ]
    pairs = itertools.zip_longest(*needs)
    return tuple(build for pair in pairs for build in pair if build is not None)


def _promising(line: Line, older: RunCounts, newer: RunCounts) -> bool:
    bad, good = (newer, older) if line.introduced else (older, newer)
    return estimate_rates(bad, good) is None and bad.fails / bad.runs - good.fails / good.runs >= TOO_CLOSE


def _target(state: State, older: int, newer: int) -> float:
    one = state.line.commits[newer] - state.line.commits[older] == 1
    return state.goals.publish if one else state.goals.stop


def _missing_runs(state: State, older: int, newer: int) -> tuple[int, ...]:
    """Runs that both sides of the answer still need, by themselves: 19 times of 20 a lying build would be caught."""
    needs = []
    for build, sign in ((older, 1.0), (newer, -1.0)):
        seen = state.tallies.get(build, RunCounts())
        lacking = CAUGHT - sign * state.model.ratio(seen)
        # Where the rates are only estimates, one run is never enough.
        least = 0 if state.goals.rates is not None else 2 - seen.runs
        needs += [build] * max(math.ceil(lacking / state.model.step(sign)), least)
    return tuple(needs)


def _contradicting(state: State) -> tuple[int, ...]:
    """Builds whose runs don't fit their side of the answer, until they fit or stand for themselves.

    Where the ends never wavered any contradiction is worth a second run; else only a surprising one.
    """
    limit = 0.25 if state.goals.rates is None and state.steady() else 0.1
    return tuple(
        build
        for build, seen in sorted(state.tallies.items())
        if seen.runs
        and seen.runs < MOST_REPEATS
        and abs(state.model.ratio(seen)) < math.log(SOLID)
        and _surprise(state, build, seen) < limit
    )


def _surprise(state: State, build: int, seen: RunCounts) -> float:
    """How probable runs at least as contrary are, on the side where the build is believed to be."""
    changed = state.belief.changed[build] > 0.5
    fails = state.model.new if changed else state.model.old
    contrary = seen.passes if changed == state.line.introduced else seen.fails
    rate = 1 - fails if changed == state.line.introduced else fails
    return _at_or_above(contrary, seen.runs, rate)


def _batch(state: State, seconds: Sequence[float], workers: int) -> tuple[int, ...]:
    """One build for each worker: the belief is cut into as many overlapping parts, each with its own middle."""
    builds = _thinned(state.open_builds(), seconds, state.belief.changed)
    if not builds:
        return ()
    chosen = []
    for worker in range(workers):
        low, high = worker / (workers + 1), (worker + 2) / (workers + 1)
        chosen.append(max(builds, key=lambda b: _worth(state, b, low, high) / max(seconds[b], 1e-3)))
    return tuple(chosen)


def _thinned(builds: Sequence[int], seconds: Sequence[float], changed: Sequence[float]) -> list[int]:
    """Of thousands of builds those that differ: by price, by belief, or by lying far from the next one kept."""
    if len(builds) <= _CHOICES:
        return list(builds)
    kept: dict[int, None] = {}
    last: dict[float, int] = {}
    for before, build in itertools.pairwise((builds[0], *builds)):
        at = last.get(seconds[build])
        if at is None or build - at > len(builds) // _CHOICES or changed[build] - changed[at] > 1 / _CHOICES:
            kept |= {before: None, build: None}  # what comes before a step in belief matters as much
            last[seconds[build]] = build
    return list(kept)


def _worth(state: State, build: int, low: float, high: float) -> float:
    """Bits expected from a run, seen as if the change were known to lie in that part of the belief."""
    changed = state.belief.changed[build]
    part = (changed - low) / (high - low)
    inside = compute_gain(state.model, part) if 0 < part < 1 else 0.0
    return (inside + 1e-3 * compute_gain(state.model, changed)) * state.chance(build)


def predict_next(
    line: Line, goals: Goals, events: Sequence[Event], seconds: Sequence[float], under_way: Sequence[int]
) -> tuple[int, ...]:
    """Builds that will be wanted next whichever way the builds under way answer: worth having ready meanwhile."""
    wanted: dict[int, None] = {}
    for answer in (Answer.BAD, Answer.GOOD):
        step = choose_next(line, goals, [*events, *((build, answer) for build in under_way)], seconds)
        if isinstance(step, RunNext):
            wanted |= dict.fromkeys(step.builds)
    return tuple(build for build in wanted if build not in under_way)


# ---------------------------------------------------------------------------------------------- what it means


def conclude_search(line: Line, goals: Goals, events: Sequence[Event]) -> Conclusion | str:
    """The answer as far as the runs carry it; or, in words, why there is none."""
    state = assess_search(line, goals, events)
    if isinstance(state, Finished):
        return state.refused
    low, high = _shortest(state.belief, goals.stop)
    older = max(build for build in _showing(state, old=True) if build <= low)
    newer = min(build for build in _showing(state, old=False) if build >= high)
    changed = state.belief.changed
    confidence = changed[newer] - changed[older]
    verified = not _missing_runs(state, older, newer)
    one = line.commits[newer] - line.commits[older] == 1
    return Conclusion(
        older=older,
        newer=newer,
        confidence=confidence,
        verified=verified,
        single=one and verified and confidence >= goals.publish,
        unsteady=_unsteady(state),
        rates=state.rates,
    )


def _shortest(belief: Belief, share: float) -> tuple[int, int]:
    """The shortest stretch that holds this share of the belief: the change is after the first, by the second."""
    changed = belief.changed
    best, newer = (0, len(changed) - 1), 1
    for older in range(len(changed) - 1):
        newer = max(newer, older + 1)
        while newer < len(changed) - 1 and changed[newer] - changed[older] < share:
            newer += 1
        if changed[newer] - changed[older] < share:
            break
        best = min(best, (older, newer), key=lambda span: span[1] - span[0])
    return best


def _showing(state: State, *, old: bool) -> list[int]:
    """Builds whose own runs speak for one side, and the end that stands for it."""
    sign = 1.0 if old else -1.0
    spoken = [build for build, seen in state.tallies.items() if seen.runs and sign * state.model.ratio(seen) > 0]
    return [0 if old else len(state.line) - 1, *spoken]


def _unsteady(state: State) -> tuple[int, ...]:
    ratios = {build: state.model.ratio(seen) for build, seen in state.tallies.items() if seen.runs}
    certain = math.log(SOLID)
    last_old = max((build for build, ratio in ratios.items() if ratio >= certain), default=0)
    return tuple(sorted(build for build, ratio in ratios.items() if ratio <= -certain and build < last_old))
