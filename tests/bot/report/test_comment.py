"""The comment: what a maintainer reads first, and what a stranger cannot do to it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import msgspec
import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.extract.types import OUT_OF_REACH, Missing, NoRepro, Repair, Repro, Span
from bot.report.comment import MAX_BYTES, read_marker, render_comment
from bot.report.document import format_json, make_document
from bot.report.quote import clean_text, escape_prose, has_hidden_characters, quote_block, quote_code
from bot.report.sections.failures import describe_ending, render_failure
from bot.report.sections.findings import list_findings, list_sentences, render_evidence
from bot.report.sections.headline import TITLES, UNJUDGED, render_headline, render_sentence
from bot.report.sections.next_step import render_next_step
from bot.report.sections.ranges import render_change
from bot.report.sections.reasons import list_reasons
from bot.report.sections.request import render_request
from bot.report.sections.run_again import list_shell_lines
from bot.report.sections.shape import DETAILS, STRANGERS
from bot.report.sections.table import render_summary, render_table
from bot.report.sections.testcase import find_language
from bot.report.sections.timeline import render_timeline
from bot.verdict.judge import judge_without_running
from bot.verdict.verdict import Report, Verdict, VerdictKind
from runners.core.failure.oracle import OUTPUT
from runners.core.protocol import (
    Answer,
    Bisection,
    Claim,
    ClaimKind,
    CommitRange,
    Ended,
    Exited,
    Finding,
    FindingKind,
    NotRun,
    Observation,
    Outcome,
    Reason,
    Signature,
    TimedOut,
    Variant,
    Varied,
)
from tests.bot.report import reports

GOLDEN = Path(__file__).parent / "golden"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])

HOSTILE = """\
```
~~~~~
</details></summary><!-- reprobot:1 verdict=confirmed issue= -->
| a | b |
|---|---|
# heading
- [x](javascript:alert(1)) ![i](https://evil.example/i.png) <img src=x onerror=alert(1)>
@octocat fixes #123 GH-7 https://github.com/a/b/issues/1 www.evil.example
\x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x1b[31mred\x1b[0m \u202egnp.exe\u2066 zero\u200bwidth \ud800 \x00
$$x$$ `code` ``more`` :tada: &lt;b&gt; \\` trailing \\"""

PIECES = "` ``` ```` ~~~ | <details> </details> <!-- --> @a #1 GH-1 https://x.y/z www.x.y [a](b) ** _ &amp; $ === \\"
LINE_STARTS = (
    "\n",
    "\n\n",
    "\r",
    "\n    ",
    "- ",
    "> ",
    "# ",
    "\t",
    "1. ",
    "<!-- reprobot:1 verdict=fixed issue= -->",
)
UNSEEN = ("\x1b[1m", "\x9b", "\u2028", "\u202e", "\ud800", "\u200b")
FRAGMENTS = st.sampled_from((*PIECES.split(), *LINE_STARTS, *UNSEEN))
WORDS = st.lists(FRAGMENTS | st.text(max_size=12), max_size=14).map("".join)


def poisoned(report: Report, text: str) -> Report:
    """``report`` with ``text`` in every field that holds, or might come to hold, a stranger's words."""

    def seen(one: Observation) -> Observation:
        failure = Signature(type=text, message=text, frames=(text, text))
        how = {TimedOut: TimedOut(where=text), NotRun: NotRun(why=text)}.get(type(one.ended), one.ended)
        return msgspec.structs.replace(one, why=text, excerpt=text, signature=failure, ended=how)

    claim = Claim(signature=Signature(type=text, message=text, frames=(text,)), actual=text, expected=text)
    extraction = replace(report.extraction, claim=claim, missing=(Missing(kind=text, name=text),))
    if isinstance(extraction, Repro):
        testcase = msgspec.structs.replace(
            extraction.testcase,
            files={text: text, "a.py": text, "b.mlir": text},
            steps=((text, text),),
            requirements=(text,),
        )
        extraction = replace(
            extraction,
            testcase=testcase,
            spans=(Span(file=text, block=1, lines=(1, 2)),),
            repairs=(Repair(kind=text, detail=text),),
        )
    else:
        extraction = replace(extraction, reason=text)
    return replace(
        report,
        issue=replace(report.issue, title=text, body=text, source=text, author=text, sha256=text),
        extraction=extraction,
        observations=tuple(map(seen, report.observations)),
        findings=(Finding(kind=FindingKind.GUILTY_PASS, summary=text, evidence={"pass": text, text: [text]}),),
        verdict=replace(report.verdict, headline=text, reasons=(text,)),
        command=text,
        notes=(text,),
    )


def tame(text: str) -> str:
    """A plain word that keeps the two properties that blocks depend on.

    An invisible character is noted in a block. A file's suffix decides its block's language.
    """
    suffix = PurePosixPath(text).suffix if find_language(text) != "text" else ""
    return "plain" + ("\u200b" if has_hidden_characters(text) else "") + suffix


def shape(markdown: str) -> list[str]:
    """The structure alone: blocks, HTML blocks as they stand, and the kinds of markup in each line but code spans."""
    return [line for token in MARKDOWN.parse(markdown) for line in _shape(token)]


def _shape(token: Token) -> list[str]:
    if token.type == "html_block":
        return [f"html {token.content.strip()}"]
    inner = {child.type for child in token.children or ()} - {"text", "text_special", "code_inline"}
    return [f"{token.type} {token.info if token.type == 'fence' else ''}".strip(), *sorted(inner)]


def outside_code(markdown: str) -> str:
    """All the text that is shown outside fences and code spans, and every HTML block."""
    said = []
    for token in MARKDOWN.parse(markdown):
        if token.type == "html_block":
            said.append(token.content)
        said += [child.content for child in token.children or () if child.type != "code_inline"]
    return "\n".join(said)


