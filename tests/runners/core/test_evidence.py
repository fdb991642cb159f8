"""Tests of the typed evidence of findings: the written record, hostile records, and the recorded findings."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from bench.comments import replay_trial
from bench.proving.recordings import FOLDER, load
from bench.proving.trials import CORPUS, PLANTED, list_corpus
from bot.report.comment import render_comment
from bot.report.document import format_json, make_document
from bot.report.sections.findings import render_evidence
from bot.verdict.finding_text import describe_finding
from runners.core.findings.calls import (
    CallDifference,
    DemotedType,
    LeftOut,
    NoFunction,
    OldNotation,
    OtherCount,
    OtherParameterType,
    OtherSize,
    OtherTarget,
    OtherType,
    PrivateFunction,
    RawFile,
    ReplacedType,
    UnknownDevice,
    UnknownFlag,
)
from runners.core.findings.kinds import (
    Blame,
    CallFault,
    Cause,
    ControlEnd,
    Differ,
    Moved,
    Origin,
    PassLevel,
    Reference,
    Rule,
    Vote,
)
from runners.core.findings.questions import (
    explain_proof,
    get_blame,
    get_cause,
    get_subject,
    get_version,
    get_vote,
    list_call_names,
    render_title,
    settles_cause,
)
from runners.core.findings.record import KIND_OF, add_evidence, make_finding, read_evidence, write_record
from runners.core.findings.types import (
    ByteAccess,
    CallEvidence,
    CauseEvidence,
    Confirmation,
    ConstantsEvidence,
    DeviceEvidence,
    DispatchEvidence,
    EqualRuns,
    FindingEvidence,
    IndexAccess,
    KernelAccess,
    MissingEvidence,
    MovedEvidence,
    MutationEvidence,
    NanEvidence,
    PackageEvidence,
    PassEvidence,
    ReachEvidence,
    ReferenceEvidence,
    RuleEvidence,
    SignatureEvidence,
    UndefinedStep,
    UndefinedValue,
    UnwrittenEvidence,
)
from runners.core.protocol import Finding, FindingKind
from runners.core.toolchain.claims import read_findings

ROOT = Path(__file__).parents[3]

# ---------------------------------------------------------------------------------------------- the written record

PROVEN = {"origin": "testcase", "control": "mended", "control_end": "failure-gone"}
HOST: dict[str, Any] = {"origin": Origin.TESTCASE, "control": "mended", "control_end": ControlEnd.FAILURE_GONE}
WRITTEN: list[tuple[FindingKind, FindingEvidence, dict[str, object]]] = [
    (
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        KernelAccess(
            kernel="take",
            access="load",
            buffer="a",
            axis=0,
            outside_range=(4, 9),
            extent=4,
            origin=Origin.TESTCASE_DATA,
        ),
        {
            **{"kernel": "take", "access": "load", "buffer": "a", "axis": 0, "outside_range": [4, 9], "extent": 4},
            "origin": "testcase-data",
        },
    ),
    (
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        ByteAccess(offset=400, length=4, extent=16, version="1.0", origin=Origin.UNKNOWN),
        {"offset": 400, "length": 4, "extent": 16, "version": "1.0", "origin": "unknown"},
    ),
    (
        FindingKind.OUT_OF_BOUNDS_ACCESS,
        IndexAccess(
            operation="op", file="a.mlir", line=4, value=9, instead=0, version="1.0", extent=4, axis=1, **HOST
        ),
        {
            **{"operation": "op", "file": "a.mlir", "line": 4, "value": 9, "instead": 0, "version": "1.0"},
            **PROVEN,
            **{"extent": 4, "axis": 1},
        },
    ),
    (
        FindingKind.UNDEFINED_OPERAND,
        UndefinedStep(operation="scf.for", file="a.mlir", line=4, value=0, instead=1, version="1.0", **HOST),
        {
            **{"operation": "scf.for", "file": "a.mlir", "line": 4, "value": 0, "instead": 1, "version": "1.0"},
            **PROVEN,
        },
    ),
    (
        FindingKind.UNDEFINED_OPERAND,
        UndefinedValue(function="main", at="", operation="a shift", version="1.0", refuted_by="x"),
        {"function": "main", "at": "", "operation": "a shift", "version": "1.0", "refuted_by": "x"},
    ),
    (
        FindingKind.UNINITIALIZED_READ,
        UnwrittenEvidence(operation="op", file="a.mlir", line=4, buffer="t", version="1.0"),
        {"operation": "op", "file": "a.mlir", "line": 4, "buffer": "t", "version": "1.0"},
    ),
    (
        FindingKind.BROKEN_RULE,
        RuleEvidence(
            operation="op",
            file="a.mlir",
            line=4,
            version="1.0",
            rule=Rule.ZERO_DIVISOR,
            rule_of="b",
            difference=("-a", "+b"),
            **HOST,
        ),
        {
            **{"operation": "op", "file": "a.mlir", "line": 4, "version": "1.0"},
            **{"rule": "zero-divisor", "rule_of": "b", **PROVEN, "difference": ["-a", "+b"]},
        },
    ),
    (
        FindingKind.SIGNATURE_CHANGED,
        SignatureEvidence(pass_name="P", function="f", call_that_works="f(a)"),
        {"pass": "P", "function": "f", "call_that_works": "f(a)"},
    ),
    (
        FindingKind.WRONG_CALL,
        CallEvidence(call=NoFunction(function="f", functions=("g",)), call_that_works="run g", version="1.0", **HOST),
        {
            **{"function": "f", "functions": ["g"], "call_that_works": "run g", "call_fault": "no-function"},
            **{"version": "1.0", **PROVEN},
        },
    ),
    (FindingKind.MISSING, MissingEvidence(kind="file", name="a.py"), {"kind": "file", "name": "a.py"}),
    (FindingKind.MISSING, MissingEvidence(module="a.b", version="1.0"), {"module": "a.b", "version": "1.0"}),
    (
        FindingKind.GUILTY_PASS,
        PassEvidence(name="none", version="1.0", application=0, under_way=("A",)),
        {"name": "none", "version": "1.0", "application": 0, "under_way": ["A"]},
    ),
    (
        FindingKind.GUILTY_PASS,
        PassEvidence(name="fuse", level=PassLevel.PASS, pass_name="FusePass", application=2, of=3, difference=()),
        {"name": "fuse", "level": "pass", "pass": "FusePass", "application": 2, "of": 3, "difference": []},
    ),
    (
        FindingKind.GUILTY_PASS,
        DispatchEvidence(
            name="d", level=PassLevel.DISPATCH, against="1.0 on vmvx", first_index=(), values=("1", "-1")
        ),
        {"name": "d", "level": "dispatch", "against": "1.0 on vmvx", "first_index": [], "values": ["1", "-1"]},
    ),
    (FindingKind.INPUT_MUTATED, MutationEvidence(pass_name="P"), {"pass": "P"}),
    (
        FindingKind.VALUES_REPLACED,
        ConstantsEvidence(function="f", constants=("0",)),
        {"function": "f", "constants": ["0"]},
    ),
    (FindingKind.NAN_INEQUALITY, NanEvidence(comparison="eq"), {"comparison": "eq"}),
    (
        FindingKind.DEVICE_SPECIFIC,
        DeviceEvidence(
            device="vmvx",
            how="result 0",
            result=0,
            count=1,
            total=2,
            differs_from=("llvm-cpu",),
            versions=("1.0",),
            agree_on=(),
            differ=Differ.VALUES,
            worst=("1", "2"),
        ),
        {
            **{
                "device": "vmvx",
                "differs_from": ["llvm-cpu"],
                "versions": ["1.0"],
                "agree_on": [],
                "how": "result 0",
            },
            **{"differ": "values", "result": 0, "count": 1, "total": 2, "worst": ["1", "2"]},
        },
    ),
    (
        FindingKind.NONDETERMINISTIC,
        CauseEvidence(
            cause=Cause.HASHES,
            version="1.0",
            results=2,
            runs=(EqualRuns(way="w", ended="e", differs_in="d", times=2),),
        ),
        {
            **{"cause": "hashes", "version": "1.0", "results": 2},
            "runs": [{"way": "w", "ended": "e", "differs_in": "d", "times": 2}],
        },
    ),
    (
        FindingKind.REFERENCE,
        ReferenceEvidence(name=Reference.DEFINITION, vote=Vote.AGREES, helpers=("f",), exact=False),
        {"name": "definition", "vote": "agrees", "written by": ["f"], "exact": False},
    ),
    (FindingKind.REACH, ReachEvidence(names=("f",), version="1.0"), {"names": ["f"], "version": "1.0"}),
    (
        FindingKind.YOUNGER_PACKAGE,
        PackageEvidence(version="1.0", name="numpy", older="1", younger="2"),
        {"version": "1.0", "name": "numpy", "older": "1", "younger": "2"},
    ),
    (
        FindingKind.API_MOVED,
        MovedEvidence(name="a.b", successor=None, moved=Moved.ABSENT, moved_in="1.0"),
        {"name": "a.b", "successor": None, "moved": "absent", "moved_in": "1.0"},
    ),
]


@pytest.mark.parametrize(("kind", "evidence", "record"), WRITTEN, ids=lambda one: type(one).__name__)
def test_evidence_is_written_as_plain_json_and_read_back(
    kind: FindingKind, evidence: FindingEvidence, record: dict[str, object]
) -> None:
    """Names and order of the fields are a contract of the document: a reader of a comment sees this order."""
    finding = make_finding(evidence, "x")
    assert (finding.kind, json.dumps(finding.evidence)) == (kind, json.dumps(record))
    assert read_evidence(msgspec.json.decode(msgspec.json.encode(finding), type=Finding)) == evidence


def test_each_shape_of_evidence_is_written_by_a_test() -> None:
    assert {type(evidence) for _, evidence, _ in WRITTEN} == set(get_args(FindingEvidence))


CALLS: list[tuple[CallDifference, dict[str, object]]] = [
    (OtherCount(function="f", count=2, passed=1), {"function": "f", "count": 2, "passed": 1}),
    (
        OtherType(function="f", argument=1, declared="i32", given="f32"),
        {"function": "f", "argument": 1, "declared": "i32", "given": "f32"},
    ),
    (
        OtherSize(function="f", argument=1, given="4xf32", count=4, passed=3),
        {"function": "f", "argument": 1, "given": "4xf32", "count": 4, "passed": 3},
    ),
    (NoFunction(function="f", functions=("g",)), {"function": "f", "functions": ["g"]}),
    (PrivateFunction(function="f"), {"function": "f"}),
    (OtherTarget(name="cuda", device="local-task"), {"name": "cuda", "device": "local-task"}),
    (UnknownFlag(name="--x", program="p"), {"name": "--x", "program": "p"}),
    (UnknownFlag(name="--x", program="p", successor=""), {"name": "--x", "program": "p", "successor": ""}),
    (UnknownDevice(name="cpu", flag="--device", program="p"), {"name": "cpu", "flag": "--device", "program": "p"}),
    (RawFile(flag="--input=@a", given="4xf32", name="a"), {"flag": "--input=@a", "given": "4xf32", "name": "a"}),
    (
        DemotedType(flag="--x=false", given="f64", taken="f32", values=True),
        {"flag": "--x=false", "given": "f64", "taken": "f32", "values": True},
    ),
    (DemotedType(flag="--x", given="f64", taken="f32"), {"flag": "--x", "given": "f64", "taken": "f32"}),
    (ReplacedType(flag="--x", given="f64", taken="f32"), {"flag": "--x", "given": "f64", "taken": "f32"}),
    (LeftOut(function="f", name="n", option="o=True"), {"function": "f", "name": "n", "option": "o=True"}),
    (
        OtherParameterType(name="bias", taken="f32", function=""),
        {"name": "bias", "taken": "f32", "function": ""},
    ),
    (OldNotation(file="a.mlir", line=2, successor="x"), {"file": "a.mlir", "line": 2, "successor": "x"}),
]


@pytest.mark.parametrize(("call", "record"), CALLS)
def test_the_difference_of_a_call_is_written_beside_its_name(call: CallDifference, record: dict[str, object]) -> None:
    finding = make_finding(CallEvidence(call=call), "x")
    assert json.dumps(finding.evidence) == json.dumps({**record, "call_fault": call.fault.value})
    assert read_evidence(finding) == CallEvidence(call=call)
    assert set(list_call_names(call)) == {
        value for name, value in record.items() if name in ("name", "given", "function")
    }


def test_each_difference_of_a_call_has_a_name() -> None:
    assert {call.fault for call, _ in CALLS} == set(CallFault)
    assert {type(call) for call, _ in CALLS} == set(get_args(CallDifference))


def test_added_evidence_keeps_what_no_code_reads() -> None:
    """The document shows a maintainer all that a guest wrote."""
    claimed = Finding(
        kind=FindingKind.OUT_OF_BOUNDS_ACCESS,
        summary="x",
        evidence={"sources": [{"buffer": "a"}], "origin": "testcase"},
    )
    added = add_evidence(claimed, Confirmation(origin=Origin.UNKNOWN))
    assert added.evidence == {"sources": [{"buffer": "a"}], "origin": "unknown"}


# ---------------------------------------------------------------------------------------------- hostile records

FIELDS = sorted(
    {field.encode_name for shape in get_args(FindingEvidence) for field in msgspec.structs.fields(shape)}
    | {field.encode_name for shape in get_args(CallDifference) for field in msgspec.structs.fields(shape)}
    | {"call_fault", "call", "pass_name", "helpers"}
)
WORDS = sorted(
    {
        str(word)
        for words in (Origin, PassLevel, Reference, Differ, Vote, Rule, Moved, Cause, ControlEnd, CallFault)
        for word in words
    }
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([*WORDS, "none"])
)
VALUES = st.recursive(
    SCALARS,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=4), one, max_size=3),
    max_leaves=6,
)


@given(record=st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=12))
@example(record={"origin": ["unknown"], "level": {}, "cause": 10**400, "name": "\ud800"})
@example(record={name: [[[]]] for name in FIELDS})
@example(record={"call_fault": "count", "function": "f", "count": "2", "passed": None})
def test_any_record_is_evidence(record: dict[str, object]) -> None:
    """A guest writes any values. A verdict must not be lost by one."""
    for kind in FindingKind:
        finding = Finding(kind=kind, summary="seen", evidence=record)
        told = (describe_finding(finding), render_title(finding), explain_proof(finding), render_evidence([finding]))
        assert all(isinstance(text, str) for text in told)
        assert get_blame(finding) in Blame
        assert isinstance(settles_cause(finding), bool)
        assert (get_vote(finding), get_cause(finding)) == (get_vote(finding), get_cause(finding))
        assert isinstance(get_subject(finding) + get_version(finding), str)


@pytest.mark.parametrize("origin", ["the compiler", "", ["testcase"], 1, {}])
def test_an_origin_that_cannot_be_read_blames_nobody(origin: object) -> None:
    finding = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="x", evidence={"origin": origin})
    assert (get_blame(finding), settles_cause(finding)) == (Blame.NOBODY, False)


def test_a_field_of_another_type_is_absent_and_the_others_are_read() -> None:
    record = {"kernel": 7, "extent": "4", "axis": True, "outside_range": [1, 2, 3], "buffer": "a"}
    finding = Finding(kind=FindingKind.OUT_OF_BOUNDS_ACCESS, summary="x", evidence=record)
    assert read_evidence(finding) == KernelAccess(buffer="a")


# ---------------------------------------------------------------------------------------------- recorded findings


def check_round_trip(record: dict[str, object]) -> None:
    """A document's finding is the same after it was read, and typed evidence writes nothing else."""
    finding = msgspec.convert(record, Finding)
    assert json.dumps(msgspec.to_builtins(finding)) == json.dumps(record)
    assert json.dumps(add_evidence(finding, read_evidence(finding)).evidence) == json.dumps(record["evidence"])


