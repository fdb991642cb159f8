"""The page: one file, nothing loaded, nothing run, and strangers' text is text."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import example, given

from bot.report.document import format_json, make_document
from bot.report.matrix import MARKS, NO_ANSWER
from bot.report.page import render_page
from bot.report.quote import clean_text
from runners.core.protocol import Finding, FindingKind, Outcome, Reason, Variant
from tests.bot.report import reports
from tests.bot.report.test_comment import HOSTILE, WORDS, poisoned

Tag = tuple[str, tuple[tuple[str, str | None], ...]]


class Reader(HTMLParser):
    """Tags with their attributes, the text outside style and data, and the data block's own text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.text: list[str] = []
        self.data = ""
        self.style = ""
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.data += data
        elif self._inside == "style":
            self.style += data
        else:
            self.text.append(data)


@pytest.mark.parametrize("name", reports.ALL)
def test_the_page_loads_no_address_and_runs_no_script(name: str) -> None:
    """No address but those of the releases, no script but a data block, and a policy that allows one known style."""
    reader = Reader(render_page(reports.ALL[name]()))
    addresses = [
        value for _, attrs in reader.tags for key, value in attrs if key in ("src", "href", "action", "srcset")
    ]
    assert set(addresses) <= {
        "https://github.com/apache/tvm/compare/v0.25.0...v0.26.0",
        "https://github.com/iree-org/iree/releases/tag/v3.6.0",
    }
    assert [attrs for tag, attrs in reader.tags if tag == "script"] == [
        (("type", "application/json"), ("id", "report"))
    ]
    assert not re.search(r"url\(|@import", reader.style)
    policy = next(dict(attrs)["content"] for tag, attrs in reader.tags if tag == "meta" and "content" in dict(attrs))
    digest = base64.b64encode(hashlib.sha256(reader.style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@given(text=WORDS)
@example(text=HOSTILE)
@example(text="</script></style></title><script>alert(1)</script>")
@example(text="{{ 7 * 7 }} {% raw %}")
@pytest.mark.thorough
def test_no_text_of_a_stranger_becomes_markup(text: str) -> None:
    """The elements of the page are those that plain words give, and no attribute holds a stranger's word."""
    if not clean_text(text).strip():
        return  # an empty field has no element of its own
    page = Reader(render_page(poisoned(reports.regression(), text)))
    plain = Reader(render_page(poisoned(reports.regression(), "plain")))
    in_prose = {"code", "br"}  # a sentence of ours may turn what stands between backticks into code
    assert [tag for tag in page.tags if tag[0] not in in_prose] == [
        tag for tag in plain.tags if tag[0] not in in_prose
    ]
    assert "49" not in "".join(page.text) or "49" in text


@given(text=WORDS)
@example(text="</script>\u2028<!--")
def test_the_embedded_report_is_the_json_document(text: str) -> None:
    """A tool reads the same document from the page as from ``--json``, for any text of strangers."""
    report = poisoned(reports.fixed_crash(), text)
    embedded = json.loads(Reader(render_page(report)).data)
    embedded.pop("comment")
    wanted = json.loads(format_json(make_document(report, "")))
    wanted.pop("comment")
    assert embedded == wanted


def test_the_page_shows_code_as_it_ran_and_every_run() -> None:
    """``@`` is unchanged, because a file mentions no user; and each observation is shown."""
    page = render_page(reports.regression())
    text = "".join(Reader(page).text)
    assert "@I.ir_module\nclass Pool:" in text
    assert "block 1 (line 9) and block 3 (lines 30-42)" in text
    assert page.count("<details") == len(reports.regression().observations)
    assert "✗ fails as reported (2 of 2)" in text
    assert page.count('class="evidence"') == 2


@pytest.mark.parametrize(("name", "absent"), [("no_repro", "What ran"), ("incomplete", "Each run")])
def test_empty_sections_are_left_out(name: str, absent: str) -> None:
    """A page about an issue without a testcase has no empty headings."""
    assert absent not in render_page(reports.ALL[name]())


def test_folded_parts_of_the_comment_are_shown_open() -> None:
    """The page's Markdown knows no HTML: a fold of the comment's would be shown as its tags."""
    finding = Finding(
        kind=FindingKind.GUILTY_PASS, summary="seen", evidence={"difference": ["-h = f(x)", "+h = g(x)"]}
    )
    reader = Reader(render_page(replace(reports.regression(), findings=(finding,))))
    text = "".join(reader.text)
    assert "The module before and after:" in text
    assert "+h = g(x)" in text
    assert "<details>" not in text


@pytest.mark.parametrize("name", reports.ALL)
def test_a_part_that_the_text_refers_to_is_a_heading(name: str) -> None:
    """*Reproduce it by hand* in the next step is the comment's folded part, and this heading."""
    page = render_page(reports.ALL[name]())
    for part in re.findall(r"<em>(.+?)</em>", page):
        assert f"<h2>{part}</h2>" in page


def test_the_page_has_the_command_that_ranks_the_commits() -> None:
    """The next step refers to it."""
    assert "reprobot suspects" in render_page(reports.regression()).partition("<script")[0]


def test_every_change_to_the_testcase_is_shown() -> None:
    """The page shows the changes of variants as the comment does."""
    report = reports.regression()
    ported = reports.seen("0.27.0", Outcome.PASS, variant=Variant.PORTED)
    ported = msgspec.structs.replace(ported, changes=("old.name → new.name",))
    page = render_page(replace(report, observations=(*report.observations, ported)))
    assert "old.name → new.name" in "".join(Reader(page).text)


@pytest.mark.parametrize("name", reports.ALL)
def test_a_reader_without_mouse_or_sight_gets_the_whole_page(name: str) -> None:
    """What may scroll takes the focus and has a name; the picture has a title and a description; ids are unique."""
    reader = Reader(render_page(reports.ALL[name]()))
    for tag, attrs in reader.tags:
        told = dict(attrs)
        if tag == "pre" or "wide" in (told.get("class") or ""):
            assert told["tabindex"] == "0"
        if "wide" in (told.get("class") or ""):
            assert (told["role"], bool(told["aria-label"])) == ("region", True)
        if tag == "th":
            assert told["scope"] in ("row", "col")
    ids = [value for _, attrs in reader.tags for key, value in attrs if key == "id"]
    assert len(ids) == len(set(ids))
    pictures = [dict(attrs) for tag, attrs in reader.tags if tag == "svg"]
    for picture in pictures:
        assert picture["role"] == "img"
        assert set((picture["aria-labelledby"] or "").split()) <= set(ids)
    headings = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch(r"h[1-6]", tag)]
    assert headings[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(headings))


def test_the_picture_says_in_words_what_it_shows() -> None:
    """Each release with its day and its outcome, and the day of the report; colours are not the only sign."""
    page = render_page(reports.regression())
    description = page.partition("<desc")[2].partition("</desc>")[0]
    for words in ("0.25.0, 2026-06-19: runs cleanly", "0.26.0, 2026-08-11: fails as reported", "on 2026-08-20"):
        assert words in description
    assert '<path class="stroke bad"' in page
    assert '<circle class="mark good"' in page
    assert "<svg" not in render_page(reports.no_repro())


def test_a_narrow_screen_has_the_timeline_in_words() -> None:
    """The picture is wider than a phone: its newest releases would be out of sight."""
    page = render_page(reports.regression())
    found = re.search(r'<div class="strip"><p>(Timeline: .*?)</p>', page)
    assert found is not None
    assert not set(found[1]) & {*MARKS.values(), NO_ANSWER}
    assert " → " in found[1]
    assert '<div class="wide drawn"' in page


def test_the_page_tells_the_failure_beside_the_next_step() -> None:
    page = render_page(reports.fixed_crash())
    section = page.partition("<h2>Why, and what to do next</h2>")[2].partition("</section>")[0]
    assert "<p>Failure on " in section


def test_a_run_that_only_compiled_has_its_own_sign() -> None:
    """On the page, as in the comment and in the JSON."""
    report = reports.regression()
    compiled = reports.seen("0.27.0", Outcome.UNAVAILABLE, device="cuda", reason=Reason.COMPILES_WITHOUT_DEVICE)
    page = render_page(replace(report, observations=(*report.observations, compiled)))
    assert "□ compiles, not run" in page
    assert '"behaviour": "compiles-only"' in page
