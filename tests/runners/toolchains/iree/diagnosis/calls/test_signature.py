"""Tests of the comparison of a call with the declared signature: what differs, and what agrees with anything."""

from __future__ import annotations

import pytest

from runners.core.findings.kinds import CallFault
from runners.core.findings.record import write_call
from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.calls.signature import find_wrong_call

SUM = "func.func @sum(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


def call(text: str, *words: str, compiled: tuple[str, ...] = ()) -> Testcase:
    """A program that is compiled and run with these words."""
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"m.mlir": text},
        steps=(
            ("iree-compile", "--iree-hal-target-backends=llvm-cpu", *compiled, "m.mlir", "-o", "m.vmfb"),
            ("iree-run-module", "--device=local-task", "--module=m.vmfb", *words),
        ),
    )


def takes(*types: str, name: str = "f") -> str:
    arguments = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(types))
    return f"func.func @{name}({arguments}) {{\n  return\n}}\n"


@pytest.mark.parametrize(
    ("words", "fault", "shown", "mended"),
    [
        (("--input=4xf32=1",), CallFault.COUNT, {"count": 2, "passed": 1}, ("--input=4xf32=1", "--input=1")),
        (
            ("--input=4xf32=1", "--input=2", "--input=3"),
            CallFault.COUNT,
            {"count": 2, "passed": 3},
            ("--input=4xf32=1", "--input=2"),
        ),
        (
            ("--input=5xf32=1", "--input=2"),
            CallFault.TYPE,
            {"argument": 1, "declared": "tensor<4xf32>", "given": "5xf32"},
            ("--input=4xf32=0.5", "--input=2"),
        ),
        (
            ("--input=3.5", "--input=2"),
            CallFault.TYPE,
            {"argument": 1, "declared": "tensor<4xf32>", "given": "3.5"},
            ("--input=4xf32=0.5", "--input=2"),
        ),
        (
            ("--input=4xf32=1", "--input=1xi64=2"),
            CallFault.TYPE,
            {"argument": 2, "declared": "index", "given": "1xi64"},
            ("--input=4xf32=1", "--input=1"),
        ),
        (
            ("--input=4xi32=1", "--input=2", "--expected_output=4xf32=1"),
            CallFault.TYPE,
            {"argument": 1, "declared": "tensor<4xf32>", "given": "4xi32"},
            ("--input=4xf32=0.5", "--input=2"),
        ),
        (
            ("--input=4xf32=[1 2] 3", "--input=2"),
            CallFault.VALUES,
            {"count": 4, "passed": 3},
            ("--input=4xf32=0.5", "--input=2"),
        ),
        (
            ("--function=total", "--input=4xf32=1", "--input=2"),
            CallFault.NO_FUNCTION,
            {"function": "total", "functions": ["sum"]},
            ("--function=sum", "--input=4xf32=1", "--input=2"),
        ),
    ],
)
def test_a_call_that_differs_from_the_signature_is_found_and_mended(
    words: tuple[str, ...], fault: CallFault, shown: dict[str, object], mended: tuple[str, ...]
) -> None:
    """Only the call is mended; the expected output of the wrong call is dropped."""
    found = find_wrong_call(call(SUM, *words))
    assert found is not None
    assert found.call.fault is fault
    assert shown.items() <= write_call(found.call).items()
    assert found.mended[0].steps[1][3:] == mended
    assert found.mended[0].files == {"m.mlir": SUM}


def test_a_private_function_cannot_be_called() -> None:
    """The mended testcase declares it public, and calls it as before."""
    found = find_wrong_call(call(SUM.replace("@sum", "private @sum"), "--function=sum", "--input=4xf32", "--input=1"))
    assert found is not None
    assert found.call.fault is CallFault.PRIVATE
    assert found.mended[0].files == {"m.mlir": SUM}


