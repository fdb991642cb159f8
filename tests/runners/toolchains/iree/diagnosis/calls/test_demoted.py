"""Tests of arguments and values in a type that the compiler replaces by default."""

from __future__ import annotations

import ast

import msgspec
import pytest

from runners.core.failure.oracle import ASSERTION, OUTPUT
from runners.core.protocol import (
    Ended,
    Exited,
    Observation,
    Outcome,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.calls import check_call
from runners.toolchains.iree.diagnosis.calls.demoted import KEEP, find_demoted_argument
from tests.support.means import make_means
from tests.support.observed import observe

REFUSED = Signature(
    type="ValueError",
    message="INVALID_ARGUMENT; input0 element type mismatch; expected f32 (21000020) but have f64 (21000040)",
)
TEXT = 'M = "func.func @f(%a: tensor<3xf64>)"\n'


def python(code: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="iree", files={"repro.py": code}, steps=(("python", "repro.py"),)
    )


@pytest.mark.parametrize(
    "call",
    [
        'ic.compile_str(M, target_backends=["llvm-cpu"])',
        'ic.compile_str(M, target_backends=["llvm-cpu"],)',
        'ic.compile_str(\n    M,\n    target_backends=["llvm-cpu"],\n    extra_args=["--x=é"],\n)',
        'compile_file("é.mlir", extra_args=[])',
    ],
)
def test_the_flag_is_added_to_each_call_of_the_compiler(call: str) -> None:
    found = find_demoted_argument(python(f"{TEXT}b = {call}\n"), REFUSED)
    assert found is not None
    mended = ast.parse(found.mended[0].files["repro.py"])
    calls = [node for node in ast.walk(mended) if isinstance(node, ast.Call)]
    listed = next(one.value for one in calls[0].keywords if one.arg == "extra_args")
    assert KEEP in [item.value for item in ast.walk(listed) if isinstance(item, ast.Constant)]
    assert len(calls) == 1


def test_the_flag_is_added_to_the_command() -> None:
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": "func.func @f(%a: tensor<3xf64>)"},
        steps=(("iree-compile", "m.mlir", "-o", "m.vmfb"), ("iree-run-module", "--module=m.vmfb", "--input=3xf64=1")),
    )
    found = find_demoted_argument(testcase, REFUSED)
    assert found is not None
    assert found.mended[0].steps == ((*testcase.steps[0], KEEP), testcase.steps[1])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (f"{TEXT}ic.compile_str(M)", "input0 element type mismatch; expected f32 (1) but have i32 (2)"),
        ('M = "tensor<3xf32>"\nic.compile_str(M)', REFUSED.message),
        (f'{TEXT}ic.compile_str(M, extra_args=["{KEEP}"])', REFUSED.message),
        (f"{TEXT}ic.compile_str(M, extra_args=flags)", REFUSED.message),
        (f"{TEXT}ic.compile_str(", REFUSED.message),
    ],
    ids=["another type", "not declared", "given", "no list", "no Python"],
)
def test_other_refusals_are_left_alone(code: str, message: str) -> None:
    assert find_demoted_argument(python(code), Signature(type="ValueError", message=message)) is None


PROGRAM = python(f"{TEXT}b = ic.compile_str(M)\nprint(run(b))\n")
PRINTED = Signature(type=OUTPUT, message="16777216")
ASSERTED = Signature(type=ASSERTION, message="Not equal to tolerance")
THIRDS = """func.func @main(%a: tensor<2xi32>) -> tensor<2xf64> {
  %0 = arith.sitofp %a : tensor<2xi32> to tensor<2xf64>
  %c = arith.constant dense<3.0> : tensor<2xf64>
  %1 = arith.divf %0, %c : tensor<2xf64>
  return %1 : tensor<2xf64>
}
"""
COMMANDS = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": THIRDS},
    steps=(
        ("iree-compile", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--module=m.vmfb", "--function=main", "--input=2xi32=16777217,2"),
    ),
)


def diagnose(
    testcase: Testcase, mended: Outcome = Outcome.PASS, *, clean: Observation | None = None, **seen: object
) -> list[object]:
    """Return the faults that are found where the testcase with the flag ends in this way."""

    def run(version: str, variant: Variant, ran: Testcase, device: str) -> Observation:
        assert variant is Variant.CONTROL
        assert KEEP in (*ran.steps[0], *next(iter(ran.files.values())).split("'"))
        return observe(version, mended, ended=Exited(code=0))

    failing = observe("3.13.0", Outcome.MATCH, **{"ended": Exited(code=0), "signature": PRINTED, **seen})
    found = check_call(Failure(testcase=testcase, seen=failing, clean=clean), make_means(run))
    return [one.evidence["call_fault"] for one in found.findings]


