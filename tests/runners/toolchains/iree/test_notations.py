"""Old notations of MLIR become today's, operation by operation, or stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from runners.toolchains.iree.notations import port_notations

NEWEST = "3.13.0"


def port(text: str) -> str:
    return port_notations(text, NEWEST)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("func private @g(i32) -> i32", "func.func private @g(i32) -> i32"),
        ("  builtin.func @g() {", "  func.func @g() {"),
        ("%c = constant 4 : index", "%c = arith.constant 4 : index"),
        ("%g = constant @callee : () -> ()", "%g = func.constant @callee : () -> ()"),
        ("%s = std.subf %a, %b : f32", "%s = arith.subf %a, %b : f32"),
        ('%b = cmpi "ult", %x, %y : i8', "%b = arith.cmpi ult, %x, %y : i8"),
        ("%w = zexti %x : i8 to i32", "%w = arith.extui %x : i8 to i32"),
        ("%d = dim %m, %c0 : memref<?xf32>", "%d = memref.dim %m, %c0 : memref<?xf32>"),
        ("%d = memref.dim %t, %c0 : tensor<?xf32>", "%d = tensor.dim %t, %c0 : tensor<?xf32>"),
        ("    cond_br %p, ^a, ^b", "    cf.cond_br %p, ^a, ^b"),
        ("    store %v, %m[%i] : memref<4xf32>", "    memref.store %v, %m[%i] : memref<4xf32>"),
        ("%m = arith.minf %a, %b : f16", "%m = arith.minimumf %a, %b : f16"),
        (
            "%t = subtensor_insert %a into %b[0] [1] [1] : T into U",
            "%t = tensor.insert_slice %a into %b[0] [1] [1] : T into U",
        ),
    ],
)
def test_operations_of_the_standard_dialect(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "%0 = linalg.init_tensor [%m, 8, %n] : tensor<?x8x?xf32>",
            "%0 = tensor.empty(%m, %n) : tensor<?x8x?xf32>",
        ),
        (
            "%1 = linalg.fill(%v, %t) : i8, tensor<2xi8> -> tensor<2xi8>",
            "%1 = linalg.fill ins(%v : i8) outs(%t : tensor<2xi8>) -> tensor<2xi8>",
        ),
        (
            "linalg.fill(%m, %v) : memref<4x4xf32>, f32",
            "linalg.fill ins(%v : f32) outs(%m : memref<4x4xf32>)",
        ),
        (
            "%2 = tensor.expand_shape %x [[0, 1], [2]] : tensor<8x3xi1> into tensor<2x4x3xi1>",
            "%2 = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 3] : tensor<8x3xi1> into tensor<2x4x3xi1>",
        ),
        (
            "%3 = linalg.tensor_reshape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>",
            "%3 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>",
        ),
        (
            "%4 = vector.extract %v[1, 0] : vector<2x3x8xf16>",
            "%4 = vector.extract %v[1, 0] : vector<8xf16> from vector<2x3x8xf16>",
        ),
        ("scf.foreach_thread (%i) in (%n) {", "scf.forall (%i) in (%n) {"),
    ],
)
def test_operations_of_linalg_tensor_and_vector(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%0 = mhlo.subtract %a, %b : tensor<f32>", "%0 = stablehlo.subtract %a, %b : tensor<f32>"),
        (
            '%1 = "mhlo.reverse"(%a) {dimensions = dense<[0, 2]> : tensor<2xi64>} : (T) -> T',
            '%1 = "stablehlo.reverse"(%a) {dimensions = array<i64: 0, 2>} : (T) -> T',
        ),
        (
            '%2 = "mhlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<> : tensor<0xi64>} : (S) -> T',
            '%2 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = array<i64>} : (S) -> T',
        ),
        ("strides = dense<2> : tensor<3xi64>", "strides = array<i64: 2, 2, 2>"),
        ('compare_type = "TOTALORDER"', "compare_type = #stablehlo<comparison_type TOTALORDER>"),
        ("#mhlo.rng_distribution<NORMAL>", "#stablehlo<rng_distribution NORMAL>"),
        ('precision_config = ["HIGHEST"]', "precision_config = [#stablehlo<precision HIGHEST>]"),
        ("#mhlo.scatter<index_vector_dim = 1>", "#stablehlo.scatter<index_vector_dim = 1>"),
    ],
)
def test_mhlo_becomes_stablehlo(old: str, new: str) -> None:
    assert port(old) == new


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%constant: i32) -> i32 {",
        "  // func @f() { %0 = constant 1 : i32",
        '%0 = "mhlo.fusion"(%a) : (T) -> T',  # MHLO's own: StableHLO has no such operation
        "%0 = tensor.expand_shape %x [[0, 1]] : tensor<?xf32> into tensor<?x2xf32>",
        "%0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>",
        "%0 = vector.extract %v[0] : f32 from vector<4xf32>",
        "%0 = linalg.fill(%a, %b) : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>",  # which one is the output?
        "func.func @f() attributes {mhlo.num_partitions = 1 : i32} {",
        'value = dense<[1, 2]> : tensor<2xi64>, name = "dim"',
    ],
)
def test_texts_that_need_no_change_or_more_than_they_say_stay(text: str) -> None:
    """A release then refuses the text; nothing else than the text is run."""
    assert port_notations(text, NEWEST) == (text, ())


def test_changes_name_their_lines_and_no_line_moves() -> None:
    """An operation over two lines is changed where it begins. Comments keep their places."""
    text = (
        "func @f() {  // func @g\n  %0 = tensor.expand_shape %x [[0, 1]]\n    : tensor<4xf32> into tensor<2x2xf32>\n}"
    )
    ported, changes = port_notations(text, NEWEST)
    assert ported.split("\n")[0] == "func.func @f() {  // func @g"
    assert ported.count("\n") == text.count("\n")
    assert [change.line for change in changes] == [1, 2]


@given(st.text(alphabet='%a=mhlo.func@ ()<>[]{}:"x1,\n/', max_size=120))
def test_a_ported_text_is_not_ported_again(text: str) -> None:
    """A second port changes nothing, for any text."""
    once = port(text)
    assert port(once) == once
