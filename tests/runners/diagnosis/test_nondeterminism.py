"""Reruns under chosen conditions: causes from scripted results, and on real programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

import pytest

from runners.core.conditions import USUAL, choose_conditions
from runners.core.protocol import Ended, Exited, FindingKind, NotRun, Signalled, StepResult, TimedOut, Varied
from runners.diagnosis.nondeterminism import (
    AS_IT_IS,
    FILLED,
    OTHERWISE,
    SEEDED,
    THREADED,
    EarlierRun,
    Rerun,
    Setup,
    count_needed_runs,
    describe_cause,
    is_steady,
    record_rerun,
    rerun_varied,
)
from tests.runners.guest.tvm.sweep import programs
from tests.runners.guest.tvm.vary import open_reruns

NUMBERS = count()


def prints(text: object, code: int = 0) -> tuple[Ended, str]:
    return Exited(code=code), str(text)


def runner(behave: Callable[[Setup], tuple[Ended, str]]) -> Callable[[Setup], Rerun | None]:
    def run(setup: Setup) -> Rerun | None:
        ended, text = behave(setup)
        return record_rerun(setup, ended, (StepResult(argv=("python",), ended=ended, stdout=text),))

    return run


@pytest.mark.parametrize(
    ("behave", "cause", "runs"),
    [
        (lambda setup: prints("sum 3.0"), None, 7),
        (lambda setup: prints(f"sum {setup.varied.fill}"), "memory", 8),
        (lambda setup: prints(f"sum {setup.varied.threads}"), "threads", 10),
        (lambda setup: prints(f"{setup.varied.hash_seed} first"), "hashes", 18),
        (lambda setup: prints("seeded" if setup.seed else next(NUMBERS)), "randomness", 9),
        (lambda setup: prints("x", next(NUMBERS) % 2), "unknown", 0),
        (lambda setup: prints(f"value {next(NUMBERS)}"), None, 17),
        (lambda setup: prints(f"took {next(NUMBERS)} ms at 0x{random.getrandbits(40):x}"), None, 7),
        (lambda setup: prints(f"elapsed: {next(NUMBERS)}\n[10:00:{next(NUMBERS) % 50 + 10}] done"), None, 7),
    ],
)
def test_the_condition_that_decides_the_result_is_the_cause(
    behave: Callable[[Setup], tuple[Ended, str]], cause: str | None, runs: int
) -> None:
    """A result that no condition decides has none of these causes. Times and addresses are no results."""
    found = rerun_varied(runner(behave))
    assert found.cause == cause
    assert not runs or len(found.runs) == runs


DECIDED: tuple[Callable[[Setup], object], ...] = (
    lambda setup: setup.varied.fill,
    lambda setup: setup.varied.threads,
    lambda setup: setup.varied.hash_seed,
    lambda setup: "seeded" if setup.seed else next(NUMBERS),
)


@pytest.mark.parametrize("decide", DECIDED)
def test_a_cause_that_a_fresh_sandbox_does_not_show_is_not_named(decide: Callable[[Setup], object]) -> None:
    """Each setup that decides the result is run once in a sandbox of its own, where it must give the same result."""
    assert rerun_varied(runner(lambda setup: prints(decide(setup)))).cause is not None
    assert rerun_varied(runner(lambda setup: prints("another" if setup.fresh else decide(setup)))).cause is None


@pytest.mark.parametrize(
    ("decide", "cause", "runs"),
    [
        (lambda _setup: "same", None, 4),
        (lambda setup: setup.varied.fill, "memory", 8),
        (lambda _setup: next(NUMBERS), None, 8),
        (lambda setup: setup.varied.threads, None, 4),
    ],
)
def test_native_programs_are_not_asked_about_conditions_that_they_cannot_read(
    decide: Callable[[Setup], object], cause: str | None, runs: int
) -> None:
    """Neither Python's hash seed nor the seeds of its generators nor OpenMP's threads reach `iree-compile`."""
    found = rerun_varied(runner(lambda setup: prints(decide(setup))), native=True)
    assert (found.cause, len(found.runs)) == (cause, runs)
    ends = rerun_varied(runner(lambda setup: prints("x", next(NUMBERS) % 2)), native=True, unsteady=True)
    assert ends.cause == "unknown"


def test_a_failure_known_to_be_flaky_is_rerun_longer() -> None:
    """A failure of one run in three may give equal results by luck. It is rerun until a result differs, or no cause
    is named."""
    draws = iter([0, 0, 1, 0, 1, 0] * 9)

    def behave(setup: Setup) -> tuple[Ended, str]:
        return prints("check", 0 if setup.seed else next(draws))

    assert rerun_varied(runner(behave)).cause is None
    draws = iter([0, 0, 1, 0, 1, 0] * 9)
    assert rerun_varied(runner(behave), unsteady=True).cause == "randomness"


def test_racing_threads_are_distinguished_from_random_numbers() -> None:
    """Two threads give either result, seeded or not; one thread always gives the right one."""
    draws = iter([0, 1, 1, 0, 1, 0, 0, 0, 1, 1] * 9)
    alone = THREADED[0].varied
    behave = runner(lambda setup: prints("sum", 0 if setup.varied == alone else next(draws)))
    assert rerun_varied(behave, unsteady=True).cause == "race"


def test_runs_that_follow_whatever_the_results_are_may_begin_early() -> None:
    """An announced run that no question asks for would be made in vain. Forks of one process follow each other."""
    announced: list[Setup] = []
    reruns = rerun_varied(runner(lambda setup: prints(next(NUMBERS))), expect=announced.append)
    made = [run.setup for run in reruns.runs]
    assert announced
    assert all(setup.fresh and announced.count(setup) <= made.count(setup) for setup in announced)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_random_failure_is_hardly_ever_explained(share: float) -> None:
    """The failure comes at random: of 400 series at most one in twenty names a cause."""
    chance = random.Random(7)  # a fixed draw, no secret
    causes = [
        rerun_varied(runner(lambda _way: prints("sum", chance.random() < share)), unsteady=True).cause
        for _ in range(400)
    ]
    assert sum(cause not in (None, "unknown") for cause in causes) <= 20


def test_the_number_of_equal_runs_that_are_not_luck() -> None:
    """A result that always changes needs few runs, a coin flip more; for a rare change no number suffices."""
    assert [count_needed_runs(list(results), 0.02) for results in ("abcdefghij", "ababababab", "aaaaaaaaab")] == [
        3,
        8,
        None,
    ]


def make_earlier(varied: Varied, text: str, code: int = 1, stderr: str = "") -> EarlierRun:
    ended = Exited(code=code)
    return EarlierRun(
        varied=varied, ended=ended, steps=(StepResult(argv=("python",), ended=ended, stdout=text, stderr=stderr),)
    )


def test_three_runs_that_differ_in_every_condition_settle_that_a_result_is_steady() -> None:
    """The third is made for the question. It differs from the first two in memory, threads and hash seed."""
    under = [choose_conditions(attempt, memory=True) for attempt in (1, 2)]
    assert all(
        len({getattr(one, name) for one in (*under, OTHERWISE.varied)}) == 3
        for name in ("fill", "threads", "hash_seed")
    )
    asked: list[Setup] = []

    def run(setup: Setup) -> Rerun | None:
        asked.append(setup)
        return runner(lambda _setup: prints("sum 3.0", 1))(setup)

    assert is_steady([make_earlier(one, "sum 3.0") for one in under], run)
    assert asked == [OTHERWISE]


@pytest.mark.parametrize(
    ("second", "third"),
    [("sum 4.0", "sum 3.0"), ("sum 3.0", "sum 4.0")],
    ids=["the earlier runs differ", "the run for the question differs"],
)
def test_runs_that_differ_leave_the_question_open(second: str, third: str) -> None:
    earlier = [
        make_earlier(choose_conditions(1, memory=True), "sum 3.0"),
        make_earlier(choose_conditions(2, memory=True), second),
    ]
    assert not is_steady(earlier, runner(lambda _setup: prints(third, 1)))


@pytest.mark.parametrize("attempts", [(), (1,), (2,), (1, 1)])
def test_too_few_conditions_leave_the_question_open(attempts: tuple[int, ...]) -> None:
    """Runs that differ in the hash seed alone say nothing of memory and threads."""
    alike = runner(lambda _setup: prints("sum 3.0", 1))
    assert not is_steady([make_earlier(choose_conditions(one, memory=True), "sum 3.0") for one in attempts], alike)
    assert not is_steady([make_earlier(USUAL, "sum 3.0"), make_earlier(Varied(hash_seed=1), "sum 3.0")], alike)


def test_an_order_that_two_hash_seeds_share_is_found_by_a_third() -> None:
    """A set of two words has two orders only: the seed that differs decides, three times of three."""
    assert rerun_varied(runner(lambda setup: prints(setup.varied.hash_seed == 1)), unsteady=True).cause == "hashes"
    elsewhere = runner(lambda setup: prints(setup.varied.hash_seed == 7))
    assert rerun_varied(elsewhere, unsteady=True).cause is None
    assert rerun_varied(elsewhere, unsteady=True, hash_seeds=(7, 0, 1)).cause == "hashes"
    varying = iter(range(99))
    unruly = runner(lambda setup: prints(next(varying) if setup.varied.hash_seed == 1 else 0))
    assert rerun_varied(unruly, unsteady=True).cause is None


def test_a_pattern_that_does_not_always_give_the_same_is_not_blamed() -> None:
    """One matching accident is not enough: the pattern must decide three times."""
    results = iter(["a", "b", *"abababababab"])
    found = rerun_varied(runner(lambda setup: prints(next(results) if setup in FILLED else "c")))
    assert found.cause is None


def test_a_remark_is_no_result() -> None:
    """A clean run may print remarks beside its output that differ, such as more threads than processors."""
    step = StepResult(argv=("python",), ended=Exited(code=0), stdout="x", stderr=f"warning {next(NUMBERS)}")
    found = record_rerun(AS_IT_IS, Exited(code=0), (step,))
    assert found is not None
    assert "warning" not in found.result


def test_a_run_without_an_end_has_no_result() -> None:
    """A timeout, a lost sandbox or cut output is no result for comparison."""
    step = StepResult(argv=("python",), ended=Exited(code=0), stdout="x", truncated=True)
    assert record_rerun(AS_IT_IS, Exited(code=0), (step,)) is None
    for ended in (TimedOut(), NotRun(why="gone")):
        assert record_rerun(AS_IT_IS, ended, ()) is None
        assert rerun_varied(runner(lambda setup, ended=ended: (ended, str(next(NUMBERS))))).cause is None  # type: ignore[misc]  # a default binds the loop's value


def test_a_spent_budget_ends_it_without_an_answer() -> None:
    """With fewer runs than a cause needs, no cause is named."""
    left = iter(range(3))
    run = runner(lambda setup: prints(f"sum {setup.varied.fill}"))
    assert rerun_varied(lambda setup: run(setup) if next(left, None) is not None else None).cause is None


def test_a_finding_names_the_cause_and_what_would_refute_it() -> None:
    """The evidence has the runs, their conditions and the line that differs."""
    found = describe_cause(
        rerun_varied(runner(lambda setup: (Signalled(code=11), f"same\nb[3] = {setup.varied.fill}"))), "0.27.0"
    )
    assert found is not None
    assert found.kind is FindingKind.NONDETERMINISTIC
    assert found.evidence["cause"] == "memory"
    assert {run["differs_in"] for run in found.evidence["runs"]} == {"b[3] = 85", "b[3] = 128"}
    assert found.evidence["refuted_by"]
    assert describe_cause(rerun_varied(runner(lambda setup: prints("x"))), "0.27.0") is None


FAULTY = {
    "temporary_never_written": "memory",
    "numpy_empty_as_input": "memory",
    "random_generator": "randomness",
}
VALID = "valid/reductions_and_where"


@pytest.mark.compilers
@pytest.mark.sandbox
def test_causes_are_distinguished_on_a_real_compiler() -> None:
    """`bench/diagnosis/repeats.py` runs all programs on every release."""
    with open_reruns("0.27.0") as repeated:
        for name, cause in FAULTY.items():
            assert repeated(f"nondeterministic/{name}").cause == cause, name
        assert repeated(VALID).cause is None


def test_every_program_of_the_set_is_known() -> None:
    """The set has at least a dozen programs, and their names give the cause."""
    names = [name.partition("/")[2] for name in programs("nondeterministic")]
    assert len(names) >= 12
    assert set(FAULTY) <= set(names)
    assert SEEDED not in FILLED
