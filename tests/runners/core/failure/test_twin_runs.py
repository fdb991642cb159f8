"""Runs of one program that differ in a report answer it by whether they are equal on a build."""

from __future__ import annotations

import pytest

from runners.core.failure.oracle import OracleContext, classify_run
from runners.core.protocol import Claim, ClaimKind, Exited, Outcome, StepResult
from runners.toolchains.iree.failures import FAILURES

RESULT = "EXEC @root\nresult[0]: hal.buffer_view\nf32={}\n"
QUOTED = RESULT.format("0.707107") + RESULT.format("0.707106")
DIFFER = Claim(kind=ClaimKind.WRONG_RESULT, actual=QUOTED)


def classify(claim: Claim, *values: str, flag: str = "--input=f32=0.5") -> Outcome:
    compiled = StepResult(argv=("iree-compile", "a.mlir"), ended=Exited(code=0))
    runs = [
        StepResult(
            argv=("iree-run-module", f"--module={place}.vmfb", "--input=f32=0.5" if place == 0 else flag),
            ended=Exited(code=0),
            stdout=RESULT.format(value),
        )
        for place, value in enumerate(values)
    ]
    context = OracleContext(claim=claim, vocabulary=FAILURES, compilers=("iree-compile",))
    return classify_run(Exited(code=0), [compiled, *runs], context).outcome


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (("0.707107", "0.707106"), Outcome.MATCH),
        (("0.707107", "0.707107"), Outcome.PASS),
        (("0.707106", "0.707106"), Outcome.PASS),  # near the quoted numbers, and equal
        (("3", "4"), Outcome.MATCH),
    ],
)
def test_equal_results_are_clean_and_different_ones_fail_as_reported(
    values: tuple[str, ...], outcome: Outcome
) -> None:
    assert classify(DIFFER, *values) is outcome


@pytest.mark.parametrize(("values", "outcome"), [(("2", "3"), Outcome.MATCH), (("2", "2"), Outcome.PASS)])
def test_a_report_without_values_that_runs_two_builds_is_about_their_difference(
    values: tuple[str, ...], outcome: Outcome
) -> None:
    assert classify(Claim(kind=ClaimKind.WRONG_RESULT), *values) is outcome


def test_runs_with_other_inputs_and_reports_of_a_right_value_are_compared_with_the_report() -> None:
    assert classify(DIFFER, "0.707107", "0.8", flag="--input=f32=0.64") is not Outcome.PASS
    right = Claim(kind=ClaimKind.WRONG_RESULT, actual=RESULT.format("2"), expected=RESULT.format("3"))
    assert classify(right, "2", "2") is Outcome.MATCH
    same = Claim(kind=ClaimKind.WRONG_RESULT, actual=RESULT.format("2") * 2)
    assert classify(same, "2", "2") is Outcome.MATCH
