"""Operations that a report gives alone run in a function of our own, whose types the operations themselves give."""

from __future__ import annotations

import pytest

from bot.extract import NoRepro, Repro, extract
from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.command_line.wrap import wrap_only_fragment
from tests.bot.extract.reading import extract_repro, list_missing, list_repairs, make_issue


def _wrap(text: str) -> list[str]:
    """Return the first and the last rows of the function around the operations; empty if there is none."""
    piece = Piece(kind=Kind.FRAGMENT, text=text, lines=(1, text.count("\n")), block=1)
    (whole,) = wrap_only_fragment([piece])
    rows = whole.text.strip().split("\n")
    return [rows[0], rows[-2].strip()] if whole.kind is Kind.MLIR else []


@pytest.mark.parametrize(
    ("text", "head", "end"),
    [
        (
            '%0 = "stablehlo.sine"(%x) {a = dense<1> : tensor<2xi64>} : (tensor<2xf32>) -> tensor<2xf32>\n',
            "func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>) {",
            "return %0 : tensor<2xf32>",
        ),
        (
            "%s = arith.addf %a, %b : f32\n%t = math.exp %s : f32\n",
            "func.func @main(%a: f32, %b: f32) -> (f32) {",
            "return %t : f32",
        ),
        (
            "%e = tensor.empty() : tensor<4x8xf32>\n"
            "%0 = linalg.matmul ins(%x, %y : tensor<4x6xf32>, tensor<6x8xf32>)\n"
            "                   outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>\n",
            "func.func @main(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> (tensor<4x8xf32>) {",
            "return %0 : tensor<4x8xf32>",
        ),
        (
            "%s = tensor.extract_slice %t[%i, 0] [2, 2] [1, 1] : tensor<4x4xi8> to tensor<2x2xi8>\n",
            "func.func @main(%t: tensor<4x4xi8>, %i: index) -> (tensor<2x2xi8>) {",
            "return %s : tensor<2x2xi8>",
        ),
        (
            '%0 = "stablehlo.reduce"(%x, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
            "  %s = stablehlo.add %a, %b : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n"
            "}) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n",
            "func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> (tensor<f32>) {",
            "return %0 : tensor<f32>",
        ),
        (
            '%3:2 = "stablehlo.opt"(%a) : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)\n'
            "%4 = stablehlo.add %3#0, %3#1 : tensor<2xf32>\n",
            "func.func @main(%a: tensor<4xf32>) -> (tensor<2xf32>) {",
            "return %4 : tensor<2xf32>",
        ),
        (
            "%r = torch.aten.relu %v : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>\n"
            "return %r : !torch.vtensor<[2],f32>\n",
            "func.func @main(%v: !torch.vtensor<[2],f32>) -> (!torch.vtensor<[2],f32>) {",
            "return %r : !torch.vtensor<[2],f32>",
        ),
        (
            "vm.export @f\nvm.func @f() {\n  vm.return\n}\n",
            "vm.module @module {",
            "}",
        ),
    ],
    ids=["generic", "trailing-type", "clauses", "offsets", "region", "several-results", "return", "virtual-machine"],
)
def test_operands_become_arguments_and_unused_results_are_returned(text: str, head: str, end: str) -> None:
    assert _wrap(text) == [head, end]


@pytest.mark.parametrize(
    "text",
    [
        "%0 = stablehlo.frobnicate %a\n",
        "%0 = arith.addi %a, %b : i32\n...\n%1 = arith.muli %0, %a : i32\n",
        "%0 = func.call @other(%a) : (i32) -> i32\n",
        "  %0 = arith.addi %a, %b : i32\n  cf.br ^bb1(%0 : i32)\n^bb1(%c: i32):\n",
        "%0 = arith.addi %a, %b : i32\n}\n",
        '%0 = "stablehlo.sine"(%x) ({\n',
    ],
    ids=["no-type", "left-out", "call", "blocks", "end-of-a-region", "open"],
)
def test_operations_that_leave_something_out_stay_as_they_are(text: str) -> None:
    assert _wrap(text) == []


