"""What the visible part says of forks, of names, of other releases, and of the next step."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bot.extract.types import Intent, Missing, NoRepro, Repro
from bot.report.comment import render_comment
from bot.report.quote import cut_around
from bot.report.sections.failures import render_failure
from bot.report.sections.findings import list_sentences
from bot.report.sections.next_step import render_next_step
from bot.report.sections.ranges import format_log_command
from bot.report.sections.request import render_request
from bot.report.sections.table import render_summary
from bot.report.sections.timeline import render_timeline
from bot.report.stacks import shorten_stack
from bot.verdict.forks import describe_fork, label_forks
from bot.verdict.judge import judge, judge_without_running
from bot.verdict.rules.phrases import quote_around
from bot.verdict.verdict import Report, VerdictKind
from runners.core.protocol import (
    Answer,
    Claim,
    ClaimKind,
    CommitRange,
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Signature,
    Suspect,
)
from tests.bot.report import reports
from tests.bot.verdict.test_judge import evidence

FORK = "3a32b763, carried by tilelang 0.1.7"


def as_fork(seen: Observation) -> Observation:
    return msgspec.structs.replace(seen, fork=FORK)


# ---------------------------------------------------------------------------------------------- forks


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.22.0 fails", "Fork 0.22.0 fails"),
        ("Failure on `0.22.0`: `x`", "Failure on fork `0.22.0`: `x`"),
        ("it fails. `0.22.0` has it", "it fails. Fork `0.22.0` has it"),
        ("on fork 0.22.0 and 0.22.0", "on fork 0.22.0 and fork 0.22.0"),
        ("install `pkg==0.22.0`, 0.22.01 or v0.22.0", "install `pkg==0.22.0`, 0.22.01 or v0.22.0"),
        ("0.22.0.post1 and 10.22.0", "0.22.0.post1 and 10.22.0"),
        ("(<https://x/v0.22.0>) and /0.22.0", "(<https://x/v0.22.0>) and /0.22.0"),
    ],
)
def test_a_fork_is_never_named_by_its_bare_number(text: str, said: str) -> None:
    """Upstream has a release of that number. Links, packages and other versions stay as they are."""
    assert label_forks(text, ("0.22.0",)) == said


def test_a_fork_is_named_by_the_project_that_carries_it() -> None:
    assert describe_fork("tvm", "0.22.0") == "TileLang's copy of TVM"
    assert describe_fork("tvm", "0.27.0") == ""


def make_forked(outcome: Outcome) -> Report:
    report = reports.regression()
    fork = as_fork(reports.seen("0.22.0", outcome))
    days = reports.released("tvm", v0_22_0="2025-12-07", v0_27_0="2026-09-25")
    return replace(report, observations=(fork, reports.seen("0.27.0", Outcome.PASS)), bisections=(), releases=days)


@pytest.mark.parametrize("outcome", [Outcome.UNAVAILABLE, Outcome.INCOMPATIBLE])
def test_a_fork_that_cannot_run_the_testcase_has_no_row(outcome: Outcome) -> None:
    """Nor a place in the timeline. The table of all runs has it."""
    report = make_forked(outcome)
    assert "0.22.0" not in render_summary(report)
    assert "2025-12-07" not in render_timeline(report)
    assert "| fork `0.22.0` (at `3a32b763`" in render_comment(report)


def test_a_fork_that_runs_the_testcase_has_a_row_with_its_project() -> None:
    assert "| fork `0.22.0` (2025‑12‑07; TileLang's copy of TVM) | ❌" in render_summary(make_forked(Outcome.MATCH))


# ---------------------------------------------------------------------------------------------- names


def lack(version: str, outcome: Outcome, *, name: str = "--x") -> Observation:
    known = {"name": name, "moved": "absent", "moved_in": version, "added_in": "0.26.0"}
    found = Finding(kind=FindingKind.API_MOVED, summary="s", evidence=known)
    return msgspec.structs.replace(reports.seen(version, outcome), findings=(found,))


def test_a_finding_on_a_name_is_of_the_last_release_without_it() -> None:
    """A run of an older release says less: the reader would take it for the release that brought the name."""
    order = ("0.23.0", "0.24.0", "0.25.0", "0.26.0")
    runs = (*(lack(v, Outcome.INCOMPATIBLE) for v in order[:3]), reports.seen("0.26.0", Outcome.PASS))
    report = reports.regression()
    assert report.plan is not None
    plan = msgspec.structs.replace(report.plan, order=order)
    report = replace(report, observations=runs, findings=runs[0].findings, plan=plan)
    assert list_sentences(report) == ("`0.25.0` does not have `--x`; `0.26.0` has it.",)
    told = replace(report.verdict, headline="Not reproduced: … 0.23.0 to 0.25.0 do not have `--x`.")
    assert list_sentences(replace(report, verdict=told)) == ()


def test_a_name_that_a_newer_release_lacks_keeps_its_release() -> None:
    """The release with the name is older then, so the newest one without it is not where it came in."""
    order = ("0.23.0", "0.24.0", "0.25.0")
    runs = (reports.seen("0.23.0", Outcome.PASS), *(lack(v, Outcome.INCOMPATIBLE) for v in order[1:]))
    report = reports.regression()
    assert report.plan is not None
    plan = msgspec.structs.replace(report.plan, order=order)
    report = replace(report, observations=runs, findings=runs[1].findings, plan=plan)
    assert list_sentences(report)[0].startswith("`0.24.0` does not have `--x`")


# ---------------------------------------------------------------------------------------------- other releases


def test_the_headline_says_why_other_releases_gave_no_answer() -> None:
    """No sentence that fits every reason says what a reader can check."""
    absent, clean = Outcome.INCOMPATIBLE, Outcome.PASS
    seen = evidence((absent, absent, Outcome.TIMEOUT, clean), claim=Claim(kind=ClaimKind.CRASH, signature=CRASH))
    known = {"name": "--x", "moved": "absent", "moved_in": "1.0"}
    found = (Finding(kind=FindingKind.API_MOVED, summary="s", evidence=known),)
    runs = tuple(
        msgspec.structs.replace(one, findings=found) if one.outcome is absent else one for one in seen.observations
    )
    verdict = judge(replace(seen, observations=runs))
    assert verdict.kind is VerdictKind.NOT_REPRODUCED
    assert "1.0 and 1.1 do not have `--x`; 1.2 reaches the time limit." in verdict.headline
    assert "neither" not in verdict.headline


CRASH = Signature(type="SIGSEGV", frames=("mlir::a", "mlir::b"))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ClaimKind.ERROR, "This is a build failure of TVM itself; only testcases are run."),
        (ClaimKind.UNKNOWN, "This is about building or installing TVM itself; only testcases are run."),
    ],
)
def test_a_build_that_fails_is_a_failure_and_no_testcase(kind: ClaimKind, said: str) -> None:
    """And no command is offered that would have nothing to run."""
    nothing = NoRepro(reason="No code.", claim=Claim(kind=kind), toolchain="tvm", intent=Intent.BUILD)
    verdict = judge_without_running(nothing)
    assert verdict is not None
    assert verdict.headline == said
    text = render_comment(replace(reports.no_repro(), extraction=nothing, verdict=verdict))
    assert text.startswith(f"**Nothing to run.** {said}")
    assert "/repro run" not in text


def test_a_run_is_offered_for_a_text_with_a_testcase() -> None:
    report = reports.regression()
    verdict = replace(report.verdict, kind=VerdictKind.NO_CLAIM)
    assert "`/repro run`" in render_comment(replace(report, observations=(), verdict=verdict))


# ---------------------------------------------------------------------------------------------- next step


def step(report: Report, kind: VerdictKind = VerdictKind.NOT_REPRODUCED) -> str:
    return render_next_step(replace(report, verdict=replace(report.verdict, kind=kind, reasons=())))


MACHINE = ("device", "processor", "operating system", "environment variables")


@pytest.mark.parametrize(
    "steps",
    [
        (("iree-compile", "a.mlir", "-o", "a.vmfb"),),
        (("iree-opt", "--canonicalize", "a.mlir"),),
        (("iree-compile", "--no-such-flag", "a.mlir"), ("iree-opt", "a.mlir")),
    ],
)
def test_a_testcase_that_only_compiles_is_not_asked_for_its_machine(steps: tuple[tuple[str, ...], ...]) -> None:
    """Parsing, checking flags and printing a program are the same on each machine."""
    report = reports.fixed_crash()
    assert isinstance(report.extraction, Repro)
    testcase = msgspec.structs.replace(report.extraction.testcase, steps=steps)
    claim = msgspec.structs.replace(report.extraction.claim, devices=(), versions=())
    text = step(replace(report, extraction=replace(report.extraction, testcase=testcase, claim=claim)))
    assert text == "**Next step:** retry with `3.13.0`; if it works, this can be closed."
    assert not any(word in text for word in MACHINE)


def test_a_program_that_prints_a_module_is_not_asked_for_its_machine() -> None:
    code = "import tvm\nfrom tvm import relax\nprint(relax.transform.FuseOps()(m))\n"
    report = reports.regression()
    assert isinstance(report.extraction, Repro)
    testcase = msgspec.structs.replace(report.extraction.testcase, files={"repro.py": code})
    claim = msgspec.structs.replace(report.extraction.claim, devices=())
    text = step(replace(report, extraction=replace(report.extraction, testcase=testcase, claim=claim)))
    assert text.endswith("if it works, this can be closed.")


def test_a_program_that_computes_is_asked_for_the_device_that_its_report_does_not_name() -> None:
    report = reports.regression()
    claim = msgspec.structs.replace(report.extraction.claim, devices=())
    text = step(replace(report, extraction=replace(report.extraction, claim=claim)))
    assert text.endswith("this can be closed. If it fails there, add the device.")


def test_no_part_of_a_failure_is_asked_for_that_the_report_quotes() -> None:
    claim = Claim(kind=ClaimKind.ERROR, signature=reports.MISMATCH)
    report = replace(reports.regression(), extraction=replace(reports.repro(), claim=claim))
    assert "add" not in step(report, VerdictKind.INCONCLUSIVE)
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual="3")
    report = replace(report, extraction=replace(reports.repro(), claim=claim))
    assert "add the expected output, as text" in step(report, VerdictKind.INCONCLUSIVE)


# ---------------------------------------------------------------------------------------------- commits

SOURCES = ("src/tirx/op/op.cc", "python/tvm/topi/searchsorted.py")
LOG = "git log --oneline v0.25.0..v0.26.0 -- src/tirx/op/op.cc python/tvm/topi/searchsorted.py"


def rank(report: Report, count: int) -> Report:
    """The report with this number of ranked commits for its first change."""
    suspects = tuple(
        Suspect(commit=f"{n}" * 40, subject=f"Fold the reduction {n}", score=0.1, why=("just after the report",))
        for n in range(1, count + 1)
    )
    first, *others = report.bisections
    return replace(report, bisections=(msgspec.structs.replace(first, suspects=suspects), *others))


def test_a_regression_shows_the_command_that_lists_the_commits_to_the_part_that_failed() -> None:
    """With the tags of the two releases, ready to paste."""
    report = replace(reports.regression(), sources=SOURCES)
    assert f"Those to the part that failed: `{LOG}`." in step(report, VerdictKind.REGRESSION)
    assert "git log" not in step(replace(report, sources=()), VerdictKind.REGRESSION)


def test_a_regression_shows_the_three_most_related_commits_of_a_history() -> None:
    """In the place of a command."""
    text = step(rank(replace(reports.regression(), sources=SOURCES), 5), VerdictKind.REGRESSION)
    assert [text.count(f"`Fold the reduction {n}`") for n in range(1, 6)] == [1, 1, 1, 0, 0]
    assert "no evidence" in text
    assert "git log" not in text


def test_a_fixed_issue_can_be_closed_and_its_range_is_folded() -> None:
    """Only a reader who wants the commit needs the range."""
    report = replace(reports.fixed_crash(), sources=("compiler/src/iree/compiler/Codegen",))
    ends = CommitRange(start="v3.5.0", end="v3.6.0", count=236)
    changes = tuple(msgspec.structs.replace(one, commits=ends) for one in report.bisections)
    report = replace(report, bisections=changes)
    text = step(report, VerdictKind.FIXED)
    assert text.endswith("; if it works there, this can be closed.")
    assert "commits" not in text
    _, folded = render_comment(report).split("<summary>Changes of behaviour and related commits</summary>")
    listed = "git log --oneline v3.5.0..v3.6.0 -- compiler/src/iree/compiler/Codegen"
    assert f"```sh\n{listed}\n```" in folded.partition("</details>")[0]


def test_a_range_without_tags_has_short_commits() -> None:
    ends = CommitRange(start="a" * 40, end="b" * 40)
    assert format_log_command(ends, ("a b",)) == f"git log --oneline {'a' * 12}..{'b' * 12} -- 'a b'"
    assert format_log_command(ends, ()) == ""
    assert format_log_command(None, SOURCES) == ""


# ---------------------------------------------------------------------------------------------- printed programs

BEFORE = """\
module {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = iree_encoding.set_encoding %0 : tensor<4xf32>
  scf.for %i = %c0 to %c4 { map_scatter %1 }
}"""


def print_programs(now: str, told: str) -> Report:
    report = reports.regression()
    runs = [
        reports.seen(version, Outcome.OTHER_FAILURE, ended=Exited(code=0), excerpt=text)
        for version, text in (("0.26.0", BEFORE), ("0.27.0", now))
    ]
    claim = Claim(kind=ClaimKind.WRONG_RESULT, told=told)
    verdict = replace(report.verdict, kind=VerdictKind.INCONCLUSIVE, reasons=())
    return replace(
        report, observations=tuple(runs), extraction=replace(reports.repro(), claim=claim), verdict=verdict
    )


def test_a_changed_row_that_the_report_speaks_of_is_shown_where_no_run_could_be_judged() -> None:
    now = BEFORE.replace("scf.for %i = %c0 to %c4 { map_scatter %1 }", "scf.forall { map_store %1 }")
    assert render_failure(print_programs(now, "why is map_scatter outside of the loop?")) == (
        "On `0.26.0`, it prints `scf.for %i = %c0 to %c4 { map_scatter %1 }`;"
        " on `0.27.0`, `scf.forall { map_store %1 }`"
    )
    assert render_failure(print_programs(now, "the program is wrong")) == ""
    assert render_failure(print_programs(BEFORE, "map_scatter")) == ""


# ---------------------------------------------------------------------------------------------- stacks and size

STACK = """\
Stack dump:
0.\tProgram arguments: iree-compile a.mlir
 #0 0x00007fed6aa525b8 llvm::sys::PrintStackTrace(llvm::raw_ostream&, int) (/opt/lib/libIREECompiler.so+0x59d65b8)
 #3 0x00007f392a85a050 (/lib/x86_64-linux-gnu/libc.so.6+0x3c050)
 #4 0x00007f39320a1ac1 mlir::iree_compiler::(anonymous namespace)::limitSizes(long) KernelDispatch.cpp:0:0
 #5 0x00007f39320a1ac2 mlir::detail::OpToOpPassAdaptor::run(mlir::Pass*) (/opt/lib/libIREECompiler.so+0x1)
