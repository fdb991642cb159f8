"""Printed output against what a report says is printed, and what should be. Pure.

Many testcases end with exit status 0 whether or not the bug is there; then only the values that they print tell.
Lines are compared by their words, numbers with a tolerance, white space ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from runners.core.toolchain.failures import FailureVocabulary

MAX_LINES = 400
MAX_TELLING = 60
MAX_LINE_CHARS = 2_000
RELATIVE = 1e-3
ABSOLUTE = 1e-6

Token = str | float
Line = tuple[Token, ...]
Shape = tuple[str, ...]

MAX_STEPS = 1_000_000
"""Comparisons of two tokens. Only lines made to be slow need more; nothing is told of them."""

# Possessive: a run of digits that a letter ends is given up at once, not digit by digit.
NUMBER_PATTERN = r"[-+]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|nan|inf)"
_TOKEN = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\w++|[^\w\s]", re.IGNORECASE)
_NUMBER = re.compile(NUMBER_PATTERN, re.IGNORECASE)
_FENCE = "```"
_TRUTH = {"True", "False", "true", "false", "PASS", "FAIL", "OK"}
_DIFFERENCE = re.compile(r"diff|err|mismatch|delta|deviation|discrepan", re.IGNORECASE)


class Reading(Enum):
    WRONG = auto()
    """Prints what the report calls wrong, or contradicts the value it expects."""
    RIGHT = auto()
    """Prints what the report expects."""
    CHANGED = auto()
    """Prints, in the very place the report complains of, a value that is right by itself (True, no difference)."""
    UNKNOWN = auto()
    """Nothing in the output can be held against the report."""


def read_output(output: str, vocabulary: FailureVocabulary, *, actual: str, expected: str) -> Reading:
    """What ``output`` says about a report that quotes ``actual`` and ``expected`` lines (either may be empty)."""
    try:
        return _compare_lines(
            _read_lines(output, vocabulary)[-MAX_LINES:],
            _read_lines(actual, vocabulary)[:MAX_LINES],
            _read_lines(expected, vocabulary)[:MAX_LINES],
        )
    except _TooManySteps:
        return Reading.UNKNOWN


def find_other_values(output: str, vocabulary: FailureVocabulary, *, actual: str) -> str:
    """Return the printed line that has the words of a reported line and other values; empty if there is none.

    The line is returned in tokens with one space between them, so that equal outputs give equal text.
    """
    printed = _read_lines(output, vocabulary)[-MAX_LINES:]
    reported = {_mask_values(line): line for line in _read_lines(actual, vocabulary)[:MAX_TELLING]}
    for line in printed:
        known = reported.get(_mask_values(line))
        labelled = any(isinstance(token, str) and token.isalnum() for token in line)
        if known and labelled and not all(map(_is_same_token, known, line)):
            return " ".join(f"{token:g}" if isinstance(token, float) else token for token in line)[:200]
    return ""


class _TooManySteps(Exception):
    """The lines are too long and too much alike to be compared."""


def _compare_lines(printed: list[Line], wrong: list[Line], right: list[Line]) -> Reading:
    search = _Search()
    quoted = right
    # What stands on both sides as it is tells nothing, and is not to be completed into something else.
    complete = _make_completer(wrong)
    right = [complete(line) for line in quoted if not search.finds(line, wrong)]
    wrong, right = (
        [line for line in wrong if not search.finds(line, (*quoted, *right))][:MAX_TELLING],
        [line for line in right if not search.finds(line, wrong)][:MAX_TELLING],
    )
    wrong, right = _select_telling(wrong, alone=not right), _select_telling(right, alone=not wrong)
    if not (wrong or right) or not printed:
        return Reading.UNKNOWN
    as_reported = sum(search.finds(line, printed) for line in wrong)
    as_expected = sum(search.finds(line, printed) for line in right)
    if as_reported and as_expected:
        return _weigh_shares(as_reported / len(wrong), as_expected / len(right))
    if as_reported:
        # One common line of many (a header, a shape) is no sighting of the reported output.
        return Reading.WRONG if 2 * as_reported >= len(wrong) else Reading.UNKNOWN
    if as_expected:
        return Reading.RIGHT if 2 * as_expected >= len(right) else Reading.UNKNOWN
    shaped: dict[Shape, list[Line]] = {}
    for line in printed:
        shaped.setdefault(_mask_values(line), []).append(line)
    if any(_is_contradicted(line, shaped) for line in right if line in quoted):
        return Reading.WRONG
    if not right and any(_has_become_right(line, shaped) for line in wrong):
        return Reading.CHANGED
    return Reading.UNKNOWN


def _weigh_shares(reported: float, expected: float) -> Reading:
    """Some lines of both are there: only a full house on one side decides."""
    if reported == 1.0 and expected < 1.0:
        return Reading.WRONG
    if expected == 1.0 and reported < 1.0:
        return Reading.RIGHT
    return Reading.UNKNOWN


def _select_telling(lines: list[Line], *, alone: bool) -> list[Line]:
    """The lines that hold a value, if any does. Words ``alone``, with nothing on the other side, tell nothing."""
    valued = [line for line in lines if _has_value(line)]
    return valued or ([] if alone else lines)


def _read_lines(text: str, vocabulary: FailureVocabulary) -> list[Line]:
    """Lines as tokens, without empty lines, lines of a tool's own and lines cut by "..."."""
    kept = (line.strip()[:MAX_LINE_CHARS] for line in text.splitlines())
    return [
        _split_tokens(line)
        for line in kept
        if line and "..." not in line and "…" not in line and not _is_harness(line, vocabulary)
    ]


