"""Compare messages of numpy's array checks. Pure.

The header of such a message contains only the tolerance, so the headers of all failed checks look alike. The lines
below report the difference: in shapes, types, positions of NaN or infinity, or values, and by how much.
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
"""Lines below the header that contain the figures. The arrays themselves follow."""
APPROXIMATE = 0.5
"""Relative difference up to which one value approximates the other."""
FACTOR = 5.0
"""Ratio of relative differences below which two failures may be the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMismatch:
    """The difference between two arrays, as a NumPy message reports it."""

    kind: MismatchKind
    share: float | None = None
    """Share of differing elements, 0 … 1. Only for values."""
    relative: float | None = None
    """Largest relative difference. Only for values, and only if the text states one."""


def extract_figures(lines: Iterable[str]) -> str:
    """Return the figures below a check's header, as printed: ``Mismatched elements: 3 / 16 (18.8%) | …``."""
    near = [line.strip() for _, line in zip(range(_WITHIN), lines, strict=False)]
    found = [one for _, pattern in _LINES if (one := _match_first(pattern, near))][:1]
    return " | ".join([*found, *([by] if found and (by := _match_first(_RELATIVE, near)) else [])])


def _match_first(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    return next((found[0] for line in lines if (found := pattern.match(line))), "")


def parse_mismatch(message: str) -> ArrayMismatch | None:
    """Parse the header and the figures from `extract_figures`. None for other messages, or without figures."""
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
    """Return why the two failures differ. None if they may be the same.

    The figures of one failure differ slightly between machines. They differ much if uninitialized memory is read. So
    only two facts count: the kind of difference, and approximately equal values on one side only.
    """
    if reported.kind != observed.kind:
        return f"{observed.kind} of arrays differ, in the report their {reported.kind}"
    if reported.relative is None or observed.relative is None:
        return None
    low, high = sorted((reported.relative, observed.relative))
    if low <= APPROXIMATE < high and high > FACTOR * low:
        return f"values differ by {observed.relative:.2g} of their size, in the report by {reported.relative:.2g}"
    return None
