"""Tests of the comparison of two traces: the first differing dispatch is named, and never a similar one."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable, Sequence

import pytest

from runners.core.failure.outcomes import get_answer
from runners.core.failure.tensor_difference import Tensor, find_differing_values
from runners.core.protocol import Exited, Finding, Observation, Outcome, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import ComparedRun
from runners.guest.iree.dispatch_trace import pack_claim, parse_trace
from runners.toolchains.iree.diagnosis.dispatch_matching import find_divergence
from runners.toolchains.iree.diagnosis.dispatch_traces import MAX_TRACE_BYTES, Dispatch, TracedTensor, read_trace
from runners.toolchains.iree.diagnosis.dispatches import compare_dispatches
from tests.support.means import make_means

TESTCASE = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": ""},
    steps=(("iree-compile", "m.mlir", "-o", "m.vmfb"), ("iree-run-module", "--module=m.vmfb")),
)


def seen(text: str) -> TracedTensor:
    kind, _, values = text.partition("=")
    return TracedTensor(kind, text, values.replace("[", " ").replace("]", " "))


def dispatch(name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Dispatch:
    executable = "_".join(
        name.split("_")[:2]
    )  # as the compiler names it: f_dispatch_0::f_dispatch_0_elementwise_2_f32
    return Dispatch(f"f_{executable}::f_{name}", tuple(map(seen, inputs)), tuple(map(seen, outputs)))


DOUBLE = dispatch("dispatch_0_elementwise_2_f32", ["2xf32=1 2"], ["2xf32=2 4"])
SUM = dispatch("dispatch_1_reduction_2_f32", ["2xf32=2 4"], ["f32=6"])
WRONG_SUM = dispatch("dispatch_1_reduction_2_f32", ["2xf32=2 4"], ["f32=4"])
AFTER = dispatch("dispatch_2_elementwise_f32", ["f32=6"], ["f32=36"])
AFTER_WRONG = dispatch("dispatch_2_elementwise_f32", ["f32=4"], ["f32=16"])


def test_the_first_differing_dispatch_is_named() -> None:
    """The dispatch after it is not named: its input differs already."""
    parting = find_divergence([DOUBLE, WRONG_SUM, AFTER_WRONG], [DOUBLE, SUM, AFTER])
    assert parting is not None
    assert (parting.at, parting.matched, parting.values) == (2, 1, (4.0, 6.0))


def test_rounding_is_no_difference() -> None:
    """The last digits of a float do not count; those of an integer do."""
    close = dispatch("dispatch_1_reduction_2_f32", ["2xf32=2 4"], ["f32=6.00001"])
    assert find_divergence([DOUBLE, close], [DOUBLE, SUM]) is None
    assert find_divergence(
        [dispatch("d", ["2xi32=1 2"], ["i32=600000"])], [dispatch("d", ["2xi32=1 2"], ["i32=600001"])]
    )


def test_an_unknown_difference_of_an_input_blames_no_later_dispatch() -> None:
    """Only the first values of a large tensor are known: a tensor with another digest is not the same input."""
    long, other = TracedTensor("9xi32", "one digest", "1 2"), TracedTensor("9xi32", "another", "1 2")
    sink = (seen("i32=1"),), (seen("i32=2"),)
    these = [Dispatch("f_dispatch_0_x", (), (long,)), Dispatch("f_dispatch_1_y", (long,), sink[0])]
    those = [Dispatch("f_dispatch_0_x", (), (other,)), Dispatch("f_dispatch_1_y", (other,), sink[1])]
    assert find_divergence(these, those) is None


def test_dispatches_with_other_numbers_and_names_are_matched() -> None:
    """Another release numbers and names its dispatches otherwise: they are matched by their inputs."""
    renumbered = dispatch("dispatch_4_reduction_2_f32", ["2xf32=2 4"], ["f32=6"])
    renamed = dispatch("dispatch_4_generic_2_f32", ["2xf32=2 4"], ["f32=6"])
    for other in (renumbered, renamed):
        parting = find_divergence([DOUBLE, WRONG_SUM], [DOUBLE, other])
        assert parting is not None
        assert parting.other is other


def test_ambiguous_dispatches_are_not_compared() -> None:
    """Two functions of one tensor with other names: the match is ambiguous."""
    these = [dispatch("dispatch_0_exp", ["2xf32=1 2"], ["2xf32=3 7"])]
    those = [
        dispatch("dispatch_0_a", ["2xf32=1 2"], ["2xf32=0 0"]),
        dispatch("dispatch_1_b", ["2xf32=1 2"], ["2xf32=1 1"]),
    ]
    assert find_divergence(these, those) is None
    nothing_taken = dispatch("dispatch_0_fill", [], ["f32=1"]), dispatch("dispatch_0_iota", [], ["f32=2"])
    assert find_divergence([nothing_taken[0]], [nothing_taken[1]]) is None


def test_dispatches_of_one_name_on_parts_of_one_tensor_are_not_mixed_up() -> None:
    """Two slices of a tensor, in another order in the other trace: neither slice differs."""
    first = dispatch("dispatch_4_slice", ["2xf32=1 2"], ["f32=1"])
    second = dispatch("dispatch_5_slice", ["2xf32=1 2"], ["f32=2"])
    wrong = dispatch("dispatch_5_slice", ["2xf32=1 2"], ["f32=9"])
    assert find_divergence([first, second], [second, first]) is None
    assert find_divergence([second], [first]) is not None
    assert find_divergence([first, wrong], [first, second]) is None  # one of them is, and which cannot be told


def test_a_trace_in_another_order_does_not_differ() -> None:
    """Some releases move dispatches that do not depend on one another."""
    draw = random.Random(5)
    for _ in range(200):
        trace = [
            dispatch(f"dispatch_{draw.randrange(3)}_x", [f"i32={draw.randrange(3)}"], [f"i32={draw.randrange(9)}"])
            for _ in range(draw.randrange(9))
        ]
        assert find_divergence(trace, draw.sample(trace, len(trace))) is None


def test_the_comparison_of_inputs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim of 2,000 dispatches has two million pairs of tensors: beyond the bound, inputs count as different."""
    asked = 0

    def counted(a: Tensor, b: Tensor, share: float = 1.0) -> list[tuple[int, float, float]]:
        nonlocal asked
        asked += len(a.values)
        return find_differing_values(a, b, share)

    monkeypatch.setattr("runners.toolchains.iree.diagnosis.dispatch_matching.find_differing_values", counted)
    monkeypatch.setattr("runners.toolchains.iree.diagnosis.dispatch_matching.MAX_VALUES", 1_000)
    these = [dispatch(f"dispatch_{at}_x", [f"4xi32={at} 2 3 4"], ["i32=1"]) for at in range(80)]
    those = [dispatch(f"dispatch_{at}_x", [f"4xi32={at} 9 3 4"], ["i32=2"]) for at in range(80)]
    assert find_divergence(these, those) is None
    assert asked <= 1_000 + 4


