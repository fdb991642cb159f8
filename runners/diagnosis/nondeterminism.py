"""Does a testcase give the same result twice, and if not, what decides it? Runs under chosen conditions, compared.

Each `Way` fixes what could differ: the pattern with which the C library fills new memory, the order of Python's sets,
the seeds of generators that the testcase does not seed, the number of threads. A result that *follows* the pattern,
the same whenever the pattern is the same, comes from memory that was never written; one that follows the hash seed,
from the order of a set. A result that varies, and no longer does once seeds are given, comes from the testcase's own
random numbers. Times and addresses in the output are no results.

Pure but for the function that runs; everything compared is what the host saw.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from runners.core.conditions import FILLS, USUAL, in_words
from runners.core.protocol import (
    Ended,
    Exited,
    Finding,
    FindingKind,
    NotRun,
    OutOfMemory,
    StepResult,
    TimedOut,
    Varied,
)

SEED = 20_231
MAX_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Conditions of one run, and a seed for what a testcase does not seed itself (None: none is given)."""

    name: str
    varied: Varied = USUAL
    seed: int | None = None


AS_IT_IS = Way(name="as it is")
SEEDED = Way(name="with seeds", seed=SEED)
FILLED = tuple(Way(name=f"new memory 0x{255 - fill:02x}", varied=Varied(fill=fill), seed=SEED) for fill in FILLS)
THREADED = tuple(Way(name=in_words(one), varied=one, seed=SEED) for one in (Varied(threads=1), Varied(threads=2)))
HASH_SEEDS = (0, 1, 2)
UNSEEDED = Way(name="without seeds")
"""As it is, but for forks: they draw new random numbers, and share their addresses."""


def hashed(hash_seed: int) -> Way:
    """Another order of sets, in a process of its own unless it is the usual one."""
    return Way(name=f"hash seed {hash_seed}", varied=Varied(hash_seed=hash_seed), seed=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run under a way. ``result`` is what is compared: how it ended and what it printed."""

    way: Way
    ended: Ended
    result: str


Runner = Callable[[Way], Run | None]
"""None where it could not be run, or not any more: the budget is spent."""

Cause = Literal["memory", "threads", "hashes", "randomness", "race", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What was run, and what it shows. ``cause`` is None when the result never changed, or nothing can be said."""

    runs: tuple[Run, ...]
    cause: Cause | None = None

    def of(self, way: Way) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.way == way)

    @property
    def results(self) -> int:
        """How many different ones were seen."""
        return len({run.result for run in self.runs})


@dataclass(slots=True)
class _Series:
    run: Runner
    runs: list[Run] = field(default_factory=list)

    def results(self, way: Way, times: int) -> list[str]:
        """Results under a way, at least so many where they can be had; those that were seen before count."""
        found = [run.result for run in self.runs if run.way == way]
        while len(found) < times:
            one = self.run(way)
            if one is None:
                break
            self.runs.append(one)
            found.append(one.result)
        return found

    def steady(self, ways: Sequence[Way], times: int = 2) -> list[str] | None:
        """One result per way, when each way always gives its own; None when some way does not, or can't be run."""
        found = [self.results(way, times) for way in ways]
        return [results[0] for results in found] if all(_one(results, times) for results in found) else None


def repeat(run: Runner, *, unsteady: bool = False, hash_seeds: Sequence[int] = HASH_SEEDS) -> Repeats:
    """Find out, with as few runs as the answer allows: seven when nothing ever changes, six of them forks.

    ``unsteady``: runs were seen to differ, so that a few which agree do not end the search; under which
    ``hash_seeds`` they did.
    """
    series = _Series(run)
    cause = _cause(series, unsteady, [hashed(seed) for seed in hash_seeds])
    return Repeats(runs=tuple(series.runs), cause=cause)


