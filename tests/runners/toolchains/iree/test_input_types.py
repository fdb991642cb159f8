"""Builds of early 2023 read a dialect only if a flag names it. Without the flag, their failures say nothing."""

from __future__ import annotations

import pytest

from runners.core.failure.api_drift import find_needed_flag
from runners.core.failure.oracle import OracleContext, classify_run
from runners.core.findings.kinds import Moved
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Outcome,
    Signalled,
    Signature,
    StepResult,
    Testcase,
    TestcaseKind,
)
from runners.rewrite.testcase import port_testcase
from runners.toolchains import iree
from runners.toolchains.iree.failures import FAILURES

HEAD = "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
ADD = HEAD + "  %0 = stablehlo.add %a, %a : tensor<2xf32>\n"
TANH = '  %1 = "chlo.tan"(%0) : (tensor<2xf32>) -> tensor<2xf32>\n'
SUM = '  %2 = "tosa.add"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n'
RELU = """func.func @f(%a: !torch.vtensor<[4],f32>) attributes {torch.onnx_meta.opset_version = 17 : si64} {
  %0 = torch.operator "onnx.Relu"(%a) {torch.onnx.axis = 1 : si64} : (!torch.vtensor<[4],f32>) -> !torch.none
"""
END = "  return %a : tensor<2xf32>\n}\n"
PLAIN = ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb")


def _command(mlir: str, *step: str) -> Testcase:
    return Testcase(kind=TestcaseKind.COMMAND_LINE, toolchain="iree", files={"m.mlir": mlir}, steps=(step or PLAIN,))


@pytest.mark.parametrize(
    ("mlir", "version", "value"),
    [
        (ADD, "20230209.425", "mhlo"),
        (ADD, "20230419.494", "mhlo"),
        (ADD, "20230524.529", "stablehlo"),
        (ADD, "20230815.614", None),
        (ADD, "3.13.0", None),
        (ADD + TANH, "20230524.529", "mhlo"),
        (ADD + TANH, "20230815.614", None),
        (HEAD + TANH, "20230815.614", "stablehlo"),
        (HEAD + TANH, "20231113.707", None),
        (ADD.replace("stablehlo.", "mhlo."), "20230419.494", "mhlo"),
        (ADD.replace("stablehlo.", "mhlo."), "20230524.529", None),
        (SUM, "20230228.444", "tosa"),
        (SUM, "20230524.529", None),
        (SUM + ADD, "20230209.425", None),
        (RELU, "20240129.785", "onnx"),
        (RELU, "20240226.813", None),
        (RELU.replace("onnx.Relu", "aten.relu"), "20240129.785", None),
        (ADD.replace("stablehlo.add", "arith.addf"), "20230209.425", None),
    ],
)
def test_an_early_build_needs_the_flag_for_the_dialect_of_the_input(
    mlir: str, version: str, value: str | None
) -> None:
    """As found by running the builds. No value covers two dialects that share no reader."""
    needed = find_needed_flag(_command(mlir + END), iree, version)
    assert (needed.name if needed is not None else None) == (f"--iree-input-type={value}" if value else None)
    assert needed is None or (needed.moved, needed.version) == (Moved.NEEDED, version)


@pytest.mark.parametrize(
    "step",
    [
        ("iree-compile", "--iree-input-type=mhlo", "m.mlir"),
        ("iree-compile", "-iree-input-type=none", "m.mlir"),
        ("iree-opt", "m.mlir"),
        ("iree-run-module", "--module=m.mlir"),
    ],
)
def test_a_call_that_names_the_type_and_another_program_need_no_flag(step: tuple[str, ...]) -> None:
    assert find_needed_flag(_command(ADD + END, *step), iree, "20230209.425") is None


def test_the_port_to_an_early_build_adds_the_flag_and_says_so() -> None:
    done = port_testcase(_command(ADD + END), "20230524.529", iree)
    assert done is not None
    assert done.testcase.steps == ((PLAIN[0], "--iree-input-type=stablehlo", *PLAIN[1:]),)
    assert done.is_notation_only
    assert [one.new for one in done.substitutions] == ["iree-compile --iree-input-type=stablehlo"]
    assert done.testcase.files == {"m.mlir": ADD + END}


def test_a_type_of_a_later_build_has_its_earlier_name_in_an_early_one() -> None:
    call = ("iree-compile", "--iree-input-type=stablehlo", "m.mlir")
    early = port_testcase(_command(ADD + END, *call), "20230419.494", iree)
    assert early is not None
    assert early.testcase.steps[0][1] == "--iree-input-type=mhlo"
    assert port_testcase(_command(ADD + END, *call), "20230524.529", iree) is None


def test_a_build_before_the_first_reader_of_a_dialect_says_nothing_of_its_operations() -> None:
    """Each operation has the same error there, and no flag helps."""
    unread = find_needed_flag(_command(RELU + END), iree, "20231218.742")
    assert unread is not None
    assert (unread.name, unread.moved) == ("onnx", Moved.ABSENT)
    for other in (RELU.replace("onnx.Relu", "aten.relu") + END, "import onnx\nmodel = onnx.load('m.onnx')\n"):
        assert find_needed_flag(_command(other), iree, "20231218.742") is None


ILLEGAL = "m.mlir:2:8: error: failed to legalize operation 'stablehlo.add' that was explicitly marked illegal\n"


@pytest.mark.parametrize("ended", [Exited(code=1), Signalled(code=11)])
def test_a_failure_without_the_needed_flag_is_neither_reported_nor_another(ended: Exited | Signalled) -> None:
    """Also if the report quotes the same words, or tells of a crash: no operation of the dialect is read."""
    quoted = Signature(type="mlir-error", message=ILLEGAL.partition("error: ")[2].strip())
    step = StepResult(argv=PLAIN, ended=ended, stdout="", stderr=ILLEGAL)
    for claim in (Claim(kind=ClaimKind.ERROR, signature=quoted), Claim(kind=ClaimKind.CRASH)):
        needed = find_needed_flag(_command(ADD + END), iree, "20230209.425")
        seen = classify_run(ended, (step,), OracleContext(claim=claim, vocabulary=FAILURES, needed=needed))
        assert seen.outcome is Outcome.INCOMPATIBLE
        assert "--iree-input-type=mhlo" in seen.why
        without = classify_run(ended, (step,), OracleContext(claim=claim, vocabulary=FAILURES))
        assert without.outcome is not Outcome.INCOMPATIBLE
