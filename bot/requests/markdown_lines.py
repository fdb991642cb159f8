"""Find the lines of a Markdown text that may contain a command, and the code blocks under them. Pure.

A command is a line of a top-level paragraph. Lines in code, quotes, lists, headings and HTML are not commands: people
quote commands and paste logs, and mail clients quote whole threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_BLOCKS = 4
MAX_BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """A fenced block that replaces the issue's testcase. Untrusted text."""

    info: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashLine:
    """A line that begins with the prefix. ``number`` is its 1-based line in the comment."""

    number: int
    text: str
    blocks: tuple[CodeBlock, ...] = ()
    """The fenced blocks right under the line."""


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").disable("reference")
    # Only these inline rules are needed to distinguish code spans and HTML from text. All other text does not change.
    parser.inline.ruler.enableOnly(["text", "newline", "backticks", "html_inline"])
    parser.inline.ruler2.enableOnly([])
    return parser


_PARSER = _make_parser()


def find_command_lines(body: str, prefix: str) -> Iterator[SlashLine]:
    """Yield every line that counts as a command, in order."""
    command = re.compile(rf"{re.escape(prefix)}(?:\s|$)")
    html = _OpenTags()
    tokens = _PARSER.parse(body)
    for i, token in enumerate(tokens):
        if token.type == "html_block":
            html.feed(token.content)
        elif (
            token.type == "inline"
            and tokens[i - 1].type == "paragraph_open"
            and token.level == 1
            and not html.has_open
        ):
            rows = list(_split_paragraph(token))
            for offset, text in enumerate(rows):
                if text is not None and command.match(text):
                    is_last = offset == len(rows) - 1
                    yield SlashLine(
                        number=(token.map or [0])[0] + offset + 1,
                        text=" ".join(text.split()),
                        blocks=tuple(_take_fences(tokens[i + 2 :])) if is_last else (),
                    )


def has_code(body: str) -> bool:
    """True if the text may contain a fenced block."""
    return "```" in body or "~~~" in body


def find_fences(body: str) -> tuple[CodeBlock, ...]:
    """Return the first fenced blocks at the top level of a text."""
    fences = [token for token in _PARSER.parse(body) if token.type == "fence" and token.level == 0]
    return tuple(_take_fences(fences))


def _split_paragraph(paragraph: Token) -> Iterator[str | None]:
    """Yield the paragraph's lines; None for a line that begins inside a code span or inside HTML."""
    row: str | None = ""
    for child in paragraph.children or ():
        match child.type:
            case "softbreak" | "hardbreak":
                yield row
                row = ""
            case "text":
                row = None if row is None else row + child.content
            case _:
                # A code span or a tag may contain line ends; the lines after them begin inside it.
                written = f"`{child.content}`" if child.type == "code_inline" else child.content
                for _ in range(written.count("\n")):
                    yield row
                    row = None
                row = None if row is None else row + written
    yield row


def _take_fences(tokens: Sequence[Token]) -> Iterator[CodeBlock]:
    """Yield the fenced blocks at the start of ``tokens``, up to the first token of another type."""
    for token in tokens[:MAX_BLOCKS]:
        if token.type != "fence" or len(token.content.encode(errors="replace")) > MAX_BLOCK_BYTES:
            return
        yield CodeBlock(info=token.info.strip()[:40], text=token.content)


class _OpenTags(HTMLParser):
    """Tracks the HTML elements that are open: text between ``<details>`` and its end tag belongs to HTML."""

    VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self._open: list[str] = []

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID and len(self._open) < 100:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
