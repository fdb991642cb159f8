"""Compare a result with the reference that a program prints beside it. Pure.

The program leaves the comparison to its readers. Either the two are the last values of the output (decided by
`bot.extract.python.reference`), or labels in one row mark them: ``3 [1. 2.] expected [1. 3.]``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from runners.core.failure.printed.lines.tokens import NUMBER_PATTERN
from runners.core.failure.printed.reading import Reading

CLEAR = 1e-2
"""Minimum relative difference of unequal values. Half precision and another order of summation stay below it."""
EQUAL = 1e-5
"""Maximum relative difference of equal values: about six printed digits."""
MAX_OUTPUT_CHARS = 200_000
MAX_VALUES = 10_000
_VALUE = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\b(?:True|False)\b", re.IGNORECASE)


def compare_last_values(stdout: str, *, each: bool = False) -> Reading:
    """Return whether the last two arrays of an output are equal. Without an array, compare the values of the last two
    rows.

    The result is `Reading.UNKNOWN` for a difference between `EQUAL` and `CLEAR`, because both may be right. The same
    applies to arrays of unequal sizes, to truth values beside numbers, and to arrays with values left out, unless the
    printed values differ. A difference is relative to the largest value. With ``each``, values are equal only if each
    is: a small one beside large ones may differ by the rounding of a sum, or by lost digits, so it decides nothing.
    """
    text = stdout[-MAX_OUTPUT_CHARS:]
    pair = find_arrays(text)[-2:] or [row for row in text.split("\n") if _VALUE.search(row)][-2:]
    if len(pair) != 2:
        return Reading.UNKNOWN
    one, other = ([found[0] for found in _VALUE.finditer(text)] for text in pair)
    if not one or len(one) != len(other) or len(one) > MAX_VALUES:
        return Reading.UNKNOWN
    if _measure_difference(one, other) > CLEAR:
        mixed = {word.lower() in ("true", "false") for word in (*one, *other)} == {True, False}
        return Reading.UNKNOWN if mixed else Reading.WRONG
    whole = not any("..." in text for text in pair)
    return Reading.RIGHT if whole and _measure_difference(one, other, each=each) <= EQUAL else Reading.UNKNOWN


_LABEL = re.compile(
    r"(?<![\w.])(?:(?P<reference>expect(?:ed|s)?|want(?:ed)?|should be|ref(?:erence)?|numpy|np|(?:py)?torch"
    r"|correct|truth|golden|desired)|got|actual|results?|out(?:put)?|computed)(?![\w.(])\s{0,4}[:=]?",
    re.I,
)
"""The word before a result or a reference in a printed row."""


def compare_labelled_rows(stdout: str, reported: str) -> Reading:
    """Return whether results equal the references in the same rows.

    Only printed rows with the labels of a reported row whose two values differ are used.
    """
    wrong = {labels for labels, reading in _judge_rows(reported) if reading is Reading.WRONG}
    judged = [reading for labels, reading in _judge_rows(stdout[-MAX_OUTPUT_CHARS:]) if labels in wrong]
    if not judged:
        return Reading.UNKNOWN
    if Reading.WRONG in judged:
        return Reading.WRONG
    return Reading.RIGHT if set(judged) == {Reading.RIGHT} else Reading.UNKNOWN


def _judge_rows(text: str) -> Iterator[tuple[tuple[str, ...], Reading]]:
    """Yield the labels of each row that contains a result and a reference, and whether the two are equal."""
    for row in text.split("\n"):
        labels = list(islice(_LABEL.finditer(row[:MAX_ROW_CHARS]), 3))
        if not 1 <= len(labels) <= 2 or len({bool(one["reference"]) for one in labels}) < len(labels):
            continue
        ends = [one.start() for one in labels[1:]] + [len(row)]
        parts = {bool(one["reference"]): row[one.end() : end] for one, end in zip(labels, ends, strict=True)}
        parts.setdefault(False, row[: labels[0].start()])
        if set(parts) == {True, False}:
            yield tuple(one[0].lower() for one in labels), compare_parts(parts[False], parts[True])


MAX_ROW_CHARS = 20_000


def compare_parts(result: str, reference: str) -> Reading:
    """Compare the last array of each part. Without an array, compare the last values."""
    first, second = find_arrays(result)[-1:], find_arrays(reference)[:1]
    one, other = (
        [found[0] for found in _VALUE.finditer(array[0] if first and second else part)]
        for array, part in ((first, result), (second, reference))
    )
    one = one[-len(other) :]
    if not other or len(one) != len(other) or len(one) > MAX_VALUES:
        return Reading.UNKNOWN
    difference = _measure_difference(one, other)
    if difference > CLEAR:
        return Reading.UNKNOWN if _is_wrapped(one, other) else Reading.WRONG
    return Reading.RIGHT if difference <= EQUAL and "..." not in result + reference else Reading.UNKNOWN


def _is_wrapped(one: Sequence[str], other: Sequence[str]) -> bool:
    """True if all differences of two rows of integers are multiples of 256. Then one side has a narrower type."""
    try:
        return all((int(a) - int(b)) % 256 == 0 for a, b in zip(one, other, strict=True))
    except ValueError:
        return False


def find_arrays(text: str) -> list[str]:
    """Return the passages between outermost square brackets that contain values."""
    arrays, depth, begin = [], 0, 0
    for found in re.finditer(r"[\[\]]", text):
        if found[0] == "[":
            begin = found.start() if depth == 0 else begin
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                arrays.append(text[begin : found.end()])
    return [array for array in arrays if _VALUE.search(array)]


def _measure_difference(one: Sequence[str], other: Sequence[str], *, each: bool = False) -> float:
    """Return the largest difference of two rows of values, relative to the largest value, or to ``each`` value.

    The difference is infinite for two different truth values, and for NaN beside a number.
    """
    if any(map(_is_truth, (*one, *other))):
        return 0.0 if [_read(a) for a in one] == [_read(b) for b in other] else math.inf
    left, right = ([float(value) for value in values] for values in (one, other))
    finite = [abs(value) for value in (*left, *right) if math.isfinite(value)]
    scale = max(finite, default=1.0) or 1.0
    pairs = list(zip(left, right, strict=True))
    if each:
        return max((_measure_pair(a, b) / (max(abs(a), abs(b)) or 1.0) for a, b in pairs), default=0.0)
    return max((_measure_pair(a, b) / scale for a, b in pairs), default=0.0)


def _measure_pair(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return 0.0 if a == b else abs(a - b)


def is_other_array(output: str, actual: str) -> bool:
    """True if the only array that a report quotes has several rows, and no printed array of its size equals it.

    Single rows of two arrays may be equal, such as the zeros behind the end of a result.
    """
    arrays = find_arrays(actual)
    if len(arrays) != 1 or "\n" not in arrays[0] or "..." in arrays[0]:
        return False
    printed = [one for one in find_arrays(output[-MAX_OUTPUT_CHARS:]) if len(one.split()) == len(arrays[0].split())]
    return bool(printed) and all(compare_parts(one, arrays[0]) is Reading.WRONG for one in printed)


def prints_array(output: str, expected: str) -> bool:
    """True if the only expected array equals the only printed array of its size, in any notation.

    ``tensor([[1.5000, 2.0000],⏎ [3.0000, 4.0000]])`` and ``2x2xf32=[1.5 2][3 4]`` are one array.
    """
    return _measure_from_array(output, expected) <= EQUAL


def holds_one_array(text: str) -> bool:
    """True for a text with one array that is complete and long enough to be recognized."""
    return bool(_find_one_array(text))


def _find_one_array(text: str) -> list[str]:
    arrays = _list_groups(text)
    return arrays[0] if len(arrays) == 1 and "..." not in text and MIN_ARRAY <= len(arrays[0]) <= MAX_VALUES else []


def prints_other_array(output: str, expected: str) -> bool:
    """True if the only printed array of an expected array's size has other values."""
    return _measure_from_array(output, expected) > CLEAR