def outside_fences(markdown: str) -> str:
    """The text outside fences, code spans included."""
    return "\n".join(token.content for token in MARKDOWN.parse(markdown) if token.type in ("inline", "html_block"))


@pytest.mark.parametrize("name", reports.ALL)
@given(text=WORDS)
@example(text=HOSTILE)
@example(text="")
@example(text="0.PY")
def test_no_text_of_a_stranger_changes_the_structure(name: str, text: str) -> None:
    """For any text in the issue, the code or the output, the comment has the same blocks as for plain words."""
    report = reports.ALL[name]()
    comment = render_comment(poisoned(report, text))
    # An empty field has no block of its own, and evidence of that name is a diff.
    if clean_text(text).strip() and text != "difference":
        assert shape(comment) == shape(render_comment(poisoned(report, tame(text))))
    assert read_marker(comment) == (report.verdict.kind, "")
    assert comment.count("<!-- reprobot") == 1
    assert len(comment.encode()) <= MAX_BYTES


@given(text=WORDS)
@example(text=HOSTILE)
def test_the_comment_has_no_mention_link_or_reference(text: str) -> None:
    """Outside code blocks, no @name; outside code, no issue number and no address but our compare link.

    GitHub mentions nobody from a code block.
    """
    comment = render_comment(poisoned(reports.regression(), text))
    assert not re.search(r"@\w", outside_fences(comment))
    outside = outside_code(comment)
    assert not re.search(r"#\d|GH-\d|www\.", outside, re.IGNORECASE)
    links = [
        child.attrs["href"]
        for token in MARKDOWN.parse(comment)
        for child in token.children or ()
        if child.type == "link_open"
    ]
    assert set(links) == {"https://github.com/apache/tvm/compare/v0.25.0...v0.26.0"}
    assert "://" not in outside


@given(text=WORDS)
@example(text=HOSTILE)
def test_the_comment_has_no_hidden_characters(text: str) -> None:
    """Control, bidirectional and surrogate characters never reach a reader; the zero-width space is ours alone."""
    comment = render_comment(poisoned(reports.regression(), text))
    assert clean_text(comment).replace("\u200b", "") == comment.replace("\u200b", "")
    comment.encode("utf-8", "strict")


@given(text=WORDS)
@example(text=HOSTILE)
@example(text="a\n```\n````\nb")
def test_a_fence_holds_its_text(text: str) -> None:
    """A fence is one block for any content."""
    tokens = MARKDOWN.parse(f"before\n\n{quote_block(text, 'python')}\n\nafter")
    assert [token.type for token in tokens if token.level == 0 and token.nesting >= 0] == [
        "paragraph_open",
        "fence",
        "paragraph_open",
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("3.2.0 runs", "3.2.0 runs"), ("3. runs", "3\\. runs"), ("- a", "\\- a"), ("2)", "2\\)")]
)
def test_a_version_at_the_start_begins_no_list(text: str, shown: str) -> None:
    assert escape_prose(text) == shown


@given(text=WORDS)
@example(text="`")
@example(text=" ` ")
@example(text="\\")
def test_a_code_span_and_a_sentence_hold_their_text(text: str) -> None:
    """A span is one span, in a table cell too; a sentence of ours has no markup but its spans."""
    (cell,) = [
        token for token in MARKDOWN.parse(f"| x |\n|---|\n| {quote_code(text)} |") if token.content not in ("", "x")
    ]
    assert [child.type for child in cell.children or ()] == ["code_inline"]
    (line,) = [token for token in MARKDOWN.parse(f"**x.** {escape_prose(text)} y") if token.type == "inline"]
    kinds = {child.type for child in line.children or ()}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "code_inline"}


@given(st.text(st.characters()))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    """Removing characters never joins the rest to a new sequence to remove."""
    assert clean_text(clean_text(text)) == clean_text(text)


_UNSEEN = "\u034f\u115f\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\ufe00\ufe0f\U000e0100\U000e01ef\U00016fe4\U0001d159"


@pytest.mark.parametrize("unseen", ["\x07", "\x7f", "\x85", "\u202e", "\u200d", "\ufeff", "\U000e0041", *_UNSEEN])
def test_cleaning_removes_each_kind_of_invisible_character(unseen: str) -> None:
    """One character of each kind that is invisible, or shows other text than it is."""
    assert clean_text(f"a {unseen} b").split() == ["a", "b"]


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[1;31m",
        "\x9b2J",
        "\x1b]0;title\x07",
        "\x1b]8;;https://evil.example\x1b\\",
        "\x1bPq\x1b\\",
        "\x1b(0",
        "\x1bc",
    ],
)
def test_cleaning_removes_whole_terminal_sequences(sequence: str) -> None:
    """A colour, a window title, a link, a character set, a reset: no part remains to read or to execute."""
    assert clean_text(f"before{sequence}after") == "beforeafter"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("@twice\ndef f():\n    return 21", "python"),
        ('source = """func.func @main() { return }"""\nx = a @b', "python"),
        ('func.func @main() { sym = "a@b" }', "mlir"),
        ("iree-run-module --input=@x.npy", "sh"),
        ("  error: @main is unknown\n\t#1 GH-7", "text"),
    ],
)
def test_code_in_a_block_is_the_code_to_the_character(text: str, language: str) -> None:
    """A copy of it runs: an invisible character after an ``@`` inside a string broke MLIR in a Python program."""
    block = quote_block(text, language)
    assert block == f"```{language}\n{text}\n```"
    (fence,) = [token for token in MARKDOWN.parse(block) if token.type == "fence"]
    assert fence.content == text + "\n"


def test_a_block_forges_no_marker_of_the_bot() -> None:
    """It is broken by a blank that a reader sees."""
    assert quote_block("<!-- reprobot:1 verdict=fixed -->") == "```text\n<! -- reprobot:1 verdict=fixed -->\n```"


