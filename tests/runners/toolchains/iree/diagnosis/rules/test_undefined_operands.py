"""Tests of operands that an MLIR text shows to be undefined, with valid texts that show none."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.protocol import Testcase, TestcaseKind
from runners.toolchains.iree.diagnosis.rules.undefined_operands import find_fault
from tests.runners.guest.iree.valid import make_valid_programs

SUM = """func.func @pick(%t: tensor<6x4xf32>, %i: index) -> f32 {
  %c2 = arith.constant 2 : index
  %j = arith.addi %i, %c2 : index
  %v = tensor.extract %t[%c2, %j] : tensor<6x4xf32>
  return %v : f32
}
"""
BOXED = """func.func @pick(%t: tensor<6xf32>, %i: tensor<i32>) -> f32 {
  %n = tensor.extract %i[] : tensor<i32>
  %x = arith.index_cast %n : i32 to index
  %v = tensor.extract %t[%x] : tensor<6xf32>
  return %v : f32
}
"""
GUARDED = """func.func @pick(%t: tensor<6xf32>, %yes: i1) -> f32 {
  %c9 = arith.constant 9 : index
  %z = arith.constant 0.0 : f32
  %r = scf.if %yes -> (f32) {
    %v = tensor.extract %t[%c9] : tensor<6xf32>
    scf.yield %v : f32
  } else {
    scf.yield %z : f32
  }
  return %r : f32
}
"""
LOOP = """func.func @walk(%n: index, %by: index) -> index {
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c1 to %n step %by iter_args(%a = %c1) -> (index) {
    scf.yield %i : index
  }
  return %r : index
}
"""


def program(source: str, *inputs: str, function: str = "") -> Testcase:
    run = ("iree-run-module", "--module=a.vmfb", *(f"--function={f}" for f in [function] if f))
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"a.mlir": source},
        steps=(
            ("iree-compile", "a.mlir", "-o", "a.vmfb"),
            (*run, *(f"--input={value}" for value in inputs)),
        ),
    )


def test_an_index_that_is_a_sum_of_an_input_is_followed() -> None:
    """Two and two is outside an axis of four; the axis and its extent are named."""
    fault = find_fault(program(SUM, "6x4xf32=1", "2"))
    assert fault is not None
    assert (fault.value, fault.extent, fault.axis, fault.line) == (4, 4, 1, 4)
    assert find_fault(program(SUM, "6x4xf32=1", "1")) is None


def test_a_scalar_in_a_tensor_is_followed() -> None:
    """As frontends hand indices over; a negative one is outside as well."""
    assert str(find_fault(program(BOXED, "6xf32=1", "i32=-1"))).endswith("takes element -1 of 6 along axis 0")
    assert find_fault(program(BOXED, "6xf32=1", "i32=5")) is None


def test_only_the_operand_is_mended() -> None:
    """The text differs by one constant and by the one place where it is used: the sound axis stays."""
    fault = find_fault(program(SUM, "6x4xf32=1", "7"))
    assert fault is not None
    mended = fault.mended.files["a.mlir"]
    assert "tensor.extract %t[%c2, %reprobot_mended]" in mended
    assert "%reprobot_mended = arith.constant 0 : index" in mended
    assert len(mended.splitlines()) == len(SUM.splitlines()) + 1
    assert fault.mended.steps == program(SUM, "6x4xf32=1", "7").steps


@pytest.mark.parametrize("step", [0, -3])
def test_a_step_that_is_not_positive_is_undefined(step: int) -> None:
    """As scf.for says of itself; put right it is one, and the bounds keep their names."""
    fault = find_fault(program(LOOP, "4", str(step)))
    assert fault is not None
    assert fault.value == step
    assert "= %c1 to %n step %reprobot_mended" in fault.mended.files["a.mlir"]
    assert find_fault(program(LOOP, "4", "2")) is None


@pytest.mark.parametrize(
    "source",
    [
        GUARDED,
        SUM.replace("6x4x", "?x?x"),
        SUM.replace("arith.addi", "arith.xori"),
        SUM.replace("  return", "^bb1:\n  return"),
        SUM + SUM.replace("@pick", "@other"),
    ],
)
def test_code_that_need_not_run_is_no_fault(source: str) -> None:
    """In a region, of unknown extent, by an operation not followed, behind a branch, or in one of two functions."""
    assert find_fault(program(source, "6x4xf32=1", "9")) is None


def test_only_the_called_function_counts() -> None:
    """The command line names one of two functions."""
    both = SUM + SUM.replace("@pick", "@other").replace("constant 2", "constant 1")
    assert find_fault(program(both, "6x4xf32=1", "2", function="other")) is None
    assert find_fault(program(both, "6x4xf32=1", "2", function="pick")) is not None


def test_inputs_belong_to_arguments_by_position() -> None:
    """A tensor before the index takes the first input, whatever its type; a value that is missing is unknown."""
    assert find_fault(program(SUM, "6x4xf32=9")) is None
    assert find_fault(program(SUM, "9", "1")) is None


@given(st.text(alphabet="%@tensor.extract[]():,{}<>x0123456789 \n=func_-^", max_size=400))
def test_any_text_is_read_without_failing(text: str) -> None:
    """An issue can hold anything."""
    find_fault(program(f"func.func @f(%t: tensor<2xf32>) {{\n{text}", "2xf32=1"))


def test_valid_programs_have_no_fault() -> None:
    """Accesses at the very edge, guarded and clamped ones, gathers, loops: none is shown to be undefined."""
    found = {title: find_fault(valid) for title, valid in make_valid_programs().items()}
    assert found == dict.fromkeys(found)


RING = """func.func @put(%t: tensor<8xf32>, %v: tensor<4xf32>, %i: tensor<i32>) -> tensor<8xf32> {
  %s = tensor.extract %i[] : tensor<i32>
  %o = arith.index_cast %s : i32 to index
  %r = tensor.insert_slice %v into %t[%o] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}
"""
CUT = """func.func @cut(%t: tensor<6x4xf32>, %o: index) -> tensor<1x2xf32> {
  %r = tensor.extract_slice %t[0, %o] [1, 2] [1, 2] : tensor<6x4xf32> to tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}
"""


@pytest.mark.parametrize(
    ("source", "inputs", "said"),
    [
        (RING, ("8xf32=1", "4xf32=2", "i32=6"), "takes element 9 of 8 along axis 0"),
        (RING, ("8xf32=1", "4xf32=2", "i32=-1"), "takes element -1 of 8 along axis 0"),
        (CUT, ("6x4xf32=1", "2"), "takes element 4 of 4 along axis 1"),
        (RING, ("8xf32=1", "4xf32=2", "i32=4"), None),
        (CUT, ("6x4xf32=1", "1"), None),
    ],
)
def test_a_slice_that_begins_or_ends_outside_is_a_fault(
    source: str, inputs: tuple[str, ...], said: str | None
) -> None:
    """With its stride counted; the mended slice begins at 0."""
    fault = find_fault(program(source, *inputs))
    assert (fault is None) is (said is None)
    if fault is not None and said is not None:
        assert str(fault).endswith(said)
        assert "%reprobot_mended]" in fault.mended.files["a.mlir"]
