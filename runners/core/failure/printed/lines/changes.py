"""Say how a printed line differs from the quoted line with the same words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from runners.core.failure.printed.lines.tokens import (
    ABSOLUTE,
    BAD_WORDS,
    BETWEEN,
    GOOD_WORDS,
    NOTHING,
    RELATIVE,
    Line,
    MaskedLine,
    Number,
    Token,
    are_same_tokens,
    count_words,
    get_label,
    is_same_token,
    is_value,
    list_numbers,
    mask_values,
)

Forms = Mapping[MaskedLine, Sequence[Line]]
"""The printed lines by their words."""

_DIFFERENCE = re.compile(
    r"diff|err|mismatch|delta|deviation|discrepan|(?<![a-z])(?:max_? ?abs|abs_? ?max|mae|r?mse)(?![a-z])",
    re.IGNORECASE,
)


def states_difference(line: Line) -> bool:
    """True for a line that states a difference, and contains at most one value: ``max error = 4.0``."""
    values = list_numbers(line)
    return len(values) == 1 and abs(values[0]) > ABSOLUTE and _is_on_difference(line)


def judges_itself(line: Line) -> bool:
    """True for a line that states how wrong a result is, whatever its value: ``b diff 3.18 FAIL``."""
    return bool(BAD_WORDS.intersection(line)) or _is_on_difference(line)


def _is_on_difference(line: Line) -> bool:
    return _DIFFERENCE.search(get_label(line)) is not None


def is_contradicted(expected: Line, printed: Forms) -> bool:
    """True if a printed line has the words of the expected line, but another value."""
    return count_words(expected) > 0 and any(
        not are_same_tokens(expected, line) for line in printed.get(mask_values(expected), ())
    )


def has_become_right(reported: Line, printed: Forms) -> bool:
    """True if the reported line now has a right value: True for False, a tiny difference, or a number for NaN."""
    if not count_words(reported):
        return False
    on_difference = _is_on_difference(reported)
    for line in printed.get(mask_values(reported), ()):
        pairs = _list_changes(reported, line)
        if pairs and all(_has_improved(old, new, on_difference) for old, new in pairs):
            return True
    return False


def _has_improved(old: Token, new: Token, is_difference: bool) -> bool:
    if isinstance(old, Number) and isinstance(new, Number):
        if not math.isfinite(old.value):
            return math.isfinite(new.value)
        return is_difference and abs(new.value) <= max(1e-4, abs(old.value) * 1e-3)
    judged = old in BAD_WORDS and new in GOOD_WORDS
    return judged or (old, new) in {("False", "True"), ("false", "true")}


def _list_changes(old: Line, new: Line) -> list[tuple[Token, Token]]:
    """Return the pairs of tokens that differ in two lines with the same words."""
    return [pair for pair in zip(old, new, strict=True) if not is_same_token(*pair)]


def is_filled(reported: Line, printed: Sequence[Line]) -> bool:
    """True if a line that ended in ``None`` has a value now: ``span None`` became ``span Span(a.py, 8)``."""
    label, last = reported[:-1], reported[-1]
    if last not in NOTHING or not count_words(label):
        return False
    return any(line[: len(label)] == label and line[len(label) :] not in ((), (last,)) for line in printed)


MAX_NAMED = 4
"""Maximum number of single values that a report names beside a wrong line."""


def differs_by_named(named: Sequence[Token], wrong: Line, printed: Forms) -> bool:
    """True if a printed line has the named values in places where the wrong line has other values.

    A report quotes a wrong line of many values, and names one value that the line should contain. Further values may
    differ if they differ like a named one: by the same factor or by the same amount.
    """
    if not 1 <= len(named) <= MAX_NAMED or sum(map(is_value, wrong)) <= len(named):
        return False
    for line in printed.get(mask_values(wrong), ()):
        changed = _list_changes(wrong, line)
        expected = [pair for pair in changed if any(is_same_token(one, pair[1]) for one in named)]
        others = [pair for pair in changed if pair not in expected]
        if expected and all(any(_changes_alike(pair, one) for one in expected) for pair in others):
            return all(any(is_same_token(one, new) for _, new in expected) for one in named)
    return False


def _changes_alike(one: tuple[Token, Token], other: tuple[Token, Token]) -> bool:
    """True if two numbers change by the same factor (for example their sign) or by the same amount."""
    values = list_numbers((*one, *other))
    if len(values) != 4 or not all(map(math.isfinite, values)):
        return False
    old, new, old_other, new_other = values
    scaled = old != 0 != old_other and math.isclose(new / old, new_other / old_other, rel_tol=RELATIVE)
    return scaled or math.isclose(new - old, new_other - old_other, rel_tol=RELATIVE)


def has_rival(expected: Line, printed: Sequence[Line]) -> bool:
    """True if another printed row has as many values as the bare expected values, but different ones."""
    values = [token for token in expected if isinstance(token, Number)]
    if len(values) < 2 or any(token not in BETWEEN and not isinstance(token, Number) for token in expected):
        return False
    rows = ([token for token in line if isinstance(token, Number)] for line in printed)
    return any(len(row) == len(values) and not all(map(is_same_token, row, values)) for row in rows)


FEWEST_ROWS = 3
"""Minimum number of rows of a table."""


def has_other_rows(gone: Sequence[Line], reported: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if a row of a printed table has other values: ``11 1.3`` in the report, and ``11 3e-07`` in the output.

    The first numbers of a table's rows are all different.
    """
    keys = [line[0] for line in reported if len(line) > 1]
    if len(keys) < FEWEST_ROWS or len(set(keys)) < len(reported) or not all(isinstance(key, Number) for key in keys):
        return False
    rows = {line[0]: line for line in printed if len(line) > 1}
    found = (rows.get(line[0]) for line in gone)
    return any(row is not None and len(row) == len(line) for row, line in zip(found, gone, strict=True))


def has_other_expressions(wrong: Sequence[Line], printed: Sequence[Line]) -> bool:
    """True if each missing wrong row has other code on its right side now: ``x % x -> 0``, ``a[i] = b``.

    A compiler that prints code prints the same code each time. Rows of numbers may differ for other reasons. Rows
    with "..." cannot be compared.
    """
    results: dict[Line, set[Line]] = {}
    for key, rest in map(_split_result, printed):
        results.setdefault(key, set()).add(rest)
    rows = [_split_result(line) for line in wrong if not _is_elided(line)]
    gone = [(key, rest) for key, rest in rows if key and rest not in results.get(key, ())]
    coded = [
        (key, rest) for key, rest in gone if any(isinstance(token, str) and token.isidentifier() for token in rest)
    ]
    return bool(coded) and len(coded) == len(gone) and all(key in results for key, _ in gone)


def _is_elided(line: Line) -> bool:
    return any(line[at : at + 3] == (".", ".", ".") for at in range(len(line) - 2)) or "…" in line


def _split_result(line: Line) -> tuple[Line, Line]:
    """Return the parts of a row before and after the first ``=`` or ``->``. Empty without one."""
    for at in range(1, len(line) - 1):
        pair = line[at : at + 2]
        if pair == ("-", ">"):
            return line[:at], line[at + 2 :]
        if pair[0] == "=" and pair[1] != "=" and line[at - 1] not in ("=", "<", ">", "!"):
            return line[:at], line[at + 1 :]
    return (), ()
