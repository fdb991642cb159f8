"""Commits are ranked by their words, date and files; none is called a culprit."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import msgspec
import pytest

from bot.extract import extract
from bot.forge.source import parse_issue
from bot.report.comment import render_comment
from bot.report.sections.next_step import render_next_step
from bot.report.sections.ranges import render_likely_fix, render_suspects
from bot.suspects.ranges import rank_ranges
from bot.suspects.rank import (
    FLOOR,
    MAX_SHOWN,
    ReportQuery,
    compute_beliefs,
    make_query,
    rank_commits,
    select_suspects,
    split_words,
)
from bot.verdict.evidence import Evidence
from bot.verdict.verdict import VerdictKind
from runners.core.errors import UserError
from runners.core.packages.catalogue import load_catalogue
from runners.core.protocol import (
    Bisection,
    Claim,
    ClaimKind,
    Commit,
    CommitRange,
    Outcome,
    Plan,
    Suspect,
    Testcase,
    TestcaseKind,
)
from tests.bot.report import reports
from tests.support.observed import observe

DAY = date(2026, 5, 10)
EXAMPLES = Path(__file__).parents[3] / "examples" / "issues"


def commit(number: int, subject: str, *paths: str, body: str = "", day: date = date(2026, 5, 20)) -> Commit:
    return Commit(sha=f"{number:040x}", day=day, subject=subject, body=body, paths=paths or ("src/x.cc",))


NOISE = tuple(commit(100 + n, f"Add operator number{n} to the frontend", f"python/op{n}.py") for n in range(40))


def best(query: ReportQuery, *commits: Commit, direction: str = "fixed") -> list[str]:
    ranked = rank_commits(query, (*NOISE, *commits), "fixed" if direction == "fixed" else "introduced")
    return [one.commit.subject for one in ranked if one.score > 0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FuseMultiUseElementwiseProducerPass", {"multi", "elementwis", "produc"}),
        ("iree_linalg_ext.pack", {"ireelinalgext", "pack"}),
        ("bufferization bufferize", {"buffer"}),
        ("LLVMCPUTileAndFuse", {"llvmcpu", "tile"}),
        ("see https://example.org/fusion#12 at 0xdeadbeef, commit 3f2a9c1d", {"see", "commit"}),
    ],
)
def test_words_are_stemmed_parts_of_identifiers(text: str, found: set[str]) -> None:
    """Links, commit ids and numbers are left out."""
    assert found <= set(split_words(text))
    assert not {"http", "fusion", "deadbeef", "3f2a9c1d"} & set(split_words(text))


def test_shared_names_rank_a_commit_first() -> None:
    """In either spelling: a pass of the report is a file or a sentence of the commit."""
    query = ReportQuery(title="RemoveUnusedOutputs replaces used outputs by NaN", day=DAY)
    right = commit(1, "Keep tuples that are returned", "src/relax/transform/remove_unused_outputs.cc")
    other = commit(2, "Fix the outputs of the profiler")
    assert best(query, other, right)[0] == right.subject


def test_a_fix_comes_after_the_report_and_a_cause_before() -> None:
    """The same words are told apart by their dates."""
    query = ReportQuery(title="softmax over the middle axis is wrong", day=DAY)
    before = commit(1, "Rework softmax", day=date(2026, 5, 1))
    after = commit(2, "Rework softmax again", day=date(2026, 5, 13))
    late = commit(3, "Rework softmax once more", day=date(2027, 5, 13))
    assert best(query, before, late, after)[:2] == [after.subject, late.subject]
    assert best(query, before, late, after, direction="introduced")[0] == before.subject


def test_a_fix_ranks_above_a_chore() -> None:
    """For commits with the same words; for a cause it makes no difference."""
    query = ReportQuery(title="gather reads out of range", day=DAY)
    assert best(query, commit(1, "Bump gather"), commit(2, "Fix gather"))[0] == "Fix gather"


@pytest.mark.parametrize(
    "paths", [("docs/softmax.md",), (".github/workflows/softmax.yml", "README.md"), ("web/src/softmax.ts",)]
)
def test_irrelevant_commits_are_left_out(paths: tuple[str, ...]) -> None:
    """Documents, checks of the project, and platforms that the report does not mention."""
    query = ReportQuery(title="softmax is wrong on llvm", day=DAY)
    assert best(query, commit(1, "Fix softmax", *paths)) == []


def test_a_platform_that_the_report_mentions_counts() -> None:
    """The same commit, for a report about the browser."""
    query = ReportQuery(title="softmax is wrong in wasm", day=DAY)
    assert best(query, commit(1, "Fix softmax", "web/src/softmax.ts")) == ["Fix softmax"]


def test_at_most_five_related_commits_are_shown() -> None:
    """None for words that no commit uses."""
    many = tuple(commit(n, f"Fix softmax case{n}") for n in range(1, 20))
    assert len(select_suspects(ReportQuery(title="softmax"), (*NOISE, *many), "fixed")) == MAX_SHOWN
    assert select_suspects(ReportQuery(title="qqqq zzzz"), NOISE, "fixed") == ()
    assert select_suspects(ReportQuery(title="softmax"), (), "fixed") == ()


@pytest.mark.parametrize("title", ["softmax", "qqqq"])
def test_beliefs_are_a_prior_that_excludes_no_commit(title: str) -> None:
    """They sum to one, fall with rank, and none is below its even share of the floor."""
    commits = (*NOISE, commit(1, "Fix softmax"), commit(2, "Rework softmax tests"))
    ranked = rank_commits(ReportQuery(title=title), commits, "fixed")
    share = [compute_beliefs(ranked)[one.commit.sha] for one in ranked]
    assert sum(share) == pytest.approx(1)
    assert share == sorted(share, reverse=True)
    assert min(share) >= FLOOR / len(commits)


def test_a_query_holds_title_failure_and_names() -> None:
    """Title and date, the failure's message, and the compiler's names in the code, but not the code's own names."""
    path = EXAMPLES / "unused-outputs-replaced-by-nan.md"
    issue = parse_issue(path.read_bytes(), source=str(path), today=DAY)
    query = make_query(issue, extract(issue))
    assert (query.title, query.day) == (issue.title, issue.created)
    assert "StructuralEqual check failed" in query.text
    assert "transform.RemoveUnusedOutputs" in query.text
    assert "moments" not in query.text


