"""Make strangers' words safe to show: remove control sequences, then fence, quote or escape the text. Pure.

All text of an issue's author or of a testcase passes this module before it is shown. Three forms leave the module: a
fenced *block* that its content cannot close, a *code* span, and *prose*: the project's own sentences, in which only
spans between backticks may contain foreign words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ZERO_WIDTH_SPACE = "\u200b"
"""Inserted between ``@`` and a name outside code blocks, where a backslash does not prevent a mention.

GitHub ignores mentions in a code block. Code stays unchanged, so that a copy runs."""

_ESCAPES = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?                             # CSI: colours, cursor
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?   # OSC, DCS, SOS, PM, APC
    | \x1b[ -/]*[0-~]?                                              # all other escapes
    """,
    re.VERBOSE,
)
_LINE_ENDS = re.compile(r"\r\n|[\r\v\f\x85\u2028\u2029]")
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4\U0001d159"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
"""Letters, marks and symbols by category that are invisible. 256 variation selectors carry any hidden text."""
_UNUSUAL = re.compile(r"[^\n\t -~]+")
_RUNS = re.compile(r"`+|~+")
_MENTION = re.compile(r"@(?=\w)")
_MARKER = re.compile(r"<!(?=--\s*reprobot)", re.IGNORECASE)
_BACKLINK = re.compile(r"(?<=#)(?=\d)|(?<=[Gg][Hh]-)(?=\d)|(?<=:)(?=//)|(?<=[Ww]{3})(?=\.)")
_COMMANDS = re.compile(r"^(\s*)(::)", re.MULTILINE)
_SPAN = re.compile(r"`([^`\n]+)`")
_OPENING = re.compile(r"^(\d*)([.)](?=\s|$)|(?<!\d)[-+=:])")
"""A list, a rule or an underline, at the start of a line only. The version ``3.2.0`` begins no list."""
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>#!|~$&])")
"""Parentheses have a meaning only after brackets, which are escaped. So a terminal shows fewer backslashes."""


def clean_text(text: str) -> str:
    """Return ``text`` without terminal sequences, control, bidirectional, zero-width and unassigned characters.

    Line ends of every kind become ``\\n``. Lone surrogates become U+FFFD, so that the result always encodes to UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text  # the most frequent case: one line without anything to remove
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return _UNUSUAL.sub(_drop_invisible, text)


def _drop_invisible(found: re.Match[str]) -> str:
    return "".join(map(_show_character, found[0]))


@lru_cache(maxsize=4096)
def _show_character(character: str) -> str:
    """Return the character, U+FFFD for a lone surrogate, and an empty string for an invisible character."""
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in ("Cc", "Cf", "Cn") or character in _BLANK else character


def has_hidden_characters(text: str) -> bool:
    """True if `clean_text` removes characters other than line ends from ``text``."""
    return len(clean_text(text)) != len(_LINE_ENDS.sub("\n", text))


def cut_end(text: str, limit: int) -> str:
    """Return the first ``limit`` characters. A note about the cut is part of the limit."""
    if len(text) <= limit:
        return text
    note = "… (cut)"
    return text[: max(0, limit - len(note))] + note


def cut_around(text: str, other: str, limit: int) -> str:
    """Return at most ``limit`` characters of ``text``: those around the first difference from ``other``."""
    if len(text) <= limit:
        return text
    pairs = zip(text, other, strict=False)
    common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other)))
    start = max(0, min(common - limit // 3, len(text) - limit + 1))
    if start == 0:
        return text[: limit - 1] + "…"
    return f"…{text[start : start + limit - 2]}{'…' if start + limit - 2 < len(text) else ''}"


def cut_middle(text: str, limit: int) -> str:
    """Return head and tail of ``text`` within ``limit`` characters, more of the tail: failures are printed last."""
    if len(text) <= limit:
        return text
    note = "\n… (cut)\n"
    room = max(0, limit - len(note))
    head, tail = room // 4, room - room // 4
    return text[:head] + note + (text[-tail:] if tail else "")


def break_mentions(text: str) -> str:
    """Return ``text`` without ``@name``, for places outside code blocks."""
    return _MENTION.sub("@" + ZERO_WIDTH_SPACE, text)


def quote_text(text: str) -> str:
    """Return ``text`` cleaned, without mentions, and with each imitation of the bot's marker broken."""
    return _MARKER.sub("<!" + ZERO_WIDTH_SPACE, break_mentions(clean_text(text)))


def quote_block(text: str, language: str = "text") -> str:
    """Return a Markdown code block that ``text`` cannot close. ``language`` must not come from the reporter.

    The text stays as it is, without invisible characters, so that a copy of it runs. Only an imitation of the bot's
    marker is broken, by a blank that a reader sees.
    """
    body = _MARKER.sub("<! ", clean_text(text)).strip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(body)), default=0))
    return f"{ticks}{language}\n{body}\n{ticks}"


def quote_code(text: str, limit: int = 200) -> str:
    """Return a Markdown code span on one line, safe inside a table cell. Runs of blanks become one space."""
    line = join_lines(quote_text(text[: 4 * limit]), limit) or "(empty)"
    line = _BACKLINK.sub(ZERO_WIDTH_SPACE, line).replace("|", "¦")  # | ends a table cell even inside a span
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def escape_prose(text: str, limit: int = 600) -> str:
    """Return a sentence of the project as Markdown: text between backticks as a code span, the rest escaped."""
    line = join_lines(quote_text(text[: 4 * limit]), limit)
    if line.count("`") % 2 and (len(text) > 4 * limit or len(line) == limit):
        line += "`"  # the cut is inside a span: its words stay quoted
    parts = _SPAN.split(line)
    return _OPENING.sub(
        r"\1\\\2", "".join(quote_code(part) if i % 2 else _escape_markdown(part) for i, part in enumerate(parts))
    )


def join_lines(text: str, limit: int) -> str:
    """Return ``text`` on one line of at most ``limit`` characters, with runs of blanks as one space, not cleaned."""
    return cut_end(" ".join(text.split()), limit)


def format_log_line(text: str, limit: int = 600) -> str:
    """Return one line for a log, in which GitHub's runner does not recognize a workflow command."""
    return escape_commands(join_lines(clean_text(text[: 4 * limit]), limit))


def escape_commands(text: str) -> str:
    """Break the commands of GitHub's runner: ``::command::`` at the start of a line, ``##[command]`` anywhere."""
    return _COMMANDS.sub(r"\1| \2", text.replace("##[", "##" + ZERO_WIDTH_SPACE + "["))


def _escape_markdown(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\1", _BACKLINK.sub(ZERO_WIDTH_SPACE, text))
