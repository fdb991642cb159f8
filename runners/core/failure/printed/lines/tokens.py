"""Split printed text into lines of words and numbers, and compare two of these. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from runners.core.toolchain.failures import FailureVocabulary

MAX_LINE_CHARS = 2_000
RELATIVE = 1e-3
ABSOLUTE = 1e-6


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number."""

    value: float
    exact: bool = field(default=False, compare=False)
    """The type of the number is an integer type. Two such numbers differ if their last digits differ."""


Token = str | Number
Line = tuple[Token, ...]
MaskedLine = tuple[str, ...]

# Possessive, so that digits before a letter are rejected at once, without backtracking.
NUMBER_PATTERN = r"[-+]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|nan|inf)"
_TOKEN = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\w++|[^\w\s]", re.IGNORECASE)
_NUMBER = re.compile(NUMBER_PATTERN, re.IGNORECASE)
_FENCE = "```"

BAD_WORDS = frozenset(
    {"FAIL", "FAILED", "Fail", "Failed", "fail", "failed", "WRONG", "Wrong", "MISMATCH", "Mismatch"}
)
GOOD_WORDS = frozenset({"PASS", "PASSED", "Pass", "Passed", "pass", "passed", "OK", "Ok", "ok"})
TRUTH = frozenset({"True", "False", "true", "false", *BAD_WORDS, *GOOD_WORDS})
"""Words with which a program judges its own line."""
NOTHING = frozenset({"None", "null", "nullptr"})
"""Words for a missing value."""
BETWEEN = frozenset({",", "[", "]", "(", ")"})
"""Signs between the values of a list."""


# ---------------------------------------------------------------------------------------------- split


def read_lines(text: str, vocabulary: FailureVocabulary) -> list[Line]:
    """Split text into lines of tokens. Drop empty lines, a tool's own lines, and lines truncated by "..."."""
    return split_lines("\n".join(line for line in text.splitlines() if not _is_harness(line.strip(), vocabulary)))


def split_lines(text: str) -> list[Line]:
    """Split text into lines of tokens. Drop empty lines, lines truncated by "...", and the time before a message."""
    kept = (_TIME_OF_DAY.sub("", line.strip()[:MAX_LINE_CHARS]) for line in text.splitlines())
    return [_split_tokens(line) for line in kept if line and "..." not in line and "…" not in line]


_TIME_OF_DAY = re.compile(r"^\[\d{1,2}:\d\d:\d\d(?:\.\d{1,9})?\] ")
"""The prefix that a logger writes before a message. The time differs in each run."""


def _is_harness(line: str, vocabulary: FailureVocabulary) -> bool:
    return line.startswith(_FENCE) or any(harness.match(line) for harness in vocabulary.harness_lines)


def _split_tokens(line: str) -> Line:
    """Split a line into words and numbers."""
    tokens = _TOKEN.findall(line)
    exact = len(tokens) > 2 and tokens[1] == "=" and _INTEGER_TYPE.fullmatch(tokens[0]) is not None
    return tuple(Number(float(t), exact) if _NUMBER.fullmatch(t) else t for t in tokens)


_INTEGER_TYPE = re.compile(r"(?:\d{1,9}x){0,8}(?:[su]?i\d{1,3}|index)")
"""The type before the values of a printed result: ``2xi64=3 16777217``."""


def join_tokens(line: Line) -> str:
    """Return the tokens as one text. Equal tokens give equal texts, whatever their distances in the output."""
    text = " ".join(f"{token.value:g}" if isinstance(token, Number) else token for token in line)
    return _NEEDLESS_BLANK.sub("", text)[:200]


_NEEDLESS_BLANK = re.compile(r" (?=[:,;)\]}])|(?<=[(\[{]) |(?<=\w) (?=\. [A-Za-z_])|(?<=\w \.) (?=[A-Za-z_])")


# ---------------------------------------------------------------------------------------------- describe


def is_value(token: Token) -> bool:
    return isinstance(token, Number) or token in TRUTH or token in NOTHING or token == NEGATIVE_ZERO


def has_value(line: Line) -> bool:
    return any(map(is_value, line))


def count_words(line: Line) -> int:
    return sum(isinstance(t, str) and not is_value(t) and any(map(str.isalpha, t)) for t in line)


def list_numbers(line: Line) -> list[float]:
    return [token.value for token in line if isinstance(token, Number)]


def get_label(line: Line) -> str:
    """Return the words and signs of a line without its numbers."""
    return " ".join(token for token in line if isinstance(token, str))


def mask_values(line: Line) -> MaskedLine:
    """Replace the values of a line: ``max diff = 0.5`` → ``max diff = #``."""
    return tuple("#" if is_value(token) else str(token) for token in line)


TINY = 2.0**-126
"""Limit of float32's subnormal numbers. They come from memory with other data, such as integers or addresses."""


def is_tiny(number: float) -> bool:
    """True for a number that memory contains by chance."""
    return 0 < abs(number) < TINY


# ---------------------------------------------------------------------------------------------- compare


def is_same_token(a: Token, b: Token) -> bool:
    if not isinstance(a, Number) or not isinstance(b, Number):
        return a == b
    if a.exact or b.exact:
        return a.value == b.value
    if is_tiny(a.value) or is_tiny(b.value):
        return is_tiny(a.value) and is_tiny(b.value)
    both_nan = math.isnan(a.value) and math.isnan(b.value)
    return both_nan or math.isclose(a.value, b.value, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def are_same_tokens(one: Line, other: Line) -> bool:
    """True if all tokens of two lines of the same length are the same."""
    return all(map(is_same_token, one, other))


def are_equal_lines(one: Sequence[Line], other: Sequence[Line]) -> bool:
    """True if two outputs have the same lines. Numbers are compared with a tolerance."""
    if list(map(len, one)) != list(map(len, other)):
        return False
    return all(are_same_tokens(left, right) for left, right in zip(one, other, strict=True))


# ---------------------------------------------------------------------------------------------- signs of zero


NEGATIVE_ZERO = "-0"
"""The token of a negative zero, if the report is about its sign. As numbers, both zeros are equal."""


def names_negative_zero(text: str) -> bool:
    return has_negative_zero(split_lines(text))


def has_negative_zero(lines: Sequence[Line]) -> bool:
    """True if a text contains a negative zero. If both texts of a report do, the report is about its sign."""
    return any(_is_negative_zero(token) for line in lines for token in line)


def keep_signs(lines: Sequence[Line]) -> list[Line]:
    """Replace each negative zero by a token that differs from zero."""
    return [tuple(NEGATIVE_ZERO if _is_negative_zero(token) else token for token in line) for line in lines]


def _is_negative_zero(token: Token) -> bool:
    return isinstance(token, Number) and token.value == 0 and math.copysign(1.0, token.value) < 0