def list_found(value: object) -> Iterator[dict[str, object]]:
    """List the findings in a document of any form."""
    if isinstance(value, dict):
        if {"kind", "summary", "evidence"} <= set(value) and isinstance(value["evidence"], dict):
            yield value
        value = list(value.values())
    for one in value if isinstance(value, list) else []:
        yield from list_found(one)


def test_each_recorded_finding_is_the_same_after_a_round_trip() -> None:
    """Of every document in the repository."""
    paths = [path for folder in ("bench", "docs", "examples", "tests") for path in (ROOT / folder).rglob("*.json")]
    texts = [text for path in paths if '"evidence"' in (text := path.read_text(encoding="utf-8"))]
    found = [record for text in texts for record in list_found(json.loads(text))]
    assert len(found) >= 12
    for record in found:
        check_round_trip(record)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [CORPUS, PLANTED])
def test_each_recorded_claim_is_the_same_after_a_round_trip(name: str) -> None:
    """Of every line that a guest wrote in a recorded run."""
    assert (FOLDER / name).is_dir()
    claims = [run.result.hook_file for run in load(name).runs.values() if run.result.hook_file]
    found = [finding for text in claims for finding in read_findings(text)]
    assert found
    for finding in found:
        check_round_trip(msgspec.to_builtins(finding))


