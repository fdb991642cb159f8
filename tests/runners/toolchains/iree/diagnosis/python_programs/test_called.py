"""The calls of a Python program run again as commands, and only calls that give the same results are examined."""

from __future__ import annotations

import json

import pytest

from runners.core.findings import VOTE
from runners.core.protocol import Exited, Observation, Outcome, Signature, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.python_programs.called import CommandCheck, read_called
from runners.toolchains.iree.diagnosis.reference import check_definitions
from runners.toolchains.iree.diagnosis.vmvx_bounds import check_bounds
from tests.support.means import make_means
from tests.support.observed import observe

TEXT = """
func.func @div(%a: tensor<2xi32>, %b: tensor<2xi32>) -> tensor<2xi32> {
  %q = arith.divsi %a, %b : tensor<2xi32>
  return %q : tensor<2xi32>
}
"""
PROGRAM = Testcase(
    kind=TestcaseKind.PYTHON,
    toolchain="iree",
    files={"repro.py": f'import iree.compiler as c\nv = c.compile_str("""{TEXT}""", target_backends=["llvm-cpu"])\n'},
    steps=(("python", "repro.py"),),
)
FAILURE = Failure(
    testcase=PROGRAM,
    seen=observe("3.13.0", Outcome.MATCH, signature=Signature(type="AssertionError"), toolchain="iree"),
)
INPUTS = ("2xi32=-7 7", "2xi32=2 2")


def call(result: str, *inputs: str, function: str = "div") -> str:
    return json.dumps({"kind": "call", "function": function, "inputs": inputs or INPUTS, "results": [result]})


def diagnose(claims: str, printed: str = "2xi32=-3 3") -> list[object]:
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        excerpt = f"EXEC @div\nresult[0]: hal.buffer_view\n{printed}"
        return observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=excerpt, variant=variant)

    means = make_means(run, hook=lambda _version, _testcase: claims)
    found = read_called(CommandCheck(diagnose=check_definitions, same_values=True))(FAILURE, means)
    assert all(testcase.steps[1][3:] == ("--function=div", *(f"--input={one}" for one in INPUTS)) for testcase in ran)
    return [one.evidence[VOTE] for one in found.findings]


def test_a_result_that_the_definitions_give_is_right() -> None:
    assert diagnose(call("2xi32=-3 3")) == ["agrees"]


def test_another_result_differs() -> None:
    assert diagnose(call("2xi32=-4 3"), "2xi32=-4 3") == ["differs"]


@pytest.mark.parametrize(
    "claims",
    [
        call("2xi32=-4 3"),
        call("2xi32=-3 3") + '\n{"kind": "unknown-call"}',
        call("2xi32=-3 3", function="other"),
        call("2xi32=-3 3", "--device=cuda", "2xi32=2 2"),
        "not JSON",
        "",
    ],
    ids=["another result", "a call beside it", "another function", "no value", "garbage", "nothing"],
)
def test_without_all_calls_and_their_results_nothing_is_said(claims: str) -> None:
    """The words of the guest are claims: they reach a command line only as values."""
    assert diagnose(claims) == []


def test_an_access_out_of_bounds_is_found_although_what_is_read_differs_between_processes() -> None:
    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        said = "OUT_OF_RANGE; x (offset=99, length=4; buffer byte_length=8)" if device == "vmvx" else "2xi32=5 6"
        return observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=int(device == "vmvx")), excerpt=said)

    def find_offsets(*inputs: str) -> list[object]:
        means = make_means(run, hook=lambda _version, _testcase: call("2xi32=1 2", *inputs))
        found = read_called(CommandCheck(diagnose=check_bounds, same_values=False))(FAILURE, means)
        return [one.evidence["offset"] for one in found.findings]

    assert find_offsets("2xi32=-7 7", "2xi32=2 0") == [99]
    assert find_offsets() == []  # defined from beginning to end: the program makes no access out of bounds
