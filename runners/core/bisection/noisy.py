"""Find the build at which a behaviour changes. Failures may be flaky, and builds may not answer. Pure.

Builds are numbered from the older end, 0, to the newer end, n-1. The change point is the first build that behaves
like the newer end. A run of a bad build fails with probability ``Rates.bad``, a run of a good build with probability
``Rates.good``. A skip carries no information.

The belief is a posterior over the change point, computed from all answers; the order of runs does not matter. The
next run is the one with the highest expected information per second. For steady failures, this is plain bisection.
For flaky failures the search needs some 5 % more runs than the information-theoretic bound: log2 n divided by the
capacity of the noisy channel.

The functions keep no state between calls, so a search can be resumed, and can be verified from its record.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runners.core.protocol import Answer

Event = tuple[int, Answer]
"""One run: the number of the build, and its answer."""

PRIOR_FLOOR = 0.1
"""Share of a prior that is spread evenly. It bounds the cost of a ranking that is wrong."""
MIN_RATE_GAP = 0.15
"""Minimum difference of the two failure rates. Closer rates would need too many runs."""
CERTAIN_RATIO = 1000.0
"""Likelihood ratio at which the runs of a build count as certain, whatever its neighbours answer."""
MAX_REPEATS = 12
"""Most runs of a build whose answers contradict those of its neighbours."""
VERIFIED_LOG_RATIO = math.log(20)
"""Log of the likelihood ratio that the runs of each side of the answer must reach by themselves."""
_MAX_CHOICES = 256
_SURE = 1e-9
"""Distance of every rate from 0 and 1: no rate is believed to be exactly 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The probability that a run fails as reported: on a bad build, and on a good build."""

    bad: float
    good: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The builds to search."""

    weights: tuple[float, ...]
    """Prior probability of each build but the first to be the change point."""
    commits: tuple[int, ...]
    """Commits from the older end up to each build: ascending, the first entry is 0."""
    introduced: bool
    """True if the newer end is bad. False if it is good: then the search is for a fix."""

    def __len__(self) -> int:
        return len(self.commits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """The thresholds at which a search ends."""

    stop: float = 0.95
    """Belief in a range of builds at which the search ends."""
    publish: float = 0.993
    """Belief in one commit above which the report may name it. Measured: at most one wrong name in a hundred."""
    calibration: int = 10
    """Runs of each end before any build between them is run."""
    patience: int = 12
    """Number of consecutive skipped builds after which the builds between them are given up."""
    rates: Rates | None = None
    """Known failure rates. None: estimate them from runs of both ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNext:
    """The builds to run next, in parallel. A build may be listed more than once."""

    builds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """No further run is worth its time. ``refused`` is the reason for a missing answer, else empty."""

    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The result of a search: ``older`` lacks the change, and ``newer`` has it."""

    older: int
    newer: int
    confidence: float
    verified: bool
    """True if both ends were run as often as the failure rates demand, and their answers agree with the result."""
    single: bool
    """True if the ends are one commit apart, and the belief in that commit reaches the publishing threshold."""
    unsteady: tuple[int, ...] = ()
    """Builds that certainly behave like the newer end, but are older than a build that certainly does not."""
    rates: Rates | None = None


@dataclass(slots=True)
class RunCounts:
    """Numbers of runs of one build, by answer."""

    fails: int = 0
    passes: int = 0
    skips: int = 0

    @property
    def runs(self) -> int:
        """Runs that answered. Skips do not count."""
        return self.fails + self.passes


def count_runs(events: Iterable[Event]) -> dict[int, RunCounts]:
    """Count the answers of each build that was run."""
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


def mix_prior(weights: Sequence[float], floor: float = PRIOR_FLOOR) -> tuple[float, ...]:
    """Return a prior: the weights (0 or more), normalised, mixed with an even prior of share ``floor``."""
    total, even = math.fsum(weights), 1 / len(weights)
    return tuple((1 - floor) * (weight / total if total > 0 else even) + floor * even for weight in weights)


# ---------------------------------------------------------------------------------------------- failure rates


def estimate_rates(bad: RunCounts, good: RunCounts) -> Rates | None:
    """Return conservative failure rates from runs of both ends. None if the rates are too close to each other.

    The estimate errs towards flaky. In simulations, a rate that is too high made half of the answers wrong. A rate
    that is too low cost a few runs.
    """
    rates = Rates(bad=_bound_rate(bad.fails, bad.runs), good=1 - _bound_rate(good.passes, good.runs))
    return rates if rates.bad - rates.good >= MIN_RATE_GAP else None


def _bound_rate(hits: int, runs: int) -> float:
    """Return a lower bound of a rate. The true rate is above it with a probability of 80 % (uniform prior).

    If all runs are hits, the bound is close to the observed rate, 1.
    """
    if runs == 0:
        return 0.0
    if hits == runs:
        return max(runs / (runs + 0.5) if runs >= 3 else 0.0, math.pow(0.2, 1 / (runs + 1)))
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        # The CDF of Beta(hits + 1, misses + 1) at x is P(Binomial(runs + 1, x) ≥ hits + 1).
        low, high = (middle, high) if _compute_tail(hits + 1, runs + 1, middle) < 0.2 else (low, middle)
    return low


def _compute_tail(hits: int, runs: int, rate: float) -> float:
    """Return the probability of ``hits`` or more successes in ``runs`` trials."""
    return math.fsum(math.comb(runs, n) * rate**n * (1 - rate) ** (runs - n) for n in range(hits, runs + 1))


# ---------------------------------------------------------------------------------------------- belief


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """The posterior over the newest change."""

    changed: list[float]
    """Probability of each build to behave like the newer end: 0 at the older end, 1 at the newer end."""
    since: int
    """The last build that certainly behaves like the older end. The newest change comes after it."""


@dataclass(frozen=True, slots=True)
class _Model:
    """The probability of a failing run before the change, and after it."""

    old: float
    new: float

    def compute_ratio(self, seen: RunCounts) -> float:
        """Return the log likelihood ratio of the runs: before the change, over after it."""
        return seen.fails * math.log(self.old / self.new) + seen.passes * math.log((1 - self.old) / (1 - self.new))

    def compute_step(self, sign: float) -> float:
        """Return the log-likelihood gain of one run with the expected answer.

        ``sign`` is +1 before the change, -1 after it.
        """
        one = RunCounts(fails=1) if (self.old > self.new) == (sign > 0) else RunCounts(passes=1)
        return sign * self.compute_ratio(one)


def _make_model(line: Line, rates: Rates) -> _Model:
    bad, good = (min(max(rate, _SURE), 1 - _SURE) for rate in (rates.bad, rates.good))
    return _Model(old=good, new=bad) if line.introduced else _Model(old=bad, new=good)


def compute_belief(line: Line, rates: Rates, tallies: Mapping[int, RunCounts]) -> Belief:
    """Return the posterior over the newest change."""
    model = _make_model(line, rates)
    evidence = {build: model.compute_ratio(seen) for build, seen in tallies.items() if seen.runs}
    solid = math.log(CERTAIN_RATIO)
    since = max((b for b, ratio in evidence.items() if ratio >= solid and b < len(line) - 1), default=0)
    steps = [0.0] * (len(line) - since)
    for build, ratio in evidence.items():
        if build > since:
            steps[build - since] = ratio
    logs = list(itertools.accumulate(steps))  # log likelihood of the runs up to each build, if the change comes later
    top = max(logs[:-1])
    mass = [weight * math.exp(log - top) for weight, log in zip(line.weights[since:], logs[:-1], strict=True)]
    total = math.fsum(mass)
    if total <= 0:  # the prior excludes every change point that the runs allow: drop the prior
        mass = [math.exp(log - top) for log in logs[:-1]]
        total = math.fsum(mass)
    changed = [0.0] * (since + 1) + [min(part / total, 1.0) for part in itertools.accumulate(mass)]
    changed[-1] = 1.0
    return Belief(changed=changed, since=since)


def _compute_entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def compute_gain(model: _Model, changed: float) -> float:
    """Return the expected information, in bits, of one run of a build that has the change with this probability."""
    fails = changed * model.new + (1 - changed) * model.old
    return max(
        0.0,
        _compute_entropy(fails) - changed * _compute_entropy(model.new) - (1 - changed) * _compute_entropy(model.old),
    )


# ---------------------------------------------------------------------------------------------- builds that skip


@dataclass(frozen=True, slots=True)
class _Chances:
    """The probability that each build answers, given the builds that were tried. Skips come in blocks.

    Inside a block of r skips the probability is 1 / (r + 2) (rule of succession). It rises to 1 towards a build that
    answered.
    """

    tried: list[int]
    answered: dict[int, bool]
    runs: dict[int, int]
    """Skipped build → number of skips of its block, among the builds that were tried."""

    def estimate(self, build: int) -> float:
        if build in self.answered:
            return 1.0 if self.answered[build] else 0.0
        at = bisect_left(self.tried, build)
        left, right = self.tried[at - 1], self.tried[at]
        below, above = self._estimate_tried(left), self._estimate_tried(right)
        return below + (above - below) * (build - left) / (right - left)

    def _estimate_tried(self, build: int) -> float:
        return 1.0 if self.answered[build] else 1 / (self.runs[build] + 2)


def _estimate_chances(line: Line, tallies: Mapping[int, RunCounts]) -> _Chances | None:
    """Return the chances of the builds. None if no build was skipped: then every build is expected to answer."""
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
    """All facts that follow from the runs so far, computed once for each decision."""

    line: Line
    goals: Goals
    rates: Rates
    model: _Model
    tallies: dict[int, RunCounts]
    belief: Belief
    chances: _Chances | None

    def get_chance(self, build: int) -> float:
        """Return the probability that a build answers."""
        return 1.0 if self.chances is None else self.chances.estimate(build)

    def may_answer(self, build: int) -> bool:
        """True if a build is likely enough to answer."""
        return self.chances is None or self.chances.estimate(build) >= 1 / (self.goals.patience + 2)

    def is_steady(self) -> bool:
        """True if no end answered both ways."""
        ends = (self.tallies.get(build, RunCounts()) for build in (0, len(self.line) - 1))
        return not any(seen.fails and seen.passes for seen in ends)

    def list_open_builds(self) -> list[int]:
        """List the builds whose runs can still move the belief."""
        changed = self.belief.changed
        first, last = bisect_right(changed, 1e-6), bisect_left(changed, 1 - 1e-6)
        wanted = range(max(first - 1, self.belief.since, 1), min(last + 1, len(self.line) - 1))
        return [build for build in wanted if self.may_answer(build)]

    def find_gap(self) -> tuple[int, int, float]:
        """Find the most likely place of the change: two neighbours among the answering builds, and the belief."""
        changed = self.belief.changed
        ends = [self.belief.since, *(b for b in self.list_open_builds() if b > self.belief.since), len(self.line) - 1]
        pairs = itertools.pairwise(ends)
        older, newer = max(pairs, key=lambda pair: changed[pair[1]] - changed[pair[0]])
        return older, newer, changed[newer] - changed[older]


def assess_search(line: Line, goals: Goals, events: Iterable[Event]) -> State | Finished:
    """Return the state of a search, or `Finished` with the reason why the ends allow no search."""
    tallies = count_runs(events)
    rates = goals.rates or _rate_ends(line, tallies)
    if isinstance(rates, str):
        return Finished(refused=rates)
    if goals.rates is None:
        rates = _pool_rates(line, rates, tallies)
    return State(
        line=line,
        goals=goals,
        rates=rates,
        model=_make_model(line, rates),
        tallies=tallies,
        belief=compute_belief(line, rates, tallies),
        chances=_estimate_chances(line, tallies),
    )


def _pool_rates(line: Line, rates: Rates, tallies: Mapping[int, RunCounts]) -> Rates:
    """Estimate the rates again from all builds whose side is certain, because the ends alone may mislead."""
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


def _rate_ends(line: Line, tallies: Mapping[int, RunCounts]) -> Rates | str:
    """Return the failure rates of both ends, or the reason why they allow no search."""
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
    """Return the builds to run next. ``seconds``: time of a run of each build, preparation included."""
    ends = _list_calibration_runs(line, goals, count_runs(events)) if goals.rates is None else ()
    if ends:
        return RunNext(builds=ends[: max(2, workers)])
    state = assess_search(line, goals, events)
    if isinstance(state, Finished):
        return state
    older, newer, mass = state.find_gap()
    if mass >= goals.stop:
        missing = (*_list_missing_runs(state, older, newer), *_find_contradicting(state))
        if missing:
            return RunNext(builds=missing[:workers])
        if mass >= _get_target(state, older, newer):
            return Finished()
    builds = _choose_batch(state, seconds, workers)
    return RunNext(builds=builds) if builds else Finished()


def _list_calibration_runs(line: Line, goals: Goals, tallies: Mapping[int, RunCounts]) -> tuple[int, ...]:
    """List the runs that the ends still need, alternating.

    An end that skips twice and never answers is not run again. Ends whose rates seem to differ, but not certainly,
    get up to three times the runs.
    """
    older, newer = tallies.get(0, RunCounts()), tallies.get(len(line) - 1, RunCounts())
    wanted = goals.calibration
    while (
        wanted < 3 * goals.calibration and min(older.runs, newer.runs) >= wanted and _may_separate(line, older, newer)
    ):
        wanted += max(1, goals.calibration // 2)
    needs = [
        [] if seen.skips >= 2 and not seen.runs else [end] * (wanted - seen.runs - seen.skips)
        for end, seen in ((0, older), (len(line) - 1, newer))
    ]
    pairs = itertools.zip_longest(*needs)
    return tuple(build for pair in pairs for build in pair if build is not None)


def _may_separate(line: Line, older: RunCounts, newer: RunCounts) -> bool:
    """True if the observed rates of the ends differ enough, but the conservative rates do not yet."""
    bad, good = (newer, older) if line.introduced else (older, newer)
    return estimate_rates(bad, good) is None and bad.fails / bad.runs - good.fails / good.runs >= MIN_RATE_GAP


def _get_target(state: State, older: int, newer: int) -> float:
    """Return the belief to reach: a range of one commit has a higher threshold, because the commit gets named."""
    one = state.line.commits[newer] - state.line.commits[older] == 1
    return state.goals.publish if one else state.goals.stop


def _list_missing_runs(state: State, older: int, newer: int) -> tuple[int, ...]:
    """List the runs that both sides of the answer still need. They reveal a wrong side 19 times of 20."""
    needs = []
    for build, sign in ((older, 1.0), (newer, -1.0)):
        seen = state.tallies.get(build, RunCounts())
        lacking = VERIFIED_LOG_RATIO - sign * state.model.compute_ratio(seen)
        # If the rates are only estimates, one run is never enough.
        least = 0 if state.goals.rates is not None else 2 - seen.runs
        needs += [build] * max(math.ceil(lacking / state.model.compute_step(sign)), least)
    return tuple(needs)


def _find_contradicting(state: State) -> tuple[int, ...]:
    """Find the builds whose runs contradict their side of the answer. Builds that are certain alone are left out.

    If the ends are steady, any contradiction is worth a second run. Otherwise only an improbable one is.
    """
    limit = 0.25 if state.goals.rates is None and state.is_steady() else 0.1
    return tuple(
        build
        for build, seen in sorted(state.tallies.items())
        if seen.runs
        and seen.runs < MAX_REPEATS
        and abs(state.model.compute_ratio(seen)) < math.log(CERTAIN_RATIO)
        and _compute_surprise(state, build, seen) < limit
    )


def _compute_surprise(state: State, build: int, seen: RunCounts) -> float:
    """Return the probability of runs that contradict the build's believed side at least as much."""
    changed = state.belief.changed[build] > 0.5
    fails = state.model.new if changed else state.model.old
    contrary = seen.passes if changed == state.line.introduced else seen.fails
    rate = 1 - fails if changed == state.line.introduced else fails
    return _compute_tail(contrary, seen.runs, rate)


def _choose_batch(state: State, seconds: Sequence[float], workers: int) -> tuple[int, ...]:
    """Choose one build for each worker. Each worker gets one of the overlapping parts of the belief."""
    builds = _thin_builds(state.list_open_builds(), seconds, state.belief.changed)
    if not builds:
        return ()
    chosen = []
    for worker in range(workers):
        low, high = worker / (workers + 1), (worker + 2) / (workers + 1)
        chosen.append(max(builds, key=lambda b: _estimate_value(state, b, low, high) / max(seconds[b], 1e-3)))
    return tuple(chosen)


def _thin_builds(builds: Sequence[int], seconds: Sequence[float], changed: Sequence[float]) -> list[int]:
    """Reduce thousands of builds to those that differ in cost or belief, or are far from the next kept build."""
    if len(builds) <= _MAX_CHOICES:
        return list(builds)
    kept: dict[int, None] = {}
    last: dict[float, int] = {}
    for before, build in itertools.pairwise((builds[0], *builds)):
        at = last.get(seconds[build])
        if at is None or build - at > len(builds) // _MAX_CHOICES or changed[build] - changed[at] > 1 / _MAX_CHOICES:
            kept |= {before: None, build: None}  # the build before a step in belief matters as much
            last[seconds[build]] = build
    return list(kept)


def _estimate_value(state: State, build: int, low: float, high: float) -> float:
    """Return the expected information of a run, in bits, given that the change point lies between the quantiles
    ``low`` and ``high`` of the belief."""
    changed = state.belief.changed[build]
    part = (changed - low) / (high - low)
    inside = compute_gain(state.model, part) if 0 < part < 1 else 0.0
    return (inside + 1e-3 * compute_gain(state.model, changed)) * state.get_chance(build)


def predict_next(
    line: Line, goals: Goals, events: Sequence[Event], seconds: Sequence[float], under_way: Sequence[int]
) -> tuple[int, ...]:
    """Predict the builds to run after the current ones, for both possible answers, to prepare them early."""
    wanted: dict[int, None] = {}
    for answer in (Answer.BAD, Answer.GOOD):
        step = choose_next(line, goals, [*events, *((build, answer) for build in under_way)], seconds)
        if isinstance(step, RunNext):
            wanted |= dict.fromkeys(step.builds)
    return tuple(build for build in wanted if build not in under_way)


# ---------------------------------------------------------------------------------------------- the answer


def conclude_search(line: Line, goals: Goals, events: Sequence[Event]) -> Conclusion | str:
    """Return the answer that the runs support, or the reason for its absence."""
    state = assess_search(line, goals, events)
    if isinstance(state, Finished):
        return state.refused
    low, high = _find_shortest_range(state.belief, goals.stop)
    older = max(build for build in _list_builds_on_side(state, old=True) if build <= low)
    newer = min(build for build in _list_builds_on_side(state, old=False) if build >= high)
    changed = state.belief.changed
    confidence = changed[newer] - changed[older]
    verified = not _list_missing_runs(state, older, newer)
    one = line.commits[newer] - line.commits[older] == 1
    return Conclusion(
        older=older,
        newer=newer,
        confidence=confidence,
        verified=verified,
        single=one and verified and confidence >= goals.publish,
        unsteady=_find_unsteady(state),
        rates=state.rates,
    )


def _find_shortest_range(belief: Belief, share: float) -> tuple[int, int]:
    """Find the shortest range that contains a share of the belief. The change comes after its first build, and with
    its last build at the latest."""
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


def _list_builds_on_side(state: State, *, old: bool) -> list[int]:
    """List the builds whose own runs support one side, and the end of that side."""
    sign = 1.0 if old else -1.0
    ratios = {build: sign * state.model.compute_ratio(seen) for build, seen in state.tallies.items() if seen.runs}
    return [0 if old else len(state.line) - 1, *(build for build, ratio in ratios.items() if ratio > 0)]


def _find_unsteady(state: State) -> tuple[int, ...]:
    """Find the builds that certainly behave like the newer end, but come before one that certainly does not."""
    ratios = {build: state.model.compute_ratio(seen) for build, seen in state.tallies.items() if seen.runs}
    certain = math.log(CERTAIN_RATIO)
    last_old = max((build for build, ratio in ratios.items() if ratio >= certain), default=0)
    return tuple(sorted(build for build, ratio in ratios.items() if ratio <= -certain and build < last_old))