def test_a_trace_does_not_differ_from_itself() -> None:
    """For all dispatches, loops of one name included."""
    draw = random.Random(4)
    for _ in range(200):
        trace = [
            dispatch(
                f"dispatch_{draw.randrange(3)}_x",
                [f"i32={draw.randrange(2)}" for _ in range(draw.randrange(3))],
                [f"i32={draw.randrange(9)}"],
            )
            for _ in range(draw.randrange(12))
        ]
        assert find_divergence(trace, trace) is None


# ---------------------------------------------------------------------------------------------- as claims

PRINTED = """\
=== f_dispatch_0::f_dispatch_0_elementwise_4x2_i32 inputs ===
2x2xi32=[11 12][13 14]
4x2xi32=[0 0][0 0][0 0][0 0]

=== f_dispatch_0::f_dispatch_0_elementwise_4x2_i32 outputs ===
4x2xi32={values}

"""
RIGHT, WRONG = "[1 0][2 0][3 0][4 0]", "[1 2][3 4][0 0][0 0]"


def claim(values: str, results: str | None = None) -> str:
    told = parse_trace(PRINTED.format(values=values).splitlines())
    data = pack_claim({**told, "results": results or f"EXEC @f\n4x2xi32={values}\n"})
    return json.dumps({"kind": "dispatch-trace", "data": data})


def side(version: str, values: str) -> ComparedRun:
    observed = Observation(
        toolchain="iree", version=version, device="llvm-cpu", attempt=1, variant=Variant.ORIGINAL,
        outcome=Outcome.MATCH, answer=get_answer(Outcome.MATCH), ended=Exited(code=0),
        excerpt=f"EXEC @f\n4x2xi32={values}\n",
    )  # fmt: skip
    return ComparedRun(testcase=TESTCASE, seen=observed)


def compared(search: Callable[[str, Testcase], str]) -> tuple[Finding, ...]:
    return compare_dispatches(side("3.5.0", WRONG), side("3.6.0", RIGHT), make_means(hook=search))


def test_a_finding_has_the_place_and_the_values() -> None:
    """Dispatch, output, first index and both values."""
    (finding,) = compared(lambda version, _testcase: claim(WRONG if version == "3.5.0" else RIGHT))
    assert "dispatch 1 of 1, f_dispatch_0_elementwise_4x2_i32, takes the same on 3.5.0 on llvm-cpu" in finding.summary
    assert "output 0 (4x2xi32) first differs at [0, 1]: 2 against 0" in finding.summary
    assert finding.evidence["level"] == "dispatch"
    assert finding.evidence["refuted_by"]


def test_a_program_with_other_results_when_traced_is_ignored() -> None:
    """Tracing keeps buffers alive and may hide the failure: then the trace is no evidence about the untraced run."""
    assert (
        compared(
            lambda version, _testcase: claim(WRONG if version == "3.5.0" else RIGHT, "4x2xi32=[9 9][9 9][9 9][9 9]")
        )
        == ()
    )