def _cause(series: _Series, unsteady: bool, orders: Sequence[Way]) -> Cause | None:
    """The questions from the most telling to the least; a wrong answer is worse than none."""
    times = 5 if unsteady else 3  # of a coin, 3 % and 0.2 % of all series look as if a condition decided
    if _differ(series.steady(FILLED, 1)) and _differ(series.steady(FILLED, times)):
        return "memory"
    if _differ(series.steady(THREADED, 1)) and _differ(series.steady(THREADED, times)):
        return "threads"
    seeded = {run.result for run in series.runs}
    ordered = set(series.results(orders[-1], 1))
    unseeded = series.results(UNSEEDED, 2)
    if not unsteady and len(seeded | ordered | set(unseeded)) <= 1:
        return None
    follows = unsteady or not ordered <= seeded
    if follows and _differ(series.steady(orders, 1)) and _differ(series.steady(orders, times)):
        return "hashes"
    luck = LUCK if unsteady else 5 * LUCK
    unseeded = series.results(UNSEEDED, 10 if unsteady else 2)
    if len(set(unseeded)) > 1 and _steadied_by_seeds(series, enough(unseeded, luck)):
        return "randomness"
    return _unexplained(series)


def _unexplained(series: _Series) -> Cause | None:
    """Runs of the same conditions differ: that one thread alone always gives the same is the last thing to learn."""
    usual = series.results(AS_IT_IS, 3)
    several = series.results(THREADED[-1], 10) if len(set(usual)) > 1 else []
    times = enough(several, LUCK) if len(set(several)) > 1 else None
    if times is not None and series.steady(THREADED[:1], times) is not None:
        return "race"
    kinds = {str(run.ended) for run in series.runs if run.way == AS_IT_IS}
    # Output alone may differ for reasons that are no results: a clock that we do not know as one.
    return "unknown" if len(kinds) > 1 else None


def _steadied_by_seeds(series: _Series, times: int | None) -> bool:
    """So many runs with seeds, under whatever other conditions, all give one result; or so many as usual do."""
    if times is None:
        return False
    given = [run.result for run in series.runs if run.way.seed is not None]
    others = len(given) if len(set(given)) == 1 else 0
    usual = series.results(SEEDED, max(1, times - others))
    return len(set(usual)) == 1 and (len(usual) >= times or (others > 0 and set(usual) == set(given)))


LUCK = 0.02
"""How likely runs may be to agree by luck alone, where that they agree is taken for an answer."""
MOST = 24


def enough(results: Sequence[str], luck: float) -> int | None:
    """How many runs must agree so that it is no luck; None where they would be more than ``MOST``.

    The probability that the next n runs all give the commonest result, seen k times in m: the product of
    (k+1+i) / (m+2+i), for a rate of which nothing else is known (Laplace's rule of succession).
    """
    share, commonest = 1.0, max(Counter(results).values())
    for n in range(MOST):
        share *= (commonest + 1 + n) / (len(results) + 2 + n)
        if share < luck:
            return max(3, n + 1)
    return None


def _one(results: Sequence[str], times: int) -> bool:
    return len(results) >= times and len(set(results)) == 1


def _differ(results: list[str] | None) -> bool:
    return results is not None and len(set(results)) > 1


# ---------------------------------------------------------------------------------------------- one result

_NO_RESULT = re.compile(
    r"0x[0-9a-fA-F]+"  # addresses
    r"|\[?\b\d{1,2}:\d\d:\d\d(?:\.\d+)?\]?"  # clocks
    r"|\d+(?:\.\d+)?(?:e[-+]?\d+)?\s*(?:ns|us|µs|ms|s|sec|secs|seconds|msec|GFLOPS|GB/s|it/s)\b"  # durations, rates
    r"|(?:pid|tid|process|thread)[ =:#]*\d+"
    r"|/tmp/[\w./-]+",
    re.IGNORECASE,
)
_TIMED = re.compile(r"\b(?:time|took|elapsed|latency|duration|speed-?up|seconds|perf|cost)\w*\b", re.IGNORECASE)
"""Words of lines that tell a time, with whatever unit."""


