"""The paths of the compiler's repository that the runs of a report name."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bot.suspects.observed import locate_parts, read_parts
from bot.suspects.rank import ReportQuery, rank_commits
from bot.suspects.sources import MAX_SOURCES, read_sources
from bot.verdict.evidence import Evidence
from runners.core.protocol import Finding, FindingKind, Outcome, Signature
from tests.bot.suspects.test_rank import NOISE, commit
from tests.support.observed import PLAN, observe

COMPILER = "compiler/src/iree/compiler"
CALL = '  File "/project/src/{}", line 7, in tvm::f(int)\n'


def evidence(
    toolchain: str, *findings: Finding, message: str = "", frames: tuple[str, ...] = (), excerpt: str = ""
) -> Evidence:
    plan = msgspec.structs.replace(PLAN, testcase=msgspec.structs.replace(PLAN.testcase, toolchain=toolchain))
    failure = Signature(type="InternalError", message=message, frames=frames)
    seen = (observe("1.0", Outcome.MATCH, signature=failure, excerpt=excerpt), observe("1.1", Outcome.PASS))
    return Evidence(plan=plan, observations=seen, findings=findings)


def guilty(**more: object) -> Finding:
    return Finding(kind=FindingKind.GUILTY_PASS, summary="x", evidence=more)


def test_the_guilty_pass_comes_before_the_stack_and_the_message() -> None:
    found = evidence(
        "iree",
        guilty(name="iree-dispatch-creation-fuse", level="pass"),
        message="'stream.async.clone' op is odd",
        frames=("mlir::iree_compiler::IREE::LinalgExt::f",),
    )
    assert read_sources(found) == (f"{COMPILER}/DispatchCreation", f"{COMPILER}/Dialect/LinalgExt")


@pytest.mark.parametrize("level", ["parsing", "llvm-pass"])
def test_a_finding_about_no_pass_of_the_compiler_names_no_path(level: str) -> None:
    assert read_sources(evidence("iree", guilty(name="vm", level=level))) == ()


def test_a_guilty_dispatch_leads_to_the_code_generator_of_its_device() -> None:
    found = evidence("iree", guilty(name="f_dispatch_0_reduction_4_f32", level="dispatch", device="vulkan"))
    assert read_sources(found) == (f"{COMPILER}/Codegen/SPIRV", f"{COMPILER}/Codegen/Common")


def test_no_path_is_inside_another_one() -> None:
    """A folder stands for its files, in either order."""
    files = CALL.format("relax/op/a.cc") + CALL.format("arith/b.cc")
    assert read_sources(evidence("tvm", guilty(name="FuseOps"), excerpt=files)) == ("src/relax", "src/arith/b.cc")
    frames = ("tvm::arith::f", "tvm::relax::g")
    assert read_sources(evidence("tvm", excerpt=files, frames=frames)) == ("src/arith", "src/relax")


def test_few_paths_are_kept() -> None:
    files = "".join(CALL.format(f"{name}/a.cc") for name in ("ir", "te", "topi", "relax"))
    assert len(read_sources(evidence("tvm", excerpt=files))) == MAX_SOURCES


def test_a_clean_run_names_no_path() -> None:
    seen = observe("1.1", Outcome.PASS, excerpt=CALL.format("ir/a.cc"))
    assert read_sources(replace(evidence("tvm"), observations=(seen,))) == ()


def test_a_file_of_the_stack_ranks_a_commit_first() -> None:
    """Also if report and commit share no word; the words of its path alone do not count."""
    right = commit(1, "Keep the order of uses", "src/relax/op/nn.cc")
    parts = read_parts(evidence("tvm", excerpt=CALL.format("relax/op/nn.cc")))
    query = ReportQuery(title="results are off", parts=locate_parts(parts, ("src/relax/op/nn.cc", "nn.cc")))
    first = rank_commits(query, (*NOISE, right), "fixed")[0]
    assert first.commit == right
    assert first.why[0] == "changes `nn.cc` of the stack"
    unlocated = ReportQuery(title="results are off", parts=parts)
    assert max(one.score for one in rank_commits(unlocated, (*NOISE, right), "fixed")) == 0