def test_nan_equals_nan() -> None:
    """Many wrong programs print NaN: such results must be comparable."""
    nan, one = "[nan 0][2 0][3 0][4 0]", "[1 0][2 0][3 0][4 0]"
    means = make_means(hook=lambda version, _testcase: claim(nan if version == "3.5.0" else one))
    (finding,) = compare_dispatches(side("3.5.0", nan), side("3.6.0", one), means)
    assert "first differs at [0, 0]: nan against 1" in finding.summary


def unpackable(text: bytes) -> str:
    return json.dumps({"kind": "dispatch-trace", "data": base64.b64encode(zlib.compress(text)).decode()})


def test_a_trace_beyond_the_limit_is_dropped() -> None:
    """A compressed trace of a few bytes may be of any size."""
    text = b'{"dispatches": [], "tensors": [], "results": ""%b}'
    assert read_trace(unpackable(text % b"")) is not None
    assert read_trace(unpackable(text % (b" " * MAX_TRACE_BYTES))) is None


@pytest.mark.parametrize(
    "claims",
    [
        "",
        "not json",
        '{"kind": "dispatch-trace"}',
        '{"kind": "dispatch-trace", "data": "?"}',
        '{"kind": "dispatch-trace", "data": "AAAA"}',
        unpackable(b"[" * 100_000),
        unpackable(b'{"dispatches": [{"name": "x", "inputs": [5], "outputs": []}], "tensors": [], "results": ""}'),
        unpackable(b'{"dispatches": [{"name": "`x`", "inputs": [], "outputs": []}], "tensors": [], "results": ""}'),
        unpackable(b'{"dispatches": [], "tensors": [["<b>", "", ""]], "results": ""}'),
        unpackable(b'{"dispatches": [], "tensors": [["' + b"1x" * 500 + b'f32", "", ""]], "results": ""}'),
    ],
)
def test_a_malformed_trace_is_dropped(claims: str) -> None:
    """Also a trace with references outside its tables."""
    assert read_trace(claims) is None


def test_values_that_are_no_numbers_are_compared() -> None:
    """A program may print any text in place of a value."""
    for text in ("1 2 three", "", "nan inf -inf 4 5 6 7 8", "9" * 400):
        compared(lambda _version, _testcase, text=text: claim(text))  # type: ignore[misc]  # a lambda can't be typed


def test_a_large_trace_is_shortened() -> None:
    """Fewer values of each tensor, until the claim fits; the rest is still readable."""
    draw = random.Random(1)
    lines = []
    for number in range(60):
        values = " ".join(str(draw.random()) for _ in range(2000))
        lines += [f"=== f_dispatch_{number}::f_dispatch_{number} inputs ===", f"2000xf32={values}", ""]
        lines += [f"=== f_dispatch_{number}::f_dispatch_{number} outputs ===", f"2000xf32={values} ", ""]
    told = json.dumps({"kind": "dispatch-trace", "data": pack_claim({**parse_trace(lines), "results": "f32=1\n"})})
    trace = read_trace(told)
    assert len(told) < 48 * 1024
    assert trace is not None
    assert len(trace.dispatches) == 60
    assert 0 < len(trace.dispatches[0].inputs[0].tensor.values) < 2000


def test_each_output_belongs_to_its_dispatch() -> None:
    """The same dispatch run twice, and a dispatch without output."""
    lines = [
        "=== a::a inputs ===", "i32=1", "", "=== a::a outputs ===", "i32=2", "",
        "=== a::a inputs ===", "i32=3", "", "=== a::a outputs ===", "i32=4", "",
        "=== b::b inputs ===", "", "i32=99", "=== c::c outputs ===", "i32=5",
    ]  # fmt: skip
    told = parse_trace(lines)
    words = [tensor[2] for tensor in told["tensors"]]
    shown = [
        (one["name"], [words[at] for at in one["inputs"]], [words[at] for at in one["outputs"]])
        for one in told["dispatches"]
    ]
    assert shown == [("a::a", [["1"]], [["2"]]), ("a::a", [["3"]], [["4"]]), ("b::b", [], [])]


def test_outputs_of_overlapping_calls_belong_to_no_dispatch() -> None:
    """Inputs of two calls, then outputs of both: the owner is unknown, and a guess could blame the wrong dispatch."""
    lines = [
        "=== a::a inputs ===", "i32=1", "", "=== a::a inputs ===", "i32=2", "",
        "=== b::b inputs ===", "i32=7", "", "=== b::b outputs ===", "i32=8", "",
        "=== a::a outputs ===", "i32=10", "", "=== a::a outputs ===", "i32=20", "",
        "=== a::a inputs ===", "i32=3", "", "=== a::a outputs ===", "i32=30",
    ]  # fmt: skip
    told = parse_trace(lines)
    words = [tensor[2] for tensor in told["tensors"]]
    shown = [(one["name"], [words[at] for at in one["outputs"]]) for one in told["dispatches"]]
    assert shown == [("a::a", []), ("a::a", []), ("b::b", [["8"]]), ("a::a", [["30"]])]