#41 0x00007f2da20a8b22 llvm::StdThreadPool::processTasks(llvm::ThreadPoolTaskGroup*) ThreadPool.cpp:0:0
#45 0x00007f2d9b126b50 clone ./misc/../sysdeps/unix/sysv/linux/x86_64/clone.S:102:0
"""


def test_a_stack_keeps_its_top_frames_and_loses_the_machinery() -> None:
    assert shorten_stack(STACK).splitlines()[2:] == ["#4 limitSizes(long) KernelDispatch.cpp"]
    deep = "\n".join(f"#{n} 0x00007f39320a1ac1 f{n}()" for n in range(40))
    lines = shorten_stack(deep).splitlines()
    assert lines[0] == "#0 f0()"
    assert lines[-1] == "… (28 more frames)"
    assert shorten_stack("#include <x>\n# a comment\nplain") == "#include <x>\n# a comment\nplain"


def test_the_same_stack_is_shown_once() -> None:
    """Addresses and deep frames differ from build to build."""
    runs = [
        msgspec.structs.replace(
            reports.seen(v, Outcome.MATCH, signature=CRASH, excerpt=STACK.replace("7f39", address)), answer=Answer.BAD
        )
        for v, address in (("0.26.0", "7a39"), ("0.27.0", "7b39"))
    ]
    changed = msgspec.structs.replace(CRASH, message="another message")
    runs.append(msgspec.structs.replace(runs[0], attempt=2, signature=changed))
    text = render_comment(replace(reports.regression(), observations=tuple(runs)))
    assert text.count("limitSizes") == 1
    assert "(the same stack on `0.27.0`)" in text


@pytest.mark.parametrize("name", reports.ALL)
def test_the_visible_part_has_fifteen_lines_at_most(name: str) -> None:
    visible = render_comment(reports.ALL[name]()).partition("<details>")[0]
    assert sum(bool(line.strip()) for line in visible.splitlines()) <= 15


# ---------------------------------------------------------------------------------------------- cuts and requests

WRONG = (
    '#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "znver4", cpu_features = "-avx512f", x = 1}>'
)


def test_a_long_quotation_is_cut_around_the_part_that_differs() -> None:
    """The part that all builds print tells nothing."""
    right = f"target = {WRONG.replace('-avx512f', '+avx512f')}"
    assert '"-avx512f"' in quote_around(WRONG, ("unrelated row", right), 60)
    assert '"-avx512f"' in cut_around(WRONG, WRONG.replace("-avx", "+avx"), 60)
    assert len(quote_around(WRONG, (right,), 60)) <= 62
    assert len(cut_around(WRONG, "", 60)) == len(cut_around(WRONG, right, 60)) == 60
    assert cut_around("short", "other", 60) == "short"


def test_a_request_names_a_file_that_is_not_attached_and_takes_a_smaller_one() -> None:
    """The word of the failure is the report's: a crash "crashes"."""
    missing = (Missing(kind="file", name="conv.mlir"),)
    crash = replace(reports.repro(missing=missing), claim=Claim(kind=ClaimKind.CRASH))
    body = render_request(replace(reports.incomplete(), extraction=crash)).body
    assert "the file `conv.mlir`: it is not attached; paste its text in a code block" in body
    assert "Anything smaller that crashes in the same way is fine." in body
