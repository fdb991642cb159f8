"""Comments of recorded cases: short, without words of the code, and true to the runs."""

from __future__ import annotations

import functools
import re

import pytest

from bench.comments import list_visible_lines, replay_trial
from bench.proving.trials import list_corpus
from bot.report.comment import render_comment
from bot.report.sections.findings import list_findings
from bot.verdict.verdict import Report, VerdictKind
from runners.core.findings.questions import render_title
from tests.bot.report import reports
from tests.support.sentences import find_false_claims

MAX_VISIBLE_LINES = 15
INTERNAL = re.compile(
    r"mlir-error|unexpected-output|status:[A-Z]|result untold|\bretargeted\b|successor:|\bnull\b|\bposition: "
    r"|\bof: \d"
    r"|would be refuted|refuted_by|other-failure|out-of-bounds-access|guilty-pass|llvm-pass\b|Variant\.|\bSKIP\b"
)
"""Words of the code that mean nothing to a maintainer. Code spans and fences hold words of issues and of runs."""
TRIALS = {trial.name: trial for trial in list_corpus()}
SAMPLE = (
    "iree/fpowi-of-negative-base",
    "iree/hip-f16-matmul-nan",
    "iree/index-plus-eight-out-of-range",
    "iree/parameters-file-not-given",
    "iree/reverse-sequence-rows-mixed",
    "tvm/arguments-in-set-order",
    "tvm/dilated-conv1d-transpose",
    "tvm/histogram-right-edge",
    "tvm/onnx-isinf-one-sided",
    "tvm/round-halves-up",
    "tvm/truncated-after-my-model",
)
"""One case of each verdict that is not trivial, and those with the longest comments."""


def outside_code(text: str) -> str:
    without_fences = re.sub(r"^(`{3,})[a-z]*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(`+)(?:(?!\1).)+\1", "", without_fences)


def find_faults(report: Report) -> list[str]:
    """Return each broken promise of a comment."""
    comment = render_comment(report)
    lines = list_visible_lines(comment)
    visible = "\n".join(lines)
    faults = [] if len(lines) <= MAX_VISIBLE_LINES else [f"{len(lines)} visible lines"]
    faults += [f"internal word {word}" for word in INTERNAL.findall(outside_code(comment))]
    faults += [f"nested fold: {comment.count('<details>')}"] if comment.count("<details>") > 14 else []
    if report.verdict.kind not in (VerdictKind.NO_CLAIM,):
        faults += [] if "Next step:" in visible else ["no next step"]
    if report.plan is not None:
        faults += find_false_claims(visible, report.plan, report.observations)
        faults += find_false_claims(" ".join(report.verdict.reasons), report.plan, report.observations)
    quoted = (f"{render_title(one)}: `" for one in list_findings(report))
    faults += [f"a finding has no sentence: {title}" for title in quoted if title in f"{comment}{report.verdict}"]
    return faults


@functools.cache
def replay(name: str) -> Report | None:
    return replay_trial(TRIALS[name])


def explain(name: str) -> list[str]:
    report = replay(name)
    return [] if report is None else find_faults(report)


@pytest.mark.parametrize("name", SAMPLE)
def test_the_comment_of_a_recorded_case_keeps_its_promises(name: str) -> None:
    """At most fifteen visible lines, no internal word, no false claim, a next step, and a sentence per finding."""
    assert explain(name) == []


@pytest.mark.thorough
def test_the_comment_of_every_recorded_case_keeps_its_promises() -> None:
    """As above, for the whole corpus."""
    faults = {name: explain(name) for name in TRIALS if name not in SAMPLE}
    assert faults == {name: [] for name in faults}


@pytest.mark.parametrize("name", reports.ALL)
def test_the_comment_of_a_synthetic_report_keeps_its_promises(name: str) -> None:
    """The shapes that the rendering tests share."""
    assert find_faults(reports.ALL[name]()) == []


@pytest.mark.parametrize("name", SAMPLE)
def test_the_reason_of_a_verdict_is_visible(name: str) -> None:
    """Beside the headline: the finding that decides, the failure, or what the last run said."""
    report = replay(name)
    assert report is not None
    lines = list_visible_lines(render_comment(report))
    explained = {
        VerdictKind.INVALID_REPRO: "at fault: ",
        VerdictKind.UNTESTABLE: " needs | has moved|Reason of the last run",
        VerdictKind.NOT_REPRODUCED: "runs cleanly",
        VerdictKind.INCOMPLETE: "add the lines that define|attach (it|them)|is a binary file|are binary files",
        VerdictKind.INCONCLUSIVE: "what would settle it",
        VerdictKind.FLAKY: "it fails; with ",
    }
    assert re.search(explained.get(report.verdict.kind, "Failure on |it prints "), "\n".join(lines))


def test_false_claims_are_found() -> None:
    """The check of sentences fails on a false one."""
    report = reports.regression()
    assert report.plan is not None
    said = "0.25.0 to 0.27.0 fail as reported; all 3 releases that were run, 0.25.0 to 0.27.0"
    assert len(find_false_claims(said, report.plan, report.observations)) == 3


def test_only_what_a_reader_sees_counts_as_a_line() -> None:
    """Folds, nested too, hidden comments, rules of tables and link targets do not; long prose wraps."""
    comment = (
        "one\n\n| a |\n| --- |\n| b |\n\n<details><summary>x</summary>\n\ny\n\n<details>z</details>\n\n</details>\n\n"
        f"{'w' * 111}\n[a](<https://example.org/{'x' * 200}>)\n<!-- marker -->\n"
    )
    assert list_visible_lines(comment) == ["one", "| a |", "| b |", "w" * 110, "w", "[a]"]
