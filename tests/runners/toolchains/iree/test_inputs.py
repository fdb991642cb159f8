"""Generate the inputs of a run from the types of the function's arguments."""

from __future__ import annotations

import pytest

from runners.toolchains.iree.reports.inputs import choose_extents, generate_inputs, list_functions


def signature(arguments: str, name: str = "f") -> str:
    return f"module {{\n  func.func @{name}({arguments}) -> tensor<4xf32> {{\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ("", []),
        ("%a: tensor<4x8xf32>", ["4x8xf32=0.5"]),
        ("%a : tensor<f16>, %b: tensor<3xi64>", ["f16=0.5", "3xi64=1"]),
        ('%a: tensor<2xbf16> {iree.abi.name = "x", other = [1, 2]}, %b: f32, %c: i32', ["2xbf16=0.5", "0.5", "1"]),
        ("%a: !torch.vtensor<[2,3],f32>, %b: !torch.vtensor<[],si64>", ["2x3xf32=0.5", "i64=1"]),
        ("%a: tensor<2xf32> {m = affine_map<(d0) -> (d0)>}, %b: f32", ["2xf32=0.5", "0.5"]),
        ("%a: tensor<4xf32>,\n      %b: tensor<5xui8>", ["4xf32=0.5", "5xui8=1"]),
    ],
)
def test_each_argument_gets_a_value_of_its_type(arguments: str, values: list[str]) -> None:
    assert generate_inputs(("--module=m.vmfb",), signature(arguments)) == tuple(f"--input={v}" for v in values)


@pytest.mark.parametrize(
    "arguments", ["%a: tensor<?xf32>", "%a: tensor<2xi1>", "%a: !hal.buffer_view", "%a: tensor<4xf8E4M3FN>"]
)
def test_an_argument_without_a_known_value_prevents_the_call(arguments: str) -> None:
    assert generate_inputs(("--module=m.vmfb",), signature(f"%z: f32, {arguments}")) is None


def test_only_a_call_without_inputs_gets_some() -> None:
    """The function is the one that the call names, or the only public one."""
    text = signature("%a: tensor<4xf32>") + signature("%a: f32", "private @g") + signature("%a: i32", "h")
    assert generate_inputs(("--module=m.vmfb", "--input=4xf32=1"), text) == ()
    assert generate_inputs(("--module=m.vmfb", "--function=h"), text) == ("--input=1",)
    assert generate_inputs(("--module=m.vmfb",), text) == ()
    assert generate_inputs(("--module=m.vmfb", "--function=other"), text) == ()


def test_open_parentheses_end_at_the_next_function() -> None:
    """Else each of many functions would be read up to the end of the text."""
    functions = list_functions("func.func @f(%a: i32, i8\n" * 3_000)
    assert {one.types for one in functions} == {("i32", "i8")}
    assert {one.names for one in functions} == {("%a", "")}


@pytest.mark.parametrize(
    ("arguments", "told", "values"),
    [
        ("%a: tensor<?x4xf32>", "", ["8x4xf32=0.5"]),
        ("%a: tensor<?x4xf32>", "It fails for an input of 3x4xf32.", ["3x4xf32=0.5"]),
        ("%a: tensor<?x4xf32>, %b: tensor<2x4xi8>", "", ["2x4xf32=0.5", "2x4xi8=1"]),
        ("%a: tensor<?x?xi32>", "tensor<5x6x7xi32>", ["8x8xi32=1"]),
        ("%a: !torch.vtensor<[?,16],f32>", "", ["8x16xf32=0.5"]),
        ("%a: tensor<?x?x?xf32>", "version 3.1x on x86_64", ["8x8x8xf32=0.5"]),
    ],
)
def test_dynamic_extents_are_those_of_a_shape_in_the_text(arguments: str, told: str, values: list[str]) -> None:
    text = choose_extents(signature(arguments), told)
    assert generate_inputs(("--module=m.vmfb",), text) == tuple(f"--input={value}" for value in values)
