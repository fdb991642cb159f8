"""Compare printed output with the actual and the expected output of a report. Pure.

Many testcases exit with 0 with and without the bug. Then only their printed values distinguish the two. White space
is ignored.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from runners.core.failure.printed.lines.changes import (
    Forms,
    differs_by_named,
    has_become_right,
    has_other_expressions,
    has_other_rows,
    has_rival,
    is_contradicted,
    is_filled,
    judges_itself,
    states_difference,
)
from runners.core.failure.printed.lines.search import Search, TooManySteps
from runners.core.failure.printed.lines.structure import (
    defines_otherwise,
    drop_type,
    lists_other_names,
    opens_other_blocks,
)
from runners.core.failure.printed.lines.tokens import (
    BAD_WORDS,
    BETWEEN,
    GOOD_WORDS,
    NUMBER_PATTERN,
    TRUTH,
    Line,
    MaskedLine,
    Number,
    Token,
    count_words,
    has_negative_zero,
    has_value,
    is_tiny,
    is_value,
    keep_signs,
    list_numbers,
    mask_values,
    read_lines,
    split_lines,
)
from runners.core.failure.printed.reading import Reading
from runners.core.toolchain.failures import FailureVocabulary

MAX_LINES = 400
MAX_TELLING = 60


def read_output(output: str, vocabulary: FailureVocabulary, *, actual: str, expected: str) -> Reading:
    """Compare ``output`` with a report's ``actual`` and ``expected`` lines. Either may be empty."""
    if not expected and (reading := _read_elided(output, actual)) is not None:
        return reading
    if _prints_expected_literal(output, actual, expected):
        return Reading.RIGHT
    printed = read_lines(output, vocabulary)[-MAX_LINES:]
    wrong, right = (read_lines(text, vocabulary)[:MAX_LINES] for text in (actual, expected))
    # A printer writes the type of each value, and people leave the types out of what they expect.
    printed += [bare for line in printed if (bare := drop_type(line)) != line and bare in right]
    try:
        reading = _compare_lines(printed, wrong, right)
        if has_negative_zero(wrong) and has_negative_zero(right):
            signed = _compare_lines(*map(keep_signs, (printed, wrong, right)))
            same = signed is Reading.UNKNOWN and _compare_lines(printed, wrong, []) is Reading.WRONG
            return Reading.CHANGED if same else signed
        if reading is Reading.UNKNOWN and wrong and right and wrong == right:  # they differ in a zero's sign
            return _compare_lines(*map(keep_signs, (printed, wrong, right)))
    except TooManySteps:
        return Reading.UNKNOWN
    return reading


def _prints_expected_literal(output: str, actual: str, expected: str) -> bool:
    """True for a string that the report expects in a list of strings, ``'up'`` in place of ``'.up'``.

    As a word, the string would be a part of the reported one.
    """
    word = expected.strip().strip("'\"")
    printed, reported = (set(_LITERAL.findall(text[:MAX_CHARS])) for text in (output, actual))
    return bool(word) and word in printed - reported and bool(reported - printed)


_LITERAL = re.compile(r"(?<![\w'])'([^'\n]{1,200})'(?![\w'])")
"""A string as Python prints it in a list."""
MAX_CHARS = 20_000


def _read_elided(output: str, actual: str) -> Reading | None:
    """Compare the reported rows with "..." as text. None if the other rows of the report decide.

    All other comparisons leave such rows out. If only such rows contain values, the rows without values prove
    nothing: a program prints them whatever its result.
    """
    rows = [row.strip() for row in actual.splitlines()[:MAX_LINES] if row.strip()]
    elided = {row for row in rows if "..." in row and _NUMBER.search(row)}
    if not elided:
        return None
    if elided & {row.strip() for row in output.splitlines()[-MAX_LINES:]}:
        return Reading.WRONG
    return None if any(map(has_value, split_lines(actual))) else Reading.UNKNOWN


_NUMBER = re.compile(NUMBER_PATTERN, re.IGNORECASE)


