"""What Markdown, editors and mail did to Python text, undone: each repair only where the code needs it."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.extract.python.parse import parse_python, split_statements
from bot.extract.types import Repair


def dedented(text: str) -> str:
    margin = margin_of(text)
    return "\n".join(row[margin:] if row.strip() else "" for row in text.split("\n")) if margin else text


def margin_of(text: str) -> int:
    widths = [len(row) - len(row.lstrip(" \t")) for row in text.split("\n") if row.strip()]
    return min(widths, default=0)


def dedent_repair(margin: int) -> Repair:
    return Repair(kind="dedent", detail=f"removed {margin} column(s) of indentation")


_SMART = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "–": "-", "−": "-", "…": "..."}
)


def mended(text: str) -> tuple[str, tuple[Repair, ...]]:
    """``text`` with common indentation, entities, smart quotes and mixed tabs undone, each only where it helps."""
    repairs: list[Repair] = []
    margin = margin_of(text)
    if margin:
        text = dedented(text)
        repairs.append(dedent_repair(margin))
    if parse_python(text) is not None:
        return text, tuple(repairs)
    best = text
    used: tuple[_Change, ...] = ()
    for changes in _RECIPES:
        changed, helped = _applied(changes, text)
        if helped and _parsed_rows(changed) > _parsed_rows(best):
            best, used = changed, _needed(helped, text, _parsed_rows(changed))
    if used:
        best, _ = _applied(used, text)
    return best, (*repairs, *(Repair(kind=change.kind, detail=change.detail) for change in used))


def _applied(changes: Sequence[_Change], text: str) -> tuple[str, tuple[_Change, ...]]:
    """``text`` after ``changes``, and those of them that changed it."""
    helped = []
    for change in changes:
        changed = change.apply(text)
        if changed != text:
            helped.append(change)
            text = changed
    return text, tuple(helped)


def _needed(changes: tuple[_Change, ...], text: str, rows: int) -> tuple[_Change, ...]:
    """``changes`` without those that the code does as well without."""
    for change in changes:
        fewer = tuple(c for c in changes if c is not change)
        if _parsed_rows(_applied(fewer, text)[0]) >= rows:
            changes = fewer
    return changes


def _parsed_rows(text: str) -> int:
    return sum(s.rows for s in split_statements(text) if s.tree is not None)


def _expand(width: int) -> Callable[[str], str]:
    return lambda text: text.expandtabs(width)


def _hanging(text: str) -> str:
    """Code whose first line lost its indentation when it was copied: the others still have theirs."""
    first, _, rest = text.partition("\n")
    margin = margin_of(rest)
    return f"{first}\n{dedented(rest)}" if margin and not first.rstrip().endswith(":") else text


@dataclass(frozen=True, slots=True)
class _Change:
    kind: str
    detail: str
    apply: Callable[[str], str]


_UNESCAPE = _Change("unescape", "HTML entities to characters", html.unescape)

_STRAIGHTEN = _Change(
    "straighten-quotes", "typographic quotes, dashes and spaces to plain ones", lambda text: text.translate(_SMART)
)

_HANG = _Change("dedent", "lines after the first moved to the margin", _hanging)

_RECIPES: tuple[tuple[_Change, ...], ...] = tuple(
    (_UNESCAPE, _STRAIGHTEN, _Change("expand-tabs", f"tabs to {width} columns", _expand(width)), *more)
    for width in (4, 8)
    for more in ((), (_HANG,))
)
"""What to try, in order; of each recipe only the steps that the code needs are kept."""