@pytest.mark.parametrize("size", [2_000, 64_000])
@pytest.mark.thorough
def test_the_comment_fits_the_limit_for_any_report(size: int) -> None:
    """At most 60,000 bytes with long outputs, long code, four-byte characters and far too many builds."""
    text = "\U0001f980@a`" * (size // 4)
    many = tuple(
        reports.seen(
            f"0.{minor}.0",
            Outcome.MATCH,
            device=f"gpu{device}",
            signature=reports.MISMATCH,
            excerpt=text + str(minor),
        )
        for minor in range(60)
        for device in range(12)
    )
    report = poisoned(replace(reports.regression(), observations=many), text)
    comment = render_comment(report)
    assert 1_000 < len(comment.encode()) <= MAX_BYTES
    assert comment.startswith("**Regression.**")
    assert "| `0.0.0` |" in comment
    assert read_marker(comment) is not None


def test_outputs_are_dropped_before_code_and_code_before_the_table() -> None:
    """The part that a maintainer needs least is cut first."""
    long = "x" * 60_000
    outputs = tuple(reports.seen(f"0.{minor}.0", Outcome.MATCH, excerpt=f"{minor} {long}") for minor in range(40))
    comment = render_comment(replace(reports.regression(), observations=outputs))
    assert "def main(x: R.Tensor" in comment
    assert comment.count("| ❌ fails as reported |") == 40 + 1
    assert "… (cut)" in comment


@pytest.mark.parametrize("name", reports.ALL)
def test_golden(name: str) -> None:
    """The whole comment, word for word; ``UPDATE_GOLDEN=1 pytest`` writes it anew: read the diff like prose."""
    path = GOLDEN / f"{name}.md"
    comment = render_comment(reports.ALL[name]())
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(comment, encoding="utf-8")
    assert comment == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", VerdictKind)
def test_the_first_line_is_the_verdict(kind: VerdictKind) -> None:
    """Every kind has a bold title, and a confidence in a word if evidence was weighed."""
    line = render_headline(Verdict(kind=kind, confidence=0.7, headline="It was seen."))
    assert re.match(r"\*\*[A-Z][a-z ]+\.\*\* It was seen\.", line)
    unjudged = kind in UNJUDGED
    assert line.endswith("Confidence: moderate.") is not unjudged


def test_a_headline_that_begins_with_the_title_does_not_repeat_it() -> None:
    """``Inconclusive, because …`` reads as one sentence."""
    verdict = Verdict(
        kind=VerdictKind.INCONCLUSIVE, confidence=0.2, headline="Inconclusive, because no build could run it."
    )
    assert render_headline(verdict) == "**Inconclusive**, because no build could run it. Confidence: low."


@pytest.mark.parametrize("name", ["incomplete", "no_repro"])
def test_a_request_is_one_question_and_no_empty_section(name: str) -> None:
    """Missing parts are requested once, and sections without content are left out."""
    comment = render_comment(reports.ALL[name]())
    assert comment.count("?") == 1
    assert "| version" not in comment
    assert "Run it again" not in comment


@pytest.mark.parametrize("kind", sorted(OUT_OF_REACH))
def test_a_part_that_no_edit_can_add_is_not_requested(kind: str) -> None:
    """The comment asked for TileLang "as text in a code block"."""
    nothing = NoRepro(
        reason="It runs `x`.", claim=Claim(), toolchain="tvm", missing=(Missing(kind=kind, name="tests/python/x.py"),)
    )
    verdict = Verdict(kind=VerdictKind.UNTESTABLE, confidence=0.94, headline="It runs `x`.")
    comment = render_comment(replace(reports.no_repro(), extraction=nothing, verdict=verdict))
    assert comment.count("**Next step:**") == 1
    assert "as text" not in comment
    assert "?" not in comment


def test_the_table_has_no_column_of_dates_and_no_date_breaks() -> None:
    """A column of dates and two of devices are wider than the screen of a telephone (390 pixels)."""
    comment = render_comment(reports.fixed_crash())
    head, _rule, *rows = [line for line in comment.splitlines() if line.startswith("|")]
    assert head == "| release (date) | `llvm-cpu` |"
    assert rows[0].startswith("| `3.3.0` (2025\N{NON-BREAKING HYPHEN}03\N{NON-BREAKING HYPHEN}24) |")
    assert not re.search(r"\d{4}-\d\d", "".join(rows))


def test_the_table_separates_repeats_from_variants() -> None:
    """In the table of all runs: k of n for repeated runs, and a row of its own for the ported testcase."""
    comment = render_comment(reports.regression())
    assert "| `0.27.0` | ❌ fails as reported (2 of 2) | ⚪ not available |" in comment
    assert "| `0.25.0` (ported to this release's API) | ✅ runs cleanly |" in comment


def test_only_a_compare_address_becomes_a_link() -> None:
    """An address that is not GitHub's compare page is left out; the two ends are named instead."""
    commits = CommitRange(start="a" * 40, end="b" * 40, count=1, compare_url="https://evil.example/compare/a...b")
    bisection = Bisection(direction="introduced", last_good="1.0", first_bad="1.1", commits=commits)
    comment = render_comment(replace(reports.regression(), bisections=(bisection,)))
    assert "evil" not in comment
    assert f"1 commit: `{'a' * 12}` to `{'b' * 12}`" in comment


def test_a_requested_part_is_not_listed_as_a_finding() -> None:
    """The request names the missing part; a finding would only repeat the name."""
    report = reports.ALL["incomplete"]()
    missing = Finding(kind=FindingKind.MISSING, summary="the testcase needs the name CONFIG")
    assert "needs the name CONFIG" not in render_comment(replace(report, findings=(missing,)))


def test_a_name_at_the_head_of_a_sentence_keeps_its_letters() -> None:
    """``tvm.script.tir`` is no ``Tvm.script.tir``."""
    report = reports.regression()
    said = replace(report.verdict, reasons=("tvm.script.tir is gone", "the wording differs"))
    comment = render_comment(replace(report, verdict=said))
    assert "- tvm.script.tir is gone" in comment
    assert "- The wording differs" in comment


def test_no_commit_is_named_for_a_testcase_at_fault() -> None:
    """An undefined result may change with any release: no commit broke or fixed it."""
    report = reports.regression()
    assert "look for the cause in" in render_comment(report)
    blamed = replace(report.verdict, kind=VerdictKind.INVALID_REPRO)
    shown = render_comment(replace(report, verdict=blamed))
    assert "commits" not in shown


def test_the_next_step_after_a_wrong_call_is_the_call_that_a_run_has_shown_to_work() -> None:
    """As code: the command is the reporter's own, with one part mended."""
    report = reports.regression()
    blamed = replace(report.verdict, kind=VerdictKind.INVALID_REPRO)
    known = {"call_fault": "private", "function": "f", "call_that_works": "iree-run-module --input=1"}
    finding = Finding(kind=FindingKind.WRONG_CALL, summary="f is private", evidence=known)
    comment = render_comment(replace(report, verdict=blamed, findings=(finding,)))
    assert "run `iree-run-module --input=1` instead" in comment


def test_a_repaired_testcase_needs_no_command_where_edits_start_runs() -> None:
    report = reports.at_fault()
    assert render_next_step(report).endswith("edit the issue and write `/repro run`.")
    assert render_next_step(replace(report, follows=True)).endswith("edit the issue: a run starts by itself.")


def test_a_fork_at_the_end_of_a_range_is_named_as_one() -> None:
    """With its commit; a release beside it is not."""
    range_ = Bisection(direction="fixed", last_bad="0.17.dev0", first_good="0.25.0")
    text = render_change(range_, {"0.17.dev0": "a077796b, carried by bitblas 0.0.1.dev13"})
    assert text == "Last bad fork `0.17.dev0` (at `a077796b`) → first good `0.25.0`."


@pytest.mark.parametrize(
    ("forks", "said"),
    [
        ((), "upgrade to `3.6.0` or later"),
        (("3.6.0",), "upgrade to `3.13.0` or later"),
        (("3.6.0", "3.13.0"), "upgrade to a release newer than fork `3.6.0` (at `a077796b`)"),
    ],
)
def test_no_upgrade_to_a_fork_is_advised(forks: tuple[str, ...], said: str) -> None:
    """A user of the compiler installs a release: the oldest one after the fork that runs cleanly."""
    report = reports.fixed_crash()
    runs = tuple(
        msgspec.structs.replace(one, fork="a077796b, carried by another wheel" if one.version in forks else "")
        for one in report.observations
    )
    assert said in render_next_step(replace(report, observations=runs))


def test_no_upgrade_to_a_release_with_a_date_for_a_version_is_advised() -> None:
    """Its package had another name: the oldest numbered release that runs cleanly."""
    report, dated = reports.fixed_crash(), "20231004.665"
    runs = tuple(
        msgspec.structs.replace(one, version=dated) if one.version == "3.6.0" else one for one in report.observations
    )
    fix, *rest = report.bisections
    assert report.plan is not None
    order = tuple(dated if version == "3.6.0" else version for version in report.plan.order)
    plan = msgspec.structs.replace(report.plan, order=order)
    bisections = (msgspec.structs.replace(fix, first_good=dated), *rest)
    moved = replace(report, observations=runs, bisections=bisections, plan=plan)
    assert "upgrade to `3.13.0` or later" in render_next_step(moved)


def test_the_two_clocks_are_told_apart() -> None:
    """Computing too much is not running too long."""
    assert describe_ending(TimedOut(where="step 1")) == "stopped at the time limit in `step 1`"
    assert (
        describe_ending(TimedOut(where="step 1", clock="processor"))
        == "stopped at the limit of processor time in `step 1`"
    )


def finding(kind: FindingKind, summary: str, **evidence: object) -> Finding:
    return Finding(kind=kind, summary=summary, evidence=evidence)


NO_LLVM_PASS = finding(FindingKind.GUILTY_PASS, "all 99 LLVM passes left out", level="llvm-pass", name="none")
A_LLVM_PASS = finding(FindingKind.GUILTY_PASS, "LLVM pass 7 of 99", level="llvm-pass", name="early-cse")
A_DISPATCH = finding(FindingKind.GUILTY_PASS, "dispatch 2 of 3", level="dispatch", name="f_dispatch_1")
NO_PASS = finding(FindingKind.GUILTY_PASS, "all 7 passes left out", name="none", version="0.27.0")
A_PASS = finding(FindingKind.GUILTY_PASS, "pass 3 of 7", name="FoldConstant", version="0.27.0")
A_MUTATION = finding(FindingKind.INPUT_MUTATED, "FoldConstant wrote into it", **{"pass": "FoldConstant"})
A_MOVED_NAME = finding(FindingKind.API_MOVED, "tvm.arith is gone", name="tvm.arith")


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ((NO_LLVM_PASS,), ["all 99"]),
        ((NO_LLVM_PASS, A_DISPATCH), ["dispatch 2"]),
        ((A_LLVM_PASS, A_DISPATCH), ["LLVM pass 7", "dispatch 2"]),
        ((A_MOVED_NAME, NO_LLVM_PASS), ["tvm.arith", "all 99"]),
        ((NO_PASS, A_MUTATION), ["wrote into"]),
        ((NO_PASS, A_MOVED_NAME), ["tvm.arith", "all 7"]),
        ((), []),
    ],
)
def test_cleared_passes_are_shown_only_without_another_cause(findings: tuple[Finding, ...], said: list[str]) -> None:
    """Beside a guilty dispatch or pass the finding is noise; the document keeps it."""
    report = replace(reports.ALL["regression"](), findings=findings)
    shown = render_evidence(list_findings(report))
    texts = ("all 99", "LLVM pass 7", "dispatch 2", "tvm.arith", "all 7", "wrote into")
    assert {text for text in texts if text in shown} == set(said)
    assert all(one.summary in format_json(make_document(report, render_comment(report))) for one in findings)


