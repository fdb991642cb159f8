"""Compare the last two values that a program prints: a result and its reference. Pure.

The program prints both and leaves the comparison to its readers. `bot.extract.python.own_reference` decides that a
program is of this kind; the values are read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from runners.core.failure.printed.output import NUMBER_PATTERN
from runners.core.failure.printed.reading import Reading

CLEAR = 1e-2
"""Relative difference from which two values are not equal. Half precision and other orders of summing stay below."""
EQUAL = 1e-5
"""Relative difference up to which two values are equal: about six printed digits."""
MAX_OUTPUT_CHARS = 200_000
MAX_VALUES = 10_000
_VALUE = re.compile(rf"(?<![\w.]){NUMBER_PATTERN}(?!\w)|\b(?:True|False)\b", re.IGNORECASE)


def compare_last_values(stdout: str) -> Reading:
    """Return whether the last two arrays of an output are equal; without an array, the values of the last two rows.

    A difference between `EQUAL` and `CLEAR` is `Reading.UNKNOWN`: both may be right. So are arrays of unequal sizes,
    and arrays with values left out, unless the printed ones differ.
    """
    text = stdout[-MAX_OUTPUT_CHARS:]
    pair = _find_arrays(text)[-2:] or [row for row in text.split("\n") if _VALUE.search(row)][-2:]
    if len(pair) != 2:
        return Reading.UNKNOWN
    one, other = ([found[0] for found in _VALUE.finditer(text)] for text in pair)
    if not one or len(one) != len(other) or len(one) > MAX_VALUES:
        return Reading.UNKNOWN
    if _measure_difference(one, other) > CLEAR:
        return Reading.WRONG
    whole = not any("..." in text for text in pair)
    return Reading.RIGHT if whole and _measure_difference(one, other) <= EQUAL else Reading.UNKNOWN


def _find_arrays(text: str) -> list[str]:
    """Return the passages between outermost square brackets that hold values."""
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


def _measure_difference(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the largest difference of two rows of values, relative to the largest value.

    It is infinite for two different truth values, and for NaN beside a number.
    """
    if any(map(_is_truth, (*one, *other))):
        return 0.0 if [_read(a) for a in one] == [_read(b) for b in other] else math.inf
    left, right = ([float(value) for value in values] for values in (one, other))
    finite = [abs(value) for value in (*left, *right) if math.isfinite(value)]
    scale = max(finite, default=1.0) or 1.0
    return max((_measure_pair(a, b) / scale for a, b in zip(left, right, strict=True)), default=0.0)


def _measure_pair(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return 0.0 if a == b else abs(a - b)


def _is_truth(value: str) -> bool:
    return value in ("True", "False")


def _read(value: str) -> float:
    """Return a value as a number: frameworks print truth values as words or as 0 and 1."""
    return float(value == "True") if _is_truth(value) else float(value)
