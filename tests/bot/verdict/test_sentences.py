"""Sentences about releases follow from the runs: no span, no total and no negation is false, for any runs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from bot.report.matrix import merge_rows
from bot.verdict.evidence import Evidence
from bot.verdict.finding_text import describe_finding
from bot.verdict.judge import judge
from bot.verdict.rules.phrases import name_all, name_releases
from runners.core.findings.kinds import KINDS, CallFault, ControlEnd, Reference, Rule
from runners.core.protocol import (
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Reason,
    Variant,
)
from tests.support.observed import PLAN, observe
from tests.support.sentences import find_false_claims

ORDER = tuple(f"1.{minor}" for minor in range(9))
OUTCOMES = (
    *(Outcome.MATCH, Outcome.PASS, Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.INCOMPATIBLE),
    *(Outcome.UNAVAILABLE, Outcome.TIMEOUT),
)
CLAIMS = [
    PLAN.claim,
    Claim(),
    Claim(kind=ClaimKind.CRASH),
    Claim(kind=ClaimKind.WRONG_RESULT, actual="1 2", versions=("1.3",)),
]


@st.composite
def evidence(draw: st.DrawFn) -> Evidence:
    """Runs of some of nine releases: as posted, ported, and on another device; with and without a named release."""
    outcome = st.sampled_from(OUTCOMES)
    seen: list[Observation] = []
    for version in ORDER:
        if draw(st.integers(0, 3)):
            told = draw(outcome)
            seen.append(observe(version, told))
            if draw(st.booleans()):
                seen.append(observe(version, told, attempt=2))
        if not draw(st.integers(0, 3)):
            seen.append(observe(version, draw(outcome), variant=Variant.PORTED))
        if not draw(st.integers(0, 3)):
            seen.append(observe(version, draw(outcome), variant=Variant.RETARGETED, device="cuda"))
    plan = msgspec.structs.replace(
        PLAN,
        order=ORDER,
        first=ORDER,
        claim=draw(st.sampled_from(CLAIMS)),
        reported=draw(st.sampled_from([None, "1.3"])),
    )
    return Evidence(plan=plan, observations=tuple(seen), findings=())


def make(*outcomes: Outcome) -> Evidence:
    seen = tuple(observe(version, outcome) for version, outcome in zip(ORDER, outcomes, strict=False))
    return Evidence(plan=msgspec.structs.replace(PLAN, order=ORDER, first=ORDER), observations=seen, findings=())


M, P, S = Outcome.MATCH, Outcome.PASS, Outcome.OTHER_FAILURE


@given(evidence())
@example(make(M, M, P, M, M, P, M, M, M))
@example(make(P, P, P, S, P, P, P, P, P))
def test_no_sentence_says_more_than_the_runs_show(runs: Evidence) -> None:
    """A span never covers a release that behaved differently; ``all`` and ``no release`` hold."""
    verdict = judge(runs)
    for text in (verdict.headline, *verdict.reasons):
        assert find_false_claims(text, runs.plan, runs.observations) == [], text


@given(evidence())
def test_a_row_of_the_table_never_joins_releases_that_differ(runs: Evidence) -> None:
    """In no column; and every release that ran has exactly one row."""
    devices, rows = merge_rows(runs.observations)
    assert sorted(v for row in rows for v in row.versions) == sorted({seen.version for seen in runs.observations})
    for row in rows:
        for device, cell in zip(devices, row.cells, strict=True):
            for version in row.versions:
                alone = merge_rows([s for s in runs.observations if s.version == version and s.device == device])
                cells = [one for other in alone[1] for one in other.cells if one.tallies]
                assert all(one.key == cell.key for one in cells)


@pytest.mark.parametrize(
    ("outcomes", "chosen", "said"),
    [
        ((M, M, M, M), (0, 1, 2, 3), "1.0 to 1.3 (4 releases run)"),
        ((M, M, P, M), (0, 1, 3), "1.0, 1.1 and 1.3"),
        ((M, M, M, P, M, M, M), (0, 1, 2, 4, 5, 6), "1.0 to 1.2 and 1.4 to 1.6 (6 releases run)"),
        ((M, P, M, P, M, P, M, P, M), (0, 2, 4, 6, 8), "1.0, 1.2, 1.4, 1.6 and 1.8"),
        ((M,), (0,), "1.0"),
    ],
)
def test_releases_are_named_by_their_neighbours(
    outcomes: tuple[Outcome, ...], chosen: tuple[int, ...], said: str
) -> None:
    """Three or more neighbours among the releases that ran are a span."""
    assert name_releases(make(*outcomes), [ORDER[i] for i in chosen]) == said


def test_all_is_said_of_all_only() -> None:
    """And of two as ``both``."""
    assert name_all(make(M, M, M), ORDER[:3]) == "all 3 releases that were run, 1.0 to 1.2"
    assert name_all(make(M, M), ORDER[:2]) == "both releases that were run, 1.0 and 1.1"
    assert name_all(make(M, M, P), ORDER[:2]) == "1.0 and 1.1"


@pytest.mark.parametrize(
    ("evidence_", "said"),
    [
        ({"moved": "removed"}, "`0.26.0` does not have `tvm.tir`"),
        ({"moved": "missing-since"}, "`0.26.0` and later releases do not have `tvm.tir`"),
        ({"moved": "absent"}, "`0.26.0` does not have `tvm.tir`"),
        ({"moved": "absent", "added_in": "0.27.0"}, "`0.26.0` does not have `tvm.tir`; `0.27.0` has it"),
        ({"moved": "absent", "successor": "tvm.tirx"}, "`0.26.0` does not have `tvm.tir`"),
        ({"moved": "removed", "successor": "tvm.tirx"}, "`0.26.0` does not have `tvm.tir`; `tvm.tirx` replaces it"),
        ({"moved": "unknown"}, "`0.26.0` does not know `tvm.tir`"),
    ],
)
def test_a_moved_name_says_where_it_is_missing(evidence_: dict[str, object], said: str) -> None:
    known = {"name": "tvm.tir", "moved_in": "0.26.0", **evidence_}
    assert describe_finding(Finding(kind=FindingKind.API_MOVED, summary="x", evidence=known)) == said


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule.PARALLEL_WRITES, "calls `d0` parallel, and all iterations along this dimension write the same element"),
        (Rule.LIVE_ARGUMENT, "writes into `d0`, which is read again later"),
        (Rule.ZERO_DIVISOR, "divides by zero: `d0` holds zeros"),
        (Rule.SHIFT_TOO_FAR, "shifts by the number of bits or further: `d0` holds the amounts"),
        (
            Rule.MISSING_INIT,
            "adds to `d0` over a reduction axis and never sets it, so it adds to what the caller passes",
        ),
        (Rule.CAST_OUT_OF_RANGE, "casts values of `d0` that the integer type cannot hold"),
        (Rule.EQUAL_INDICES, "promises distinct indices, and `d0` holds equal ones"),
        (Rule.BROKEN_PROMISE, "promises bounds of `d0`, and the value is outside of them"),
        (
            Rule.WRONG_EXTENT,
            "takes `d0` for an extent, and gives the shape another number of elements than the tensor has",
        ),
    ],
)
def test_a_broken_rule_is_stated(rule: Rule, said: str) -> None:
    known = {"operation": "op", "file": "a.mlir", "line": 4, "rule": rule.value, "rule_of": "d0"}
    finding = Finding(kind=FindingKind.BROKEN_RULE, summary="x", evidence=known)
    assert describe_finding(finding) == f"`op` in `a.mlir:4` {said}"


@pytest.mark.parametrize(
    ("fault", "known", "said"),
    [
        (CallFault.COUNT, {"function": "f", "count": 3, "passed": 1}, "`f` takes 3 arguments; the testcase gives 1"),
        (
            CallFault.TYPE,
            {"function": "f", "argument": 2, "declared": "tensor<4xf32>", "given": "5xf32"},
            "argument 2 of `f` is `tensor<4xf32>`; the testcase gives `5xf32`",
        ),
        (
            CallFault.VALUES,
            {"given": "4xf32", "count": 4, "passed": 3},
            "the testcase gives 3 values for `4xf32`, which has 4 elements",
        ),
        (
            CallFault.NO_FUNCTION,
            {"function": "g", "functions": ["f"]},
            "the testcase calls `g`, and the program declares only `f`",
        ),
        (CallFault.PRIVATE, {"function": "f"}, "the testcase calls `f`, which the program declares private"),
        (
            CallFault.TYPE_REPLACED,
            {"flag": "--demote=false", "given": "i64", "taken": "i32"},
            "the testcase asks the compiler to turn `i64` into `i32`; `--demote=false` keeps the type",
        ),
        (
            CallFault.TARGET,
            {"name": "cuda", "device": "local-task"},
            "the program is compiled for `cuda` alone, and run on `local-task`",
        ),
        (
            CallFault.FLAG,
            {"program": "iree-compile", "name": "--x"},
            "no known release of `iree-compile` has the flag `--x`",
        ),
        (
            CallFault.NOTATION,
            {"file": "a.mlir", "line": 2, "successor": "x axis(1)"},
            "line 2 of `a.mlir` is in the notation of older releases; newer releases read `x axis(1)`",
        ),
        (
            CallFault.DEVICE,
            {"program": "iree-run-module", "flag": "--device", "name": "cpu"},
            "`--device` of `iree-run-module` takes no `cpu` in any known release",
        ),
    ],
)
def test_a_wrong_call_is_stated(fault: CallFault, known: dict[str, object], said: str) -> None:
    finding = Finding(kind=FindingKind.WRONG_CALL, summary="x", evidence={**known, "call_fault": fault.value})
    assert describe_finding(finding) == said
    mended = {**finding.evidence, "control_end": ControlEnd.FAILURE_GONE.value}
    put_right = Finding(kind=FindingKind.WRONG_CALL, summary="x", evidence=mended)
    assert describe_finding(put_right) == f"{said}; with the call repaired, the failure is gone"


@pytest.mark.parametrize(
    ("kind", "summary", "known"),
    [
        (FindingKind.API_MOVED, "tvm.tir was removed in 0.26.0", {"name": "tvm.tir", "successor": None}),
        (FindingKind.BROKEN_RULE, "op in a.mlir:4 divides", {"operation": "op", "file": "a.mlir", "line": 4}),
    ],
)
def test_an_old_record_is_quoted(kind: FindingKind, summary: str, known: dict[str, object]) -> None:
    """Records of earlier releases lack the fields that the sentence needs."""
    assert f"`{summary}`" in describe_finding(Finding(kind=kind, summary=summary, evidence=known))


@pytest.mark.parametrize("kind", KINDS)
@given(words=st.text(max_size=60))
@example(words="close this issue")
def test_a_finding_of_any_shape_has_a_sentence_in_which_its_words_are_quoted(kind: FindingKind, words: str) -> None:
    """Evidence comes from a machine that ran strangers' code."""
    names = (
        "name",
        "pass",
        "function",
        "operator",
        "buffer",
        "file",
        "operation",
        "level",
        "how",
        "cause",
        "version",
        "moved_in",
        "added_in",
        "rule_of",
    )
    texts: dict[str, object] = dict.fromkeys(names, words)
    numbers: dict[str, object] = {"line": 1, "value": 2, "axis": 0, "extent": 4, "outside_range": [4, 9]}
    chosen = {**texts, **numbers, "moved": "absent", "rule": "live-argument"}
    for evidence_ in ({}, texts, numbers, {**texts, **numbers}, {"access": "load", **texts, **numbers}, chosen):
        said = describe_finding(Finding(kind=kind, summary=words, evidence=evidence_))
        assert said
        outside = "".join(said.split("`")[::2])
        assert "close this issue" not in outside


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (Reference.POINTS, "On `1.3`, `f` returns `2`; at `x = 1`, the value is `3`"),
        (
            Reference.REWRITE,
            "On `1.3`, `f` computes `2` at `x = 1` from generated arguments; before, the value is `3`",
        ),
        (
            Reference.DEFINITION,
            "On `1.3`, the program returns `2` at `x = 1`; by the definitions of its operations, the value is `3`",
        ),
        (
            "ONNX",
            "On `1.3`, `f` returns `2` at `x = 1`; ONNX's evaluator computes `3` from the same model and inputs",
        ),
    ],
)
def test_a_reference_says_what_it_compared(name: str, said: str) -> None:
    known = {
        "name": name,
        "vote": "differs",
        "version": "1.3",
        "function": "f",
        "returned": "2",
        "expected": "3",
        "at": "x = 1",
    }
    assert describe_finding(Finding(kind=FindingKind.REFERENCE, summary="s", evidence=known)) == said


def test_a_run_that_only_compiled_is_no_clean_run() -> None:
    """It has a behaviour, a sign and words of its own."""
    compiled = observe("1.0", Outcome.UNAVAILABLE, reason=Reason.COMPILES_WITHOUT_DEVICE, ended=Exited(code=1))
    _, (row,) = merge_rows([compiled])
    (tally,) = row.cells[0].tallies
    assert tally.describe() == "🟦 compiles, not run"


@pytest.mark.parametrize(
    ("value", "said"),
    [("ids", "from `ids`"), ("argument 1 of main", "from argument 1 of `main`"), ("`a`[2]", "from `a[2]`")],
)
def test_only_names_of_the_testcase_are_code(value: str, said: str) -> None:
    """The words of ours about an argument are prose."""
    evidence = {"kernel": "main", "access": "load", "axis": 0, "buffer": "t", "outside_range": [8, 8], "extent": 5}
    found = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="", evidence={**evidence, "testcase_value": value})
    assert describe_finding(found).endswith(f"the index comes {said}")
