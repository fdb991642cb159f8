"""Tests of loops, branches and calls: the programs that have no value, and those that would never end."""

from __future__ import annotations

import time

import pytest

from runners.toolchains.iree.diagnosis.reference.program import compute_program
from tests.runners.toolchains.iree.diagnosis.reference.test_elementwise import program

WHILE = """func.func @main(%a: tensor<2xf32>, %n: tensor<i32>) -> tensor<2xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<2xf32>
   cond {
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    BODY
    %2 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %2, %1 : tensor<i32>, tensor<2xf32>
  }
  return %0#1 : tensor<2xf32>
}
"""
ADD = "%1 = stablehlo.add %x, %x : tensor<2xf32>"
INNER = """%1:2 = stablehlo.while(%j = %c, %y = %x) : tensor<i32>, tensor<2xf32>
     cond {
      %3 = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.negate %y : tensor<2xf32>
      %4 = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<2xf32>
    }
    %5 = stablehlo.negate %1#1 : tensor<2xf32>"""
NESTED = WHILE.replace("BODY", INNER).replace("%2, %1 :", "%2, %5 :")
CALL = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @other(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @other(%b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %b : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(("count", "numbers"), [("0", (1, -1)), ("3", (8, -8))])
def test_a_loop_runs_as_often_as_its_condition_says(count: str, numbers: tuple[float, ...]) -> None:
    results = compute_program(program(WHILE.replace("BODY", ADD), "2xf32=1 -1", f"i32={count}"))
    assert results is not None
    assert results[0].numbers == numbers


def test_a_loop_in_a_loop_is_computed() -> None:
    results = compute_program(program(NESTED, "2xf32=1 -1", "i32=3"))
    assert results is not None
    assert results[0].numbers == (1, -1)


@pytest.mark.parametrize(
    ("text", "count"), [(WHILE.replace("BODY", ADD), "2147483647"), (NESTED, "999")], ids=["endless", "nested"]
)
def test_a_loop_that_takes_too_long_has_no_value(text: str, count: str) -> None:
    begun = time.process_time()
    assert compute_program(program(text, "2xf32=1 -1", f"i32={count}")) is None
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("stablehlo.negate %b :", "call @main(%b) : (tensor<2xf32>) -> tensor<2xf32> //"),
        CALL.replace("call @other", "call @nobody"),
        CALL.replace("call @other(%a)", "call @other(%a, %a)"),
        CALL.replace("stablehlo.negate %b", "stablehlo.negate %a"),
        CALL + CALL.partition("}")[2].replace("@other", "@more") * 30,
    ],
    ids=["recursion", "unknown function", "arguments", "a name of the caller", "many functions"],
)
def test_a_call_that_does_not_fit_has_no_value(text: str) -> None:
    begun = time.process_time()
    assert compute_program(program(text, "2xf32=1 -1")) is None
    assert time.process_time() - begun < 20


def test_a_function_of_the_text_is_called() -> None:
    results = compute_program(program(CALL, "2xf32=1 -1"))
    assert results is not None
    assert results[0].numbers == (-1, 1)


BRANCH = """func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.map"(%a, %b) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = "stablehlo.if"(%1) ({
      stablehlo.return %x : tensor<f32>
    }, {
      stablehlo.return %y : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_a_branch_that_differs_by_element_has_no_value() -> None:
    """The region of a map runs for all elements at once."""
    assert compute_program(program(BRANCH, "3xf32=1 5 2", "3xf32=2 3 4")) is None


FOR = """func.func @main(%a: tensor<2xf32>, %n: index, %s: index) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %0 = scf.for %i = %c0 to %n step %s iter_args(%x = %a) -> (tensor<2xf32>) {
    %1 = arith.addf %x, %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    ("end", "step", "numbers"),
    [("3", "2", (4, -4)), ("-1", "1", (1, -1)), ("3", "0", None), ("9999999999", "1", None)],
)
def test_a_counted_loop_needs_a_step_and_an_end(end: str, step: str, numbers: tuple[float, ...] | None) -> None:
    results = compute_program(program(FOR, "2xf32=1 -1", end, step))
    assert (results[0].numbers if results else None) == numbers


SORT = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %c = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize(("values", "numbers"), [("1 9 3 2", (9, 3, 2, 1)), ("1 nan 3 2", None)])
def test_a_sort_by_a_comparison_without_an_order_has_no_value(values: str, numbers: tuple[float, ...] | None) -> None:
    """``GT`` is false for NaN on either side, so that NaN has no place among the others."""
    results = compute_program(program(SORT, f"4xf32={values}"))
    assert (results[0].numbers if results else None) == numbers


GLOBALS = """util.global private mutable @steps = {first} : i32
util.global private @scale = dense<[2, 3]> : tensor<2xi32>
func.func @main(%n: index, %on: i1) -> (i32, tensor<2xi32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %inc = arith.constant 3 : i32
  scf.if %on {{
    scf.for %i = %c0 to %n step %c1 {{
      %old = util.global.load @steps : i32
      %new = arith.addi %old, %inc : i32
      util.global.store %new, @{stored} : i32
    }}
  }}
  %r = util.global.load @steps : i32
  %s = util.global.load immutable @scale : tensor<2xi32>
  return %r, %s : i32, tensor<2xi32>
}}
"""


@pytest.mark.parametrize(
    ("first", "stored", "on", "steps"),
    [("0", "steps", "1", 15), ("7", "steps", "0", 7), ("0", "other", "1", None), ("0 + 1", "steps", "1", None)],
)
def test_globals_keep_what_is_stored(first: str, stored: str, on: str, steps: int | None) -> None:
    """Each run of a module begins with the first values. IREE 3.13.0 loads before the loop."""
    results = compute_program(program(GLOBALS.format(first=first, stored=stored), "5", on))
    expected = None if steps is None else [(steps,), (2, 3)]
    assert (None if results is None else [one.numbers for one in results]) == expected


ELEMENT = """func.func @main(%a: tensor<2x2xf32>, %v: f32, %i: index) -> tensor<2x2xf32> {
  %0 = tensor.insert %v into %a[%i, %i] : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
"""


@pytest.mark.parametrize(("at", "numbers"), [("1", (1, 2, 3, 9)), ("2", None), ("-1", None)])
def test_an_element_is_inserted_inside_its_tensor(at: str, numbers: tuple[float, ...] | None) -> None:
    """IREE 3.13.0 does not compile this program."""
    results = compute_program(program(ELEMENT, "2x2xf32=1 2 3 4", "9", at))
    assert (results[0].numbers if results else None) == numbers
