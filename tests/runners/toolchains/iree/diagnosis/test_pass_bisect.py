"""Tests of IREE's pass bisection: a claim of the guest counts only if runs of the host confirm it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from runners.core.protocol import (
    Ended,
    Exited,
    Finding,
    Observation,
    Outcome,
    Testcase,
    TestcaseKind,
    TimedOut,
    Variant,
)
from runners.core.toolchain.diagnosis import Failure
from runners.toolchains.iree.diagnosis.pass_bisect import bisect_passes
from tests.support.means import make_means
from tests.support.observed import observe

TESTCASE = Testcase(
    kind=TestcaseKind.COMMAND_LINE,
    toolchain="iree",
    files={"m.mlir": "module {}"},
    steps=(
        ("iree-compile", "--iree-hal-target-backends=llvm-cpu", "m.mlir", "-o", "m.vmfb"),
        ("iree-run-module", "--module=m.vmfb", "--function=f"),
    ),
)
PASS: dict[str, Any] = {
    "level": "pass", "step": 0, "pass": "FuseThings", "argument": "iree-fuse-things", "application": 3, "of": 80,
    "operation": "util.func", "symbol": "f", "phase": "flow", "phase_before": "abi", "reproducer": "module {}\n",
    "difference": ["-a", "+b"],
}  # fmt: skip
LLVM: dict[str, Any] = {
    "level": "llvm-pass", "step": 1, "pass": "instcombine", "application": 8, "passes_without": 7, "of": 900,
    "symbol": "f_dispatch_0",
}  # fmt: skip

Answer = Callable[[Testcase], Outcome]


def saw(outcome: Outcome, ended: Ended | None = None, variant: Variant = Variant.ORIGINAL) -> Observation:
    clean = outcome in (Outcome.PASS, Outcome.OTHER_FAILURE)
    ended = ended or Exited(code=0 if clean else 1)
    return observe("3.9.0", outcome, toolchain="iree", device="llvm-cpu", variant=variant, ended=ended)


def find(
    claim: object, answer: Answer, failing: Observation | None = None, testcase: Testcase = TESTCASE
) -> tuple[Finding, ...]:
    def run(_version: str, variant: Variant, testcase: Testcase, _device: str) -> Observation:
        assert variant is Variant.CONTROL
        return saw(answer(testcase))

    text = claim if isinstance(claim, str) else json.dumps({"kind": "guilty-pass", "evidence": claim})
    means = make_means(run, hook=lambda _version, _testcase: text)
    return bisect_passes(Failure(testcase=testcase, seen=failing or saw(Outcome.MATCH)), means).findings


def alone(testcase: Testcase) -> Outcome:
    """The pass fails alone; the IR before it is read cleanly."""
    return Outcome.MATCH if "--run-reproducer" in testcase.steps[-1] else Outcome.PASS


def test_the_pass_that_fails_alone_is_named() -> None:
    """With its operation, its application and what it did, when iree-opt shows both sides."""
    (finding,) = find(PASS, alone)
    assert "FuseThings (iree-fuse-things) on util.func @f, application 3" in finding.summary
    assert finding.evidence["difference"] == ["-a", "+b"]
    assert finding.evidence["refuted_by"]


def test_a_pass_that_cannot_run_alone_is_confirmed_by_its_phase() -> None:
    """3.11.0 writes no reproducer: compiling to the phase fails, to the one before it does not."""

    def answer(testcase: Testcase) -> Outcome:
        return Outcome.MATCH if testcase.steps[-1][-1] == "--compile-to=flow" else Outcome.PASS

    (finding,) = find({**PASS, "reproducer": ""}, answer)
    assert "compiles to flow only, and compiles to abi cleanly" in finding.summary


@pytest.mark.parametrize("always", [Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.INFRA])
@pytest.mark.parametrize("claim", [PASS, LLVM])
def test_an_unconfirmed_claim_is_dropped(claim: dict[str, Any], always: Outcome) -> None:
    """If both sides of a boundary behave the same, there is no boundary."""
    assert find(claim, lambda _testcase: always) == ()


def test_an_input_that_cannot_be_read_blames_no_pass() -> None:
    """iree-opt without passes fails as reported."""
    asked: list[Testcase] = []

    def answer(testcase: Testcase) -> Outcome:
        asked.append(testcase)
        return Outcome.MATCH

    (finding,) = find({"level": "parsing", "step": 0}, answer)
    assert "before any pass" in finding.summary
    assert asked[-1].steps == (("iree-opt", "m.mlir"),)
    assert find({"level": "parsing", "step": 0}, lambda _testcase: Outcome.PASS) == ()


def test_the_phase_is_named_if_no_pass_began() -> None:
    """A pass that cannot even be set up: the input is fine, and one phase fails where the one before does not."""

    def answer(testcase: Testcase) -> Outcome:
        return Outcome.MATCH if testcase.steps[-1][-1] == "--compile-to=flow" else Outcome.PASS

    (finding,) = find({"level": "parsing", "step": 0, "phase": "flow", "phase_before": "abi"}, answer)
    assert (finding.evidence["level"], finding.evidence["name"]) == ("phase", "flow")
    assert find({"level": "unknown", "step": 0}, answer) == ()


WRITTEN = "--iree-preprocessing-pass-pipeline=builtin.module(cse,func.func(iree-apply{file=none.mlir}))"
PLANTED = msgspec.structs.replace(TESTCASE, steps=((*TESTCASE.steps[0], WRITTEN),))
SET_UP: dict[str, Any] = {
    "level": "pass", "step": 0, "pass": "iree-apply", "written": "iree-apply{file=none.mlir}",
    "pipeline": "builtin.module(func.func(iree-apply{file=none.mlir}))",
}  # fmt: skip


def empty_fails(testcase: Testcase) -> Outcome:
    return Outcome.MATCH if "--pass-pipeline" in testcase.steps[0][1] else Outcome.PASS


def test_a_pass_that_cannot_be_set_up_is_named_if_it_fails_on_an_empty_module() -> None:
    """Alone, on an empty module, beside the testcase's own files; and the empty module is read cleanly."""
    asked: list[Testcase] = []

    def answer(testcase: Testcase) -> Outcome:
        asked.append(testcase)
        return empty_fails(testcase)

    (finding,) = find(SET_UP, answer, testcase=PLANTED)
    assert (finding.evidence["level"], finding.evidence["name"]) == ("pass", "iree-apply")
    assert [one.steps[0][:2] for one in asked] == [
        ("iree-opt", f"--pass-pipeline={SET_UP['pipeline']}"),
        ("iree-opt", "before.mlir"),
    ]
    assert all(set(one.files) == {"m.mlir", "before.mlir"} for one in asked)