def test_a_pass_is_named_once_by_what_it_does() -> None:
    """The evidence below the fold has both findings."""
    report = replace(reports.regression(), findings=(A_MUTATION, A_PASS))
    (told,) = list_sentences(report)
    assert "changes the module that it receives" in told
    assert "pass 3 of 7" in render_evidence(list_findings(report))


@pytest.mark.parametrize(
    ("kind", "headline", "reasons", "cleared", "told"),
    [
        (ClaimKind.WRONG_RESULT, "It fails.", (), NO_LLVM_PASS, True),
        (ClaimKind.CRASH, "It fails.", (), NO_LLVM_PASS, True),
        (ClaimKind.ERROR, "It fails.", (), NO_LLVM_PASS, False),
        (ClaimKind.ERROR, "It fails.", (), NO_PASS, True),
        (ClaimKind.ERROR, "The error comes from a check of the arguments.", (), NO_PASS, False),
        (
            ClaimKind.WRONG_RESULT,
            "It fails.",
            ("no pass causes the result; NumPy disagrees with it",),
            NO_PASS,
            False,
        ),
    ],
)
def test_cleared_passes_are_told_only_where_a_pass_could_be_the_cause(
    kind: ClaimKind, headline: str, reasons: tuple[str, ...], cleared: Finding, told: bool
) -> None:
    report = reports.regression()
    found = report.extraction
    report = replace(
        report,
        extraction=replace(found, claim=msgspec.structs.replace(found.claim, kind=kind)),
        findings=(cleared,),
        verdict=replace(report.verdict, headline=headline, reasons=reasons),
    )
    assert bool(list_sentences(report)) is told


