"""Generate the inputs of a run from the types of the function's arguments."""

from __future__ import annotations

import pytest

from runners.toolchains.iree.reports.inputs import generate_inputs


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
