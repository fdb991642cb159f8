"""Testcases are reduced without losing their failure, within the budget."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from runners.core.errors import NotReducible
from runners.core.failure.outcomes import get_answer
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Observation,
    Outcome,
    Signature,
    Smaller,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.minimization.ddmin import Pieces, remove_pieces
from runners.minimization.minimize import CONFIRMATIONS, minimize_testcase
from runners.minimization.mlir import reduce_mlir
from runners.minimization.python import find_unbound_names, reduce_python
from runners.toolchains import tvm

CRASH = Signature(type="InternalError", message="Check failed: (slot->value_computed) is false")
CLAIM = Claim(kind=ClaimKind.ERROR, signature=CRASH)


def case_of(code: str, *steps: tuple[str, ...], file: str = "repro.py", **files: str) -> Testcase:
    return Testcase(
        kind=TestcaseKind.PYTHON, toolchain="tvm", files={file: code, **files}, steps=steps or (("python", file),)
    )


class Lab:
    """Run testcases by a rule in place of a compiler, and record the calls."""

    def __init__(self, fails: Callable[[Testcase], bool], fine_on: str = "") -> None:
        self.fails = fails
        self.fine_on = fine_on
        self.asked: list[tuple[Testcase, str]] = []
        self.fresh: list[tuple[Testcase, str]] = []
        self.signature = CRASH

    def run(self, testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
        self.asked.append((testcase, version))
        if fresh:
            self.fresh.append((testcase, version))
        outcome = Outcome.MATCH if self.fails(testcase) and version != self.fine_on else Outcome.PASS
        return Observation(
            toolchain="tvm", version=version, device="llvm", attempt=1, variant=Variant.CONTROL, outcome=outcome,
            answer=get_answer(outcome), ended=Exited(code=1), signature=self.signature,
        )  # fmt: skip

    def cut(self, testcase: Testcase, claim: Claim = CLAIM, **options: object) -> Smaller:
        keywords: dict[str, Any] = {"vocabulary": tvm.FAILURES, **options}
        return minimize_testcase(testcase, claim, "0.27.0", self.run, **keywords)


def says(*words: str) -> Callable[[Testcase], bool]:
    return lambda testcase: all(any(word in text for text in testcase.files.values()) for word in words)


# ------------------------------------------------------------------------------------------ delta debugging


@given(st.integers(1, 40), st.data())
def test_needed_pieces_stay_and_all_others_go(pieces: int, data: st.DataObject) -> None:
    """For any set of pieces that a failure needs, exactly that set is left."""
    needed = data.draw(st.frozensets(st.integers(0, pieces - 1)))
    part = Pieces(pieces, lambda gone: frozenset(range(pieces)) - gone)
    left = remove_pieces(part, lambda kept: needed <= kept)
    assert (frozenset(range(pieces)) if left is None else left) == needed


# ------------------------------------------------------------------------------------------ Python

SCRIPT = '''\
"""A report."""
import os  # for nothing
import numpy as np
from tvm import relax, tir


class Unused:
    size = 4


def build(shape, dtype="float32", layout="NCHW"):
    # builds it
    with open_scope(level=3):
        for axis in range(3):
            if axis:
                value = relax.boom(shape, dtype=dtype)
                print(value)
    return shape


def open_scope(level):
    return np.zeros(level)


print("begin")
build([1, 2, 3])
print("end")
'''


def test_a_script_is_cut_to_the_statements_that_matter() -> None:
    """Statements leave their blocks, and arguments, names and comments that the failure does not need go."""
    left = reduce_python(SCRIPT, lambda text: "relax.boom" in text)
    assert "relax.boom(" in left
    assert len(left.splitlines()) <= 4
    assert "#" not in left
    assert find_unbound_names(left) == frozenset()


@pytest.mark.parametrize(
    "deep",
    [
        pytest.param("x = " + "1+" * 1200 + "1", id="sum"),
        pytest.param("x = a" + ".b" * 1200, id="attributes"),
        pytest.param("x = " + "-" * 3000 + "1", id="signs"),
        pytest.param("if a: pass\n" + "elif a: pass\n" * 600, id="elif"),
    ],
)
def test_syntax_that_is_too_deep_stays_as_it_is(deep: str) -> None:
    """libcst walks syntax by recursion: a deep text ends neither the reduction nor the process."""
    code = f"import tvm\n{deep}\nraise ValueError('x')\n"
    assert reduce_python(code, lambda text: "raise" in text) == code


@pytest.mark.thorough
def test_a_walk_that_overflows_keeps_what_was_accepted() -> None:
    """The stack may be nearly used up where the reduction begins."""

    def reduce_below(frames: int) -> str:
        return reduce_below(frames - 1) if frames else reduce_python(SCRIPT, lambda text: "relax.boom" in text)

    used = len(inspect.stack(0))
    for left in (60, 120, 240):
        assert "relax.boom" in reduce_below(sys.getrecursionlimit() - used - left)


def test_every_candidate_is_a_program_without_new_unbound_names() -> None:
    """A text that cannot run costs no probe."""
    tried: list[str] = []

    def keeps(text: str) -> bool:
        tried.append(text)
        return "relax.boom" in text

    reduce_python(SCRIPT, keeps)
    assert tried
    assert {find_unbound_names(text) for text in tried} == {frozenset()}


@pytest.mark.parametrize("source", ["def (", "", "x = 1", "\tif x:\n  y"])
def test_a_text_that_cannot_be_parsed_or_reduced_stays(source: str) -> None:
    """The text is returned whole, with a line end."""
    assert reduce_python(source, lambda text: False).rstrip("\n") == source


# ------------------------------------------------------------------------------------------ MLIR

MODULE = """\
// RUN: nothing
#map = affine_map<(d0) -> (d0)>
module @main {
  func.func private @other(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
  func.func @step(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %cst = arith.constant 0.0 : f32
    %0 = tensor.empty() : tensor<4xf32>
    %1 = arith.addf %x, %y : tensor<4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%1 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %5 = bad.op %in : f32
        %6 = arith.mulf %5, %cst : f32
        linalg.yield %6 : f32
    } -> tensor<4xf32>
    %3 = arith.mulf %2, %2 : tensor<4xf32> loc("x.mlir":3:4)
    %4 = arith.subf %3, %y : tensor<4xf32>
    return %4, %3 : tensor<4xf32>, tensor<4xf32>
  }
}
"""


def test_a_module_is_cut_to_the_operation_that_matters() -> None:
    """The module returns early, its inputs become arguments, other functions and the module around them go."""
    left = reduce_mlir(MODULE, lambda text: "bad.op %in" in text and "linalg.generic" in text and "return" in text)
    assert "bad.op %in" in left
    assert not re.search(r"@other|arith\.subf|arith\.addf|module|loc\(|// ", left)
    assert re.search(r"return %2 : tensor<4xf32>$", left, re.MULTILINE)
    assert "-> tensor<4xf32> {" in left


def test_no_module_is_tried_that_uses_a_value_without_its_definition() -> None:
    """The compiler would only refuse such a text."""
    tried: list[str] = []

    def keeps(text: str) -> bool:
        tried.append(text)
        return "bad.op" in text

    reduce_mlir(MODULE, keeps)
    for text in tried:
        for name in set(re.findall(r"%\w+", text)):
            first = text.index(name)
            assert re.match(r"%\w+(?:, %\w+)*\s*[=:]", text[first:]), (name, text)


def test_a_cast_has_the_type_after_its_to() -> None:
    """And an address in a string is no comment."""
    module = """func.func @f(%a: f32) -> f64 {
  %0 = arith.extf %a {at = "http://a.b"} : f32 to f64
  %1 = arith.addf %0, %0 : f64
  return %1 : f64
}
"""
    left = reduce_mlir(module, lambda text: '"http://a.b"} : f32 to f64' in text and "return" in text)
    assert "return %0 : f64" in left
    assert "addf" not in left


def test_resources_after_the_module_are_no_part_of_it() -> None:
    """Resources go by themselves, and the module around the function too."""
    resources = '{-#\n  dialect_resources: {\n    builtin: {\n      one: "0x04"\n    }\n  }\n#-}\n'
    left = reduce_mlir(MODULE + resources, lambda text: "bad.op %in" in text and "@step" in text)
    assert "{-#" not in left
    assert "module" not in left


# ------------------------------------------------------------------------------------------ whole testcases


def test_the_result_fails_as_the_whole_testcase_did() -> None:
    """The failure is seen in the reduction and in the confirming runs. The figures give the remaining size."""
    lab = Lab(says("relax.boom"))
    smaller = lab.cut(case_of(SCRIPT, **{"data.txt": "x"}))
    assert says("relax.boom")(smaller.testcase)
    assert [asked for asked, _ in lab.asked[-CONFIRMATIONS:]] == [smaller.testcase] * CONFIRMATIONS
    assert (smaller.stopped, smaller.confirmed) == ("minimal", CONFIRMATIONS)
    assert list(smaller.testcase.files) == ["repro.py"]
    assert smaller.after < smaller.before == 21
    assert smaller.probes == len(lab.asked)


def test_the_smaller_testcase_is_confirmed_in_fresh_sandboxes() -> None:
    """Every confirming run, on the failing and on the passing release, has a sandbox of its own; no other run has."""
    lab = Lab(says("relax.boom"), fine_on="0.26.0")
    small = lab.cut(case_of(SCRIPT), control="0.26.0").testcase
    assert lab.fresh == [*[(small, "0.27.0")] * CONFIRMATIONS, (small, "0.26.0")]
    assert lab.asked[-len(lab.fresh) :] == lab.fresh


@pytest.mark.parametrize(("forged", "why"), [("0.27.0", "does not fail"), ("0.26.0", "does not pass")])
def test_a_result_that_only_a_shared_sandbox_shows_is_refused(forged: str, why: str) -> None:
    """A candidate that changed the shared sandbox shows another result in a sandbox of its own."""

    class Forging(Lab):
        def run(self, testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
            elsewhere = {"0.27.0": "0.26.0", "0.26.0": "0.27.0"}[version] if fresh and version == forged else version
            return super().run(testcase, claim, elsewhere, fresh=fresh)

    with pytest.raises(NotReducible, match=why):
        Forging(says("relax.boom"), fine_on="0.26.0").cut(case_of(SCRIPT), control="0.26.0")


def test_another_failure_is_not_the_same() -> None:
    """A candidate with another failure is not accepted, however small."""

    class Shifting(Lab):
        def run(self, testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
            whole = "print" in testcase.files["repro.py"]
            self.signature = CRASH if whole else Signature(type="InternalError", message="no such operator: boom")
            return super().run(testcase, claim, version, fresh=fresh)

    smaller = Shifting(says("relax.boom")).cut(case_of(SCRIPT))
    assert "print" in smaller.testcase.files["repro.py"]


def test_commands_lose_the_steps_and_flags_that_do_not_matter() -> None:
    """``-o`` goes with its name; the program and its file stay."""
    steps = (
        ("iree-compile", "a.mlir", "--iree-hal-target-backends=llvm-cpu", "--iree-opt-level=O3", "-o", "a.vmfb"),
        ("iree-run-module", "--module=a.vmfb"),
    )
    lab = Lab(lambda testcase: "--iree-opt-level=O3" in testcase.steps[0] and testcase.steps[0][0] == "iree-compile")
    smaller = lab.cut(case_of("x", *steps, file="a.mlir"))
    assert smaller.testcase.steps == (("iree-compile", "a.mlir", "--iree-opt-level=O3"),)


WRONG = Claim(kind=ClaimKind.WRONG_RESULT)


def test_a_wrong_result_needs_a_release_that_gives_the_right_one() -> None:
    """Without such a release the reduction is refused, because the smaller testcase could be wrong by itself."""
    with pytest.raises(NotReducible, match="--good"):
        Lab(says("relax.boom")).cut(case_of(SCRIPT), WRONG)


@pytest.mark.parametrize("option", ["control", "passing"])
def test_each_step_passes_on_the_release_that_is_right(option: str) -> None:
    """Every accepted text was also run on that release."""
    lab = Lab(says("relax.boom"), fine_on="0.26.0")
    smaller = lab.cut(case_of(SCRIPT), WRONG, **{option: "0.26.0"})
    assert smaller.control == "0.26.0"
    assert (smaller.testcase, "0.26.0") in lab.asked
    refused = Lab(says("relax.boom"))
    with pytest.raises(NotReducible, match=r"0\.26\.0, which should pass"):
        refused.cut(case_of(SCRIPT), WRONG, **{option: "0.26.0"})


def test_a_crash_needs_no_other_release() -> None:
    """A passing release is not run if the failure shows its cause."""
    lab = Lab(says("relax.boom"), fine_on="0.26.0")
    assert lab.cut(case_of(SCRIPT), passing="0.26.0").control == ""
    assert {version for _, version in lab.asked} == {"0.27.0"}


@pytest.mark.thorough
def test_the_reduction_stops_at_its_limits() -> None:
    """The best result so far is returned, with the limit that ended the reduction."""
    lab = Lab(says("relax.boom"))
    smaller = lab.cut(case_of(SCRIPT), probes=6)
    assert smaller.stopped == "probes"
    assert len(lab.asked) == smaller.probes == 6 + CONFIRMATIONS
    ticks = iter(range(1000))
    late = Lab(says("relax.boom")).cut(case_of(SCRIPT), seconds=8, clock=lambda: float(next(ticks)))
    assert late.stopped == "time"


def test_the_same_text_is_not_run_twice() -> None:
    """Only the confirming runs at the end repeat a text."""
    lab = Lab(says("relax.boom"))
    lab.cut(case_of(SCRIPT))
    texts = [asked.files["repro.py"] for asked, _ in lab.asked[:-CONFIRMATIONS]]
    assert len(texts) == len(set(texts))


def test_a_testcase_that_does_not_fail_is_refused() -> None:
    """The first run ends the reduction."""
    lab = Lab(says("nothing like it"))
    with pytest.raises(NotReducible, match="does not show the reported failure"):
        lab.cut(case_of(SCRIPT))
    assert len(lab.asked) == 1


def test_a_flaky_failure_is_refused() -> None:
    """A result of chance is not shown as a testcase."""

    class Fading(Lab):
        def run(self, testcase: Testcase, claim: Claim, version: str, *, fresh: bool = False) -> Observation:
            if len(self.asked) == 12:
                self.fails = says("nothing like it")
            return super().run(testcase, claim, version, fresh=fresh)

    with pytest.raises(NotReducible, match="flaky"):
        Fading(says("relax.boom")).cut(case_of(SCRIPT), probes=12)