@pytest.mark.parametrize(
    "name",
    [
        "iree/fpowi-of-negative-base",
        "iree/index-plus-eight-out-of-range",
        "tvm/arguments-in-set-order",
        "tvm/histogram-right-edge",
    ],
)
def test_the_findings_of_a_document_are_the_same_after_a_round_trip(name: str) -> None:
    report = replay_trial(next(trial for trial in list_corpus() if trial.name == name))
    assert report is not None
    document = json.loads(format_json(make_document(report, render_comment(report))))
    assert document["findings"]
    for record in list_found(document):
        check_round_trip(record)


# ---------------------------------------------------------------------------------------------- structure

BOTH_FORMS = {"runners/core/findings/record.py", "runners/core/toolchain/claims.py"}
"""Modules that know the record of evidence."""


def list_probes(tree: ast.AST) -> Iterator[int]:
    """List the lines that read a record by the name of a field, or write one."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Subscript(value=ast.Attribute(attr="evidence"), slice=ast.Constant(value=str()))
                | ast.Call(func=ast.Attribute(value=ast.Attribute(attr="evidence"), attr="get" | "pop"))
            ):
                yield node.lineno
            case ast.Call(func=ast.Name(id="Finding"), keywords=keywords):
                yield from (node.lineno for one in keywords if one.arg == "evidence")
            case _:
                pass


def test_code_reads_and_writes_evidence_by_its_types_alone() -> None:
    """A misspelled key of a record is no type error."""
    paths = [path for ring in ("bot", "runners") for path in (ROOT / ring).rglob("*.py")]
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    probes = {
        f"{name}:{line}"
        for name, text in sources.items()
        if name not in BOTH_FORMS and ("Finding(" in text or ".evidence" in text)
        for line in list_probes(ast.parse(text))
    }
    assert probes == set()
    (line,) = list_probes(ast.parse('finding.evidence.get("vresion")'))
    assert line == 1


def test_evidence_that_is_not_known_is_left_out() -> None:
    assert write_record(NanEvidence()) == {}


def test_each_type_of_evidence_has_a_kind_and_each_kind_a_type() -> None:
    assert set(KIND_OF) == set(get_args(FindingEvidence))
    assert set(KIND_OF.values()) == set(FindingKind)
