"""Decide whether a testcase always gives the same result. If not, find the condition that decides the result.

Each `Setup` fixes conditions that could differ: the pattern with which the C library fills new memory, the order of
Python's sets, the seeds of generators that the testcase does not seed, the number of threads. A result *follows* the
pattern if the same pattern always gives the same result. Then it comes from memory that was never written. A result
that follows the hash seed comes from the order of a set. A result that varies only without given seeds comes from the
testcase's own random numbers. Times and addresses in the output are not part of a result.

Pure except for the function that runs. Only the host's own observations are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runners.core.conditions import COULD_DIFFER, FILLS, USUAL, describe_conditions
from runners.core.findings.kinds import CAUSES, Cause
from runners.core.findings.record import make_finding
from runners.core.findings.types import CauseEvidence, EqualRuns
from runners.core.protocol import Ended, Exited, Finding, NotRun, OutOfMemory, StepResult, Testcase, TimedOut, Varied
from runners.core.toolchain.diagnosis import Failure

SEED = 20_231
MAX_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Conditions of one run, and a seed for generators that the testcase does not seed (None: no seed is given)."""

    name: str
    varied: Varied = USUAL
    seed: int | None = None
    fresh: bool = False
    """True for a run in its own sandbox."""


AS_IT_IS = Setup(name="as it is", fresh=True)
SEEDED = Setup(name="with seeds", seed=SEED)
FILLED = tuple(Setup(name=f"new memory 0x{255 - fill:02x}", varied=Varied(fill=fill), seed=SEED) for fill in FILLS)
THREADED = tuple(
    Setup(name=describe_conditions(one), varied=one, seed=SEED) for one in (Varied(threads=1), Varied(threads=2))
)
HASH_SEEDS = (0, 1, 2)
UNSEEDED = Setup(name="without seeds")
"""Like `AS_IT_IS`, but forked: forks draw new random numbers and share the layout of their address space."""
OTHERWISE = Setup(name="under other conditions", varied=Varied(hash_seed=2, fill=FILLS[1], threads=2))
"""Differs in every condition from the first two runs of a build (`runners.core.conditions.choose_conditions`)."""