@pytest.mark.parametrize("testcase", [PROGRAM, COMMANDS], ids=["program", "commands"])
@pytest.mark.parametrize(
    ("mended", "faults"), [(Outcome.PASS, ["demoted"]), (Outcome.MATCH, []), (Outcome.OTHER_FAILURE, [])]
)
def test_wrong_values_are_those_of_f32_if_they_are_right_with_the_flag(
    testcase: Testcase, mended: Outcome, faults: list[str]
) -> None:
    """Other digits are no proof: with the flag, a wrong value has more digits too."""
    assert diagnose(testcase, mended) == faults


def test_a_failed_check_of_the_values_is_explained_too() -> None:
    assert diagnose(PROGRAM, ended=Exited(code=1), signature=ASSERTED) == ["demoted"]


@pytest.mark.parametrize(
    ("ended", "signature"),
    [
        (Signalled(code=11), Signature(type="SIGSEGV")),
        (Exited(code=1), Signature(type="RuntimeError", message="Error invoking function")),
        (Exited(code=0), None),
    ],
    ids=["crash", "error", "a missing error"],
)
def test_the_type_explains_neither_a_crash_nor_another_error(ended: Ended, signature: Signature | None) -> None:
    assert diagnose(PROGRAM, ended=ended, signature=signature) == []


def test_a_failure_that_comes_and_goes_has_another_cause() -> None:
    assert diagnose(PROGRAM, clean=observe("3.13.0", Outcome.PASS)) == []


@pytest.mark.parametrize(
    "code",
    [
        'M = "tensor<3xf32>"\nic.compile_str(M)  # f64 of NumPy',
        f'{TEXT}ic.compile_str(M, extra_args=["{KEEP}"])',
        f'{TEXT}ic.compile_str(M, extra_args=["--iree-input-demote-f64-to-f32"])',
    ],
    ids=["another type", "kept", "asked for"],
)
def test_other_programs_are_left_alone(code: str) -> None:
    assert diagnose(python(code)) == []


@pytest.mark.parametrize(
    ("printed", "faults"), [("2xf32=5.59241e+06 0.666667", ["demoted"]), ("2xf32=5.59241e+06 0.75", [])]
)
def test_a_value_that_f32_does_not_explain_has_another_cause(printed: str, faults: list[str]) -> None:
    """A fault of the compiler may show in its code for f32 alone."""
    assert diagnose(COMMANDS, excerpt=f"EXEC @main\nresult[0]: hal.buffer_view\n{printed}") == faults


ASKED = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": "func.func @f(%a: tensor<3xi64>) -> tensor<3xi64> { return %a : tensor<3xi64> }"},
    steps=(
        ("iree-compile", "m.mlir", "--iree-input-demote-i64-to-i32", "-o", "m.vmfb"),
        ("iree-run-module", "--module=m.vmfb", "--function=f", "--input=3xi32=1,2,3"),
    ),
)


@pytest.mark.parametrize(
    ("mended", "faults"),
    [(Outcome.PASS, ["type-replaced"]), (Outcome.OTHER_FAILURE, ["type-replaced"]), (Outcome.MATCH, [])],
)
def test_a_type_that_the_testcase_asks_for_is_its_own(mended: Outcome, faults: list[str]) -> None:
    """The control keeps the type, and passes arguments of this type. It prints other values, if the flag matters."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, changed: Testcase, device: str) -> Observation:
        ran.append(changed)
        return observe(version, mended, ended=Exited(code=0))

    failing = observe("3.13.0", Outcome.MATCH, ended=Exited(code=0), signature=PRINTED)
    found = check_call(Failure(testcase=ASKED, seen=failing), make_means(run))
    assert [one.evidence["call_fault"] for one in found.findings] == faults
    assert "--iree-input-demote-i64-to-i32=false" in ran[0].steps[0]
    assert ran[0].steps[1][-1] == "--input=3xi64=1,2,3"


def test_a_flag_without_its_type_in_the_program_explains_nothing() -> None:
    other = msgspec.structs.replace(ASKED, files={"m.mlir": "func.func @f(%a: tensor<3xf32>) { return }"})
    failing = observe("3.13.0", Outcome.MATCH, ended=Exited(code=0), signature=PRINTED)
    assert not check_call(Failure(testcase=other, seen=failing), make_means()).findings


def test_an_argument_of_the_narrow_type_is_the_second_way() -> None:
    """Some operations cannot be compiled in f64."""
    run = ("iree-run-module", "--module=a.vmfb", "--function=f", "--input=4x4xf64=0.5")
    testcase = Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"a.mlir": "func.func @f(%a: tensor<4x4xf64>)"},
        steps=(("iree-compile", "a.mlir", "-o", "a.vmfb"), run),
    )
    found = find_demoted_argument(testcase, REFUSED)
    assert found is not None
    flag, narrow = found.mended
    assert (flag.steps[0][-1], flag.steps[1]) == (KEEP, run)
    assert narrow.steps == (testcase.steps[0], (*run[:-1], "--input=4x4xf32=0.5"))