def _measure_from_array(output: str, expected: str) -> float:
    """Return the difference of an expected array from the only printed array of its size. NaN without such a pair."""
    wanted = _find_one_array(expected)
    printed = [one for one in _list_groups(output[-MAX_OUTPUT_CHARS:]) if len(one) == len(wanted)] if wanted else []
    return _measure_difference(printed[0], wanted) if len(printed) == 1 else math.nan


MIN_ARRAY = 3
"""Minimum number of values that identify an array."""


def _list_groups(text: str) -> list[list[str]]:
    """Return the values of each array. Adjacent rows are one array."""
    text = _TYPED_ROW.sub(r"[\1]", text)
    groups: list[list[str]] = []
    end = -1
    for array in find_arrays(text):
        begin = text.index(array, max(end, 0))
        values = [found[0] for found in _VALUE.finditer(array)]
        if groups and not text[end:begin].strip():
            groups[-1] += values
        else:
            groups.append(values)
        end = begin + len(array)
    return groups


_TYPED_ROW = re.compile(r"^[ \t]*(?:\d{1,9}x){1,8}[a-z]\w{0,10}=([^\[\]\n]+)$", re.M)
"""A row of values after its type: ``4xf32=1 2 3 4``."""


def _is_truth(value: str) -> bool:
    return value in ("True", "False")


def _read(value: str) -> float:
    """Return a value as a number. Frameworks print truth values as words or as 0 and 1."""
    return float(value == "True") if _is_truth(value) else float(value)
