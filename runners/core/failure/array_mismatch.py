"""Compare what numpy's checks say of two arrays that differ. Pure.

The header of such a message has only the tolerance, so that all failed checks look alike by it. The lines below the
header tell them apart: they say that shapes, types, positions of NaN or infinity, or values differ, and by how much.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

MismatchKind = Literal["shapes", "types", "NaN positions", "infinite positions", "values"]

_HEADER = re.compile(r"Not equal to tolerance|Arrays are not (?:almost )?equal")
_LINES: tuple[tuple[MismatchKind, re.Pattern[str]], ...] = (
    ("shapes", re.compile(r"\(shapes \([\d, ]{0,200}\), \([\d, ]{0,200}\) mismatch\)")),
    ("types", re.compile(r"\(dtypes [^\n]{1,100} mismatch\)")),
    ("NaN positions", re.compile(r"(?:x and y )?nan location mismatch", re.IGNORECASE)),
    ("infinite positions", re.compile(r"(?:x and y )?[+-]?inf location mismatch", re.IGNORECASE)),
    ("values", re.compile(r"Mismatched elements: (?P<off>\d{1,18}) / (?P<all>\d{1,18})\b[^\n]{0,40}")),
)
_RELATIVE = re.compile(
    r"Max relative difference(?: among violations)?: (?P<by>[\d.]{1,40}(?:e[+-]?\d{1,3})?|inf|nan)"
)
"""numpy 2.0 added the words "among violations"."""
_WITHIN = 40
"""Lines below the header in which the figures stand; the arrays themselves follow."""
APPROXIMATE = 0.5
"""A relative difference up to which a value is an approximation of the other, rather than another value."""
FACTOR = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMismatch:
    kind: MismatchKind
    share: float | None = None
    """Of the elements, 0 … 1; only of values."""
    relative: float | None = None
    """The largest relative difference; only of values, and only where the text has it."""


def extract_figures(lines: Iterable[str]) -> str:
    """What the lines below a check's header say, in its own words: ``Mismatched elements: 3 / 16 (18.8%) | …``."""
    near = [line.strip() for _, line in zip(range(_WITHIN), lines, strict=False)]
    found = [one for _, pattern in _LINES if (one := _match_first(pattern, near))][:1]
    return " | ".join([*found, *([by] if found and (by := _match_first(_RELATIVE, near)) else [])])


def _match_first(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    return next((found[0] for line in lines if (found := pattern.match(line))), "")


def parse_mismatch(message: str) -> ArrayMismatch | None:
    """A check's message with its `extract_figures`; None where it is another's, or has no figures."""
    if not _HEADER.search(message) and not message.startswith("Mismatched elements"):
        return None
    for kind, pattern in _LINES:
        if found := pattern.search(message):
            if kind != "values":
                return ArrayMismatch(kind=kind)
            by, elements = _RELATIVE.search(message), int(found["all"])
            return ArrayMismatch(
                kind=kind,
                share=int(found["off"]) / elements if elements else None,
                relative=float(by["by"]) if by else None,
            )
    return None


def explain_difference(reported: ArrayMismatch, observed: ArrayMismatch) -> str | None:
    """Why the two are not one failure, in words; None where they may be.

    Figures of one failure move a little from machine to machine, and much where memory is read that nobody wrote. So
    only two things tell: what kind of difference it is, and that values which nearly agree became others.
    """
    if reported.kind != observed.kind:
        return f"{observed.kind} differ, the report is of {reported.kind}"
    if reported.relative is None or observed.relative is None:
        return None
    low, high = sorted((reported.relative, observed.relative))
    if low <= APPROXIMATE < high and high > FACTOR * low:
        return f"values are off by {observed.relative:.2g} of their size, in the report by {reported.relative:.2g}"
    return None
