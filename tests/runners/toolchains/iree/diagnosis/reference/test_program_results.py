"""Tests of the interpreter of whole programs. The files ``*programs.json`` hold what IREE 3.13.0 printed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from runners.core.findings.kinds import Vote
from runners.core.protocol import Exited, Outcome, Signature
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.reference import check_definitions
from runners.toolchains.iree.diagnosis.reference.program import compute_program
from tests.runners.toolchains.iree.diagnosis.reference.test_elementwise import program
from tests.support.means import make_means
from tests.support.observed import observe

RECORDED: list[dict[str, Any]] = [
    recorded
    for name in ("programs.json", "torch_programs.json", "linalg_ext_programs.json")
    for recorded in json.loads((Path(__file__).parent / name).read_bytes())
]


def vote(text: str, inputs: list[str], printed: list[str]) -> list[object]:
    """Return the votes on results that a run printed."""
    return vote_on_rows(text, inputs, [f"result[{at}]: hal.buffer_view\n{row}" for at, row in enumerate(printed)])


def vote_on_rows(text: str, inputs: list[str], rows: list[str]) -> list[object]:
    seen = observe(
        "3.13.0",
        Outcome.MATCH,
        ended=Exited(code=0),
        signature=Signature(type="output", message="x"),
        excerpt="\n".join(("EXEC @main", *rows, "")),
    )
    found = check_definitions(Failure(testcase=program(text, *inputs), seen=seen), make_means())
    return [finding.evidence["vote"] for finding in found.findings]


def test_an_operation_gives_what_the_compiler_gives() -> None:
    """StableHLO, CHLO, TOSA, torch and ``tensor``: two implementations of the same specifications agree."""
    votes = {one["name"]: vote(one["text"], one["inputs"], one["printed"]) for one in RECORDED}
    assert len(votes) == len(RECORDED)
    assert votes == {name: [Vote.AGREES] for name in votes}


SUM = """func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.add %a, %a {attributes}: tensor<3xf32>
  {other}
  return %0 : tensor<3xf32>
}}
"""


@pytest.mark.parametrize(
    ("attributes", "other", "votes"),
    [('{at = "http://a.b"} ', "// no effect", [Vote.AGREES]), ("", "some.effect %0 : tensor<3xf32>", [])],
)
def test_a_string_is_no_comment_and_no_other_operation_is_passed_over(
    attributes: str, other: str, votes: list[object]
) -> None:
    text = SUM.format(attributes=attributes, other=other)
    assert vote(text, ["3xf32=1 2 3"], ["3xf32=2 4 6"]) == votes


NARROW = """func.func @main(%a: {kind}, %b: {kind}) -> {result} {{
  %0 = arith.addi %a, %b : {kind}
  %zero = arith.constant 0 : {kind}
  %1 = arith.cmpi slt, %0, %zero : {kind}
  return {returned} : {result}
}}
"""


@pytest.mark.parametrize(
    ("kind", "result", "given", "printed", "votes"),
    [
        ("i8", "i1", "100", "i32=0", [Vote.DIFFERS]),
        ("i8", "i1", "100", "i32=1", [Vote.AGREES]),
        ("i8", "i8", "100", "i32=200", [Vote.AGREES]),
        ("i8", "i8", "100", "i32=-56", [Vote.AGREES]),
        ("i8", "i8", "100", "i32=-57", [Vote.DIFFERS]),
        ("i8", "i8", "100", "i32=456", [Vote.DIFFERS]),
        ("i8", "i1", "100", "i32=3", [Vote.DIFFERS]),
        ("i16", "i16", "20000", "i32=40000", [Vote.AGREES]),
        ("i32", "i1", "100", "i32=0", [Vote.AGREES]),
        ("i32", "i32", "100", "i64=200", []),
    ],
)
def test_a_narrow_scalar_is_printed_with_32_bits(
    kind: str, result: str, given: str, printed: str, votes: list[object]
) -> None:
    """The virtual machine has no smaller integer. Whether it extends the sign is not a part of the value."""
    text = NARROW.format(kind=kind, result=result, returned="%1" if result == "i1" else "%0")
    assert vote_on_rows(text, [given, given], [f"result[0]: {printed}"]) == votes


def vote_on_another_value(recorded: dict[str, Any]) -> list[object]:
    head, equals, values = recorded["printed"][0].partition("=")
    first = values.replace("[", " ").replace("]", " ").split()[0]
    other = values.replace(first, "77", 1)
    return vote(recorded["text"], recorded["inputs"], [head + equals + other, *recorded["printed"][1:]])


def test_another_value_is_noticed() -> None:
    votes = {one["name"]: vote_on_another_value(one) for one in RECORDED[::7]}
    assert votes == {name: [Vote.DIFFERS] for name in votes}


DOUBLE = """func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {
  %0 = stablehlo.add %a, %a : tensor<1xi32>
  return %0 : tensor<1xi32>
}
"""


@pytest.mark.parametrize(
    ("printed", "votes"),
    [
        (["7"], [Vote.DIFFERS]),
        (["6"], []),
        (["6", "6"], [Vote.AGREES]),
        (["7", "6"], [Vote.DIFFERS]),
        (["6", "7"], [Vote.DIFFERS]),
    ],
)
def test_each_of_several_commands_votes_by_its_output(printed: list[str], votes: list[Vote]) -> None:
    """Long output keeps its end: a command without output has no vote, and the report may mean that one."""
    once = program(DOUBLE, "1xi32=3")
    twice = msgspec.structs.replace(once, steps=(*once.steps[:-1], once.steps[-1], once.steps[-1]))
    seen = observe(
        "3.13.0",
        Outcome.MATCH,
        ended=Exited(code=0),
        signature=Signature(type="output", message="x"),
        excerpt="".join(f"EXEC @main\nresult[0]: hal.buffer_view\n1xi32={one}\n" for one in printed),
    )
    found = check_definitions(Failure(testcase=twice, seen=seen), make_means())
    assert [finding.evidence["vote"] for finding in found.findings] == votes


OVERFLOW = """func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {
  %0 = tosa.add %a, %a : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  return %0 : tensor<1xi32>
}
"""


@pytest.mark.parametrize(
    ("text", "given_input"),
    [
        (OVERFLOW, "1xi32=2147483647"),
        (OVERFLOW.replace("tosa.add %a, %a", "stablehlo.divide %a, %a"), "1xi32=0"),
        (OVERFLOW.replace("tosa.add %a, %a", "stablehlo.unheard_of %a, %a"), "1xi32=1"),
        (OVERFLOW.replace("1xi32", "?xi32"), "1xi32=1"),
        (OVERFLOW.replace("%0 =", "%0, %1 ="), "1xi32=1"),
        (OVERFLOW.replace("return %0", "return %9"), "1xi32=1"),
    ],
    ids=["overflow", "zero", "operation", "dynamic", "results", "name"],
)
def test_a_result_that_is_undefined_or_unknown_has_no_value(text: str, given_input: str) -> None:
    assert compute_program(program(text, given_input)) is None


def test_a_cancellation_has_no_vote_on_its_digits() -> None:
    """In float32 the sum loses the small operand; another order of the same operations keeps the operand."""
    text = """func.func @main(%a: tensor<1xf32>, %b: tensor<1xf32>) -> tensor<1xf32> {
  %0 = stablehlo.add %a, %b : tensor<1xf32>
  %1 = stablehlo.subtract %0, %a : tensor<1xf32>
  return %1 : tensor<1xf32>
}
"""
    results = compute_program(program(text, "1xf32=100000000", "1xf32=1"))
    assert results is not None
    assert results[0].is_rounded


@given(st.text(alphabet='%abc= stablehlotosa.dreu(:)<>x3f2{}[]#^"\n d0-,', max_size=400))
def test_any_text_ends(text: str) -> None:
    compute_program(program(f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{text}\n}}\n", "2xf32=1"))


def test_a_contraction_that_is_too_large_is_left_alone() -> None:
    text = """func.func @main(%a: T) -> T {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (T, T) -> T
  return %0 : T
}
""".replace("T", "tensor<90x90xf32>")
    begun = time.process_time()
    assert compute_program(program(text, "90x90xf32=1")) is None
    assert time.process_time() - begun < 20


MAXIMUM = """func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.maximumf %a, %b : tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""


