"""Text that GitHub's page hides never becomes a testcase."""

from __future__ import annotations

import time

import pytest

from bot.extract import Repro, extract
from bot.extract.blocks.hidden import blank_hidden
from bot.forge.attachments import find_links
from tests.bot.extract.reading import make_issue

_HIDDEN = "import tvm\nHIDDEN = 1\nassert tvm.compile is None\n"
_FENCE = f"```python\n{_HIDDEN}```\n"
_SHOWN = "```python\nimport tvm\nassert tvm.compile is None\n```\n"

_SHAPES = {
    "comment": f"<!--\n{_FENCE}-->\n",
    "comment with blank lines": f"<!-- x\n\n{_FENCE}\n-->\n",
    "comment after a div": f"<div><!--\n{_FENCE}--></div>\n",
    "comment after details": f"<details><!--\n{_FENCE}--></details>\n",
    "comment over several blocks": f"<p><!--\n\n{_FENCE}\n--></p>\n",
    "comment over blocks, closed by HTML": f"<p><!--\n\n{_FENCE}\n</p> -->\n",
    "comment that text seems to close": f"<p><!--\n\n--> <br>\n\n{_FENCE}\n",
    "comment in a quote": "> <!--\n" + "".join(f"> {line}\n" for line in _FENCE.splitlines()) + "> -->\n",
    "comment in a paragraph": f"Hello <!--\n{_HIDDEN}-->\n",
    "pre in a comment": f"<!-- <pre>\n{_HIDDEN}</pre> -->\n",
    "three quotes in a comment": f"<!-- hello\n\n'''\n{_HIDDEN}'''\n-->\n",
    "backtick in a comment of a paragraph": f"x <!-- ` --> <!-- `\n{_HIDDEN}-->\n",
    "script": f"<script>\n{_FENCE}</script>\n",
    "style": f"<style>\n{_HIDDEN}</style>\n",
    "instruction": f"<?x\n{_FENCE}?>\n",
    "instruction that opens a comment": f"text <?x > <!-- ?>\n\n{_FENCE}",
    "CDATA": f"<![CDATA[\n{_FENCE}]]>\n",
    "attribute": f"<p title='\n{_FENCE}'></p>\n",
    "attribute over several blocks": f"<p title='\n\n{_FENCE}\n'></p>\n",
    "attribute with an apostrophe before": f"<p don't><!-- '>\n{_FENCE}--></p>\n",
    "footnote": "[^1]: note\n\n" + "".join(f"    {line}\n" for line in _HIDDEN.splitlines()),
    "fence in a footnote": "[^1]: note\n\n" + "".join(f"    {line}\n" for line in _FENCE.splitlines()),
    "title of a link": f'See [x](http://e.x "\n{_HIDDEN}").\n',
    "title of a reference": f"[x]: http://e.x '\n{_HIDDEN}'\n",
    "description of an image": f"![\n{_HIDDEN}](http://e.x/y.png)\n",
}


@pytest.mark.parametrize("hidden", _SHAPES.values(), ids=_SHAPES)
@pytest.mark.parametrize("shown", ["", _SHOWN], ids=["alone", "beside a visible testcase"])
def test_hidden_code_is_no_testcase(hidden: str, shown: str) -> None:
    """A maintainer who approves a testcase has seen its code."""
    for body in (hidden + "\n" + shown, shown + "\n" + hidden):
        issue = make_issue(f"apache-tvm 0.25.0\n\n{body}\n```\nAssertionError\n```\n")
        found = extract(issue, toolchain="tvm")
        code = "".join(found.testcase.files.values()) if isinstance(found, Repro) else ""
        assert "HIDDEN" not in code, body


def test_hidden_links_are_not_followed() -> None:
    """A link in an HTML comment names no file of the report."""
    link = "[model.py](https://github.com/user-attachments/files/1/model.py)"
    assert find_links(make_issue(f"See {link}\n"))
    assert not find_links(make_issue(f"<p><!--\n\n{link}\n\n</p> -->\n"))


@pytest.mark.parametrize(
    "body",
    [
        "```html\n<!-- a\n```\n\nb\n\n```\n-->\n```\n",
        "Call `<!--` here.\n\n    <!-- code\n\n-->\n",
        "<details><summary>log</summary>\n\n```\na\n```\n\n</details>\n",
        "<div>\nfunc.func @f(%a: memref<?xf32>, %b: tensor<?x4xf32>)\nif a < b and c > d:\n</div>\n",
        "a <b: and\nc> d, x <script> y\n\nz\n",
    ],
)
def test_visible_text_stays(body: str) -> None:
    """Code that mentions comments, and code under a line of HTML, is unchanged."""
    assert blank_hidden(body) == body


def test_lines_keep_their_numbers() -> None:
    """The text after a comment stands in the line in which the author wrote it."""
    assert blank_hidden("a\r\n<!-- b\n\nc --> d\n\ne") == "a\n\n\n d\n\ne"


@pytest.mark.parametrize(
    "piece",
    [
        *("<!--", "<", "<a ", '<a b="', "<?", "<![CDATA[", "<!x", "<script", "<script>\n", "x <!--\n", "<p a='\n\n"),
        *("<a b", "<p><!--\n\n", "<!-->", "</script", "<a " + "b " * 40, "\n<style>x"),
        *('](a "', "](", "](a 'b", "\n[a]: b (", "x\n![", "\n![a]", "](a (", "[^1]: ", "\n[^1]: x\n\n    a"),
    ],
)
def test_hidden_text_is_found_in_linear_time(piece: str) -> None:
    """No text of 64 KiB takes more than a moment."""
    for body in (piece * (65_536 // len(piece)), "<p>\n" + piece * (65_536 // len(piece))):
        start = time.process_time()
        blank_hidden(body)
        assert time.process_time() - start < 3