def make_run(way: Way, ended: Ended, steps: Sequence[StepResult]) -> Run | None:
    """What a probe showed under a way; None when it was cut short and shows no result."""
    if isinstance(ended, NotRun | TimedOut | OutOfMemory) or any(step.truncated for step in steps):
        return None
    printed = "\n".join(f"{step.stdout}\n{_failure(step)}" for step in steps)
    lines = (line for line in printed.splitlines() if not _TIMED.search(line))
    return Run(way=way, ended=ended, result=f"{ended}\n" + "\n".join(_NO_RESULT.sub("#", line) for line in lines))


def _failure(step: StepResult) -> str:
    """How a step failed, in its words. Of one that did not, the errors are remarks: more threads than processors."""
    if step.ended == Exited(code=0):
        return ""
    if step.record is not None and step.record.chain:
        return "\n".join(f"{raised.type}: {raised.message}" for raised in step.record.chain)
    return step.stderr


# ---------------------------------------------------------------------------------------------- in words

_SUMMARIES: Mapping[Cause, str] = {
    "memory": "the result follows the pattern with which new memory is filled: memory is read that nothing wrote",
    "randomness": "the testcase draws random numbers without a seed: with seeds every run gives the same result",
    "threads": "the result depends on the number of threads",
    "hashes": "the result follows Python's hash seed: it depends on the order of a set, or on a hash itself",
    "race": "with two threads runs under the same conditions differ, with one thread they never do",
    "unknown": "runs under the same conditions end differently, with seeds too",
}
_REFUTED: Mapping[Cause, str] = {
    "memory": "two runs with the same pattern that differ, or two with different patterns that do not",
    "randomness": "two runs with the same seeds that differ",
    "threads": "two runs with the same number of threads that differ",
    "hashes": "two runs with the same hash seed and the same seeds that differ",
    "race": "two runs with one thread that differ",
    "unknown": "a condition that decides which of the results comes",
}


def finding(repeats: Repeats, version: str) -> Finding | None:
    """What there is to report; None when the result never changed for a reason that is known."""
    if repeats.cause is None:
        return None
    return Finding(
        kind=FindingKind.NONDETERMINISTIC,
        summary=_SUMMARIES[repeats.cause],
        evidence={
            "cause": repeats.cause,
            "version": version,
            "results": repeats.results,
            "runs": _as_evidence(repeats),
            "refuted_by": _REFUTED[repeats.cause],
        },
    )


def _told(repeats: Repeats) -> tuple[Run, ...]:
    """The runs that show it."""
    tried = [run.way for run in repeats.runs]
    ways: Mapping[Cause, tuple[Way, ...]] = {
        "memory": FILLED,
        "threads": THREADED,
        "hashes": tuple(dict.fromkeys(way for way in tried if way == hashed(way.varied.hash_seed))),
        "randomness": (UNSEEDED, SEEDED),
        "race": THREADED,
        "unknown": (AS_IT_IS,),
    }
    return tuple(run for way in ways[repeats.cause or "unknown"] for run in repeats.of(way))


def _as_evidence(repeats: Repeats) -> list[dict[str, object]]:
    """The runs that show it, equal ones together."""
    seen = Counter((run.way.name, str(run.ended)[:100], _line(run, repeats).strip()) for run in _told(repeats))
    return [
        {"way": way, "ended": ended, "differs_in": line, "times": times} for (way, ended, line), times in seen.items()
    ]


def _line(run: Run, repeats: Repeats) -> str:
    """The first line of a result that another run's has not."""
    others = [set(other.result.splitlines()) for other in repeats.runs if other.result != run.result]
    return next((line for line in run.result.splitlines()[1:] if any(line not in other for other in others)), "")[
        :MAX_SHOWN
    ]