def test_a_commit_that_was_reverted_in_the_range_is_out() -> None:
    """With its revert: the range has the effect of neither. A later reland counts."""
    added, reverted = commit(1, "Tile softmax (#7)"), commit(2, 'Revert "Tile softmax (#7)" (#8)')
    again = commit(3, 'Reland "Tile softmax" (#9)')
    query = ReportQuery(title="softmax is wrong", day=DAY)
    assert best(query, added, reverted) == []
    assert best(query, added) == [added.subject]
    assert best(query, reverted) == [reverted.subject]
    assert best(query, added, reverted, again) == [again.subject]


def test_a_commit_of_tests_alone_is_out() -> None:
    """It changes nothing that a user runs."""
    query = ReportQuery(title="softmax is wrong", day=DAY)
    assert best(query, commit(1, "Test softmax", "compiler/test/softmax.mlir", "tests/e2e/softmax.mlir")) == []
    assert best(query, commit(1, "Mend softmax", "compiler/softmax.cpp", "tests/e2e/softmax.mlir")) == [
        "Mend softmax"
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Fixes #1234.", True),
        ("See https://github.com/o/c/issues/1234", True),
        ("Fixes llvm/llvm-project#1234", False),
        ("Fixes #12345", False),
    ],
)
def test_a_commit_that_names_the_issue_is_first(text: str, names: bool) -> None:
    """By a number of the compiler's own tracker."""
    wordy = commit(1, "Fix softmax over the middle axis")
    naming = commit(2, "Handle zero extents", body=text)
    query = ReportQuery(title="softmax over the middle axis is wrong", day=DAY, number=1234)
    assert (best(query, wordy, naming)[0] == naming.subject) is names
    assert best(replace(query, number=None), wordy, naming)[0] == wordy.subject


