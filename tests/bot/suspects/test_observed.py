"""The parts of the compiler that runs show, and the files that define them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from bot.suspects.observed import Part, locate_parts, read_messages, read_parts
from bot.suspects.ranges import rank_ranges
from bot.suspects.rank import ReportQuery, rank_commits
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import VerdictKind
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import Bisection, Commit, CommitRange, Finding, FindingKind, Outcome, Signature
from tests.bot.suspects.test_rank import NOISE, FakeHistory, commit
from tests.support.observed import PLAN, observe

TREE = (
    "compiler/src/Codegen/Common/ConvolutionToIGEMM.cpp",
    "compiler/src/Codegen/Common/test/convolution_to_igemm.mlir",
    "compiler/src/Codegen/Common/MaterializeEncoding.cpp",
    "compiler/src/Codegen/LLVMGPU/LLVMGPUVectorDistribute.cpp",
    "compiler/src/Codegen/SPIRV/VectorDistribute.cpp",
    "compiler/src/Codegen/Common/Passes.cpp",
    "src/relax/transform/fuse_ops.cc",
    "src/relax/transform/remove_unused_outputs.cc",
    "src/tir/transforms/simplify.cc",
    "python/tvm/relax/frontend/onnx/onnx_frontend.py",
)


def evidence(*findings: Finding, frames: tuple[str, ...] = (), site: str = "", message: str = "") -> Evidence:
    failure = Signature(type="InternalError", frames=frames, site=site, message=message)
    seen = (observe("1.0", Outcome.MATCH, signature=failure), observe("1.1", Outcome.PASS))
    return Evidence(plan=PLAN, observations=seen, findings=findings)


def guilty(**more: object) -> Finding:
    return Finding(kind=FindingKind.GUILTY_PASS, summary="x", evidence=more)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("ConvolutionToIGEMMPass", {TREE[0], TREE[1]}),
        ("iree-codegen-convolution-to-igemm", {TREE[0], TREE[1]}),
        ("MaterializeDeviceEncodingPass", {TREE[2]}),
        ("LLVMGPUVectorDistributePass", {TREE[3]}),
        ("FuseOps", {TREE[6]}),
        ("relax.transform.FuseOps", {TREE[6]}),
        ("RemoveUnusedOutputsInner", {TREE[7]}),
        ("Simplify", {TREE[8]}),
        ("CSE", set()),
        ("VerifyPasses", set()),
    ],
)
def test_a_pass_is_found_in_the_file_of_its_name(name: str, files: set[str]) -> None:
    """In any spelling. The most similar name counts, and a name without a file has none."""
    (part,) = locate_parts((Part(name=name, role="the guilty pass"),), TREE)
    assert part.files == files


def test_findings_and_frames_name_parts() -> None:
    """The guilty pass, the operation of its dispatch, the pass on the stack, and functions."""
    found = guilty(
        **{"pass": "FuseOps", "name": "fuse-ops", "symbol": "main$async_dispatch_3_conv_2d_1x32x32x16_f32"}
    )
    frames = ("ns::limitSizes", "ns::(anonymous namespace)::SelectPass::runOnOperation", "ns::run<int>")
    names = [part.name for part in read_parts(evidence(found, frames=frames, site="Check"))]
    assert names == ["FuseOps", "conv_2d", "SelectPass", "Check", "limitSizes", "run"]
    assert read_messages(evidence(message="no slot")) == "no slot"


@pytest.mark.parametrize("name", ["none", "pass 7", "LLVM passes 3 to 5 of 90", "", 3])
def test_a_finding_that_names_no_pass_names_no_part(name: object) -> None:
    assert read_parts(evidence(guilty(name=name))) == ()


def test_a_python_frame_leads_to_its_module() -> None:
    (part,) = locate_parts(read_parts(evidence(frames=("tvm.relax.frontend.onnx.onnx_frontend.from_onnx",))), TREE)
    assert (part.name, part.files) == ("from_onnx", frozenset({TREE[9]}))


def test_the_file_of_the_guilty_pass_ranks_a_commit_first() -> None:
    """Also if report and commit share no word; the reason says which file."""
    right = commit(1, "Keep the order of uses", TREE[6])
    query = ReportQuery(title="results are off", day=date(2026, 5, 10))
    assert max(one.score for one in rank_commits(query, (*NOISE, right), "fixed")) == 0
    parts = locate_parts(read_parts(evidence(guilty(name="FuseOps"))), TREE)
    first = rank_commits(replace(query, parts=parts), (*NOISE, right), "fixed")[0]
    assert first.commit == right
    assert first.why[0] == "changes `fuse_ops.cc` of the guilty pass `FuseOps`"


def test_a_report_uses_the_files_of_the_build_that_fails() -> None:
    """The older end of a range with the fix, the newer end of one with the cause."""
    asked: list[str] = []

    class Tree(FakeHistory):
        def list_files(self, revision: str) -> tuple[str, ...]:
            asked.append(revision)
            return TREE

    right: Commit = commit(1, "Keep the order of uses", TREE[6])
    ends = CommitRange(start="v1", end="v2", count=2)
    changes = (
        Bisection(direction="fixed", last_bad="1.0", first_good="1.1", commits=ends),
        Bisection(direction="introduced", last_good="1.0", first_bad="1.1", commits=ends),
    )
    query = ReportQuery(title="results are off")
    found = rank_ranges(
        evidence(guilty(name="FuseOps")), VerdictKind.FIXED, changes, query, load_catalogue(), Tree(*NOISE, right)
    )
    assert asked == ["v1", "v2"]
    assert [one.suspects[0].subject for one in found.bisections] == [right.subject] * 2