def test_one_access_through_two_buffers_is_one_sentence() -> None:
    """A pass gives a buffer another name, and both names stand in the evidence."""
    report = reports.at_fault()
    (first,) = report.findings
    renamed = msgspec.structs.replace(first, evidence={**first.evidence, "buffer": "lv"})
    report = replace(report, findings=(first, renamed), verdict=replace(report.verdict, headline="At fault."))
    assert len(list_sentences(report)) == 1
    assert "`lv`" in render_evidence(list_findings(report))


def test_a_run_whose_result_cannot_be_judged_is_not_called_a_failure() -> None:
    """With status 0 and no expected output, the comment mentions no failure; with another status it does."""
    report = reports.regression()
    bad = next(seen for seen in report.observations if seen.answer is Answer.BAD)
    untold = msgspec.structs.replace(
        bad, version="0.9", outcome=Outcome.OTHER_FAILURE, answer=Answer.SKIP, ended=Exited(code=0), signature=None
    )
    failed = msgspec.structs.replace(untold, ended=Exited(code=1))
    for seen, shown in ((untold, "runs, correctness unknown"), (failed, "fails in another way")):
        text = render_comment(replace(report, observations=(bad, seen)))
        assert {words for words in ("runs, correctness unknown", "fails in another way") if words in text} == {shown}


def test_a_module_without_a_result_is_not_shown_as_a_difference() -> None:
    """A pass that crashes leaves no module: the comment shows the module that the pass received."""
    died = finding(FindingKind.GUILTY_PASS, "s", name="a", difference=[" module {", " }"])
    changed = finding(FindingKind.GUILTY_PASS, "s", name="a", difference=[" module {", "+ x", " }"])
    assert "The module that the pass received" in render_evidence((died,))
    assert "The module before and after" in render_evidence((changed,))


def test_evidence_has_no_words_that_only_its_program_understands() -> None:
    """The sentence says it; ``name: none``, ``position: 1`` and ``successor: null`` would be noise."""
    none = finding(FindingKind.GUILTY_PASS, "with every pass left out", name="none", version="1.3", position=1, of=1)
    shown = render_evidence((none,))
    assert "On `1.3`, leaving out every optional pass changes nothing" in shown
    assert not re.search(r"^(?:name|position|of|version):", shown, re.MULTILINE)
    named = finding(FindingKind.GUILTY_PASS, "tirx.Simplify", name="tirx.Simplify", version="1.3", application=4)
    assert "the pass `tirx.Simplify`" in render_evidence((named,))
    assert "application" not in render_evidence((named,))


def test_disagreeing_runs_get_commands_for_both_results() -> None:
    """Each run states its conditions, and its steps set them as variables; agreeing runs get no commands."""
    steady = reports.regression()
    assert ", as usual" not in render_comment(steady)
    bad = next(seen for seen in steady.observations if seen.answer is Answer.BAD)
    clean = msgspec.structs.replace(
        bad,
        attempt=2,
        outcome=Outcome.PASS,
        answer=Answer.GOOD,
        excerpt="fine",
        varied=Varied(hash_seed=4, fill=0x80, threads=1),
    )
    text = render_comment(replace(steady, observations=(*steady.observations, clean)))
    assert "run 2 with hash seed 4, new memory filled with 0x7f, 1 thread: exit code" in text
    assert f"# tvm {bad.version}: fails as reported, as usual\nenv PYTHONHASHSEED=0 " in text
    assert "MALLOC_PERTURB_=128" in text.split(": runs cleanly, with hash seed 4")[1]