def _is_harness(line: str, vocabulary: FailureVocabulary) -> bool:
    return line.startswith(_FENCE) or any(harness.match(line) for harness in vocabulary.harness_lines)


def _split_tokens(line: str) -> Line:
    return tuple(float(t) if _NUMBER.fullmatch(t) else t for t in _TOKEN.findall(line))


def _make_completer(actual: Sequence[Line]) -> Callable[[Line], Line]:
    """Return `_complete_line` with the values of ``actual`` counted once."""
    counted = [(line, sum(map(_is_value, line))) for line in actual]
    return lambda expected: _complete_line(expected, counted)


def _complete_line(expected: Line, actual: Sequence[tuple[Line, int]]) -> Line:
    """Bare expected values ("numpy says 0.0") put into the places for them in the one line that the report quotes.

    Read from running text, they are good enough to recognise what is right, not to call something else wrong.
    """
    values = [token for token in expected if _is_value(token)]
    bare = bool(values) and all(_is_value(token) or token in _BETWEEN for token in expected)
    places = [line for line, count in actual if count == len(values) < len(line)] if bare else []
    if len(places) != 1:
        return expected
    given = iter(values)
    return tuple(next(given) if _is_value(token) else token for token in places[0])


_BETWEEN = {",", "[", "]", "(", ")"}


def _is_value(token: Token) -> bool:
    return isinstance(token, float) or token in _TRUTH


def _has_value(line: Line) -> bool:
    return any(map(_is_value, line))


@dataclass(slots=True)
class _Search:
    """Looks for lines in others, in at most `MAX_STEPS` comparisons of two tokens."""

    steps: int = 0

    def finds(self, line: Line, among: Sequence[Line]) -> bool:
        return any(self._is_within(line, other) for other in among)

    def _is_within(self, part: Line, whole: Line) -> bool:
        """True if ``part`` stands in ``whole``, token by token.

        A lone token (``3``), and words without any value (an expression, or prose), must be the whole line.
        """
        self.steps += 1
        if len(part) > len(whole):
            return False
        if len(part) < 2 or not _has_value(part):
            return len(part) == len(whole) and self._is_same(part, whole, 0)
        return any(self._is_same(part, whole, start) for start in range(len(whole) - len(part) + 1))

    def _is_same(self, part: Line, whole: Line, start: int) -> bool:
        for at, token in enumerate(part, start):
            self.steps += 1
            if not _is_same_token(token, whole[at]):
                break
        else:
            return True
        if self.steps > MAX_STEPS:
            raise _TooManySteps
        return False


def _is_same_token(a: Token, b: Token) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == b


def _mask_values(line: Line) -> Shape:
    """The line with its values left open: ``max diff = 0.5`` → ``max diff = #``."""
    return tuple("#" if isinstance(t, float) or t in _TRUTH else t for t in line)


def _count_words(line: Line) -> int:
    return sum(isinstance(t, str) and t not in _TRUTH and t[0].isalpha() for t in line)


def _is_contradicted(expected: Line, printed: Mapping[Shape, Sequence[Line]]) -> bool:
    """The output fills the very same words with another value."""
    return _count_words(expected) > 0 and any(
        not all(map(_is_same_token, expected, line)) for line in printed.get(_mask_values(expected), ())
    )


def _has_become_right(reported: Line, printed: Mapping[Shape, Sequence[Line]]) -> bool:
    """False where the report has False is now True; a difference is now nearly none; NaN is now a number."""
    if not _count_words(reported):
        return False
    label = " ".join(t for t in reported if isinstance(t, str))
    for line in printed.get(_mask_values(reported), ()):
        pairs = [(old, new) for old, new in zip(reported, line, strict=True) if not _is_same_token(old, new)]
        if pairs and all(_has_improved(old, new, bool(_DIFFERENCE.search(label))) for old, new in pairs):
            return True
    return False


def _has_improved(old: Token, new: Token, is_difference: bool) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        if not math.isfinite(old):
            return math.isfinite(new)
        return is_difference and abs(new) <= max(1e-4, abs(old) * 1e-3)
    return (old, new) in {("False", "True"), ("false", "true"), ("FAIL", "PASS"), ("FAIL", "OK")}
