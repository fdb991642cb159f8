"""One program in several notations is one; another constant, operation or use of a value makes another program."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.core.failure.printed.programs.program import (
    MAX_ROWS,
    compare_programs,
    find_kept_operation,
    find_other_operation,
    read_operations,
)
from runners.core.failure.printed.reading import Reading

OLD = """module {
  func.func @step(%arg0: tensor<4xi64>, %arg1: tensor<4xi64>) -> tensor<4xi8> {
    %0 = "tosa.const"() {value = dense<-1> : tensor<4xi64>} : () -> tensor<4xi64>
    %1 = tosa.sub %arg0, %arg1 : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    %2 = "tosa.equal"(%1, %0) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    return %2 : tensor<4xi8>
  }
}
"""
NEW = """#map = affine_map<(d0) -> (d0)>
module attributes {a.b = 1} {
  func.func @step(%a: tensor<4xi64, #x.y<i8>>, %b: tensor<4xi64>) -> tensor<4xi8> {
    %c = tosa.const values(dense<-1> : tensor<4xi64>) : () -> tensor<4xi64> loc("a.mlir":3:4)
    %d = tosa.sub %a, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    %e = tosa.equal %d, %c : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    func.return %e : tensor<4xi8>
  }
}
"""


def compare(printed: str, actual: str = OLD, expected: str = "") -> Reading | None:
    return compare_programs(printed, actual=actual, expected=expected)


def test_the_notation_of_a_release_makes_no_difference() -> None:
    assert compare(NEW) is Reading.WRONG
    assert compare(NEW, actual="", expected=OLD) is Reading.RIGHT


@pytest.mark.parametrize(
    ("old", "new", "reading"),
    [
        ("dense<-1>", "dense<1>", Reading.CHANGED),
        ("tosa.sub %a, %b", "tosa.sub %b, %a", Reading.CHANGED),
        ("tosa.sub", "tosa.add", Reading.UNKNOWN),
        ("    %d = tosa.sub", "    %k = arith.constant 3 : i8\n    %d = tosa.sub", Reading.UNKNOWN),
        ("    %d = tosa.sub", "    %k = tosa.sub %b, %b : tensor<4xi8>\n    %d = tosa.sub", Reading.SIMILAR),
        ("    %d = tosa.sub", 3 * "    %k = tosa.sub %b, %b : tensor<4xi8>\n" + "    %d = tosa.sub", Reading.UNKNOWN),
    ],
)
def test_another_program_is_not_the_reported_one(old: str, new: str, reading: Reading) -> None:
    """Other constants or values of the same operations are another behaviour of the pass, as are a few fewer or more.

    An operation with a new name may be a known one that was renamed.
    """
    assert compare(NEW.replace(old, new)) is reading


@pytest.mark.parametrize(
    ("quoted", "reading"),
    [
        ("%c = tosa.mul %a, ... : tensor<4xi8>\n  %d = tosa.abs %c", Reading.WRONG),
        ("%c = tosa.mul ... : (tensor<4xi8>) -> tensor<4xi8>\n  %d = tosa.abs %c", Reading.WRONG),
        ("%c = tosa.mul %a, ... : tensor<4xi8>\n  %d = tosa.abs %a", Reading.UNKNOWN),
        ("%c = tosa.mul %a, %b, ... : tensor<4xi8>\n  %d = tosa.abs %b", Reading.UNKNOWN),
        ("%c = tosa.mul ...\n  %d = tosa.abs ...", Reading.UNKNOWN),
    ],
)
def test_a_gap_inside_a_quoted_operation_stands_for_any_words(quoted: str, reading: Reading) -> None:
    """A program with another part beside the gap is not known to be another one."""
    whole = "func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {\n  %c = tosa.mul %a, %s shift(5) : tensor<4xi8>\n"
    whole += "  %d = tosa.abs %c : tensor<4xi8>\n  return %d : tensor<4xi8>\n}"
    assert compare(whole, actual=quoted) is reading


def test_the_expected_constant_stands_for_the_expected_program() -> None:
    """`should be 1` of a program with one constant."""
    assert compare(NEW.replace("-1", "1"), expected="1") is Reading.RIGHT
    assert compare(NEW, expected="1") is Reading.WRONG
    assert compare(NEW.replace("-1", "2"), expected="1") is Reading.UNKNOWN


def test_a_part_of_a_program_is_found_in_the_whole() -> None:
    part = "\n".join(OLD.split("\n")[2:4])
    assert compare(NEW, actual=part) is Reading.WRONG
    assert compare(NEW, actual=part.replace("-1", "5")) is Reading.CHANGED
    assert compare(f"{NEW}\n{NEW}", actual=part.replace("-1", "5")) is Reading.UNKNOWN  # which of the two?


def test_values_in_a_sentence_are_no_program() -> None:
    assert compare("4xi32=1 2 3 4") is None
    assert compare(NEW, actual="4xi32=1 2 3 4") is None
    assert compare(NEW, actual="arith.addi") is None


@given(st.text(alphabet='%ab01 .=<>()"{}:-#@\n', max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    for operation in read_operations(text):
        assert operation[0]
    assert compare_programs(text, actual=text, expected="") in (None, Reading.WRONG)


def test_a_huge_program_is_read_in_part() -> None:
    assert len(read_operations("  %0 = arith.constant 1 : i32\n" * (2 * MAX_ROWS))) == MAX_ROWS
    assert read_operations("%0 = a.b " + "tensor<" * 100_000)


@pytest.mark.parametrize(
    ("printed", "other"),
    [
        ("%0 = scf.for %a\n%1 = linalg.pack %0\nreturn %1", "scf.for"),
        ("%1 = linalg.pack %0\nreturn %1", ""),
        ("%1 = tensor.pack %0\nreturn %1", ""),  # the same program, with a name that a release may have changed
        ("nothing", ""),
    ],
)
def test_the_operation_that_another_program_has_is_told(printed: str, other: str) -> None:
    assert find_other_operation(printed, actual="%1 = linalg.pack %0\nreturn %1") == other


ALIGNED = """util.func public @pad(%n: i32) -> i32 {
  %c32 = arith.constant 32 : i32
  %0 = util.align %n, %c32 : i32
  util.return %0 : i32
}"""
ZERO = """module {
  util.func public @pad(%arg0: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    util.return %c0 : i32
  }
}"""


@pytest.mark.parametrize(
    ("printed", "quoted", "kept"),
    [
        (ALIGNED, ZERO, "util.align"),
        (ZERO, ZERO, ""),  # as reported
        (ALIGNED.replace("util.align %n", "arith.muli %n"), ZERO, ""),  # dropped as well, and something else is new
        (ALIGNED + "\n" + ZERO.replace("arith.constant", "arith.zero"), ZERO, ""),  # a new name
        (ALIGNED, "    %c0 = arith.constant 0 : i32\n    util.return %c0 : i32", ""),  # a passage may lack anything
    ],
)
def test_an_operation_of_the_input_that_only_the_quoted_program_lacks_is_kept(
    printed: str, quoted: str, kept: str
) -> None:
    assert find_kept_operation(printed, actual=quoted, given=ALIGNED) == kept


def test_an_attribute_in_a_row_of_its_own_is_no_operation() -> None:
    attribute = 'hal.executable.target = #hal.executable.target<"x">'
    text = f"func.func @f(%a: i32) attributes {{\n  {attribute}\n}} {{\n  return %a\n}}"
    assert [name for name, *_ in read_operations(text)] == ["func.func", "func.return"]


POSTED = """func.func @f(%x: tensor<4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %s = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = math.exp %in : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %k = math.log %in : f32
    linalg.yield %k : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
PRINTED = """#map = affine_map<(d0) -> (d0)>
module {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%arg0 : tensor<4xf32>) outs(%arg1 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.exp %in : f32
      linalg.yield %2 : f32
    } -> tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%0 : tensor<4xf32>) outs(%arg1 : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.log %in : f32
      linalg.yield %2 : f32
    } -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""


def test_a_program_that_comes_out_as_it_went_in_is_the_posted_one() -> None:
    """The printer names the affine maps, and gives one name to values of two regions."""
    assert compare(PRINTED, actual=POSTED) is Reading.WRONG
    assert compare(PRINTED.replace("math.log %in", "math.log %out"), actual=POSTED) is Reading.CHANGED


PACK = """func.func @f(%a: index) {{
  %0 = unit.pack slices({{
    {slices}
  }}) : index
  return
}}
"""


def test_rows_inside_the_parentheses_of_an_operation_belong_to_it() -> None:
    """A pass may change these rows alone."""
    wrong, right = (PACK.format(slices=rows) for rows in ("[1, 1] = %a,\n    [0, 1] = %a", "[0, 1] = %a"))
    assert compare_programs(wrong, actual=wrong, expected="") is Reading.WRONG
    assert compare_programs(right, actual=wrong, expected="") is not Reading.WRONG
    assert compare_programs(right, actual=wrong, expected=right) is Reading.RIGHT
