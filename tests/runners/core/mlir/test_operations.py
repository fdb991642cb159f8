"""A text is cut into its operations, in the pretty and in the generic form."""

from __future__ import annotations

import pytest

from runners.core.mlir.brackets import (
    blank_comments,
    count_opened,
    find_closing,
    partition,
    remove_comments,
    rpartition,
    split_list,
    strip_parentheses,
)
from runners.core.mlir.operations import Region, parse_operation, split_operations, split_types

TEXT = """\
// %0 = not.one
%0 = stablehlo.add %a, %b : tensor<4xf32> // the sum: %c
%1:2 = "stablehlo.reduce"(%0, %i#1) ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32>
  "stablehlo.return"(%s) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 0>, note = "}: -> //"} : (tensor<4xf32>, i32) -> (tensor<f32>, i32)
%2 = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>)
                   outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
memref.store %2, %m[%i] : memref<4xf32>
%3 = arith.extf %2 : f32 to f64
return %3 : f64
"""


def test_each_operation_has_its_parts() -> None:
    add, reduce, matmul, store, cast, back = split_operations(TEXT)
    assert (add.name, add.results, add.operands) == ("stablehlo.add", ("%0",), ("%a", "%b"))
    assert add.types == ("tensor<4xf32>",)
    assert TEXT[add.at :].startswith(add.text)
    assert (reduce.name, reduce.results) == ("stablehlo.reduce", ("%1#0", "%1#1"))
    assert reduce.operands == ("%0", "%i#1")
    assert reduce.takes == ("tensor<4xf32>", "i32")
    assert reduce.types == ("tensor<f32>", "i32")
    assert reduce.attributes == '(%0, %i#1) () {dimensions = array<i64: 0>, note = "}: -> //"}'
    (body,) = reduce.regions
    assert body.arguments == ("%x", "%y")
    assert [one.name for one in split_operations(body.text)] == ["stablehlo.add", "stablehlo.return"]
    assert (matmul.operands, matmul.types) == (("%a", "%b", "%c"), ("tensor<4x4xf32>",))
    assert (store.name, store.results) == ("memref.store", ())
    assert (cast.takes, cast.types) == (("f32",), ("f64",))
    assert (back.name, back.operands) == ("return", ("%3",))


@pytest.mark.parametrize("text", ["some words", "^bb1:", "%0 = a.b (", "%0 = a.b )", "}", "x = 1", "#a = b.c"])
def test_text_that_is_no_operation_has_no_name(text: str) -> None:
    assert [one.name for one in split_operations(text)] == [""]
    assert parse_operation(text) is None


def test_a_region_without_a_block_has_no_arguments() -> None:
    operation = parse_operation("%1 = scf.if %c -> (i32) {\n  %0 = a.b : i32\n} else {\n  a.c %d : i32\n}")
    assert operation is not None
    assert operation.types == ("i32",)
    assert operation.regions == (Region((), "\n  %0 = a.b : i32\n"), Region((), "\n  a.c %d : i32\n"))
    assert operation.operands == ("%c",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(%a) : (f32, i8) -> (i1)", ("(%a)", ("f32", "i8"), ("i1",))),
        ("%a : f32 to f64", ("%a", ("f32",), ("f64",))),
        ("%a into %b[0] : f32 into f64", ("%a into %b[0]", ("f32",), ("f64",))),
        ("%a, %b : i1, f32", ("%a, %b", None, ("i1", "f32"))),
        ("outs(%a : f32) -> tensor<f32, #a<b: c>>", ("outs(%a : f32)", (), ("tensor<f32, #a<b: c>>",))),
        ("{a = array<i64: 1>}", ("{a = array<i64: 1>}", (), ())),
        ('"a : f32"', ('"a : f32"', (), ())),
        ("() : () -> ()", ("()", (), ())),
    ],
)
def test_the_types_follow_the_last_colon_or_arrow(text: str, expected: tuple[object, ...]) -> None:
    assert split_types(text) == expected


def test_marks_in_brackets_strings_and_comments_do_not_count() -> None:
    text = 'a<(b, c) -> (d, e >= 0)>, "f, g", [h, i] // j, k'
    assert split_list(text) == ["a<(b, c) -> (d, e >= 0)>", '"f, g"', "[h, i] // j, k"]
    assert partition("a<b:c> : d : e", ":") == ("a<b:c>", ":", "d : e")
    assert rpartition("a<b:c> : d : e", ":") == ("a<b:c> : d", ":", "e")
    assert partition("a", ":") == ("a", "", "")
    assert find_closing('{"}" // }\n (}', 0) == 12
    assert find_closing("(", 0) == -1
    assert strip_parentheses(" (a), (b) ") == "(a), (b)"
    assert strip_parentheses(" (a, (b)) ") == "a, (b)"
    assert count_opened('{ ( ] "((" // ((') == 1


def test_an_address_in_a_string_is_no_comment() -> None:
    text = 'a = "http://b" // c'
    assert remove_comments(text) == 'a = "http://b" '
    assert blank_comments(text) == 'a = "http://b"     '
