"""Parse an issue body into code blocks and prose, with their lines, by a CommonMark parser.

GitHub renders CommonMark with a few extensions. Only the block structure matters for code, so the inline pass is left
out. Tables and link references are left out too, because they take more than linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_RESPLITS = 8
"""Number of unclosed fences that are read a second time. Each second reading parses the rest of the text again."""


class Shape(StrEnum):
    """The markup that sets a code block off from the prose."""

    FENCE = "fence"
    INDENTED = "indented"
    HTML = "html"
    """``<pre>`` or ``<code>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """One block of code. ``lines`` are the lines of ``text`` in the body: 1-based, inclusive."""

    index: int
    shape: Shape
    info: str
    text: str
    lines: tuple[int, int]
    section: str
    """The nearest heading above, as written; empty at the top."""
    intro: str
    """The prose between this block and the block or heading before it."""
    comment: int = 0
    """0 in the description; n in the author's n-th comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """One paragraph or heading outside code. ``text`` is source text with its inline markup."""

    text: str
    lines: tuple[int, int]
    section: str
    heading: bool = False
    comment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The blocks and the prose of a body, each in document order."""

    source: tuple[str, ...]
    """The body's lines; ``source[0]`` is line 1."""
    blocks: tuple[CodeBlock, ...]
    prose: tuple[Prose, ...]


def parse_markdown(body: str, comment: int = 0, first_index: int = 1) -> Document:
    """Return the blocks and the prose of ``body``. Number the blocks from ``first_index``."""
    # The parser counts these line breaks too, and replaces NUL.
    text = body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    source = text.split("\n")
    fenced = any(_ANY_FENCE.match(line) or _opens_string(line) for line in source)
    odd = sum(_FENCE_START.match(line) is not None for line in source) % 2 == 1
    builder = _Builder(
        source=source, comment=comment, next_index=first_index, quotes_are_fences=not fenced, odd_fences=odd
    )
    start = 0
    for _ in range(MAX_RESPLITS):
        cut = builder.read_from(start)
        if cut is None:
            break
        start = cut
    else:
        builder.read_from(start, resplit=False)
    return Document(source=tuple(source), blocks=tuple(builder.blocks), prose=tuple(builder.prose))


def _opens_string(line: str) -> bool:
    """True for a row of Python that opens a triple-quoted string. A row of three quotes alone closes that string."""
    return not _QUOTE_FENCE.match(line) and any(line.count(quotes) % 2 for quotes in ('"""', "'''"))


_PARSER = MarkdownIt("commonmark").disable("reference")
_PARSER.core.ruler.enableOnly(["normalize", "block"])

_HTML_LINE = re.compile(r"^ {0,3}</?(?:details|summary|div|p|center|blockquote)\b[^<>]*>", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^<>]{0,200}>")
_FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*$")
_FENCE_START = re.compile(r"^ {0,3}(?:```|~~~)")
_ANY_FENCE = re.compile(r"^[ >*+-]{0,12}(?:```|~~~)")
_QUOTE_FENCE = re.compile(r"^(?:'''|\"\"\")[ \t]*(\w{0,12})[ \t]*$")
_CODE_INFO = re.compile(r"(?:module\b[^\n]*\{|func\.func\b|import \w|from [\w.]+ import )")
"""Code on the fence's own line, in the place of the language."""
_PRE = re.compile(r"^\s*<pre\b[^<>]{0,200}>\s*(?:<code\b[^<>]{0,200}>)?", re.IGNORECASE)
_PRE_END = re.compile(r"(?:</code>)?\s*</pre>\s*$", re.IGNORECASE)
_BOLD_HEADING = re.compile(r"^(?:\*\*|__)([^*_\n]{2,80})(?:\*\*|__):?\s*$")