@pytest.mark.parametrize(
    ("types", "inputs"),
    [
        (("tensor<?x4xf32>",), ("9x4xf32=1",)),
        (("tensor<4xf32>",), ("@values.npy",)),
        (("tensor<4xf32>", "i32"), ("@both.npy",)),
        (("tensor<9xi1>",), ("9xi1=1,0,1,1,0,1,1,1,1",)),
        (("tensor<4x4xf64>",), ("4x4xf64=0.5",)),
        (("tensor<4xf64>",), ("4xf32=0.5",)),
        (("tensor<4xi8>",), ("4xui8=1",)),
        (("tensor<2x2xf32>",), ("2x2xf32=[1 2][3 4]",)),
        (("tensor<4xi8>",), ("4xi8=01020304",)),
        (("tensor<0xf32>",), ("0xf32",)),
        (("tensor<f32>",), ("f32=1",)),
        (("f32", "index"), ("1.5e-3", "index=2")),
        (("!torch.vtensor<[2,?],f32>",), ("2x7xf32=1",)),
        (("!hal.buffer_view", "!hal.buffer_view"), ("4xf32=1", "2x2xi8=1")),
        (("tensor<4xf32>", "!hal.fence", "!hal.fence"), ("4xf32=1",)),
        (("tensor<4xf32, #e>",), ("5xf32=1",)),
        (("tensor<4xcomplex<f32>>",), ("4xf32=1",)),
    ],
)
def test_a_call_that_may_agree_is_no_difference(types: tuple[str, ...], inputs: tuple[str, ...]) -> None:
    """If the runtime rejects such a call, its check may be wrong."""
    text = takes(*types)
    assert find_wrong_call(call(text, "--function=f", *(f"--input={one}" for one in inputs))) is None


def test_flags_that_change_types_make_an_element_type_agree_with_any() -> None:
    text = takes("tensor<4xf32>")
    wrong = ("--function=f", "--input=4xf16=1")
    assert find_wrong_call(call(text, *wrong)) is not None
    assert find_wrong_call(call(text, *wrong, compiled=("--iree-input-demote-f32-to-f16",))) is None


@pytest.mark.parametrize(
    "testcase",
    [
        call(takes("i32"), "--module=other.vmfb", "--function=elsewhere"),
        call(takes("i32") + takes("i32", name="g"), "--function=h", "--input=1"),
        call(takes("i32") + takes("i32", name="g"), "--input=1", "--input=2"),
        call(takes("i32"), "--function=module.f", "--input=1"),
        call(takes("i32"), "--function=f", "--function_input=i32=1"),
        call(takes("i32"), "-function-input=1"),
        call(takes("i32"), "--flagfile=flags.txt"),
        call(takes("i32"), "--function=f$async", "--input=1"),
        call("module {}", "--function=f", "--input=1"),
        call(f"// {takes('i64')}{takes('i32')}", "--function=f", "--input=1"),
    ],
    ids=[
        *(
            "two modules",
            "which function",
            "unnamed",
            "module and function",
            "earlier flag",
            "one dash",
            "flags in a file",
        ),
        *("async", "no function", "comment"),
    ],
)
def test_a_run_whose_function_is_not_certain_is_not_compared(testcase: Testcase) -> None:
    assert find_wrong_call(testcase) is None


@pytest.mark.parametrize(("given", "mended"), [("9x5xf32=1", "9x4xf32=0.5"), ("9xf32=1", "1x4xf32=0.5")])
def test_dynamic_extents_are_those_of_a_value_of_the_same_rank(given: str, mended: str) -> None:
    wrong = find_wrong_call(call(takes("tensor<?x4xf32>"), f"--input={given}"))
    assert wrong is not None
    assert wrong.mended[0].steps[-1][-1] == f"--input={mended}"


def test_a_text_of_any_length_is_read_in_one_pass() -> None:
    """The longest signature is cut, and its rest is not guessed."""
    assert find_wrong_call(call("func.func @f(" + "%a: i32, " * 200_000, "--function=f", "--input=1")) is None