def _compare_lines(printed: Sequence[Line], reported: Sequence[Line], expected: Sequence[Line]) -> Reading:
    """Return the answer of the first question that has one."""
    lines = _Lines(printed=printed, reported=reported, expected=expected)
    answers = (ask(lines) for ask in _QUESTIONS)
    return next((one for one in answers if one is not None), Reading.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """The lines of one output and of the two outputs in the report. What a question needs is computed once."""

    printed: Sequence[Line]
    reported: Sequence[Line]
    """The output that the report calls wrong."""
    expected: Sequence[Line]
    """The output that the report calls right."""
    search: Search = field(default_factory=Search)

    @cached_property
    def one_sided(self) -> tuple[list[Line], list[Line]]:
        """The reported and the expected lines that the other side lacks.

        A line on both sides distinguishes nothing. It must not be completed into another line.
        """
        counted = [(line, sum(map(is_value, line))) for line in self.reported]
        own = [line for line in self.expected if not self.search.finds(line, self.reported)]
        completed = [_complete_line(line, counted) for line in own]
        wrong = [line for line in self.reported if not self.search.finds(line, (*self.expected, *completed))]
        right = [line for line in completed if not self.search.finds(line, self.reported)]
        return wrong[:MAX_TELLING], right[:MAX_TELLING]

    @cached_property
    def wrong(self) -> list[Line]:
        """The lines that only a wrong output has."""
        wrong, right = self.one_sided
        return _select_telling(wrong, alone=not right)

    @cached_property
    def right(self) -> list[Line]:
        """The lines that only a right output has."""
        wrong, right = self.one_sided
        return _select_telling(right, alone=not _select_telling(wrong, alone=not right))

    @cached_property
    def wrong_found(self) -> list[Line]:
        return [line for line in self.wrong if self.search.finds(line, self.printed)]

    @cached_property
    def right_found(self) -> list[Line]:
        return [line for line in self.right if self.search.finds(line, self.printed)]

    @cached_property
    def gone(self) -> list[Line]:
        """The wrong lines that the output lacks, if it contains others of them."""
        found = self.wrong_found
        return [line for line in self.wrong if line not in found] if found else []

    @cached_property
    def forms(self) -> Forms:
        forms: dict[MaskedLine, list[Line]] = {}
        for line in self.printed:
            forms.setdefault(mask_values(line), []).append(line)
        return forms

    @cached_property
    def named(self) -> list[Token]:
        """The values that the report expects."""
        return [token for line in self.expected for token in line if is_value(token)]


def _complete_line(expected: Line, actual: Sequence[tuple[Line, int]]) -> Line:
    """Insert bare expected values ("numpy says 0.0") into the only actual line that has places for them.

    ``actual`` contains each line with its number of values. Values from running text can identify a right output, but
    not a wrong one.
    """
    values = [token for token in expected if is_value(token)]
    bare = bool(values) and all(is_value(token) or token in BETWEEN for token in expected)
    places = [line for line, count in actual if count == len(values) < len(line)] if bare else []
    if len(places) != 1:
        return expected
    given = iter(values)
    return tuple(next(given) if is_value(token) else token for token in places[0])


def _select_telling(lines: list[Line], *, alone: bool) -> list[Line]:
    """Return the lines with a value, else all lines. Empty if lines without a value are ``alone`` and too short."""
    valued = [line for line in lines if has_value(line)]
    return valued or ([line for line in lines if len(line) >= MIN_ALONE] if alone else lines)


MIN_ALONE = 6
"""Minimum number of tokens with which a line without a value counts: ``R.Tensor((), dtype="bool")``."""


# ---------------------------------------------------------------------------------------------- questions


def _prints_judgement(lines: _Lines) -> Reading | None:
    """Compare a bare ``False`` and ``True`` with the only such word of each printed row. None for other values.

    A program may print its own judgement between a label and values: ``llvm True [6 0 15]``.
    """
    wrong, right = lines.reported, lines.expected
    bare = [line[0] for line in (*wrong, *right) if len(line) == 1 and line[0] in TRUTH]
    if not wrong or len(bare) != len(wrong) + len(right) or len({line[0] for line in wrong}) > 1:
        return None
    rows = [[token for token in line if token in TRUTH] for line in lines.printed]
    judged = [words[0] for words in rows if len(words) == 1]
    if not judged or not any(len(line) > 1 and set(line) & TRUTH for line in lines.printed):
        return None  # whole rows are compared like others
    if wrong[0][0] in judged:
        return Reading.WRONG
    if right and any(word != right[0][0] for word in judged):
        return Reading.UNKNOWN
    return Reading.RIGHT if right else Reading.CHANGED


def _judges_otherwise(lines: _Lines) -> Reading | None:
    """Answer if the program judges its result, and prints the opposite of what the report quotes."""
    if not _calls_wrong(lines.reported) or _calls_wrong(lines.printed):
        return None
    return Reading.CHANGED if _count_right(lines.printed) > _count_right(lines.reported) else None


def _calls_wrong(lines: Sequence[Line]) -> bool:
    return any(BAD_WORDS.intersection(line) for line in lines)


def _count_right(lines: Sequence[Line]) -> int:
    return sum(bool(GOOD_WORDS.intersection(line)) for line in lines)


def _prints_garbage(lines: _Lines) -> Reading | None:
    """Answer for outputs that differ only in the content of unwritten memory. They are the same."""
    same = lines.reported and not lines.expected and all(map(_holds_garbage, lines.reported))
    return Reading.WRONG if same and any(map(_holds_garbage, lines.printed)) else None


def _holds_garbage(line: Line) -> bool:
    """True for a row of numbers of which at least one comes from unwritten memory."""
    return not count_words(line) and any(map(is_tiny, list_numbers(line)))


def _prints_numbers(lines: _Lines) -> Reading | None:
    """Answer if the report only states that NaN or infinities occur. None for an output without numbers."""
    wrong, right = lines.one_sided
    numbers = [number for line in lines.printed for number in list_numbers(line)]
    if right or not wrong or not all(map(_is_no_number, wrong)) or not numbers:
        return None
    return Reading.CHANGED if all(map(math.isfinite, numbers)) else Reading.WRONG


def _is_no_number(line: Line) -> bool:
    """True for a line that contains only NaN and infinities."""
    values = [token for token in line if token not in BETWEEN]
    return bool(values) and all(isinstance(token, Number) and not math.isfinite(token.value) for token in values)


def _lacks_lines(lines: _Lines) -> Reading | None:
    compared = (lines.wrong or lines.right) and lines.printed
    return None if compared else Reading.UNKNOWN


def _prints_both(lines: _Lines) -> Reading | None:
    """Decide between outputs with lines of both sides. Only a complete side counts."""
    if not lines.wrong_found or not lines.right_found:
        return None
    all_wrong, all_right = (
        len(lines.wrong_found) == len(lines.wrong),
        len(lines.right_found) == len(lines.right),
    )
    if all_wrong and any(map(states_difference, lines.wrong)):
        return Reading.WRONG  # the output also contains its reference, and the distance of the result from it
    if all_wrong == all_right:
        return Reading.UNKNOWN
    return Reading.WRONG if all_wrong else Reading.RIGHT


def _repairs_missing_line(lines: _Lines) -> Reading | None:
    """Answer if a missing line has become right. The remaining lines were right in the report too."""
    repaired = not lines.right and any(has_become_right(line, lines.forms) for line in lines.gone)
    return Reading.CHANGED if repaired else None


def _has_named_value_beside_others(lines: _Lines) -> Reading | None:
    named = any(differs_by_named(lines.named, line, lines.forms) for line in lines.gone)
    return Reading.RIGHT if named else None


def _prints_other_expressions(lines: _Lines) -> Reading | None:
    return Reading.CHANGED if has_other_expressions(lines.reported, lines.printed) else None


def _contradicts_missing_line(lines: _Lines) -> Reading | None:
    """Answer if a line of the report has other values here. Then the other lines may be right."""
    missing = (line for line in lines.gone if not judges_itself(line))
    return Reading.UNKNOWN if any(is_contradicted(line, lines.forms) for line in missing) else None


def _prints_other_rows(lines: _Lines) -> Reading | None:
    """Answer if it is row by row the same output, but some rows have other values, or are other text."""
    if not lines.gone:
        return None
    aligned = _list_forms(lines.printed) == _list_forms(lines.reported)
    values = aligned and not any(map(count_words, lines.gone))
    text = len(lines.printed) == len(lines.reported) and not any(map(has_value, lines.gone))
    other = values or text or has_other_rows(lines.gone, lines.wrong, lines.printed)
    return Reading.UNKNOWN if other else None


def _list_forms(lines: Sequence[Line]) -> list[MaskedLine]:
    """Return the forms of the rows that contain values and no words, in order."""
    return [mask_values(line) for line in lines if has_value(line) and not count_words(line)]


def _has_other_structure(lines: _Lines) -> Reading | None:
    """Answer if rows differ that the share of wrong lines leaves out, or counts as one of many."""
    if not lines.wrong_found:
        return None
    differs = (opens_other_blocks, lists_other_names, defines_otherwise)
    return Reading.UNKNOWN if any(differ(lines.reported, lines.printed) for differ in differs) else None


def _prints_wrong_lines(lines: _Lines) -> Reading | None:
    """Answer by the share of wrong lines. One common line of many (a header, a shape) is not the reported output."""
    if not lines.wrong_found:
        return None
    return Reading.WRONG if 2 * len(lines.wrong_found) >= len(lines.wrong) else Reading.UNKNOWN


def _prints_right_lines(lines: _Lines) -> Reading | None:
    """Answer by the share of right lines. The program may also print a reference, or several results."""
    if not lines.right_found:
        return None
    if not lines.wrong and any(has_rival(line, lines.printed) for line in lines.right):
        return Reading.UNKNOWN
    return Reading.RIGHT if 2 * len(lines.right_found) >= len(lines.right) else Reading.UNKNOWN


def _contradicts_expected_line(lines: _Lines) -> Reading | None:
    quoted = (line for line in lines.right if line in lines.expected)
    return Reading.WRONG if any(is_contradicted(line, lines.forms) for line in quoted) else None


def _prints_expected_more_often(lines: _Lines) -> Reading | None:
    """Answer for a report that contains ``3.0`` and ``0.0``, and expects ``3.0`` twice."""
    search, printed, reported = lines.search, lines.printed, lines.reported
    more = (search.count(line, printed) > search.count(line, reported) for line in lines.expected)
    return Reading.RIGHT if lines.wrong and lines.expected and not lines.right and all(more) else None


def _repairs_line(lines: _Lines) -> Reading | None:
    repaired = not lines.right and any(
        has_become_right(line, lines.forms) or is_filled(line, lines.printed) for line in lines.wrong
    )
    return Reading.CHANGED if repaired else None


def _has_named_value(lines: _Lines) -> Reading | None:
    named = any(differs_by_named(lines.named, line, lines.forms) for line in lines.wrong)
    return Reading.RIGHT if named else None


_QUESTIONS: tuple[Callable[[_Lines], Reading | None], ...] = (
    _prints_judgement,
    _judges_otherwise,
    _prints_garbage,
    _prints_numbers,
    _lacks_lines,
    _prints_both,
    _repairs_missing_line,
    _has_named_value_beside_others,
    _prints_other_expressions,
    _contradicts_missing_line,
    _prints_other_rows,
    _has_other_structure,
    _prints_wrong_lines,
    _prints_right_lines,
    _contradicts_expected_line,
    _prints_expected_more_often,
    _repairs_line,
    _has_named_value,
)
"""In order: the program's own judgement, lines that are missing beside found ones, found lines, changed lines."""
