"""Decide whether the report quotes or describes a failure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.core.failure.compare import SAME, compare_signatures, drop_condition
from runners.core.failure.normalize import make_readable, split_tokens
from runners.core.failure.oracle.outcome import OracleContext
from runners.core.protocol import Claim, ClaimKind, Signature

MIN_WORDS = 5
"""Minimum number of words that identify a message."""


def is_same_failure(reported: Signature, seen: Signature, context: OracleContext) -> bool:
    return compare_signatures(reported, seen, context.vocabulary, context.renames).score >= SAME


MIN_LINE_WORDS = 8
"""Minimum number of words of a printed line that identify the output in a report."""


def is_told(told: str, seen: Signature, text: str, context: OracleContext) -> bool:
    """True if the report contains the message of the failure, or a whole line that was printed with the failure.

    The report may quote a part of the output that contains no signature, such as a note below the error or the last
    line of a dump.
    """
    if not told:
        return False
    words = " ".join(" ".join(split_line(line, context)) for line in told.splitlines()[:MAX_TOLD_LINES])
    message = split_tokens(seen.message, context.renames)
    if len(message) >= MIN_WORDS and " ".join(message) in words:
        return True
    sentence = split_tokens(drop_condition(seen.message), context.renames)
    if len(sentence) >= MIN_WORDS and " ".join(sentence) in words:
        return True  # people quote the sentence without the condition of the failed check
    if _is_titled(told.split("\n", 1)[0], message, text, context):
        return True
    if context.drift is not None:
        return False  # the lines around a moved name come from the testcase
    lines = (line for line in _drop_echoes(text.splitlines()[-400:]) if not _FRAME.match(line))
    printed = (split_line(_LOCATION.sub("", line), context) for line in lines)
    return any(len(line) >= MIN_LINE_WORDS and " ".join(line) in words for line in printed)


MIN_SHARED = 2
"""Minimum number of words that a sentence about an error shares with the message."""
_TELLS = re.compile(r"\b(?:errors?|exceptions?|fail(?:s|ed|ure)?|complain\w*|messages?)\b", re.I)
_CONTENT = re.compile(r"[A-Za-z_]{5,}|\d+")
_STEM = 5
_COMMON = frozenset({"error", "excep", "faile", "fails", "value", "inter", "check"})
"""Stems of words that occur in many messages: ``ValueError``, ``InternalError: Check failed``."""


def is_described(claim: Claim, message: str) -> bool:
    """True if a sentence of a report describes the error in other words, and shares some words with the message.

    Example: "the error says that the shapes (2, 4) and (6,) can't be broadcast"; the message contains "not
    broadcastable".
    """
    if claim.kind is not ClaimKind.ERROR:
        return False
    said = _list_stems(message[:MAX_ERROR_CHARS])
    sentences = re.split(r"[.!?](?=\s)|\n\s*\n", claim.told[:MAX_ERROR_CHARS])
    shared = (said & _list_stems(one) for one in sentences if _TELLS.search(one))
    return any(sum(map(str.isalpha, one)) >= MIN_SHARED for one in shared)


def _list_stems(text: str) -> set[str]:
    return {word[:_STEM].lower() for word in _CONTENT.findall(text)} - _COMMON


MIN_TITLE_WORDS = 3
"""Minimum number of words of a whole error message in a title: "undefined symbol: f"."""


def _is_titled(title: str, message: Sequence[str], text: str, context: OracleContext) -> bool:
    """True if the title quotes the beginning of the message, or a whole printed error."""
    if context.claim.kind is ClaimKind.WRONG_RESULT:
        return False  # the title is about values, and a name in it may occur in any message
    quotes = [part for part in re.split(r":\s|`", title) if len(part.split()) >= MIN_TITLE_WORDS]
    parts = [split_tokens(part, context.renames) for part in quotes]
    if any(len(part) >= MIN_WORDS and " ".join(part) in " ".join(message) for part in parts):
        return True
    named = f" {' '.join(split_tokens(title, context.renames))} "
    printed = [split_line(found["error"], context) for found in _ERROR_LINE.finditer(text[-MAX_ERROR_CHARS:])]
    return any(len(one) >= MIN_TITLE_WORDS and f" {' '.join(one)} " in named for one in (*printed, list(message)))


_ERROR_LINE = re.compile(r"\berror: (?P<error>[^\n]{1,300})$", re.M | re.I)
MAX_ERROR_CHARS = 100_000


def _drop_echoes(lines: Sequence[str]) -> list[str]:
    """Return the lines of an output without the input lines that a diagnostic repeats above its caret."""
    return [line for line, below in zip(lines, (*lines[1:], ""), strict=True) if not _CARET.fullmatch(below)]


_CARET = re.compile(r"\s*[~^][~^\s]*")
"""The caret line below the line that a diagnostic is about. That line comes from the testcase."""
MAX_TOLD_LINES = 200
_LOCATION = re.compile(r"^\S{1,300}:\d+:\d+: ")
"""The location of a diagnostic. The reporter's file may have another name."""
_FRAME = re.compile(r"\s*File \"|\s*\d+: |\s*#\d+ ")
"""A line of a stack. Other failures may share it."""


def split_line(line: str, context: OracleContext) -> list[str]:
    return split_tokens(make_readable(line, context.vocabulary), context.renames)