@pytest.mark.parametrize(
    ("claim", "answer"),
    [
        ({**SET_UP, "written": "iree-other", "pipeline": "builtin.module(iree-other)"}, empty_fails),
        ({**SET_UP, "pipeline": "builtin.module(something-else)"}, empty_fails),
        (SET_UP, lambda _testcase: Outcome.MATCH),
        (SET_UP, lambda _testcase: Outcome.PASS),
        (SET_UP, lambda _testcase: Outcome.OTHER_FAILURE),
    ],
    ids=["not written there", "another pipeline", "fails without it too", "does not fail", "fails otherwise"],
)
def test_only_a_deciding_pass_of_the_command_line_is_named(claim: dict[str, Any], answer: Answer) -> None:
    """The claim names the pass; the host checks that the report lists the pass, and that the pass fails."""
    assert find(claim, answer, testcase=PLANTED) == ()


FLAG = "--iree-patterns-filename=none.mlir"
BY_FLAG = msgspec.structs.replace(TESTCASE, steps=((*TESTCASE.steps[0], FLAG),))
ADDED: dict[str, Any] = {
    **SET_UP, "written": "iree-apply{file=none.mlir}", "pipeline": "builtin.module(iree-apply{file=none.mlir})",
}  # fmt: skip


def test_a_pass_that_a_flag_adds_is_named_with_the_flag() -> None:
    """It fails alone with the file that the flag gives, and the testcase does not fail so without the flag."""
    (finding,) = find(ADDED, empty_fails, testcase=BY_FLAG)
    assert (finding.evidence["name"], finding.evidence["option"]) == ("iree-apply", FLAG)
    assert f"iree-apply, which {FLAG} adds, is set up" in finding.summary


def test_only_a_deciding_flag_of_the_step_names_a_pass() -> None:
    """The file must be that of a flag of the failing step, and the failure must go with that flag."""

    def whatever_the_flag(testcase: Testcase) -> Outcome:
        return Outcome.PASS if testcase.steps[0][1] == "before.mlir" else Outcome.MATCH

    assert find(ADDED, empty_fails) == ()
    assert find({**ADDED, "written": "iree-apply{file=m.mlir}"}, empty_fails, testcase=BY_FLAG) == ()
    assert find(ADDED, whatever_the_flag, testcase=BY_FLAG) == ()


def test_the_deciding_flag_is_named_with_the_phase() -> None:
    """Only a flag of the failing step, and only if the host's run without the flag is clean."""
    flag = "--iree-patterns=none.mlir"
    testcase = msgspec.structs.replace(TESTCASE, steps=((*TESTCASE.steps[0], flag),))
    claim = {"level": "parsing", "step": 0, "phase": "flow", "phase_before": "abi", "option": flag}

    def answer(testcase: Testcase) -> Outcome:
        fails = testcase.steps[-1][-1] == "--compile-to=flow" and flag in testcase.steps[-1]
        return Outcome.MATCH if fails else Outcome.PASS

    (finding,) = find(claim, answer, testcase=testcase)
    assert (finding.evidence["name"], finding.evidence["option"]) == ("flow", flag)
    (other,) = find({**claim, "option": "--not-there"}, answer, testcase=testcase)
    assert "option" not in other.evidence


