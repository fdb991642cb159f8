"""The calls of a Python program run again as commands, and only calls that give the same results are examined."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

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


def diagnose(claims: str, printed: str = "2xi32=-3 3", said: str = "", program: Testcase = PROGRAM) -> list[object]:
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        excerpt = f"EXEC @div\nresult[0]: hal.buffer_view\n{printed}"
        return observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=excerpt, variant=variant)

    means = make_means(run, hook=lambda _version, _testcase: claims)
    found = read_called(CommandCheck(diagnose=check_definitions, same_values=True))(
        replace(FAILURE, testcase=program, seen=msgspec.structs.replace(FAILURE.seen, excerpt=said)), means
    )
    assert all(testcase.steps[1][3:] == ("--function=div", *(f"--input={one}" for one in INPUTS)) for testcase in ran)
    return [one.evidence["vote"] for one in found.findings]


def test_a_result_that_the_definitions_give_is_right() -> None:
    assert diagnose(call("2xi32=-3 3")) == ["agrees"]


def test_another_result_differs() -> None:
    assert diagnose(call("2xi32=-4 3"), "2xi32=-4 3") == ["differs"]


def test_a_value_that_the_program_prints_and_the_command_does_not_differs() -> None:
    """The definitions agree with the command: the call from Python goes wrong."""
    assert diagnose(call("2xi32=-4 3"), said="[-4  3]") == ["differs"]
    assert diagnose(call("2xi32=-4 3"), "2xi32=-5 3", said="[-4  3]") == []


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


COMPOSED = msgspec.structs.replace(
    PROGRAM, files={"repro.py": "import iree.compiler as c\nv = c.compile_str(text, target_backends=backends)\n"}
)


def module(text: str = TEXT) -> str:
    return json.dumps({"kind": "module", "text": text})


@pytest.mark.parametrize(
    ("claims", "votes"),
    [
        (f"{module()}\n{call('2xi32=-3 3')}", ["agrees"]),
        (f"{module()}\n{module()}\n{call('2xi32=-3 3')}", ["agrees"]),
        (f"{module()}\n{module(TEXT + '//')}\n{call('2xi32=-3 3')}", []),
        (f"{module('//')}\n{call('2xi32=-3 3', function='g')}\n{module()}\n{call('2xi32=-4 3')}", []),
        (call("2xi32=-3 3"), []),
    ],
    ids=["one module", "compiled twice", "two modules", "another one called before", "no module"],
)
def test_a_module_that_the_program_composes_is_the_one_that_it_compiles(claims: str, votes: list[object]) -> None:
    """A call of one of two modules may be of either."""
    assert diagnose(claims, program=COMPOSED) == votes


def test_the_command_compares_large_results_by_itself() -> None:
    """Its exit code says whether they are those of the program: nothing rests on the words of the guest."""
    size = 500
    text = TEXT.replace("2xi32", f"{size}xi32")
    inputs = tuple(f"{size}xi32=" + " ".join([value] * size) for value in ("-7", "2"))
    result = f"{size}xi32=" + " ".join(["-3"] * size)
    claims = f"{module(text)}\n{call(result, *inputs)}"

    def run(code: int) -> list[object]:
        def answer(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
            assert testcase.steps[1][-1] == f"--expected_output={result}"
            return observe(
                version, Outcome.OTHER_FAILURE, ended=Exited(code=code), excerpt="EXEC @div", variant=variant
            )

        means = make_means(answer, hook=lambda _version, _testcase: claims)
        failing = replace(FAILURE, testcase=COMPOSED)
        found = read_called(CommandCheck(diagnose=check_definitions, same_values=True))(failing, means)
        return [one.evidence["vote"] for one in found.findings]

    assert run(0) == ["agrees"]
    assert run(1) == []


def test_an_access_out_of_bounds_is_found_although_what_is_read_differs_between_processes() -> None:
    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        said = "OUT_OF_RANGE; x (offset=99, length=4; buffer byte_length=8)" if device == "vmvx" else "2xi32=5 6"
        code = int(device == "vmvx" or "--expected_output" in " ".join(testcase.steps[-1]))
        return observe(version, Outcome.OTHER_FAILURE, ended=Exited(code=code), excerpt=said)

    def find_offsets(*inputs: str, result: str = "2xi32=1 2") -> list[object]:
        means = make_means(run, hook=lambda _version, _testcase: call(result, *inputs))
        found = read_called(CommandCheck(diagnose=check_bounds, same_values=False))(FAILURE, means)
        return [one.evidence["offset"] for one in found.findings]

    assert find_offsets("2xi32=-7 7", "2xi32=2 0") == [99]
    assert find_offsets("2xi32=-7 7", "2xi32=2 0", result="500xi32=" + "1 " * 499 + "1") == [99]
    assert find_offsets() == []  # defined from beginning to end: the program makes no access out of bounds
