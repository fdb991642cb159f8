"""Judge the rows in which a program prints results beside references, or the outcome of its own comparisons. Pure.

`bot.extract.python.reference.printed_rows` describes the rows. An array in several rows counts as one row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from runners.core.failure.printed.pairs import MAX_OUTPUT_CHARS, compare_parts, find_arrays
from runners.core.failure.printed.reading import Reading
from runners.core.protocol import PartRole, PrintedPart, PrintedRow

MAX_JOINED, MAX_LINE_CHARS = 200, 20_000


def judge_rows(stdout: str, reported: str, rows: Sequence[PrintedRow], *, quoted: bool = False) -> Reading:
    """Return whether printed results are right, by the program's own references and comparisons.

    If the report quotes such rows, only the rows that are wrong there are used. A result is right if all of these
    rows agree. With ``quoted``, there is no answer unless the report quotes such a row.
    """
    told = _judge(reported, rows)
    wrong = {at for at, reading in told if reading is Reading.WRONG}
    if (told or quoted) and not wrong:
        return Reading.UNKNOWN  # the report is about something else
    judged = [(at, reading) for at, reading in _judge(stdout, rows) if not wrong or at in wrong]
    readings = {reading for _, reading in judged}
    if Reading.WRONG in readings:
        return Reading.WRONG
    if readings == {Reading.RIGHT}:
        return Reading.RIGHT
    silent = [rows[at].tells == "bad" for at in wrong]
    return Reading.RIGHT if not judged and silent and all(silent) else Reading.UNKNOWN


def _judge(text: str, rows: Sequence[PrintedRow]) -> list[tuple[int, Reading]]:
    """Return, for each printed row that fits a description, the number of the description and the row's reading."""
    found = []
    lines = list(_join_arrays(text[-MAX_OUTPUT_CHARS:]))
    for number, line in enumerate(lines):
        texts = {count: " ".join(lines[number : number + count]) for count in {row.lines for row in rows}}
        read = ((at, _read_row(texts[row.lines], row)) for at, row in enumerate(rows)) if line else ()
        fitting = [(at, reading) for at, reading in read if reading is not None]
        if fitting:
            found.append(max(fitting, key=lambda one: _count_words(rows[one[0]])))
    return found


def _count_words(row: PrintedRow) -> int:
    return sum(len(part.text.strip()) for part in row.parts)


def _join_arrays(text: str) -> Iterator[str]:
    """Yield the rows of an output, with one space between words. Rows inside brackets belong to the row above."""
    joined: list[str] = []
    depth = 0
    for line in text.split("\n"):
        joined.append(line[:MAX_LINE_CHARS])
        depth += line.count("[") - line.count("]")
        if depth <= 0 or len(joined) >= MAX_JOINED:
            yield " ".join(" ".join(joined).split())
            joined, depth = [], 0
    if joined:
        yield " ".join(" ".join(joined).split())


def _read_row(line: str, row: PrintedRow) -> Reading | None:
    """Return the reading of a printed row. None if it does not have the form of ``row``."""
    groups = _split_row(line, row.parts)
    if groups is None:
        return None
    if row.tells:
        return Reading.WRONG if row.tells == "bad" else Reading.RIGHT
    values: dict[PartRole, str] = {}
    for parts, text in groups:
        for part in parts:
            if part.role is PartRole.CHECK:
                return _read_check(parts, part, text)
        named = [part for part in parts if part.role is not PartRole.OTHER]
        for part, piece in _split_values(text, parts, named) if named else ():
            values.setdefault(part.role, piece)
    if PartRole.DIFFERENCE in values:
        return _read_difference(values[PartRole.DIFFERENCE])
    if {PartRole.RESULT, PartRole.REFERENCE} - values.keys():
        return None
    return compare_parts(values[PartRole.RESULT], values[PartRole.REFERENCE])


LARGE, SMALL = 0.1, 1e-4
"""Differences of a result from its reference: wrong from the first on, right up to the second. Both apply to absolute
and to relative differences. Between the two, a result of low precision may be right."""


def _read_difference(text: str) -> Reading | None:
    """Return the reading of a printed difference. None for another word."""
    try:
        size = abs(float(text.rstrip(",;%")))
    except ValueError:
        return None
    if size > LARGE or math.isnan(size):
        return Reading.WRONG
    return Reading.RIGHT if size <= SMALL else Reading.UNKNOWN


def _split_values(
    text: str, parts: Sequence[PrintedPart], named: Sequence[PrintedPart]
) -> Iterator[tuple[PrintedPart, str]]:
    """Yield the results and references among adjacent values: that many arrays, or one word for each value."""
    arrays, words = find_arrays(text), text.split()
    if len(parts) == 1:
        yield parts[0], text
    elif len(arrays) in (len(named), len(parts)):
        yield from zip(named if len(arrays) == len(named) else parts, arrays, strict=True)
    elif len(words) == len(parts):
        yield from ((part, word) for part, word in zip(parts, words, strict=True) if part in named)


def _split_row(line: str, parts: Sequence[PrintedPart]) -> list[tuple[list[PrintedPart], str]] | None:
    """Return the values between the literal texts, with the printed text of each. None if a text is missing."""
    groups: list[tuple[list[PrintedPart], str]] = []
    pending: list[PrintedPart] = []
    at = 0
    for part in parts:
        word = " ".join(part.text.split())
        if part.role is not PartRole.OTHER or not part.text:
            pending.append(part)
            continue
        if not word:
            continue
        place = line.find(word, at)
        if place < 0 or (not pending and line[at:place].strip()):
            return None
        if pending:
            groups.append((pending, line[at:place].strip()))
            pending = []
        at = place + len(word)
    if not pending and line[at:].strip():
        return None
    if pending:
        groups.append((pending, line[at:].strip()))
    return groups


def _read_check(parts: Sequence[PrintedPart], check: PrintedPart, text: str) -> Reading | None:
    """Return the reading of the first or the last of adjacent values. None for another word."""
    good, bad = (" ".join(word.split()) for word in (check.good, check.bad))
    alone = len(parts) == 1
    for word, reading in sorted([(bad, Reading.WRONG), (good, Reading.RIGHT)], key=lambda one: -len(one[0])):
        if not word:  # each other part prints at least one word: a value that a report quotes alone is not a row
            return reading if len(text.split()) >= len(parts) - 1 else None
        if (parts[-1] is check and re.search(rf"(?:^|\s|(?<=\])){re.escape(word)}$", text)) or (
            parts[0] is check and re.match(rf"{re.escape(word)}(?:\s|$)", text)
        ):
            return reading if not alone or text == word else None
    return None