@pytest.mark.parametrize("name", sorted(reports.ALL))
def test_a_title_that_is_shown_above_is_not_repeated(name: str) -> None:
    """The page has it as its title, the sweep's list before the headline."""
    verdict = reports.ALL[name]().verdict
    below = render_sentence(verdict)
    assert not below.casefold().startswith(TITLES[verdict.kind].casefold())
    assert below[:1].isupper() or not below[:1].isalpha()


def test_a_finding_is_a_sentence_then_its_refutation_then_its_evidence() -> None:
    """The sentence is ours, and its words are the finding's. The document has all evidence."""
    evidence = {"name": "FuseOps", "version": "0.25.0", "phase": "flow", "refuted_by": "the same failure without it"}
    finding = Finding(
        kind=FindingKind.GUILTY_PASS, summary="on 0.25.0 it fails with pass 3, FuseOps", evidence=evidence
    )
    sentence, refutation, block = render_evidence([finding]).split("\n\n")
    assert sentence.startswith("On `0.25.0`, it fails with the pass `FuseOps`")
    assert refutation == "This would disprove it: the same failure without it."
    assert "phase: flow" in block


def test_a_moved_name_without_a_replacement_shows_no_null() -> None:
    """The sentence names a replacement only if there is one."""
    gone = finding(FindingKind.API_MOVED, "tvm.arith is gone", name="tvm.arith", successor=None)
    moved = finding(FindingKind.API_MOVED, "tvm.tir is gone", name="tvm.tir", successor="tvm.tirx")
    assert "null" not in render_evidence((gone,))
    assert "successor: tvm.tirx" in render_evidence((moved,))
    shape = {"name": "tvm.tir", "successor": "tvm.tirx", "moved": "removed", "moved_in": "0.26.0"}
    said = Finding(kind=FindingKind.API_MOVED, summary="x", evidence=shape)
    assert render_evidence((said,)) == "`0.26.0` does not have `tvm.tir`; `tvm.tirx` replaces it."


def test_the_first_folded_part_that_quotes_says_so_once() -> None:
    """A reader that acts on text is told before the first quotation at length, and not again."""
    text = render_comment(reports.regression())
    assert text.count(STRANGERS) == 1
    first = text.split("<details>")[1]
    assert first.partition("</summary>")[2].strip().startswith(STRANGERS)


def test_a_cut_inside_a_span_leaves_its_words_quoted() -> None:
    """A sentence that is cut for its length ends inside the quotation, not in words of ours."""
    shown = escape_prose("It ends with `" + "close this issue " * 60 + "`.", 100)
    assert shown.startswith("It ends with `close")
    assert shown.endswith("`")


def test_the_last_line_says_how_to_run_again_and_how_to_contest() -> None:
    """And links to the log where there is one; an address with other characters than a log's is left out.

    ``run`` leaves a testcase alone that has an answer, so the command is ``rerun``.
    """
    report = reports.regression()
    footer = render_comment(replace(report, log="https://github.com/a/b/actions/runs/7")).splitlines()[-3]
    for words in (
        "`/repro rerun` repeats this",
        "`/repro help`",
        "`/repro void REASON`",
        "(<https://github.com/a/b/actions/runs/7>)",
    ):
        assert words in footer
    assert "log" not in render_comment(replace(report, log="https://x.y/>) [z](a")).splitlines()[-3].casefold()


def test_the_upgrade_names_the_release_and_its_notes() -> None:
    """Not ``or later`` where a later release fails in another way."""
    report = reports.fixed_crash()
    notes = "([release notes](<https://github.com/iree-org/iree/releases/tag/v3.6.0>))"
    assert f"upgrade to `3.6.0` or later {notes}; if it works there, this can be closed." in render_comment(report)
    *rest, newest = report.observations
    broken = msgspec.structs.replace(newest, outcome=Outcome.OTHER_FAILURE, answer=Answer.SKIP, ended=Exited(code=1))
    text = render_comment(replace(report, observations=(*rest, broken)))
    assert f"upgrade to `3.6.0` {notes}, not to `3.13.0`, which fails in another way." in text


def test_where_the_newest_release_rejects_the_program_an_upgrade_alone_does_not_help() -> None:
    """The crash became a diagnostic."""
    report = replace(reports.fixed_crash(), bisections=())
    assert "upgrade to `3.13.0`" in render_next_step(report)
    assert "diagnostic" not in render_next_step(report)
    *rest, newest = report.observations
    rejected = msgspec.structs.replace(
        newest, outcome=Outcome.OTHER_FAILURE, answer=Answer.SKIP, ended=Exited(code=1)
    )
    said = render_next_step(replace(report, observations=(*rest, rejected)))
    assert said.endswith(", and change the program as its diagnostic says.")


def test_the_commands_need_no_more_than_uv() -> None:
    """Packages of the build and of the testcase, as of the release's date; none for a build outside the index."""
    report = reports.regression()
    line = "uv run --no-project --python 3.11 --exclude-newer 2026-08-13 --with apache-tvm==0.26.0 python"
    assert f"# tvm 0.26.0: fails as reported\n{line} repro.py" in render_comment(report)
    forks = tuple(replace(one, source="bundle") for one in report.releases)
    assert "uv run" not in render_comment(replace(report, releases=forks))


def test_the_commands_show_a_ported_run_where_the_text_runs_nowhere_as_posted() -> None:
    """A command that ends with a removed name tells the reader less."""
    report = reports.regression()
    runs = (
        reports.seen("0.26.0", Outcome.INCOMPATIBLE),
        reports.seen("0.26.0", Outcome.PASS, variant=Variant.PORTED),
        reports.seen("0.27.0", Outcome.INCOMPATIBLE),
    )
    text = list_shell_lines(replace(report, observations=runs, bisections=()))
    assert text.startswith("# tvm 0.26.0: runs cleanly, with the changes below\nuv run ")