_FRAGMENT = """\
This aborts:

```mlir
  %0 = "stablehlo.sine"(%x) {a = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
```
"""


def _read(body: str, title: str = "sine crashes with a segmentation fault") -> Repro | NoRepro:
    return extract(make_issue(body, title, "iree-org/iree"))


def test_a_crash_on_operations_alone_is_run() -> None:
    found = _read(_FRAGMENT)
    assert isinstance(found, Repro)
    assert found.is_wrapped
    assert "func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>)" in found.assumed
    assert not found.missing


def test_wrong_values_of_operations_alone_are_not_run() -> None:
    assert isinstance(_read(_FRAGMENT.replace("aborts", "prints 3, expected 4"), "sine: wrong values"), NoRepro)


def test_a_command_above_operations_alone_reads_them_under_its_own_name() -> None:
    found = _read(
        f"{_FRAGMENT}\n```\niree-compile --iree-hal-target-backends=vmvx ~/t/sine.mlir -o /tmp/s.vmfb\n```\n"
    )
    assert isinstance(found, Repro)
    assert list(found.testcase.files) == ["sine.mlir"]


def test_no_file_is_asked_for_under_a_name_that_the_report_does_not_have() -> None:
    """``input.mlir`` is our own word. The report lacks a function, or the text that a command reads."""
    command = "\n```\niree-compile --iree-hal-target-backends=vmvx -\n```\n"
    part = _read("It aborts:\n\n```mlir\n  %0 = stablehlo.frobnicate %a\n  %1 = foo.bar %0\n```\n" + command)
    none = _read(f"It aborts.\n{command}")
    named = _read(f"It aborts.\n{command.replace(' -', ' net.mlir')}")
    assert list_missing(part) == [("code", "the function around the MLIR operations shown")]
    assert list_missing(none) == [("code", "the MLIR that the command reads")]
    assert list_missing(named) == [("file", "net.mlir")]


def test_a_path_that_a_terminal_broke_names_the_input() -> None:
    flags = "--output-format=vm-bytecode --iree-hal-target-backends=vmvx --iree-input-type=stablehlo"
    rest = "home/me/tests/sine.mlir -o sine.vmfb --mlir-print-ir-after-all"
    rows = f"$ tools/iree-compile {flags} /usr/local/src/\n{rest}"
    found = _read(f"{_FRAGMENT}\n```\n{rows}\nSegmentation fault\n```\n")
    assert isinstance(found, Repro)
    assert list(found.testcase.files) == ["sine.mlir"]
    assert found.testcase.steps[0][-3:] == ("-o", "sine.vmfb", "--mlir-print-ir-after-all")
    assert "sine.mlir" in found.testcase.steps[0]


@pytest.mark.parametrize(
    ("function", "flag"),
    [("@twice(%x : i32) -> (i32)", "--input=1"), ("@grow(%x : tensor<2x3xf32>) -> (i32)", "--input=2x3xf32=0.5")],
)
def test_a_tool_in_a_sentence_runs_a_function_with_generated_inputs(function: str, flag: str) -> None:
    """The call is not in the report. Its clean run decides nothing, because other inputs may fail."""
    body = (
        f"iree-run-mlir chokes on\n\n```\nfunc {function} {{\n  %c = constant 1 : i32\n  return %c : i32\n}}\n```\n\n"
        "and says `FAILED_PRECONDITION: Signature mismatch of the results; Evaluating functions`\n"
    )
    found = extract_repro(body, "Wrong number of results", "iree-org/iree")
    assert found.claim.signature is not None
    assert found.claim.signature.type == "status:FAILED_PRECONDITION"
    assert found.claim.signature.message.endswith("Evaluating functions")
    assert found.generates_inputs
    assert flag in found.testcase.steps[-1]
    assert {"add-compile-step", "add-run-step", "assume-device"} <= set(list_repairs(found))
