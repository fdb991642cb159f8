"""Parse an issue into blocks and prose, with their lines."""

from __future__ import annotations

from textwrap import dedent

import pytest

from bot.extract.blocks.markdown import Shape, find_code_spans, parse_markdown


def parse_blocks(body: str) -> list[tuple[str, str, tuple[int, int]]]:
    return [(b.info, b.text, b.lines) for b in parse_markdown(dedent(body).lstrip("\n")).blocks]


def test_lines_of_a_fence_are_those_of_its_content() -> None:
    """Lines are 1-based and do not include the lines of the fence itself."""
    assert parse_blocks("Hi\n\n```python\na = 1\nb = 2\n```\n") == [("python", "a = 1\nb = 2\n", (4, 5))]


def test_blank_lines_inside_a_fence_edge_are_not_part_of_the_block() -> None:
    """A block starts and ends at its first and last line with text."""
    assert parse_blocks("```\n\n\na\n\n```\n") == [("", "a\n", (4, 4))]


def test_a_fence_in_a_list_in_a_quote_loses_both_margins() -> None:
    """The code is the code that the page shows, without quote marks and list indentation."""
    assert parse_blocks("> 1. do\n>    ~~~py\n>    if a:\n>        b\n>    ~~~\n") == [
        ("py", "if a:\n    b\n", (3, 4))
    ]


def test_a_fence_right_under_details_is_a_block() -> None:
    """Reporters forget the blank line that CommonMark requires after an HTML line."""
    body = "<details><summary>log</summary>\n```\na\n\nb\n```\n</details>\n\nbye\n"
    assert parse_blocks(body) == [("", "a\n\nb\n", (3, 5))]


def test_details_inside_a_fence_stays_as_written() -> None:
    """Text inside code never changes, not even text that looks like HTML."""
    assert parse_blocks("```\n<details>\nx\n</details>\n```\n") == [("", "<details>\nx\n</details>\n", (2, 4))]


def test_a_fence_closed_by_fewer_backticks_ends_there() -> None:
    """Opened with four, closed with three: the rest of the issue is not code."""
    body = "````py\na\n```\nprose\n\n```py\nb\n```\n"
    assert parse_blocks(body) == [("py", "a\n", (2, 2)), ("py", "b\n", (7, 7))]


def test_a_fence_never_closed_runs_to_the_end() -> None:
    """GitHub's own page does the same."""
    assert parse_blocks("```\na\nb\n") == [("", "a\nb\n", (2, 3))]


def test_a_fence_may_end_behind_the_last_word_of_its_code() -> None:
    """Only where the fences of the text do not pair. The fences below keep their places."""
    body = "```py\na\nb()```\nprose\n\n```\nc\n```\n"
    assert parse_blocks(body) == [("py", "a\nb()\n", (2, 3)), ("", "c\n", (7, 7))]
    assert parse_blocks("```py\na = x```\nb\n```\n") == [("py", "a = x```\nb\n", (2, 3))]


def test_three_quotes_are_a_fence_only_where_no_real_fence_is() -> None:
    """A docstring in real code is no fence."""
    assert parse_blocks("'''python\na\n'''\n") == [("python", "a\n", (2, 2))]
    assert parse_blocks('x = """\na\n"""\ny = 1\n"""\nb\n"""\n') == []
    assert parse_blocks("```py\n'''\na\n'''\n```\n") == [("py", "'''\na\n'''\n", (2, 4))]


def test_html_pre_is_a_block() -> None:
    """Code copied from a page may be HTML."""
    (block,) = parse_markdown("<pre><code>a &lt; b\n</code></pre>\n").blocks
    assert block.shape is Shape.HTML
    assert block.text.startswith("a &lt; b")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_any_newline_counts_one_line(newline: str) -> None:
    """GitHub stores CRLF. The line numbers do not change."""
    (block,) = parse_markdown(newline.join(["x", "", "```", "a", "```", ""])).blocks
    assert block.lines == (4, 4)


def test_sections_and_introductions_belong_to_the_block_below() -> None:
    """Headings may be bold paragraphs. The introduction is the prose since the last heading or block."""
    document = parse_markdown("## Steps\n\nrun this:\n\n```\na\n```\n\n**Actual:**\n\n```\nb\n```\n")
    assert [(b.section, b.intro) for b in document.blocks] == [("Steps", "run this:"), ("Actual", "")]


def test_code_spans_pair_equal_runs_of_backticks() -> None:
    """``a`b`` is one span that holds a backtick; a lone run is no span."""
    assert list(find_code_spans("x `a` ``b`c`` ``` d `e`")) == ["a", "b`c", "e"]