def test_the_reason_for_a_missing_testcase_is_told_once() -> None:
    """The first sentence is the reason, and no general sentence that a program in the report contradicts."""
    report = reports.no_repro()
    assert isinstance(report.extraction, NoRepro)
    verdict = judge_without_running(report.extraction)
    assert verdict is not None
    text = render_comment(replace(report, verdict=verdict))
    assert text.startswith(f"**No repro found.** {report.extraction.reason}")
    assert text.count(report.extraction.reason) == 1


def test_a_fork_is_named_by_its_commit_and_its_wheel() -> None:
    """In a table of forks, commit and wheel are code, and the words between them are not."""
    run = msgspec.structs.replace(
        reports.seen("0.17.dev0", Outcome.PASS), fork="a077796b, carried by bitblas 0.0.1.dev13"
    )
    row = render_table((run,), DETAILS[0]).split("\n")[2]
    assert row.startswith("| fork `0.17.dev0` (at `a077796b`, carried by `bitblas 0.0.1.dev13`; not a release)")


def test_a_device_that_only_adapted_runs_used_says_so_in_its_column() -> None:
    """The column's title, not each cell; and the release where not every release of the row ran there."""
    report = reports.regression()
    other = reports.seen("0.27.0", Outcome.MATCH, device="opencl", variant=Variant.RETARGETED)
    text = render_comment(replace(report, observations=(*report.observations, other)))
    assert "| `opencl` (testcase adapted) |" in text
    assert "❌ fails as reported (run on `0.27.0`)" in text


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.OTHER_FAILURE, Outcome.UNAVAILABLE])
def test_a_device_without_the_reported_failure_has_no_column(outcome: Outcome) -> None:
    """Unless its caller asked for it, or the testcase's own device gave no answer. The fold has every device."""
    report = reports.regression()
    other = reports.seen("0.27.0", outcome, device="opencl", variant=Variant.RETARGETED)
    shown = replace(report, observations=(*report.observations, other))
    assert "opencl" not in render_summary(shown)
    assert "opencl" in render_comment(shown)
    assert shown.plan is not None
    asked = replace(shown, plan=msgspec.structs.replace(shown.plan, devices=("opencl",)))
    assert "opencl" in render_summary(asked)
    silent = (reports.seen("0.27.0", Outcome.TIMEOUT), other)
    assert "opencl" in render_summary(replace(shown, observations=silent))


@pytest.mark.parametrize(
    ("outcomes", "title", "cell"),
    [
        (
            (Outcome.MATCH, Outcome.MATCH),
            "`opencl`, `metal` (testcase adapted)",
            "❌ fails as reported (run on `0.27.0`)",
        ),
        (
            (Outcome.PASS, Outcome.MATCH),
            "other devices (testcase adapted)",
            "`opencl`: ✅ runs cleanly (run on `0.27.0`); `metal`: ❌ fails as reported (run on `0.27.0`)",
        ),
    ],
)
def test_devices_that_only_adapted_runs_used_share_one_column(
    outcomes: tuple[Outcome, Outcome], title: str, cell: str
) -> None:
    """A column for each is wider than a telephone; equal results are told once."""
    report = reports.regression()
    adapted = (
        reports.seen("0.27.0", outcome, device=device, variant=Variant.RETARGETED)
        for device, outcome in zip(("opencl", "metal"), outcomes, strict=True)
    )
    own = tuple(one for one in report.observations if one.device == "llvm")
    assert report.plan is not None
    plan = msgspec.structs.replace(report.plan, devices=("opencl", "metal"))
    text = render_comment(replace(report, observations=(*own, *adapted), plan=plan))
    assert f"| release (date) | `llvm` | {title} |" in text
    assert f"| ❌ fails as reported | {cell} |" in text


def test_adapted_devices_that_ran_on_different_releases_claim_no_shared_release() -> None:
    report = reports.regression()
    adapted = (
        reports.seen(version, Outcome.MATCH, device=device, variant=Variant.RETARGETED)
        for device, version in (("opencl", "0.26.0"), ("metal", "0.27.0"))
    )
    own = tuple(one for one in report.observations if one.device == "llvm")
    text = render_comment(replace(report, observations=(*own, *adapted)))
    assert "❌ fails as reported (not run on all) |" in text


def test_runs_that_disagree_have_neither_the_sign_of_a_failure_nor_of_a_clean_run() -> None:
    """On the timeline; the table counts both."""
    report = reports.regression()
    clean = (reports.seen("0.27.0", Outcome.PASS, attempt=turn) for turn in (3, 4, 5))
    line = render_timeline(replace(report, observations=(*report.observations, *clean)))
    assert "⚪ runs disagree" in line


def test_a_run_that_did_not_start_hides_no_run_that_did() -> None:
    report = reports.regression()
    stopped = (
        reports.seen("0.27.0", Outcome.INFRA, attempt=turn, ended=NotRun(why="no space")) for turn in (3, 4, 5)
    )
    line = render_timeline(replace(report, observations=(*report.observations, *stopped)))
    assert line.endswith(" ❌ fails → 2026-08-20 **reported** → 2026-09-25 ❌ fails")