@pytest.mark.parametrize(("printed", "votes"), [("2xf32=0 0", [Vote.AGREES]), ("2xf32=-0 0", [])])
def test_a_zero_of_the_other_sign_has_no_vote(printed: str, votes: list[Vote]) -> None:
    """The two compare equal, so that they do not differ; and a report may be about the sign."""
    assert vote(MAXIMUM, ["2xf32=0 -0", "2xf32=-0 0"], [printed]) == votes


HUGE = "tensor<9999999999xf32>"
NESTED = "%r = linalg.generic {x = []} ins(%a : f32) outs(%a : f32) { ^bb0(%b: f32): "


@pytest.mark.parametrize(
    "body",
    [
        f"%z = arith.constant 0.0 : f32\n%e = tensor.empty() : {HUGE}\n"
        f"%f = linalg.fill ins(%z : f32) outs(%e : {HUGE}) -> {HUGE}\nreturn %f : {HUGE}",
        f"%c = stablehlo.constant dense<0.0> : {HUGE}\n"
        f"%f = stablehlo.concatenate %c, %c, dim = 0 : ({HUGE}, {HUGE}) -> {HUGE}\nreturn %f : {HUGE}",
        f"%c = stablehlo.constant dense<0.0> : {HUGE}\n%f = stablehlo.negate %c : {HUGE}\n"
        f"%g = stablehlo.reverse %f, dims = [0] : {HUGE}\nreturn %g : {HUGE}",
        f"%f = stablehlo.iota dim = 0 : {HUGE}\nreturn %f : {HUGE}",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%f = stablehlo.pad %a, %z, low = [0], high = [0],"
        " interior = [-1] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\nreturn %f : tensor<2xf32>",
        NESTED * 180 + "}" * 180,
    ],
    ids=["fill", "concatenate", "reverse", "iota", "interior", "nested"],
)
def test_a_hostile_program_ends_at_once(body: str) -> None:
    begun = time.process_time()
    text = f"func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{body}\n}}\n"
    assert compute_program(program(text, "2xf32=1")) is None
    assert time.process_time() - begun < 20


