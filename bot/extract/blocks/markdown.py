"""Issue body → code blocks and prose with their lines, over a real CommonMark parser.

GitHub renders CommonMark with a few extensions; for finding code only the block structure matters, so the
inline pass is left out, and with it the tables and link references that cost more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_RESPLITS = 8
"""How many unclosed fences are looked into for a second reading; each costs one more pass over the rest."""


class Shape(StrEnum):
    """How a block of code is set off from the prose."""

    FENCE = "fence"
    INDENTED = "indented"
    HTML = "html"
    """``<pre>`` or ``<code>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of code. ``lines`` are those of ``text`` in the body: 1-based, inclusive."""

    index: int
    shape: Shape
    info: str
    text: str
    lines: tuple[int, int]
    section: str
    """The nearest heading above, as written; empty at the top."""
    intro: str
    """The prose between the block (or heading) before this one and this one."""
    comment: int = 0
    """0 in the description; n in the author's n-th comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """One paragraph or heading outside code. ``text`` is source text, inline marks included."""

    text: str
    lines: tuple[int, int]
    section: str
    heading: bool = False
    comment: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A body as its blocks and its prose, each in document order."""

    source: tuple[str, ...]
    """The body's lines; ``source[0]`` is line 1."""
    blocks: tuple[Block, ...]
    prose: tuple[Prose, ...]