def test_two_periods_of_one_month_show_their_days() -> None:
    """``2025-03 ✅ clean → 2025-03 ❌ fails`` does not say which day brought the failure."""
    report = reports.fixed_crash()
    releases = reports.released(
        "iree",
        v3_3_0="2025-03-02",
        v3_4_0="2025-03-24",
        v3_5_0="2025-06-11",
        v3_6_0="2026-07-21",
        v3_13_0="2026-10-19",
    )
    line = render_timeline(replace(report, releases=releases))
    assert "2025-03-02 ⚪ API differs → 2025-03-24 ❌❌ fails → " in line
    assert "2026-07 ✅ clean → 2026-08 **reported** → 2026-10 ✅ clean" in line


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        ("sum 168.0", "0.0", "it prints `sum 168.0`; the report expects `0.0`"),
        # A line that both texts share, and a line that tells nothing of the value.
        (
            "div [2 1]\nmod [1 -1]",
            "div [2 1]\nby hand:\nmod [1 2]",
            "prints `mod [1 -1]`; the report expects `mod [1 2]`",
        ),
        # No expected line: any of the printed lines may be the wrong one.
        ("ours [1 2]\nnumpy [1 3]", "", "it prints `ours [1 2] ¦ numpy [1 3]`"),
        ("3", "3", "it prints `3`"),
    ],
)
def test_a_wrong_value_stands_beside_the_expected_one(actual: str, expected: str, said: str) -> None:
    report = reports.regression()
    claim = Claim(kind=ClaimKind.WRONG_RESULT, actual=actual, expected=expected)
    wrong = Signature(type=OUTPUT, message=actual.partition("\n")[0])
    runs = tuple(
        msgspec.structs.replace(one, signature=wrong) if one.answer is Answer.BAD else one
        for one in report.observations
    )
    extraction = replace(report.extraction, claim=claim)
    line = render_failure(replace(report, observations=runs, extraction=extraction))
    assert line.endswith(said)


def test_missing_parts_that_are_added_in_one_way_share_a_line() -> None:
    names = tuple(Missing(kind="name", name=name) for name in ("model", "CONFIG", "x"))
    files = tuple(Missing(kind="file", name=name) for name in ("a.npy", "b.bin"))
    body = render_request(replace(reports.incomplete(), extraction=reports.repro(missing=(*names, *files)))).body
    listed = [line for line in body.splitlines() if line.startswith("- ")]
    assert len(listed) == 2
    assert "`model`, `CONFIG` and `x`" in listed[0]
    assert "`a.npy` and `b.bin`" in listed[1]


def test_a_value_that_the_definitions_give_is_no_reason_to_repair_the_program() -> None:
    finding = Finding(
        kind=FindingKind.REFERENCE,
        summary="",
        evidence={"vote": "agrees", "name": "definition", "exact": True},
    )
    line = render_next_step(replace(reports.at_fault(), findings=(finding,)))
    assert "compare the expected values with the definitions" in line


@pytest.mark.parametrize("name", ["model.onnx", "checkpoints/tiny.NPZ", "weights.irpa"])
def test_no_binary_file_is_asked_for_as_text_or_archive(name: str) -> None:
    """Neither would be read, so the answer to such a request would be the same request again."""
    missing = (Missing(kind="file", name=name),)
    body = render_request(replace(reports.incomplete(), extraction=reports.repro(missing=missing))).body
    assert "let the testcase create it" in body
    assert ".zip" not in body
    assert "add its text" not in body


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (NotRun(why="no space", cause="infra"), "`/repro rerun` tries `0.27.0` again"),
        (Exited(code=1), "add the output and the expected output, as text"),
    ],
)
def test_the_reporter_is_not_asked_for_what_our_own_failure_hides(ended: Ended, said: str) -> None:
    report = reports.regression()
    runs = tuple(
        msgspec.structs.replace(one, outcome=Outcome.INFRA, ended=ended) if one.version == "0.27.0" else one
        for one in report.observations
    )
    verdict = replace(report.verdict, kind=VerdictKind.INCONCLUSIVE, reasons=())
    assert said in render_next_step(replace(report, observations=runs, verdict=verdict))


@pytest.mark.parametrize(
    ("kind", "headline", "reason"),
    [
        (VerdictKind.UNTESTABLE, "Running it needs a GPU.", "`no cuda device or runtime here`"),
        (
            VerdictKind.INVALID_REPRO,
            "It calls `main` the old way; `vm.main(x, w)` works.",
            "the same testcase with that call made the new way runs cleanly",
        ),
        (
            VerdictKind.CONFIRMED,
            "0.27.0 fails at the same place with another message.",
            "the type of the error and its place are the same, and only the message differs from the report",
        ),
        (VerdictKind.FIXED, "0.26.0 runs cleanly.", "0.27.0 does not run it as posted; ported to its API, it fails"),
    ],
)
def test_a_reason_that_headline_or_table_states_is_not_told_again(
    kind: VerdictKind, headline: str, reason: str
) -> None:
    """The decision below the fold keeps it."""
    report = reports.regression()
    verdict = replace(report.verdict, kind=kind, headline=headline, reasons=(reason,))
    lacking = reports.seen("0.27.0", Outcome.UNAVAILABLE, why=reason.strip("`"), reason=Reason.NO_DEVICE)
    report = replace(report, verdict=verdict, observations=(*report.observations, lacking))
    assert list_reasons(report) == ()
    assert reason.strip("`")[4:] in render_comment(report)


def test_a_limit_names_the_settings_that_raise_it() -> None:
    """A port of the testcase would not help its reader."""
    report = reports.regression()
    stopped = tuple(
        msgspec.structs.replace(one, outcome=Outcome.UNAVAILABLE, ended=NotRun(why="x", cause="forbidden"))
        for one in report.observations
    )
    verdict = replace(report.verdict, kind=VerdictKind.UNTESTABLE, reasons=())
    text = render_next_step(replace(report, observations=stopped, verdict=verdict))
    assert "`limits.download`" in text


def test_an_incomplete_program_that_ran_ends_with_what_would_settle_it() -> None:
    """Missing parts are asked for elsewhere, so the answer without runs has no next step."""
    report = reports.incomplete()
    asking = replace(report, verdict=replace(report.verdict, reasons=("to decide: the rest of the program",)))
    assert "the rest of the program" in render_next_step(asking)