@dataclass(slots=True, kw_only=True)
class _Builder:
    """The blocks and the prose collected from the parser's tokens. All line numbers here are 0-based."""

    source: list[str]
    comment: int
    next_index: int
    quotes_are_fences: bool
    """True if the text has no fence and no string with three quotes. Lines of three quotes then count as fences."""
    odd_fences: bool
    """True if a line of the text opens a fence, or closes one, and has no counterpart of its own."""
    blocks: list[CodeBlock] = field(default_factory=list)
    prose: list[Prose] = field(default_factory=list)
    section: str = ""
    intro: list[str] = field(default_factory=list)
    rewritten: set[int] = field(default_factory=set)
    """Lines that are rewritten for the parser."""

    def read_from(self, start: int, resplit: bool = True) -> int | None:
        """Read from line ``start``. If a fence was left open, return the line at which to start again."""
        tokens = _PARSER.parse(self._rewrite_lines(start))
        for position, token in enumerate(tokens):
            if token.map is None:
                continue
            at = (token.map[0] + start, token.map[1] + start)
            match token.type:
                case "fence":
                    again = self._add_fence(token, at, resplit)
                    if again is not None:
                        return again
                case "code_block":
                    self._add_block(Shape.INDENTED, "", self._restore_lines(token.content, at[0]), at[0])
                case "html_block":
                    self._add_html(token, at)
                case "inline":
                    self._add_paragraph(token, at, heading=tokens[position - 1].type == "heading_open")
                case _:
                    pass
        return None

    def _rewrite_lines(self, start: int) -> str:
        """Return the text from ``start`` with lines of ``<details>`` and the like reduced to their words.

        In CommonMark, only a blank line ends such an HTML block: a fence right under ``<details>`` would be HTML.
        Reporters forget the blank line and mean a fence.
        """
        rows = self.source[start:]
        for at, line in enumerate(rows):
            if _HTML_LINE.match(line):
                rows[at] = _HTML_TAG.sub("", line).strip()
            elif self.quotes_are_fences and (found := _QUOTE_FENCE.match(line)):
                rows[at] = f"~~~{found[1]}"
            else:
                continue
            self.rewritten.add(start + at)
        return "\n".join(rows)

    def _restore_lines(self, content: str, first: int) -> str:
        """Return ``content``, which begins at line ``first``, with its rewritten lines as in the source."""
        if not self.rewritten:
            return content
        *rows, last = content.split("\n")
        restored = (self.source[first + i] if first + i in self.rewritten else row for i, row in enumerate(rows))
        return "\n".join([*restored, last])

    def _add_fence(self, token: Token, at: tuple[int, int], resplit: bool) -> int | None:
        content = self._restore_lines(token.content, at[0] + 1)
        info = token.info.strip()
        cut = self._find_early_end(token, content, at) if resplit else None
        if cut is not None:
            *rows, last = content.split("\n")[: cut + 1]
            content = "\n".join([*rows, "" if _FENCE_LINE.match(last) else last.rstrip().removesuffix(token.markup)])
        if _CODE_INFO.match(info):
            self._add_block(Shape.FENCE, "", f"{info}\n{content}", at[0])
        else:
            self._add_block(Shape.FENCE, info, content, at[0] + 1)
        return None if cut is None else at[0] + 1 + cut + 1

    def _find_early_end(self, token: Token, content: str, at: tuple[int, int]) -> int | None:
        """Return the row in ``content`` where a fence most likely ends before the line that the parser found.

        An unclosed fence ends at a line with the wrong number of fence characters. Real issues open a fence with four
        backticks and close it with three. If fences do not pair, one ends after the last word of its code.
        """
        rows = content.split("\n")
        is_open = len(rows) - 1 == at[1] - at[0] - 1
        for row, line in enumerate(rows):
            found = _FENCE_LINE.match(line)
            if is_open and found and found[1][0] == token.markup[0]:
                return row
            text, ticks, rest = line.partition("`")
            if self.odd_fences and text.strip() and f"{ticks}{rest.rstrip()}" == token.markup:
                return row
        return None

    def _add_block(self, shape: Shape, info: str, content: str, first: int) -> None:
        """Add ``content``, which begins at line ``first``, without the blank lines around it."""
        rows = content.split("\n")
        while rows and not rows[-1].strip():
            rows.pop()
        lead = next((i for i, row in enumerate(rows) if row.strip()), 0)
        rows = rows[lead:]
        self.blocks.append(
            CodeBlock(
                index=self.next_index,
                shape=shape,
                info=info,
                text="".join(f"{row}\n" for row in rows),
                lines=(first + lead + 1, first + lead + max(len(rows), 1)),
                section=self.section,
                intro="\n".join(self.intro),
                comment=self.comment,
            )
        )
        self.next_index += 1
        self.intro = []

    def _add_html(self, token: Token, at: tuple[int, int]) -> None:
        rows = token.content.split("\n")
        if _PRE.match(rows[0]):
            inner = [_PRE.sub("", rows[0], count=1), *rows[1:]]
            while inner and not inner[-1].strip():
                inner.pop()
            if inner:
                inner[-1] = _PRE_END.sub("", inner[-1])
            self._add_block(Shape.HTML, "", "\n".join(inner), at[0])
        elif not token.content.lstrip().startswith("<!--"):  # a form's instructions to the reporter
            self._add_prose(_HTML_TAG.sub(" ", token.content).strip(), at)

    def _add_paragraph(self, token: Token, at: tuple[int, int], heading: bool) -> None:
        bold = _BOLD_HEADING.match(token.content.strip())
        if heading or bold:
            title = bold[1] if bold else token.content
            self.section, self.intro = title.strip().strip("*_: "), []
            self._append_prose(title, at, heading=True)
        else:
            self._add_prose(token.content, at)

    def _add_prose(self, text: str, at: tuple[int, int]) -> None:
        if text:
            self.intro.append(text)
            self._append_prose(text, at)

    def _append_prose(self, text: str, at: tuple[int, int], heading: bool = False) -> None:
        lines = (at[0] + 1, at[1])
        prose = Prose(text=text, lines=lines, section=self.section, heading=heading, comment=self.comment)
        self.prose.append(prose)


# ---------------------------------------------------------------------------------------------- inline code

_TICKS = re.compile(r"`+")


def find_code_spans(text: str) -> Iterator[str]:
    """Yield the inline code spans of a paragraph, as the page shows them."""
    return (raw.replace("\n", " ").strip() for _, raw in locate_code_spans(text))


def locate_code_spans(text: str) -> Iterator[tuple[int, str]]:
    """Yield each code span: the offset of its opening backticks, and its text as written.

    A run of backticks is closed by the next run of the same length.
    """
    runs = list(_TICKS.finditer(text))
    by_length: dict[int, list[int]] = {}
    for at, run in enumerate(runs):
        by_length.setdefault(len(run[0]), []).append(at)
    at = 0
    while at < len(runs):
        same = by_length[len(runs[at][0])]
        later = bisect_right(same, at)
        if later == len(same):
            at += 1
            continue
        yield runs[at].start(), text[runs[at].end() : runs[same[later]].start()]
        at = same[later] + 1


def find_unclosed_span(text: str) -> str:
    """Return the text after backticks that are not closed in the paragraph; empty without such backticks."""
    end = 0
    for start, raw in locate_code_spans(text):
        ticks = _TICKS.match(text, start)
        assert ticks is not None
        end = start + 2 * len(ticks[0]) + len(raw)
    opened = _TICKS.search(text, end)
    return text[opened.end() :] if opened is not None else ""