@pytest.mark.parametrize(("repository", "number"), [("apache/tvm", 12), ("iree-org/iree", None), ("", None)])
def test_a_number_of_another_tracker_is_not_used(repository: str, number: int | None) -> None:
    issue = parse_issue(b"---\nrepository: apache/tvm\nnumber: 12\n---\n# Wrong\n", source="a.md", today=DAY)
    assert make_query(issue, extract(issue), repository).number == number


# ------------------------------------------------------------------------------------------ in a report

ACCUSING = ("culprit", "caused by", "introduced by", "to blame", "broke", "fixed by", "responsible")


def test_suspects_are_shown_as_related() -> None:
    """With their range, and with the note that the ranking is no evidence."""
    shown = (
        Suspect(commit="a" * 40, subject="Fix @octocat's #12 `softmax`", score=0.5, why=("in common: `softmax`",)),
    )
    commits = CommitRange(start="v1", end="v2", count=187, compare_url="https://github.com/a/b/compare/v1...v2")
    text = render_suspects(commits, shown, "have changed it")
    assert "One of 187 commits in `v1`..`v2`" in text
    assert f"https://github.com/a/b/commit/{'a' * 40}" in text
    assert "not evidence" in text
    assert "@octocat" not in text
    assert not any(word in text.casefold() for word in ACCUSING)


def test_the_comment_lists_suspects_under_the_change() -> None:
    """If the report has a bisection with suspects. The comment calls no commit a culprit."""
    report = reports.regression()
    shown = (Suspect(commit="b" * 40, subject="Fold reductions", score=0.4, why=("in common: `mean`",)),)
    commits = CommitRange(start="v0.25.0", end="v0.26.0", count=186)
    changed = Bisection(
        direction="introduced", last_good="0.25.0", first_bad="0.26.0", commits=commits, suspects=shown
    )
    text = render_comment(replace(report, bisections=(changed,)))
    assert "reprobot suspects" not in text
    unranked = msgspec.structs.replace(changed, suspects=())
    assert "--from v0.25.0 --to v0.26.0" in render_comment(replace(report, bisections=(unranked,)))
    assert text.index("from `0.25.0` (clean) to `0.26.0`") < text.index("`Fold reductions`")
    assert "One of 186 commits in" in text.partition("<summary>Changes of behaviour and related commits")[2]
    assert not any(word in text.casefold() for word in ACCUSING)


def test_the_next_step_names_the_commit_most_related_to_a_fix() -> None:
    """With the words that it is no evidence."""
    report = reports.fixed_crash()
    shown = (Suspect(commit="b" * 40, subject="Keep erased calls", score=0.4, why=("names the issue",)),)
    ends = CommitRange(start="v3.5.0", end="v3.6.0", count=236)
    changed = Bisection(direction="fixed", last_bad="3.5.0", first_good="3.6.0", commits=ends, suspects=shown)
    text = render_next_step(replace(report, bisections=(changed,)))
    assert "no evidence" in text.partition("236 commits")[2]
    assert "`Keep erased calls`" in text
    assert not any(word in text.casefold() for word in ACCUSING)


class FakeHistory:
    """A history of three revisions: the date of the report, and two releases."""

    def __init__(self, *commits: Commit) -> None:
        self.commits = commits

    def between(self, start: str, end: str) -> tuple[Commit, ...]:
        return self.commits

    def resolve(self, revision: str) -> str:
        if revision != "0.17.dev0":
            raise UserError(f"there is no revision {revision!r}")
        return "c" * 40

    def day(self, revision: str) -> date:
        return DAY

    def last_before(self, day: date, end: str) -> str | None:
        return "d" * 40

    def list_files(self, revision: str) -> tuple[str, ...]:
        return tuple(path for one in self.commits for path in one.paths)


def evidence(outcome: Outcome, *versions: str) -> Evidence:
    testcase = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"repro.py": ""}, steps=(("python",),))
    claim = Claim(kind=ClaimKind.ERROR, versions=versions)
    plan = Plan(testcase=testcase, claim=claim, device="llvm", order=("0.26.0",), first=("0.26.0",))
    return Evidence(plan=plan, observations=(observe("0.26.0", outcome),), findings=())


QUERY = ReportQuery(title="softmax is wrong", day=DAY)
FIX = commit(1, "Fix softmax")


