"""Each payload in every place where strangers' words go, on every surface where they come out: none has an effect."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from bot.cli.terminal import print_report
from bot.forge.run_record import IssueRecord, RecordedRun, RunState, VoidedVerdict, decode_record, encode_record
from bot.forge.sticky_comment import (
    MAX_BODY_BYTES,
    StickyComment,
    parse_report,
    parse_sticky_comment,
    render_sticky_comment,
)
from bot.report.comment import MAX_BYTES, read_marker, render_comment
from bot.report.page import render_page
from bot.report.quote import clean_text, escape_prose, format_log_line, quote_block, quote_code
from tests.bot.report import reports
from tests.bot.report.test_comment import WORDS, outside_code, poisoned
from tests.bot.report.test_page import Reader
from tests.hostile.payloads import CLASSES, for_each_text

pytestmark = pytest.mark.thorough

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
COMPARE = "https://github.com/apache/tvm/compare/v0.25.0...v0.26.0"
OUR_TAGS = re.compile(r"</?(?:details|summary)>|<!-- reprobot:1 verdict=[a-z-]+ issue=[0-9a-f]* -->")
RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")


def test_there_are_many_and_no_two_are_the_same() -> None:
    """At least 200 tricks."""
    texts = list(chain.from_iterable(CLASSES.values()))
    assert len(set(texts)) == len(texts) >= 200


def drop_fences(comment: str, tokens: Sequence[Token]) -> str:
    """Return the comment without the rows of its code fences, as a parser of Markdown sees them."""
    spans = [token.map for token in tokens if token.type == "fence" and token.map is not None]
    inside = {row for begin, end in spans for row in range(begin, end)}
    return "\n".join(row for at, row in enumerate(comment.split("\n")) if at not in inside)


def check_markdown(comment: str) -> None:
    """What GitHub would make of it: our own markup, no mention, no reference, no address, nothing unseen."""
    assert len(comment.encode("utf-8", "strict")) <= MAX_BYTES
    tokens = MARKDOWN.parse(comment)
    assert not re.search(r"@\w", drop_fences(comment, tokens))  # GitHub mentions nobody from a fence
    assert clean_text(comment).replace("\u200b", "") == comment.replace("\u200b", "")
    blocks = "".join(token.content for token in tokens if token.type == "html_block")
    assert "<" not in OUR_TAGS.sub("", blocks)
    inner = [child for token in tokens for child in token.children or ()]
    assert [child.content for child in inner if child.type in ("html_inline", "image")] in ([], ["<sub>", "</sub>"])
    assert {child.attrs["href"] for child in inner if child.type == "link_open"} <= {COMPARE}
    outside = OUR_TAGS.sub("", outside_code(comment))
    assert not re.search(r"#\d|GH-\d|www\.|://", outside, re.IGNORECASE)
    assert blocks.count("<details>") == blocks.count("</details>")


@for_each_text
def test_in_a_comment(text: str) -> None:
    """The comment keeps its shape, and ends with the one marker that counts."""
    for make in (reports.regression, reports.no_repro):
        report = make()
        comment = render_comment(poisoned(report, text))
        check_markdown(comment)
        assert read_marker(comment) == (report.verdict.kind, "")
        assert comment.count("reprobot:1 verdict=") == 1 or "reprobot:1" in text


@for_each_text
def test_in_the_sheet_that_is_taken_apart_again(text: str) -> None:
    """Note, record and history of our comment come back as they went in, whatever the report between them holds."""
    report = poisoned(reports.regression(), text)
    void = (
        VoidedVerdict(by=text[:100], at=datetime(2026, 11, 21, tzinfo=UTC), why=text[:400])
        if replace_surrogates(text)
        else None
    )
    run = RecordedRun(
        id="1", at=datetime(2026, 11, 21, tzinfo=UTC), by="ada", testcase="0" * 64, counted=True, state=RunState.DONE
    )
    sticky = StickyComment(
        note=f"> {escape_prose(text)}: said by {quote_code(text)}",
        body=parse_report(render_comment(report, MAX_BODY_BYTES)).body,
        record=IssueRecord(runs=(run,), void=void),
        verdict="regression",
        issue="ab" * 32,
    )
    posted = render_sticky_comment(sticky)
    back = parse_sticky_comment(posted)
    assert (back.note, back.record, back.verdict, back.issue) == (
        sticky.note,
        sticky.record,
        sticky.verdict,
        sticky.issue,
    )
    assert back.body == sticky.body.strip()
    assert len(posted.encode("utf-8", "strict")) <= MAX_BYTES
    assert decode_record(encode_record(sticky.record)) == sticky.record
    assert read_marker(posted) == ("regression", "ab" * 32)


def replace_surrogates(text: str) -> bool:
    """What the forge gives us has been made so before it is kept."""
    return text.encode(errors="replace").decode() == text


@for_each_text
def test_in_the_page(text: str) -> None:
    """No tag, attribute or address but our own; the page's tags are the same ones that plain words give."""
    page = Reader(render_page(poisoned(reports.regression(), text)))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in OUR_PAGE.tags}
    for _, attrs in page.tags:
        names = {name for name, _ in attrs}
        assert not {name for name in names if name.startswith("on")}
        assert names <= {name for _, known in OUR_PAGE.tags for name, _ in known}
        assert {value for name, value in attrs if name in ("href", "src", "action")} <= {COMPARE}
    assert sum(tag == "script" for tag, _ in page.tags) == 1


OUR_PAGE = Reader(render_page(poisoned(reports.regression(), "plain `code` words")))


@for_each_text
def test_on_a_terminal(text: str) -> None:
    """Only rich's own colours; nothing moves the cursor, sets a title or writes to the clipboard."""
    written = io.StringIO()
    print_report(
        poisoned(reports.regression(), text),
        Console(file=written, force_terminal=True, width=100, color_system="standard", legacy_windows=False),
    )
    left = RICH.sub("", written.getvalue())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", left)


@for_each_text
def test_in_a_log_that_a_runner_reads(text: str) -> None:
    """One line, no command in either syntax, whatever stands around it."""
    for said in (text, f"reading {text}", f"{text} and {text}"):
        line = format_log_line(said)
        assert len(line.splitlines()) <= 1
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        line.encode("utf-8", "strict")


@for_each_text
def test_in_a_fence_and_in_a_span(text: str) -> None:
    """One block, one span."""
    assert [token.type for token in MARKDOWN.parse(quote_block(text))] == ["fence"]
    (inline,) = [token for token in MARKDOWN.parse(f"x {quote_code(text)} y") if token.type == "inline"]
    assert [child.type for child in inline.children or ()] == ["text", "code_inline", "text"]


@given(text=WORDS)
def test_any_mixture_of_them_in_a_sheet(text: str) -> None:
    """Pieces of tricks put together at random, in the comment as it is posted."""
    report = parse_report(render_comment(poisoned(reports.fixed_crash(), text), MAX_BODY_BYTES))
    sticky = StickyComment(note=f"> {escape_prose(text)}.", body=report.body, verdict="fixed", issue="")
    back = parse_sticky_comment(render_sticky_comment(sticky))
    assert (back.note, back.body, back.record) == (sticky.note, sticky.body.strip(), sticky.record)


@given(text=WORDS)
def test_any_mixture_of_them_in_a_log(text: str) -> None:
    """As above, for the line of a log."""
    line = format_log_line(text)
    assert "\n" not in line
    assert "##[" not in line
    assert not line.startswith("::")
