"""Tests of arguments in a type that the compiler replaces by default."""

from __future__ import annotations

import ast

import pytest

from runners.core.protocol import Signature, Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.calls.demoted import KEEP, find_demoted_argument

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