def normalise_newlines(text: str) -> str:
    """Every line break as ``\\n``, the way the parser counts lines; NUL as the replacement character."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def parse_markdown(body: str, comment: int = 0, first_index: int = 1) -> Document:
    """The blocks and prose of ``body``; blocks are numbered from ``first_index``."""
    source = normalise_newlines(body).split("\n")
    fenced = any(_ANY_FENCE.match(line) for line in source)
    builder = _Builder(source=source, comment=comment, next_index=first_index, quotes_are_fences=not fenced)
    start = 0
    for _ in range(MAX_RESPLITS):
        cut = builder.read(start)
        if cut is None:
            break
        start = cut
    else:
        builder.read(start, resplit=False)
    return Document(source=tuple(source), blocks=tuple(builder.blocks), prose=tuple(builder.prose))


_PARSER = MarkdownIt("commonmark").disable("reference")
_PARSER.core.ruler.enableOnly(["normalize", "block"])

_HTML_LINE = re.compile(r"^ {0,3}</?(?:details|summary|div|p|center|blockquote)\b[^<>]*>", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^<>]{0,200}>")
_FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*$")
_ANY_FENCE = re.compile(r"^[ >*+-]{0,12}(?:```|~~~)")
_QUOTE_FENCE = re.compile(r"^(?:'''|\"\"\")[ \t]*(\w{0,12})[ \t]*$")
_CODE_INFO = re.compile(r"(?:module\b[^\n]*\{|func\.func\b|import \w|from [\w.]+ import )")
"""First lines of code that stand right behind the fence, where its language belongs."""
_PRE = re.compile(r"^\s*<pre\b[^<>]{0,200}>\s*(?:<code\b[^<>]{0,200}>)?", re.IGNORECASE)
_PRE_END = re.compile(r"(?:</code>)?\s*</pre>\s*$", re.IGNORECASE)
_BOLD_HEADING = re.compile(r"^(?:\*\*|__)([^*_\n]{2,80})(?:\*\*|__):?\s*$")


class _Builder:
    """Collects blocks and prose from one token stream (and from the rest behind a fence left open)."""

    def __init__(self, source: list[str], comment: int, next_index: int, quotes_are_fences: bool) -> None:
        self.quotes_are_fences = quotes_are_fences
        self.source = source
        self.comment = comment
        self.next_index = next_index
        self.blocks: list[Block] = []
        self.prose: list[Prose] = []
        self.section = ""
        self.intro: list[str] = []

    def read(self, start: int, resplit: bool = True) -> int | None:
        """Read from line ``start`` (0-based) on; a line to start again from, when a fence was left open there."""
        text, plain = _as_meant(self.source[start:], self.quotes_are_fences)
        tokens = _PARSER.parse(text)
        for position, token in enumerate(tokens):
            if token.map is None:
                continue
            at = (token.map[0] + start, token.map[1] + start)
            match token.type:
                case "fence":
                    again = self._fence(token, at, plain, start, resplit)
                    if again is not None:
                        return again
                case "code_block":
                    self._add(Shape.INDENTED, "", _restored(token.content, at[0], plain, self.source, start), at[0])
                case "html_block":
                    self._html(token, at)
                case "inline":
                    self._paragraph(token, at, heading=tokens[position - 1].type == "heading_open")
                case _:
                    pass
        return None

    def _fence(
        self, token: Token, at: tuple[int, int], plain: frozenset[int], start: int, resplit: bool
    ) -> int | None:
        content = _restored(token.content, at[0] + 1, plain, self.source, start)
        if _CODE_INFO.match(token.info.strip()):
            self._add(Shape.FENCE, "", f"{token.info.strip()}\n{content}", at[0])
            return None
        cut = _early_end(token, content, at) if resplit else None
        if cut is None:
            self._add(Shape.FENCE, token.info.strip(), content, at[0] + 1)
            return None
        kept = "".join(f"{line}\n" for line in content.split("\n")[:cut])
        self._add(Shape.FENCE, token.info.strip(), kept, at[0] + 1)
        return at[0] + 1 + cut + 1

    def _add(self, shape: Shape, info: str, content: str, first: int) -> None:
        """``content`` begins at line ``first`` (0-based); blank lines around it are not part of the block."""
        rows = content.split("\n")
        while rows and not rows[-1].strip():
            rows.pop()
        lead = next((i for i, row in enumerate(rows) if row.strip()), 0)
        rows = rows[lead:]
        lines = (first + lead + 1, first + lead + max(len(rows), 1))
        self.blocks.append(
            Block(
                index=self.next_index,
                shape=shape,
                info=info,
                text="".join(f"{row}\n" for row in rows),
                lines=lines,
                section=self.section,
                intro="\n".join(self.intro),
                comment=self.comment,
            )
        )
        self.next_index += 1
        self.intro = []

    def _html(self, token: Token, at: tuple[int, int]) -> None:
        rows = token.content.split("\n")
        if _PRE.match(rows[0]):
            inner = [_PRE.sub("", rows[0], count=1), *rows[1:]]
            while inner and not inner[-1].strip():
                inner.pop()
            if inner:
                inner[-1] = _PRE_END.sub("", inner[-1])
            self._add(Shape.HTML, "", "\n".join(inner), at[0])
        elif not token.content.lstrip().startswith("<!--"):  # a form's instructions to the reporter
            self._say(_HTML_TAG.sub(" ", token.content).strip(), at)

    def _paragraph(self, token: Token, at: tuple[int, int], heading: bool) -> None:
        bold = _BOLD_HEADING.match(token.content.strip())
        if heading or bold:
            title = bold[1] if bold else token.content
            self.section, self.intro = title.strip().strip("*_: "), []
            self.prose.append(
                Prose(text=title, lines=(at[0] + 1, at[1]), section=self.section, heading=True, comment=self.comment)
            )
        else:
            self._say(token.content, at)

    def _say(self, text: str, at: tuple[int, int]) -> None:
        if text:
            self.intro.append(text)
            self.prose.append(Prose(text=text, lines=(at[0] + 1, at[1]), section=self.section, comment=self.comment))


def _as_meant(source: Sequence[str], quotes_are_fences: bool) -> tuple[str, frozenset[int]]:
    """The text with lines that open or close ``<details>`` and the like reduced to their words.

    CommonMark ends such a block at a blank line only, so that a fence right under ``<details>`` would be HTML; people
    forget the blank line, and mean a fence. In a text without any fence, lines of three quotes are taken for fences.
    Also returned: which lines were changed (0-based).
    """
    changed: set[int] = set()
    rows: list[str] = []
    for i, line in enumerate(source):
        if _HTML_LINE.match(line):
            changed.add(i)
            rows.append(_HTML_TAG.sub("", line).strip())
        elif quotes_are_fences and (found := _QUOTE_FENCE.match(line)):
            changed.add(i)
            rows.append(f"~~~{found[1]}")
        else:
            rows.append(line)
    return "\n".join(rows), frozenset(changed)


def _restored(content: str, first: int, changed: frozenset[int], source: Sequence[str], start: int) -> str:
    """``content`` with the lines that `_as_meant` changed as they were written."""
    if not changed:
        return content
    rows = content.split("\n")
    for i in range(len(rows) - 1):
        if first + i - start in changed:
            rows[i] = source[first + i]
    return "\n".join(rows)


def _early_end(token: Token, content: str, at: tuple[int, int]) -> int | None:
    """Where a fence that was never closed most likely ends: at a line of fence characters of the wrong number.

    Seen in real issues: opened with four backticks and closed with three. The row in ``content``, or None.
    """
    assert token.map is not None
    rows = content.count("\n")
    if rows != at[1] - at[0] - 1:
        return None  # its closing line was found
    for row, line in enumerate(content.split("\n")):
        found = _FENCE_LINE.match(line)
        if found and found[1][0] == token.markup[0]:
            return row
    return None


# ---------------------------------------------------------------------------------------------- inline code

_TICKS = re.compile(r"`+")


def code_spans(text: str) -> Iterator[str]:
    """The inline code spans of a paragraph, as the page shows them."""
    return (raw.replace("\n", " ").strip() for _, raw in located_spans(text))


def located_spans(text: str) -> Iterator[tuple[int, str]]:
    """Where each code span's opening backticks stand, and its text as written.

    Linear: a run of backticks closes with the next run of its length.
    """
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for i, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(i)
    places = {length: iter(found) for length, found in by_length.items()}
    current = {length: next(it, None) for length, it in places.items()}
    i = 0
    while i < len(runs):
        start, end = runs[i]
        length = end - start
        at = current[length]
        while at is not None and at <= i:
            at = next(places[length], None)
        current[length] = at
        if at is None:
            i += 1
            continue
        yield start, text[end : runs[at][0]]
        i = at + 1
