"""Blank the text of an issue that GitHub's page does not show: HTML comments, scripts, styles, attributes. Pure.

A maintainer approves a testcase after a look at the page, so hidden text must never become a testcase. GitHub cuts
the text into blocks by CommonMark; the browser then reads their HTML. This module follows both. If the two could end
a hidden part at different places, everything up to the end counts as hidden.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from string import ascii_lowercase, ascii_uppercase

from markdown_it import MarkdownIt

from bot.issue import Issue

_PARSER = MarkdownIt("commonmark").disable("reference")
_PARSER.core.ruler.enableOnly(["normalize", "block"])

_OPENING = re.compile(
    r"<(?:(?P<comment>!--)|(?P<bogus>[!?]|/(?=[^A-Za-z>]))"
    r"|(?P<raw>script|style)(?=[\s/>]|$)"
    r"|(?P<tag>/?[A-Za-z][^\s/>]*))",
    re.IGNORECASE,
)
_COMMENT_END = re.compile(r"--!?>")
_EMPTY_COMMENT = re.compile(r"-?>")
_ATTRIBUTE = re.compile(r"[\s/]+|[^\s/>][^\s/>=]*(?:\s*=\s*(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^\s>\"'][^\s>]*)?)?")
_INLINE_TAG = re.compile(
    r"<[A-Za-z][A-Za-z0-9-]*"
    r"(?:\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+))?)*\s*/?>"
)
_INLINE_CLOSINGS = (
    ("<!--", "-->"),
    ("<![cdata[", "]]>"),
    ("<?", "?>"),
    ("<!", ">"),
    ("<script", "</script"),
    ("<style", "</style"),
)
_FOOTNOTE = re.compile(r"^[ \t>*+-]{0,12}\[\^[^\]\s]{1,200}\]:", re.MULTILINE)
"""A footnote. The page shows it at its end if the text refers to it, else nowhere."""
_BEFORE_TITLE = (
    r"(?:\]\(|^[ \t>*+-]{0,12}\[[^\]\n]{1,200}\]:)"  # an inline link, or the definition of a reference
    r"\s{0,20}(?:<[^<>\n]{0,500}>|\S{0,500})\s{1,20}"  # the address
)
_TITLE = re.compile(
    _BEFORE_TITLE + r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))", re.MULTILINE | re.DOTALL
)
"""A link with a title, which the page shows only under the pointer."""
_IMAGE_END = re.compile(r"\][(\[]")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_LINES = re.compile(r"[^\n]+")


def drop_hidden(issue: Issue) -> Issue:
    """Return ``issue`` with only the text that GitHub's page shows, in the same lines."""
    comments = tuple(replace(comment, body=blank_hidden(comment.body)) for comment in issue.comments)
    return replace(issue, body=blank_hidden(issue.body), comments=comments)


def blank_hidden(text: str) -> str:
    """Return ``text`` without its hidden parts. Every line keeps its number."""
    if not any(sign in text for sign in ("<", "](", "][", "]:")):
        return text
    rows = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd").split("\n")
    page, in_footnote = _Page(), False
    for token in _PARSER.parse("\n".join(rows)):
        if token.map is None or token.type not in ("fence", "code_block", "html_block", "inline"):
            continue
        first, last = token.map[0], min(token.map[1], len(rows))
        block = "\n".join(rows[first:last])
        in_footnote = in_footnote and token.type == "code_block"
        if in_footnote:
            block = _blank(block)
        elif token.type == "html_block":
            block = page.read_html(block)
        elif token.type == "inline":
            if footnote := _FOOTNOTE.search(block):
                block = block[: footnote.start()] + _blank(block[footnote.start() :])
                in_footnote = True
            block = _blank_titles(page.read_paragraph(block))
        elif page.is_hidden:
            block = _blank(block)
        rows[first:last] = block.split("\n")
    return "\n".join(rows)


