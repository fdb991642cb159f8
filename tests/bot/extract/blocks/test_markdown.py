"""Blocks and prose of an issue, with their lines."""

from __future__ import annotations

from textwrap import dedent

import pytest

from bot.extract.blocks.markdown import Shape, find_code_spans, parse_markdown


def blocks(body: str) -> list[tuple[str, str, tuple[int, int]]]:
    return [(b.info, b.text, b.lines) for b in parse_markdown(dedent(body).lstrip("\n")).blocks]


def test_lines_of_a_fence_are_those_of_its_content() -> None:
    """Lines are 1-based and leave the fence's own lines out."""
    assert blocks("Hi\n\n```python\na = 1\nb = 2\n```\n") == [("python", "a = 1\nb = 2\n", (4, 5))]


def test_blank_lines_inside_a_fence_edge_are_not_part_of_the_block() -> None:
    """A block starts and ends at its first and last line with text."""
    assert blocks("```\n\n\na\n\n```\n") == [("", "a\n", (4, 4))]


def test_a_fence_in_a_list_inside_a_quote_loses_both_margins() -> None:
    """What the page shows as code is the code, without quote marks and list indentation."""
    assert blocks("> 1. do\n>    ~~~py\n>    if a:\n>        b\n>    ~~~\n") == [("py", "if a:\n    b\n", (3, 4))]


def test_a_fence_right_under_details_is_a_block() -> None:
    """People forget the blank line that CommonMark wants after an HTML line."""
    body = "<details><summary>log</summary>\n```\na\n\nb\n```\n</details>\n\nbye\n"
    assert blocks(body) == [("", "a\n\nb\n", (3, 5))]


def test_details_inside_a_fence_stays_as_written() -> None:
    """Text is never changed inside code, whatever it looks like."""
    assert blocks("```\n<details>\nx\n</details>\n```\n") == [("", "<details>\nx\n</details>\n", (2, 4))]


def test_a_fence_closed_by_fewer_backticks_ends_there() -> None:
    """Opened with four, closed with three: the rest of the issue is not code."""
    body = "````py\na\n```\nprose\n\n```py\nb\n```\n"
    assert blocks(body) == [("py", "a\n", (2, 2)), ("py", "b\n", (7, 7))]


def test_a_fence_never_closed_runs_to_the_end() -> None:
    """As on GitHub's own page."""
    assert blocks("```\na\nb\n") == [("", "a\nb\n", (2, 3))]


def test_three_quotes_are_a_fence_only_where_no_real_fence_is() -> None:
    """A docstring in real code is no fence."""
    assert blocks("'''python\na\n'''\n") == [("python", "a\n", (2, 2))]
    assert blocks("```py\n'''\na\n'''\n```\n") == [("py", "'''\na\n'''\n", (2, 4))]


def test_html_pre_is_a_block() -> None:
    """Copied from a page, code may come as HTML."""
    (block,) = parse_markdown("<pre><code>a &lt; b\n</code></pre>\n").blocks
    assert block.shape is Shape.HTML
    assert block.text.startswith("a &lt; b")


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_any_newline_counts_one_line(newline: str) -> None:
    """GitHub stores CRLF; line numbers are the same."""
    (block,) = parse_markdown(newline.join(["x", "", "```", "a", "```", ""])).blocks
    assert block.lines == (4, 4)


def test_sections_and_introductions_belong_to_the_block_below() -> None:
    """Headings may be bold paragraphs; the introduction is what stands between heading (or block) and block."""
    document = parse_markdown("## Steps\n\nrun this:\n\n```\na\n```\n\n**Actual:**\n\n```\nb\n```\n")
    assert [(b.section, b.intro) for b in document.blocks] == [("Steps", "run this:"), ("Actual", "")]


def test_code_spans_pair_equal_runs_of_backticks() -> None:
    """``a`b`` is one span holding a backtick; a lone run is none."""
    assert list(find_code_spans("x `a` ``b`c`` ``` d `e`")) == ["a", "b`c", "e"]