PIPELINE = "--iree-preprocessing-pass-pipeline=builtin.module(cse,util.func(iree-narrow,canonicalize))"
NARROWED = msgspec.structs.replace(TESTCASE, steps=((*TESTCASE.steps[0], PIPELINE), *TESTCASE.steps[1:]))
LEFT_OUT: dict[str, Any] = {
    "level": "written", "step": 0, "place": len(TESTCASE.steps[0]), "pass": "x", "application": 2,
    "passes_without": 1, "of": 99,
}  # fmt: skip


def narrows(testcase: Testcase) -> Outcome:
    return Outcome.MATCH if "iree-narrow" in testcase.steps[0][-1] else Outcome.PASS


def test_a_pass_of_the_command_line_is_named_if_both_sides_are_confirmed() -> None:
    """The host reads the command line itself: a claim only gives the word and the counts."""
    asked: list[str] = []

    def answer(testcase: Testcase) -> Outcome:
        asked.append(testcase.steps[0][-1].partition("=")[2])
        return narrows(testcase)

    (finding,) = find(LEFT_OUT, answer, testcase=NARROWED)
    assert asked == ["builtin.module(cse)", "builtin.module(cse,util.func(iree-narrow))"]
    assert (finding.evidence["level"], finding.evidence["name"]) == ("written", "iree-narrow")
    assert "pass 2 of the 3 that --iree-preprocessing-pass-pipeline writes, iree-narrow" in finding.summary
    assert finding.evidence["refuted_by"]


@pytest.mark.parametrize(
    "claim",
    [
        {**LEFT_OUT, "application": 1, "passes_without": 0},
        {**LEFT_OUT, "application": 3, "passes_without": 2},
        {**LEFT_OUT, "application": 4, "passes_without": 3},
        {**LEFT_OUT, "application": 2, "passes_without": 2},
        {**LEFT_OUT, "place": 0},
        {**LEFT_OUT, "place": 900},
    ],
    ids=["before it", "after it", "not there", "nothing between", "no pipeline", "no word"],
)
def test_a_pass_of_the_command_line_that_does_not_decide_is_not_named(claim: dict[str, Any]) -> None:
    """Nor a pass that is not on the command line."""
    assert find(claim, narrows, testcase=NARROWED) == ()


def limited(testcase: Testcase) -> int:
    (flag,) = [word for word in testcase.steps[0] if word.startswith("--opt-bisect-limit=")]
    return int(flag.partition("=")[2])


def test_an_llvm_pass_is_named_if_both_sides_are_confirmed() -> None:
    """As reported with it; clean, or with another result, without it and those after it."""
    (finding,) = find(LLVM, lambda testcase: Outcome.MATCH if limited(testcase) >= 8 else Outcome.PASS)
    assert "LLVM pass 8 of 900, instcombine on f_dispatch_0, and runs cleanly without it" in finding.summary
    (other,) = find(LLVM, lambda testcase: Outcome.MATCH if limited(testcase) >= 8 else Outcome.OTHER_FAILURE)
    assert "ends with another result without it" in other.summary


def test_a_failure_without_llvm_s_passes_lies_before_them() -> None:
    """Only if the host's run without LLVM's passes fails as reported."""
    claim = {**LLVM, "application": 0, "pass": ""}
    (finding,) = find(claim, lambda _testcase: Outcome.MATCH)
    assert "all 900 LLVM passes left out" in finding.summary
    assert finding.evidence["name"] == "none"
    assert find(claim, lambda _testcase: Outcome.PASS) == ()


@pytest.mark.parametrize(
    "claim",
    [
        "",
        "not json",
        "[" * 100_000,
        '{"kind": "guilty-pass", "evidence": []}',
        '{"kind": "nan-inequality", "evidence": {"level": "pass", "step": 0}}',
        {**PASS, "step": 7},
        {**PASS, "step": -1},
        {**PASS, "level": "everything"},
        {**PASS, "pass": ""},
        {**PASS, "pass": "@everyone\n"},
        {**PASS, "symbol": "`x` ![](u)"},
        {**PASS, "phase": "flow --evil"},
        {**PASS, "of": 10**9},
        {**PASS, "reproducer": "x" * 50_000},
        {**PASS, "difference": ["x" * 5000]},
        {**LLVM, "pass": "<b>[x](u)</b>"},
    ],
)
def test_a_malformed_claim_is_dropped(claim: object) -> None:
    """Bounded in every field before anything is run for it."""
    assert find(claim, alone) == ()


def test_hangs_and_ported_testcases_are_ignored() -> None:
    """Dumps of a compilation without an end have no end; the steps of a ported text are not the posted ones."""
    assert find(PASS, alone, saw(Outcome.MATCH, TimedOut())) == ()
    assert find(PASS, alone, saw(Outcome.MATCH, variant=Variant.PORTED)) == ()
