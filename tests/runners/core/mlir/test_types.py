"""Every type that a program writes is read, and is written as it was read."""

from __future__ import annotations

import pytest

from runners.core.mlir.types import (
    DYNAMIC,
    MAX_RANK,
    MemRefType,
    OtherType,
    ScalarType,
    TensorType,
    Type,
    VectorType,
    find_types,
    fits_shape,
    match_static,
    match_type,
    parse_type,
    remove_types,
    replace_types,
)

READ: dict[str, Type] = {
    "f32": ScalarType("f32"),
    "index": ScalarType("index"),
    "f8E4M3FNUZ": ScalarType("f8E4M3FNUZ"),
    "tensor<f32>": TensorType((), "f32"),
    "tensor<2x?xbf16>": TensorType((2, DYNAMIC), "bf16"),
    "tensor<0xi1>": TensorType((0,), "i1"),
    "tensor<4xcomplex<f32>>": TensorType((4,), "complex<f32>"),
    "tensor<4xf32, #layout<[1, 2]>>": TensorType((4,), "f32", "#layout<[1, 2]>"),
    "tensor<4x!quant.uniform<i8:f32, 0.1:-2>>": TensorType((4,), "!quant.uniform<i8:f32, 0.1:-2>"),
    "!torch.vtensor<[2,?],si64>": TensorType((2, DYNAMIC), "si64", name="!torch.vtensor"),
    "!torch.vtensor<[],f32>": TensorType((), "f32", name="!torch.vtensor"),
    "memref<4xf32, strided<[?], offset: ?>, 1>": MemRefType((4,), "f32", "strided<[?], offset: ?>, 1"),
    "memref<2xmemref<4xf32>>": MemRefType((2,), "memref<4xf32>"),
    "memref<4xf32, affine_map<(d0) -> (d0)>>": MemRefType((4,), "f32", "affine_map<(d0) -> (d0)>"),
    "vector<2x4xi8>": VectorType((2, 4), "i8"),
    "vector<[4]xf32>": OtherType("vector<[4]xf32>"),
    "tensor<*xf32>": OtherType("tensor<*xf32>"),
    "complex<f32>": OtherType("complex<f32>"),
    "!tosa.shape<3>": OtherType("!tosa.shape<3>"),
    "!alias": OtherType("!alias"),
}


@pytest.mark.parametrize("text", READ)
def test_a_type_is_read_and_written(text: str) -> None:
    found = parse_type(f" {text}\n")
    assert found == READ[text]
    assert str(found) == text


@pytest.mark.parametrize("text", ["", "x", "i", "4xf32", "tensor", "tensor<4xf32", "tensor<4xf32>>", "(f32) -> f32"])
def test_other_text_is_not_a_type(text: str) -> None:
    assert parse_type(text) is None


def test_blanks_between_dimensions_are_allowed() -> None:
    assert parse_type("tensor<2 x 3 x f32>") == TensorType((2, 3), "f32")


@pytest.mark.parametrize("text", [f"tensor<{'1x' * (MAX_RANK + 1)}f32>", f"tensor<{'9' * 40}xf32>"])
def test_no_shape_beyond_the_limits_is_read(text: str) -> None:
    assert parse_type(text) == OtherType(text)


def test_the_outermost_types_of_a_text_are_found() -> None:
    text = '(tensor<4xf32>, !a.b<tensor<2xf32>>) -> i32 "vector<2xi8>" %f32, @i8 // memref<2xi8>'
    assert list(map(str, find_types(text))) == ["tensor<4xf32>", "!a.b<tensor<2xf32>>", "i32"]
    assert remove_types("a tensor<4xf32> b tensor<4x c").split() == ["a", "b"]
    assert (
        replace_types("f32, i8, tensor<f32", lambda kind: "x" if str(kind) == "i8" else None) == "f32, x, tensor<f32"
    )


def test_a_type_is_read_at_its_place() -> None:
    text = "a : tensor<4xf32> b"
    assert match_type(text, 3) == match_static(text, 4) == TensorType((4,), "f32")
    assert match_type(text, 0) is None
    assert match_type(text, len(text)) is None
    assert match_static("tensor<?xf32>", 0) is None
    assert match_static("!a.b", 0) is None


def test_a_dynamic_extent_fits_every_extent_of_the_same_rank() -> None:
    assert fits_shape((2, DYNAMIC), (2, 3))
    assert not fits_shape((2, DYNAMIC), (3, 3))
    assert not fits_shape((DYNAMIC,), (2, 3))
    assert fits_shape((), ())
