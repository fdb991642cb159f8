"""Find the values that a run printed instead of the quoted ones. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.failure.printed.lines.compare import MAX_LINES, MAX_TELLING
from runners.core.failure.printed.lines.tokens import (
    Line,
    MaskedLine,
    Token,
    are_same_tokens,
    is_value,
    join_tokens,
    mask_values,
    read_lines,
)
from runners.core.toolchain.failures import FailureVocabulary


def find_other_values(output: str, vocabulary: FailureVocabulary, *, actual: str) -> str:
    """Return the printed line that has the words of a reported line and other values. Empty if there is none.

    Prefer a line that the report does not quote, because the report may quote correct lines too. Equal lines give
    equal texts.
    """
    printed = read_lines(output, vocabulary)[-MAX_LINES:]
    reported: dict[MaskedLine, list[Line]] = {}
    for line in read_lines(actual, vocabulary)[:MAX_TELLING]:
        reported.setdefault(mask_values(line), []).append(line)
    quoted = ""
    for line in printed:
        known = reported.get(mask_values(line), [])
        labelled = any(isinstance(token, str) and token.isalnum() for token in line)
        is_array = "[" in line and sum(map(is_value, line)) > 1
        same = [are_same_tokens(one, line) for one in known]
        if not known or not (labelled or is_array) or same[-1]:
            continue
        text = join_tokens(line)
        if not any(same):
            return text
        quoted = quoted or text
    return quoted or _find_other_form([line for lines in reported.values() for line in lines], printed)


def find_other_rows(output: str, vocabulary: FailureVocabulary, *, actual: str) -> str:
    """Return the printed rows that differ, if an output of few rows has as many rows as the reported one.

    Then the report quotes the whole output. Empty otherwise, and for equal outputs. A row of numbers may differ from
    run to run, so only rows of text count: ``x < 2`` beside ``x * 8 + y < 16``.
    """
    printed, reported = (read_lines(text, vocabulary) for text in (output, actual))
    if not printed or len(printed) != len(reported) or len(printed) > MAX_ROWS:
        return ""
    differing = [new for new, old in zip(printed, reported, strict=True) if not are_same_tokens(new, old)]
    is_text = all(any(map(_is_word, row)) for row in differing)
    return "; ".join(map(join_tokens, differing))[:MAX_OTHER_CHARS] if is_text else ""


MAX_OTHER_CHARS = 1_000
MAX_ROWS = 8
"""Maximum number of rows of an output that is compared as a whole."""
MIN_LABELS, MAX_LABELS = 6, 40
"""Number of words in a row that identify a reported line whose values have other brackets."""
MAX_FORMS = 5
"""Maximum number of reported lines that are searched in this way."""


def _find_other_form(reported: Sequence[Line], printed: Sequence[Line]) -> str:
    """Return the passage with the words of a reported line and other values. Empty if there are several.

    A list may have another depth or length: ``sizes = [8, 16]`` became ``sizes = [8, [8]]``.
    """
    for line in reported[:MAX_FORMS]:
        words = [token for token in line if _is_word(token)]
        if not MIN_LABELS <= len(words) <= MAX_LABELS:
            continue
        passages = {passage for other in printed if (passage := _cut_passage(other, words))}
        if len(passages) == 1:
            passage = passages.pop()
            if _list_values(passage) != _list_values(_cut_passage(line, words)):
                return join_tokens(passage)
    return ""


def _list_values(line: Line) -> list[Token]:
    """Return the values of a line, including the brackets of lists."""
    return [token for token in line if is_value(token) or token in ("[", "]")]


MAX_PASSAGE = 400
"""Maximum number of tokens of a printed line that are searched for the words of another line."""


def _cut_passage(line: Line, words: Sequence[Token]) -> Line:
    """Return the part of a line whose only words are ``words``, in order. Empty without such a part."""
    places = [at for at, token in enumerate(line[:MAX_PASSAGE]) if _is_word(token)]
    for first in range(len(places) - len(words) + 1):
        if [line[at] for at in places[first : first + len(words)]] == words:
            end = places[first + len(words)] if first + len(words) < len(places) else len(line)
            return line[places[first] : end]
    return ()


def _is_word(token: Token) -> bool:
    return isinstance(token, str) and token.isidentifier() and not is_value(token)
