"""Tests of the rules that an MLIR text can break, with valid texts that break none."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.findings.kinds import Rule
from runners.core.protocol import Exited, Outcome, Testcase, TestcaseKind
from runners.core.toolchain.broken_rule import confirm_broken_rule
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.rules.operation_rules import find_broken_rule
from tests.runners.guest.iree.valid import make_valid_programs
from tests.support.means import make_means
from tests.support.observed import observe

ROWS = """#all = affine_map<(row, col) -> (row, col)>
#one = affine_map<(row, col) -> (row)>
func.func @f(%x: tensor<4x8xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [#all, #one], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %s = arith.addf %in, %acc : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
WIDENED = """func.func @f(%x: tensor<4xi8>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xi8>) outs(%e : tensor<4xi32>) {
  ^bb0(%in: i8, %out: i32):
    %s = arith.extsi %in : i8 to i32
    linalg.yield %s : i32
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}
"""
RATIO = """func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {
  %0 = arith.divsi %a, %b : tensor<4xi32>
  return %0 : tensor<4xi32>
}
"""


def program(source: str, *inputs: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.COMMAND_LINE,
        toolchain="iree",
        files={"a.mlir": source},
        steps=(
            ("iree-compile", "a.mlir", "-o", "a.vmfb"),
            ("iree-run-module", "--module=a.vmfb", "--function=f", *(f"--input={value}" for value in inputs)),
        ),
    )


@pytest.mark.parametrize("source", [WIDENED, ROWS.replace('"parallel"]', '"reduction"]')])
def test_an_overwritten_or_reduced_output_breaks_no_rule(source: str) -> None:
    """Most linalg programs write to a tensor.empty without reading it."""
    assert find_broken_rule(program(source)) is None


def test_a_parallel_dimension_that_the_result_lacks_becomes_a_reduction() -> None:
    """Named by the map's own words, whatever they are called; the other dimension stays parallel."""
    breach = find_broken_rule(program(ROWS))
    assert breach is not None
    assert "calls col parallel" in str(breach)
    assert breach.mended.files["a.mlir"] == ROWS.replace('"parallel"]', '"reduction"]')


def test_zeros_among_the_divisors_of_the_command_line_become_ones() -> None:
    """Only of the input that is divided by, and only where it holds a zero."""
    testcase = program(RATIO, "4xi32=0,9,10,11", "4xi32=20,0,-2,0")
    breach = find_broken_rule(testcase)
    assert breach is not None
    assert breach.mended.steps[1][-2:] == ("--input=4xi32=0,9,10,11", "--input=4xi32=20,1,-2,1")
    changed = [line for line in breach.render_difference(testcase) if line[0] in "+-"]
    assert [line.rpartition(" ")[2] for line in changed] == ["--input=4xi32=20,0,-2,0", "--input=4xi32=20,1,-2,1"]
    assert find_broken_rule(program(RATIO, "4xi32=0", "4xi32=20,10,-2,5")) is None
    assert find_broken_rule(program(RATIO, "4xi32=0", "4xi32=@divisors.npy")) is None


CAST = """func.func @f(%a: tensor<4xf32>) -> tensor<4xi8> {
  %0 = arith.fptosi %a : tensor<4xf32> to tensor<4xi8>
  return %0 : tensor<4xi8>
}
"""


def test_floats_that_the_integer_type_cannot_hold_become_zeros() -> None:
    """The fraction is dropped first, so that 127.9 and -128.9 fit into eight bits."""
    testcase = program(CAST, "4xf32=-200 127.9 nan -128.9")
    breach = find_broken_rule(testcase)
    assert breach is not None
    assert breach.mended.steps[1][-1] == "--input=4xf32=0 127.9 0 -128.9"
    assert find_broken_rule(program(CAST, "4xf32=-128.9 127.9 0 1e2")) is None
    unsigned = CAST.replace("fptosi", "fptoui")
    assert find_broken_rule(program(unsigned, "4xf32=255.9 -0.9 0 1")) is None
    assert find_broken_rule(program(unsigned, "4xf32=255.9 -1 0 1")) is not None
    assert find_broken_rule(program(CAST, "4xf32=@values.npy")) is None


def test_a_comment_breaks_no_rule() -> None:
    """The division stands in a comment."""
    assert find_broken_rule(program(RATIO.replace("%0 =", "// %0 ="), "4xi32=1", "4xi32=0")) is None


def test_valid_programs_break_no_rule() -> None:
    """The collection of valid programs on which all diagnosers are tested."""
    found = {title: find_broken_rule(valid) for title, valid in make_valid_programs().items()}
    assert found == dict.fromkeys(found)


@given(st.text(alphabet='%linag.ruecots()empty:tnsr<>0x^b{}[]=,\n" d#f32', max_size=300))
def test_any_text_is_read_to_its_end(text: str) -> None:
    """No text makes the search fail."""
    find_broken_rule(program(f"{ROWS}{text}"))
    find_broken_rule(program(text, "4xi32=0"))


SLOW = {
    "lists that never end": f"linalg.generic {{{'indexing_maps=[' * 20_000}}}",
    "kinds that never end": f"linalg.generic {{{'iterator_types=[' * 20_000}}}",
    "operations that never end": 'linalg.generic {indexing_maps=[#a], iterator_types=["parallel"]} outs(' * 4_000,
}


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_text_is_read_in_bounded_time(what: str) -> None:
    """No finding, and the time of another text of its size: one of these took a minute."""
    assert find_broken_rule(program(SLOW[what])) is None


def test_the_difference_is_bounded() -> None:
    """In lines and in their length."""
    around = "\n".join(f"// {number % 150}" for number in range(30_000))
    text = f"{around}\n{ROWS.replace('{indexing_maps', '{doc = 1, ' + ' ' * 2_000 + 'indexing_maps')}{around}\n"
    case = program(text)
    breach = find_broken_rule(case)
    assert breach is not None
    shown = breach.render_difference(case)
    assert [line[0] for line in shown] == [" ", "-", "+", " "]
    assert all(len(line) <= 300 for line in shown)
    rows = program(ROWS)
    found = find_broken_rule(rows)
    assert found is not None
    assert [line for line in found.render_difference(rows) if line.startswith("+")] == [
        '+  %r = linalg.generic {indexing_maps = [#all, #one], iterator_types = ["parallel", "reduction"]}'
    ]


def test_many_zeros_of_an_input_are_named_by_their_first() -> None:
    """A summary is of a bounded length."""
    breach = find_broken_rule(program(RATIO, "4xi32=1", f"4xi32={'0,' * 9_000}0"))
    assert breach is not None
    assert len(str(breach)) < 300


SHIFT = """func.func @f(%a: tensor<3xi32>, %b: tensor<3xi32>) -> tensor<3xi32> {
  %0 = arith.shli %a, %b : tensor<3xi32>
  return %0 : tensor<3xi32>
}
"""
SHIFT_OF_ELEMENTS = """func.func @f(%a: tensor<3xi32>, %b: tensor<3xi32>) -> tensor<3xi32> {
  %e = tensor.empty() : tensor<3xi32>
  %r = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<3xi32>, tensor<3xi32>) outs(%e : tensor<3xi32>) {
  ^bb0(%x: i32, %by: i32, %out: i32):
    %s = arith.shrui %x, %by : i32
    linalg.yield %s : i32
  } -> tensor<3xi32>
  return %r : tensor<3xi32>
}
"""


@pytest.mark.parametrize("source", [SHIFT, SHIFT_OF_ELEMENTS])
def test_a_shift_by_the_number_of_bits_or_further_becomes_a_shift_by_zero(source: str) -> None:
    found = find_broken_rule(program(source, "3xi32=1,2,3", "3xi32=31,32,-1"))
    assert found is not None
    assert "--input=3xi32=31,0,0" in found.mended.steps[1]
    assert find_broken_rule(program(source, "3xi32=33,34,35", "3xi32=0,1,31")) is None


WINDOW = """func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %init) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
APPLIED = """func.func @f(%x: tensor<2x3xf32>, %i: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce(%x init: %i) applies stablehlo.divide across dimensions = [1]
       : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(("source", "reducer"), [(WINDOW, "subtract"), (APPLIED, "divide")])
def test_a_reducer_that_is_not_associative_leaves_the_result_open(source: str, reducer: str) -> None:
    """Two releases may combine the elements in different orders, and both are right."""
    breach = find_broken_rule(program(source))
    assert breach is not None
    assert (breach.rule, breach.of, breach.leaves_open) == (Rule.NOT_ASSOCIATIVE, f"stablehlo.{reducer}", True)
    assert breach.mended.files["a.mlir"] == source.replace(f"stablehlo.{reducer}", "stablehlo.add")


@pytest.mark.parametrize(
    "source",
    [
        WINDOW.replace("subtract", "maximum"),
        APPLIED.replace("divide", "multiply"),
        WINDOW.replace(
            "%s = stablehlo.subtract", "%n = stablehlo.negate %b : tensor<f32>\n    %s = stablehlo.subtract"
        ),
        WINDOW.replace("subtract", "add").replace(
            "  return", "  %1 = stablehlo.subtract %0, %0 : tensor<2x3xf32>\n  return"
        ),
    ],
    ids=["maximum", "product", "several operations", "outside"],
)
def test_other_reducers_break_no_rule(source: str) -> None:
    assert find_broken_rule(program(source)) is None


@pytest.mark.parametrize(("printed", "found"), [("6 5 3", 1), ("0 1 3", 0)])
def test_any_other_value_shows_that_an_open_result_rests_on_the_reducer(printed: str, found: int) -> None:
    """No value is the right one, so that the mended testcase need not print it."""
    testcase = program(WINDOW)
    seen = observe("1.0", Outcome.MATCH, ended=Exited(code=0), excerpt="0 1 3")
    control = observe("1.0", Outcome.MATCH, ended=Exited(code=0), excerpt=printed)
    rule = find_broken_rule(testcase)
    assert rule is not None
    means = make_means(lambda _version, _variant, _testcase, _device: control)
    assert len(confirm_broken_rule(rule, Failure(testcase=testcase, seen=seen), means).findings) == found