def with_hash_seed(hash_seed: int) -> Setup:
    """Return a setup with another order of sets. Unless it is the usual one, it has its own process."""
    return Setup(name=f"hash seed {hash_seed}", varied=Varied(hash_seed=hash_seed), seed=SEED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One run under a setup. ``result`` is compared: the end of the run and its output."""

    setup: Setup
    ended: Ended
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """A run of the testcase on the same release that was made before the diagnosis."""

    varied: Varied
    ended: Ended
    steps: Sequence[StepResult]


Runner = Callable[[Setup], Rerun | None]
"""Run the testcase under a setup. None if it shows no result, or if the budget is spent."""
RunUnder = Callable[[str, Testcase, Setup], Rerun | None]
"""The same for any testcase on any release."""
ExpectUnder = Callable[[str, Testcase, Setup], None]
"""Announce such a run that will be requested. It may begin now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reruns:
    """The runs, and the condition that decides their result. None if it never changed or cannot be explained."""

    runs: tuple[Rerun, ...]
    cause: Cause | None = None

    def find_runs(self, setup: Setup) -> tuple[Rerun, ...]:
        return tuple(run for run in self.runs if run.setup == setup)

    @property
    def distinct_results(self) -> int:
        """Return the number of different results."""
        return len({run.result for run in self.runs})


@dataclass(slots=True)
class _Series:
    run: Runner
    expect: Callable[[Setup], None]
    runs: list[Rerun] = field(default_factory=list)

    def list_results(self, setup: Setup) -> list[str]:
        """Return the results under a setup so far."""
        return [run.result for run in self.runs if run.setup == setup]

    def is_unsteady(self, setup: Setup) -> bool:
        """True if runs under this setup differ. No further run can change that."""
        return len(set(self.list_results(setup))) > 1

    def add_result(self, setup: Setup) -> bool:
        """Run once more under a setup. Return False if it gives no result."""
        one = self.run(setup)
        if one is not None:
            self.runs.append(one)
        return one is not None

    def collect_results(self, setup: Setup, times: int) -> list[str]:
        """Return at least ``times`` results under a setup, as far as possible. Earlier runs count."""
        missing = times - len(self.list_results(setup))
        # Forks run in sequence: forks of one process share its address layout, and forks of two processes do not.
        for _ in range(missing if setup.fresh and missing > 1 else 0):
            self.expect(setup)
        for _ in range(missing):
            if not self.add_result(setup):
                break
        return self.list_results(setup)

    def find_steady(self, setups: Sequence[Setup], times: int = 2) -> list[str] | None:
        """Return one result per setup, if each setup always gives the same one. None if one does not, or cannot run.

        The search ends at the first setup whose results differ.
        """
        for setup in setups:
            while len(self.list_results(setup)) < times and not any(map(self.is_unsteady, setups)):
                if not self.add_result(setup):
                    return None
        found = [self.list_results(setup) for setup in setups]
        return [results[0] for results in found] if all(_all_agree(results, times) for results in found) else None


def check_nondeterminism(
    failure: Failure,
    run_under: RunUnder,
    expect_under: ExpectUnder = lambda _version, _testcase, _setup: None,
    *,
    native: bool = False,
    list_earlier: Callable[[], Sequence[EarlierRun]] = tuple,
) -> tuple[Finding, ...]:
    """Rerun a failure that could differ from run to run. See `rerun_varied`.

    One run is enough if it agrees with the earlier runs, and all of them differ in every condition (`is_steady`).
    ``list_earlier`` may wait for runs that are under way.
    """
    failing, clean = failure.seen, failure.clean
    could_differ = failing.signature is not None and failing.signature.type in COULD_DIFFER
    if not could_differ and clean is None:
        return ()

    def run(setup: Setup) -> Rerun | None:
        return run_under(failing.version, failure.testcase, setup)

    def expect(setup: Setup) -> None:
        expect_under(failing.version, failure.testcase, setup)

    if not failure.is_flaky and not native and is_steady(list_earlier(), run):
        return ()
    seen = () if clean is None else (failing.varied.hash_seed, clean.varied.hash_seed)
    hash_seeds = tuple(dict.fromkeys((*seen, *HASH_SEEDS)))[: len(HASH_SEEDS)]
    reruns = rerun_varied(run, expect=expect, unsteady=failure.is_flaky, hash_seeds=hash_seeds, native=native)
    found = describe_cause(reruns, failing.version)
    return () if found is None else (found,)


def is_steady(earlier: Sequence[EarlierRun], run: Runner) -> bool:
    """True if runs that differ in every condition give one result. Make one run, if the earlier ones agree.

    A condition that decides the result would decide it in one of these runs too. `rerun_varied` then finds this
    condition. This check takes one run instead of seven.
    """
    first = next((one for one in earlier if one.varied == USUAL), None)
    others = [one for one in earlier if _differs_throughout(one.varied, USUAL)]
    if first is None or not others or not all(_has_same_result(first, one) for one in others):
        return False
    usual = record_rerun(UNSEEDED, first.ended, first.steps)
    last = run(OTHERWISE) if usual is not None else None
    return usual is not None and last is not None and last.result == usual.result


def _differs_throughout(one: Varied, other: Varied) -> bool:
    return one.hash_seed != other.hash_seed and one.fill != other.fill and one.threads != other.threads


def rerun_varied(
    run: Runner,
    *,
    expect: Callable[[Setup], None] = lambda _setup: None,
    unsteady: bool = False,
    hash_seeds: Sequence[int] = HASH_SEEDS,
    native: bool = False,
) -> Reruns:
    """Rerun the testcase as few times as possible: seven times if the result never changes, six of them as forks.

    ``expect`` announces reruns. ``unsteady``: runs were seen to differ, so a few that agree do not end the search.
    ``hash_seeds`` are those under which they differed. ``native``: no program reads a seed or a number of threads
    (`runners.core.conditions.is_native`), so four runs are enough if the result never changes.
    """
    series = _Series(run, expect)
    orders = [with_hash_seed(seed) for seed in hash_seeds]
    cause = _find_native_cause(series, unsteady) if native else _find_cause(series, unsteady, orders)
    confirmed = cause is not None and _confirm_cause(series, cause, orders)
    return Reruns(runs=tuple(series.runs), cause=cause if confirmed else None)


def _find_cause(series: _Series, unsteady: bool, orders: Sequence[Setup]) -> Cause | None:
    """Ask the most informative question first. A wrong answer is worse than none."""
    times = 5 if unsteady else 3  # with coin tosses, 3 % and 0.2 % of all series look as if a condition decides
    if _has_different(series.find_steady(FILLED, 1)) and _has_different(series.find_steady(FILLED, times)):
        return Cause.MEMORY
    if _has_different(series.find_steady(THREADED, 1)) and _has_different(series.find_steady(THREADED, times)):
        return Cause.THREADS
    seeded = {run.result for run in series.runs}
    ordered = set(series.collect_results(orders[-1], 1))
    unseeded = series.collect_results(UNSEEDED, 2)
    if not unsteady and len(seeded | ordered | set(unseeded)) <= 1:
        return None
    follows = unsteady or not ordered <= seeded
    if (
        follows
        and _has_different(series.find_steady(orders, 1))
        and _has_different(series.find_steady(orders, times))
    ):
        return Cause.HASHES
    luck = LUCK if unsteady else 5 * LUCK
    unseeded = series.collect_results(UNSEEDED, 10 if unsteady else 2)
    if len(set(unseeded)) > 1 and _agree_with_seeds(series, count_needed_runs(unseeded, luck)):
        return Cause.RANDOMNESS
    return _examine_unexplained(series)


def _find_native_cause(series: _Series, unsteady: bool) -> Cause | None:
    """Test the content of memory, the only condition that affects such programs."""
    times = 5 if unsteady else 3
    if _has_different(series.find_steady(FILLED, 1)) and _has_different(series.find_steady(FILLED, times)):
        return Cause.MEMORY
    series.collect_results(UNSEEDED, 2)
    if not unsteady and len({run.result for run in series.runs}) <= 1:
        return None
    return _name_unexplained(series)


def _confirm_cause(series: _Series, cause: Cause, orders: Sequence[Setup]) -> bool:
    """True if each deciding setup gives its result in a fresh sandbox too.

    Forks of one process could agree for a reason that only this process has.
    """
    deciding: Mapping[Cause, Sequence[Setup]] = {
        Cause.MEMORY: FILLED,
        Cause.THREADS: THREADED,
        Cause.HASHES: orders,
        Cause.RANDOMNESS: (SEEDED,),
        Cause.RACE: THREADED[:1],
        Cause.UNKNOWN: (),  # AS_IT_IS is fresh
    }
    fresh = [replace(setup, fresh=True) for setup in deciding[cause]]
    for setup in fresh if len(fresh) > 1 else ():
        series.expect(setup)
    return all(
        series.collect_results(own, 1) == series.collect_results(setup, 1)[:1]
        for own, setup in zip(fresh, deciding[cause], strict=True)
    )


def _examine_unexplained(series: _Series) -> Cause | None:
    """Test whether one thread always gives the same result. Runs under the same conditions differ."""
    usual = series.collect_results(AS_IT_IS, 3)
    is_open = len(set(usual)) > 1 and not series.is_unsteady(THREADED[0])
    several = series.collect_results(THREADED[-1], 10) if is_open else []
    times = count_needed_runs(several, LUCK) if len(set(several)) > 1 else None
    if times is not None and series.find_steady(THREADED[:1], times) is not None:
        return Cause.RACE
    return _name_unexplained(series)


def _name_unexplained(series: _Series) -> Cause | None:
    """Classify the failure as unexplained if runs under the same conditions end in different ways."""
    series.collect_results(AS_IT_IS, 3)
    kinds = {str(run.ended) for run in series.runs if run.setup == AS_IT_IS}
    # Output alone may differ for reasons that are not results, such as an unknown format of a clock.
    return Cause.UNKNOWN if len(kinds) > 1 else None


def _agree_with_seeds(series: _Series, times: int | None) -> bool:
    """True if ``times`` runs with seeds give one result, under any other conditions or under the usual ones."""
    if times is None:
        return False
    given = [run.result for run in series.runs if run.setup.seed is not None]
    others = len(given) if len(set(given)) == 1 else 0
    if series.find_steady([SEEDED], max(1, times - others)) is None:
        return False
    usual = series.list_results(SEEDED)
    return len(usual) >= times or (others > 0 and set(usual) == set(given))


LUCK = 0.02
"""Highest probability of accidental agreement at which agreement counts as an answer."""
MOST = 24


def count_needed_runs(results: Sequence[str], luck: float) -> int | None:
    """Return the number of runs that must agree to exclude luck. None if more than ``MOST`` are needed.

    The probability that the next n runs all give the most common result, seen k times in m, is the product of (k+1+i)
    / (m+2+i), for an unknown rate (Laplace's rule of succession).
    """
    share, commonest = 1.0, max(Counter(results).values())
    for n in range(MOST):
        share *= (commonest + 1 + n) / (len(results) + 2 + n)
        if share < luck:
            return max(3, n + 1)
    return None


def _all_agree(results: Sequence[str], times: int) -> bool:
    return len(results) >= times and len(set(results)) == 1


def _has_different(results: list[str] | None) -> bool:
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
"""Words of lines that contain a time, in any unit."""


def record_rerun(setup: Setup, ended: Ended, steps: Sequence[StepResult]) -> Rerun | None:
    """Return the result of a probe under a setup. None if the probe was cut short and shows no result."""
    if isinstance(ended, NotRun | TimedOut | OutOfMemory) or any(step.truncated for step in steps):
        return None
    printed = "\n".join(f"{step.stdout}\n{_describe_failure(step)}" for step in steps)
    return Rerun(setup=setup, ended=ended, result=f"{ended}\n{_drop_accidents(printed)}")


def _drop_accidents(text: str) -> str:
    """Drop times, addresses and process numbers, which differ between any two runs."""
    lines = (line for line in text.splitlines() if not _TIMED.search(line))
    return "\n".join(_NO_RESULT.sub("#", line) for line in lines)


def _has_same_result(one: EarlierRun, other: EarlierRun) -> bool:
    """True if two runs end the same way, with the same output and the same failure.

    A plain process leaves no record of its failure: its standard error then contains the recorded message.
    """
    return (
        one.ended == other.ended
        and len(one.steps) == len(other.steps)
        and not any(step.truncated for step in (*one.steps, *other.steps))
        and all(
            _drop_accidents(mine.stdout) == _drop_accidents(theirs.stdout)
            and _drop_accidents(_get_message(mine)) in _drop_accidents(f"{_get_message(theirs)}\n{theirs.stderr}")
            for mine, theirs in zip(one.steps, other.steps, strict=True)
        )
    )


def _get_message(step: StepResult) -> str:
    return step.record.chain[-1].message if step.record is not None and step.record.chain else ""


def _describe_failure(step: StepResult) -> str:
    """Return the text of a step's failure. A clean step writes only remarks to standard error."""
    if step.ended == Exited(code=0):
        return ""
    if step.record is not None and step.record.chain:
        return "\n".join(f"{raised.type}: {raised.message}" for raised in step.record.chain)
    return step.stderr


# ---------------------------------------------------------------------------------------------- in words


def describe_cause(reruns: Reruns, version: str) -> Finding | None:
    """Return the finding to report. None if the result never changed for a known reason."""
    if reruns.cause is None:
        return None
    evidence = CauseEvidence(
        cause=reruns.cause,
        version=version,
        results=reruns.distinct_results,
        runs=_describe_runs(reruns),
        refuted_by=CAUSES[reruns.cause].refuted_by,
    )
    return make_finding(evidence, CAUSES[reruns.cause].sentence)


def _select_telling(reruns: Reruns) -> tuple[Rerun, ...]:
    """Return the runs that show the cause."""
    tried = [run.setup for run in reruns.runs]
    setups: Mapping[Cause, tuple[Setup, ...]] = {
        Cause.MEMORY: FILLED,
        Cause.THREADS: THREADED,
        Cause.HASHES: tuple(
            dict.fromkeys(setup for setup in tried if setup == with_hash_seed(setup.varied.hash_seed))
        ),
        Cause.RANDOMNESS: (UNSEEDED, SEEDED),
        Cause.RACE: THREADED,
        Cause.UNKNOWN: (AS_IT_IS,),
    }
    return tuple(run for setup in setups[reruns.cause or Cause.UNKNOWN] for run in reruns.find_runs(setup))


def _describe_runs(reruns: Reruns) -> tuple[EqualRuns, ...]:
    """Return the runs that show the cause, with equal runs counted together."""
    seen = Counter(
        (run.setup.name, str(run.ended)[:100], _first_difference(run, reruns).strip())
        for run in _select_telling(reruns)
    )
    return tuple(
        EqualRuns(way=way, ended=ended, differs_in=line, times=times) for (way, ended, line), times in seen.items()
    )


def _first_difference(run: Rerun, reruns: Reruns) -> str:
    """Return the first line of a result that the result of another run lacks."""
    others = [set(other.result.splitlines()) for other in reruns.runs if other.result != run.result]
    return next((line for line in run.result.splitlines()[1:] if any(line not in other for other in others)), "")[
        :MAX_SHOWN
    ]
