"""Other values than the reported ones count as clean only beside a build that prints the reported ones."""

from __future__ import annotations

import msgspec

from bot.verdict.other_values import accept_other_values, accept_voted_values, refuse_other_values
from runners.core.failure.oracle import OUTPUT
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Reason,
    Signature,
)
from tests.support.observed import observe

CLAIM = Claim(kind=ClaimKind.WRONG_RESULT, actual="sum 3", signature=Signature(type=OUTPUT, message="sum 3"))


def see(version: str, outcome: Outcome, line: str) -> Observation:
    return msgspec.structs.replace(observe(version, outcome), signature=Signature(type=OUTPUT, message=line))


def outcomes(claim: Claim, *seen: Observation) -> list[Outcome]:
    return [one.outcome for one in accept_other_values(claim, seen)]


WRONG = see("1.0", Outcome.MATCH, "sum 3")
OTHER = see("1.1", Outcome.OTHER_FAILURE, "sum 4")


def test_another_output_is_clean_beside_the_reported_one() -> None:
    kept = accept_other_values(CLAIM, (WRONG, OTHER))
    assert [one.outcome for one in kept] == [Outcome.MATCH, Outcome.PASS]
    assert (kept[1].reason, kept[1].answer) == (Reason.OTHER_VALUES, Answer.GOOD)


def test_values_that_differ_from_run_to_run_are_clean_only_if_a_build_prints_them_twice() -> None:
    """Garbage of one run is no other behaviour than garbage of another run."""
    varying = msgspec.structs.replace(CLAIM, sometimes=True)
    assert outcomes(varying, WRONG, OTHER) == [Outcome.MATCH, Outcome.OTHER_FAILURE]
    assert outcomes(varying, WRONG, OTHER, see("1.1", Outcome.OTHER_FAILURE, "sum 5")) == [
        Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.OTHER_FAILURE
    ]  # fmt: skip
    assert outcomes(varying, WRONG, OTHER, OTHER) == [Outcome.MATCH, Outcome.PASS, Outcome.PASS]


def test_another_output_than_the_right_one_of_other_runs_is_wrong() -> None:
    """The same program on the same build: one of the outputs is not the program's."""
    right = msgspec.structs.replace(see("1.0", Outcome.PASS, ""), reason=Reason.PRINTS_EXPECTED)
    other = msgspec.structs.replace(OTHER, version="1.0", ended=Exited(code=0))
    elsewhere = msgspec.structs.replace(other, version="1.1")
    crashed = msgspec.structs.replace(other, ended=Exited(code=1))
    kept = refuse_other_values((right, other, elsewhere, crashed))
    assert [one.outcome for one in kept] == [
        Outcome.PASS, Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.OTHER_FAILURE
    ]  # fmt: skip


def vote(version: str, vote: str) -> Finding:
    return Finding(
        kind=FindingKind.REFERENCE, summary="s", evidence={"name": "NumPy", "vote": vote, "version": version}
    )


def test_the_newest_values_are_right_where_a_reference_computes_them_and_not_the_failing_ones() -> None:
    """A release between counts if it prints the same as the newest one."""
    ended = Exited(code=0)
    newest, between, other = (
        msgspec.structs.replace(see(version, Outcome.OTHER_FAILURE, ""), ended=ended, excerpt=text)
        for version, text in (("1.3", "i32=-7"), ("1.2", "i32=-7"), ("1.1", "i32=9"))
    )
    seen = (WRONG, other, between, newest)
    kept = accept_voted_values("1.3", seen, (vote("1.0", "differs"), vote("1.3", "agrees")))
    assert [one.outcome for one in kept] == [
        Outcome.MATCH, Outcome.OTHER_FAILURE, Outcome.PASS, Outcome.PASS
    ]  # fmt: skip
    for votes in (
        (vote("1.3", "agrees"),),
        (vote("1.0", "agrees"), vote("1.3", "agrees")),
        (vote("1.0", "differs"),),
    ):
        assert accept_voted_values("1.3", seen, votes) == seen


def test_alone_it_says_nothing() -> None:
    assert outcomes(CLAIM, OTHER) == [Outcome.OTHER_FAILURE]


def test_values_that_differ_from_run_to_run_say_nothing() -> None:
    """An uninitialised buffer prints something else each time."""
    more = [see("1.1", Outcome.OTHER_FAILURE, f"sum {value}") for value in (5, 6)]
    assert set(outcomes(CLAIM, WRONG, OTHER, *more)[1:]) == {Outcome.OTHER_FAILURE}


def test_a_report_that_says_what_is_right_needs_no_guess() -> None:
    claim = msgspec.structs.replace(CLAIM, expected="sum 7")
    assert outcomes(claim, WRONG, OTHER) == [Outcome.MATCH, Outcome.OTHER_FAILURE]


def test_other_failures_stay_failures() -> None:
    crash = msgspec.structs.replace(
        observe("1.2", Outcome.OTHER_FAILURE), signature=Signature(type="SIGSEGV", message="")
    )
    assert outcomes(CLAIM, WRONG, OTHER, crash)[-1] is Outcome.OTHER_FAILURE


def test_a_failing_build_prints_other_garbage_in_other_runs() -> None:
    """The newest build prints one output each time. A build whose runs never agree says nothing."""
    garbage = [see("1.0", Outcome.OTHER_FAILURE, f"sum {value}") for value in (7, 8, 9)]
    older = [see("0.9", Outcome.OTHER_FAILURE, f"sum {value}") for value in (10, 11)]
    assert outcomes(CLAIM, WRONG, *garbage, *older, OTHER, OTHER) == [
        *(Outcome.MATCH,) * 4, *(Outcome.OTHER_FAILURE,) * 2, *(Outcome.PASS,) * 2
    ]  # fmt: skip


def test_a_failing_build_that_prints_the_output_of_others_is_flaky() -> None:
    assert outcomes(CLAIM, WRONG, see("1.0", Outcome.OTHER_FAILURE, "sum 4"), OTHER) == [
        Outcome.MATCH, Outcome.PASS, Outcome.PASS
    ]  # fmt: skip


def test_without_another_build_the_runs_of_a_failing_build_disagree() -> None:
    assert outcomes(CLAIM, WRONG, see("1.0", Outcome.OTHER_FAILURE, "sum 4")) == [Outcome.MATCH, Outcome.PASS]