HALVES = """func.func @main(%a: tensor<2xi64>) -> tensor<2xi64> {
  %h = arith.constant dense<0.5> : tensor<2xf64>
  %0 = arith.sitofp %a : tensor<2xi64> to tensor<2xf64>
  %1 = arith.mulf %0, %h : tensor<2xf64>
  %2 = arith.fptosi %1 : tensor<2xf64> to tensor<2xi64>
  return %2 : tensor<2xi64>
}
"""


@pytest.mark.parametrize(
    ("given_input", "printed", "votes"),
    [
        ("2xi64=6 33554434", "2xi64=3 16777216", []),
        ("2xi64=6 33554434", "2xi64=3 16777217", []),
        ("2xi64=6 33554434", "2xi64=4 16777216", [Vote.DIFFERS]),
        ("2xi64=6 8", "2xi64=3 4", [Vote.AGREES]),
        ("2xi64=6 8", "2xi64=3 5", [Vote.DIFFERS]),
    ],
)
def test_values_for_which_the_type_decides_have_no_vote(given_input: str, printed: str, votes: list[Vote]) -> None:
    """The compiler turns f64 into f32 by default. 16777217 is no value of f32."""
    assert vote(HALVES, [given_input], [printed]) == votes


@pytest.mark.parametrize(("printed", "votes"), [("2xf32=0.5 1.5", []), ("2xf32=0.5 1.25", [Vote.DIFFERS])])
def test_a_result_in_f64_is_printed_in_f32(printed: str, votes: list[Vote]) -> None:
    """The printed value may be right; the report may call it wrong because it is no f64."""
    text = HALVES.replace("-> tensor<2xi64>", "-> tensor<2xf64>").replace(
        "return %2 : tensor<2xi64>", "return %1 : tensor<2xf64>"
    )
    assert vote(text, ["2xi64=1 3"], [printed]) == votes


SCALED = """func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {{
  %c0 = arith.constant 0 : index
  %w = arith.constant 0.25 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty({extents}) : tensor<?xi32>
  %r = linalg.map ins(%x : tensor<?xf32>) outs(%e : tensor<?xi32>) (%a: f32, %o: i32) {{
    %q = arith.divf %a, %w : f32
    %i = arith.fptosi %q : f32 to i32
    linalg.yield %i : i32
  }}
  return %r : tensor<?xi32>
}}
"""


@pytest.mark.parametrize(("extents", "votes"), [("%n", [Vote.AGREES]), ("", []), ("%n, %n", [])])
def test_dynamic_extents_are_those_of_the_inputs(extents: str, votes: list[object]) -> None:
    """A text with another number of extents is no program."""
    assert vote(SCALED.format(extents=extents), ["3xf32=0.24 0.25 -0.2"], ["3xi32=0 1 0"]) == votes


UNSQUEEZED = """func.func @main(%a: !torch.vtensor<[2],f32>) -> !torch.vtensor<[1,2,1],f32> {{
  %r = torch.operator "onnx.Unsqueeze"(%a) {{torch.onnx.axes = [{axes}]}}
      : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[1,2,1],f32>
  return %r : !torch.vtensor<[1,2,1],f32>
}}
"""


@pytest.mark.parametrize(
    ("axes", "votes"), [("0 : si64, 2 : si64", [Vote.AGREES]), ("1 : si64, 1 : si64", []), ("0 : si64, 9 : si64", [])]
)
def test_axes_that_do_not_fit_have_no_result(axes: str, votes: list[Vote]) -> None:
    assert vote(UNSQUEEZED.format(axes=axes), ["2xf32=1 2"], ["1x2x1xf32=[[1][2]]"]) == votes


def _take(name: str) -> dict[str, Any]:
    return next(one for one in RECORDED if one["name"] == f"iree_linalg_ext.{name}")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("attention.mask of truth values", "01 00 01 01 01 00", "01 00 01 00 00 00"),
        ("attention.plain", "iree_linalg_ext.yield %score", "%two = math.exp %score : f32\n yield %two"),
        ("scatter.rows", "2x1xi32=3 0", "2x1xi32=3 3"),
        ("scatter.rows", "2x1xi32=3 0", "2x1xi32=3 5"),
        ("gather.rows", "3xi32=3 0 3", "3xi32=3 0 -1"),
        ("arg_compare.greatest", "6xf32=3", "6xf32=nan"),
    ],
)
def test_what_a_description_leaves_open_has_no_vote(name: str, old: str, new: str) -> None:
    """A row that is masked as a whole, two updates of one place, an index outside, an order of NaN."""
    recorded = _take(name)
    inputs = [one.replace(old, new) for one in recorded["inputs"]]
    text = recorded["text"].replace(old, new)
    assert (text, inputs) != (recorded["text"], recorded["inputs"])
    assert vote(text, inputs, recorded["printed"]) == []