@dataclass(slots=True)
class _Page:
    """The browser's state between two blocks: a comment may begin in one HTML block and end in a later one."""

    closing: re.Pattern[str] | None = None
    """The end of a hidden part that is open."""
    is_lost: bool = False
    """True if the place where the hidden part ends is not certain: everything from here on is hidden."""
    kept: list[str] = field(default_factory=list)

    @property
    def is_hidden(self) -> bool:
        return self.is_lost or self.closing is not None

    def read_html(self, text: str) -> str:
        """Return raw HTML without its hidden parts."""
        self.kept = []
        at = 0
        while at < len(text):
            if self.is_lost:
                self.kept.append(_blank(text[at:]))
                break
            if self.closing is not None:
                end = self.closing.search(text, at)
                stop = end.end() if end else len(text)
                self.closing = None if end else self.closing
                self.kept.append(_blank(text[at:stop]))
                at = stop
            elif (found := _OPENING.search(text, at)) is not None:
                self.kept.append(text[at : found.start()])
                at = self._open(text, found)
            else:
                self.kept.append(text[at:])
                break
        return "".join(self.kept)

    def _open(self, text: str, found: re.Match[str]) -> int:
        """Read the markup at ``found``, or open a hidden part. Return the offset at which to continue."""
        if found["comment"]:
            empty = _EMPTY_COMMENT.match(text, found.end())
            self.closing = None if empty else _COMMENT_END
            return empty.end() if empty else found.end()
        if found["raw"]:
            self.closing = re.compile(rf"</{found['raw']}\b[^>]{{0,200}}>", re.IGNORECASE)
            return found.end()
        at = found.end()
        if found["bogus"]:
            at = text.find(">", at)
            at = len(text) if at < 0 else at
        while at < len(text) and text[at] != ">":
            attribute = _ATTRIBUTE.match(text, at)
            at = attribute.end() if attribute else at + 1
        self.is_lost = at >= len(text)
        markup = text[found.start() : at + 1]
        # Markup on one line, such as `memref<?xf32>` without a fence, cannot hide a statement.
        self.kept.append(_blank(markup) if "\n" in markup else markup)
        return at + 1

    def read_paragraph(self, text: str) -> str:
        """Return a paragraph without its hidden HTML. Markup inside a code span counts as hidden too."""
        if self.closing is not None and self.closing.search(text):
            self.is_lost = True  # raw HTML ends the hidden part; the same characters as text do not
        if self.is_hidden:
            return _blank(text)
        kept, at, missing, lower = list[str](), 0, set[str](), _lower(text)
        while (found := _OPENING.search(text, at)) is not None:
            start = found.start()
            kept.append(text[at:start])
            at = _find_inline_end(text, lower, start, missing) or found.end()
            markup = text[start:at]
            if at > found.end() and found["raw"]:
                markup = _blank(markup)
            elif at > found.end():
                markup = self.read_html(markup)
                self.is_lost = self.is_hidden
            kept.append(markup)
            if self.is_lost:
                kept.append(_blank(text[at:]))
                return "".join(kept)
        return "".join([*kept, text[at:]])


def _find_inline_end(text: str, lower: str, start: int, missing: set[str]) -> int:
    """Return the end of the raw HTML that begins at ``start`` in a paragraph; 0 if the page shows it as text.

    ``lower`` is ``text`` in lower case. ``missing`` collects the closings that the rest of the paragraph lacks, so
    that each is looked for once.
    """
    for opening, closing in _INLINE_CLOSINGS:
        if lower.startswith(opening, start):
            end = -1 if closing in missing else lower.find(closing, start + len(opening))
            if end < 0:
                missing.add(closing)
            return end + len(closing) if end >= 0 else 0
    tag = _INLINE_TAG.match(text, start)
    return tag.end() if tag else 0


def _blank_titles(text: str) -> str:
    """Return a paragraph without the titles of links and the descriptions of images that span lines.

    The page shows a description only in place of its image.
    """
    if "\n" not in text:
        return text
    text = _TITLE.sub(lambda found: _blank(found[0]) if "\n" in found[0] else found[0], text)
    kept, at = list[str](), 0
    while (start := text.find("![", at)) >= 0 and (end := _IMAGE_END.search(text, start)) is not None:
        image = text[start : end.end()]
        kept += [text[at:start], _blank(image) if "\n" in image else image]
        at = end.end()
    return "".join([*kept, text[at:]])


def _lower(text: str) -> str:
    """Return ``text`` with ASCII letters in lower case, so that every offset stays the same."""
    return text.translate(_LOWER)


def _blank(text: str) -> str:
    return _LINES.sub("", text)