@pytest.mark.parametrize(("version", "start"), [("0.17.dev0", "c" * 40), ("my own build", "d" * 40)])
def test_a_failure_that_no_build_shows_has_likely_fixes(version: str, start: str) -> None:
    """From the reported version, else the date of the report, to the oldest release that passes."""
    found = rank_ranges(
        evidence(Outcome.PASS, version), VerdictKind.NOT_REPRODUCED, (), QUERY, load_catalogue(), FakeHistory(FIX)
    )
    assert found.likely is not None
    assert (found.likely.commits.start, found.likely.first_good) == (start, "0.26.0")
    assert [one.subject for one in found.likely.suspects] == ["Fix softmax"]
    text = render_likely_fix(found.likely)
    assert "`Fix softmax`" in text
    assert not any(word in text.casefold() for word in ACCUSING)


@pytest.mark.parametrize("kind", [VerdictKind.INVALID_REPRO, VerdictKind.CONFIRMED, VerdictKind.INCONCLUSIVE])
def test_without_a_change_of_behaviour_no_commit_is_shown(kind: VerdictKind) -> None:
    """Even if its words match well: a user's error reaches the same scores as a bug."""
    found = rank_ranges(evidence(Outcome.PASS, "0.17.dev0"), kind, (), QUERY, load_catalogue(), FakeHistory(FIX))
    assert found.likely is None
    assert found.bisections == ()


def test_a_change_with_one_unobserved_end_has_no_suspects() -> None:
    """It has no range."""
    half = Bisection(direction="introduced", first_bad="0.25.0")
    found = rank_ranges(
        evidence(Outcome.MATCH), VerdictKind.CONFIRMED, (half,), QUERY, load_catalogue(), FakeHistory(FIX)
    )
    assert found.bisections == (half,)


def test_a_history_that_lacks_a_revision_costs_only_the_ranking() -> None:
    """The verdict stands, and a clause says why there is no list."""

    class Old(FakeHistory):
        def between(self, start: str, end: str) -> tuple[Commit, ...]:
            raise UserError(f"there is no revision {end!r}")

    whole = Bisection(
        direction="fixed", last_bad="a", first_good="b", commits=CommitRange(start="v1", end="v2", count=3)
    )
    found = rank_ranges(evidence(Outcome.MATCH), VerdictKind.FIXED, (whole,), QUERY, load_catalogue(), Old())
    assert found.bisections == (whole,)
    assert "no revision 'v2'" in found.problem


ROCM_ONLY = commit(1, "[ROCm] Fix layout of matmul", "src/target/rocm.cc")
NEUTRAL = commit(2, "Fix layout of matmul", "src/layout.cc")


@pytest.mark.parametrize(
    ("title", "first"),
    [
        ("Wrong layout of matmul on vulkan, a ROCm machine", "[ROCm] Fix layout of matmul"),
        ("Wrong layout of matmul on vulkan", "Fix layout of matmul"),
        ("Wrong layout of matmul with cuda", "Fix layout of matmul"),
    ],
)
def test_a_commit_for_a_target_that_the_report_does_not_name_counts_less(title: str, first: str) -> None:
    """By its label or by all of its paths. A report that names no target says nothing about targets."""
    assert best(ReportQuery(title=title), ROCM_ONLY, NEUTRAL)[0] == first
    ranked = rank_commits(ReportQuery(title="Wrong layout of matmul"), (*NOISE, ROCM_ONLY, NEUTRAL), "fixed")
    scores = {one.commit.sha: one.score for one in ranked}
    assert scores[ROCM_ONLY.sha] > 0.5 * scores[NEUTRAL.sha]


def test_a_commit_for_one_target_and_other_files_is_for_all() -> None:
    """Only its label, or every path, says that it is for one target."""
    mixed = commit(3, "Fix layout of matmul", "src/target/rocm.cc", "src/layout.cc")
    alone = commit(4, "Fix layout of matmul", "src/target/rocm.cc", "src/target/rocm/layout.cc")
    ranked = rank_commits(ReportQuery(title="Wrong layout of matmul on cuda"), (*NOISE, mixed, alone), "fixed")
    scores = {one.commit.sha: one.score for one in ranked}
    assert scores[alone.sha] < 0.5 * scores[mixed.sha]
