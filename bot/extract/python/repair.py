"""Undo the changes that Markdown, editors and mail make to Python text, each only if more of the code parses then."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.extract.python.parse import parse_python, split_statements
from bot.extract.types import Repair


def dedent_text(text: str) -> str:
    """Remove the common indentation. Unlike `textwrap.dedent`, cut mixed tabs and spaces, each as one column.

    A string of several rows whose content is at the margin does not change.
    """
    margin = measure_margin(text)
    if not margin:
        return text
    rows = text.split("\n")
    inside = _find_string_rows(rows)
    kept = inside if any(_count_indent(rows[i]) < margin for i in inside if rows[i].strip()) else frozenset()
    return "\n".join(row if i in kept else row[margin:] if row.strip() else "" for i, row in enumerate(rows))


def measure_margin(text: str) -> int:
    """Return the common indentation of the rows, without the rows that begin inside a string."""
    rows = text.split("\n")
    inside = _find_string_rows(rows)
    return min((_count_indent(row) for i, row in enumerate(rows) if row.strip() and i not in inside), default=0)


def _count_indent(row: str) -> int:
    return len(row) - len(row.lstrip(" \t"))


_QUOTES = re.compile(r'"""|\'\'\'|(?<!["\'])#')


def _find_string_rows(rows: Sequence[str]) -> frozenset[int]:
    """Return the indices of the rows that begin inside a string of several rows; none if a string does not end."""
    inside: set[int] = set()
    opened = ""
    for i, row in enumerate(rows):
        if opened:
            inside.add(i)
        for mark in _QUOTES.findall(row):
            if mark == "#" and not opened:
                break
            if mark != "#" and opened in ("", mark):
                opened = "" if opened else mark
    return frozenset() if opened else frozenset(inside)


_NUMBERED = re.compile(r"[ \t]*(?P<number>\d{1,4})(?:[:.|]|[ \t]*\|)?(?:[ \t](?P<code>.*))?")


def drop_line_numbers(text: str) -> str:
    """Return Python without the numbers that an editor, a page or ``cat -n`` shows before its rows.

    Each row has the next number. The code behind them must parse.
    """
    rows = text.rstrip("\n").split("\n")
    found = [_NUMBERED.fullmatch(row) for row in rows]
    numbers = [int(row["number"]) for row in found if row is not None]
    if len(numbers) < max(3, len(rows)) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return text
    code = dedent_text("".join(f"{row['code'] or ''}\n" for row in found if row is not None))
    tree = parse_python(code)
    acts = tree is not None and any(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign) for node in tree.body)
    return code if acts else text  # a table of figures does not change


def make_dedent_repair(margin: int) -> Repair:
    return Repair(kind="dedent", detail=f"removed {margin} column(s) of indentation")


def repair_text(text: str) -> tuple[str, tuple[Repair, ...]]:
    """Return ``text`` with the changes that make more of it parse, and a repair for each change.

    The changes: common indentation removed, HTML entities unescaped, typographic quotes straightened, tabs expanded.
    """
    repairs: list[Repair] = []
    margin = measure_margin(text)
    if margin:
        text = dedent_text(text)
        repairs.append(make_dedent_repair(margin))
    if parse_python(text) is not None:
        return text, tuple(repairs)
    best = text
    used: tuple[_TextChange, ...] = ()
    for changes in _RECIPES:
        changed, effective = _apply_changes(changes, text)
        if effective and _count_parsed_rows(changed) > _count_parsed_rows(best):
            best, used = changed, _drop_needless(effective, text, _count_parsed_rows(changed))
    if used:
        best, _ = _apply_changes(used, text)
    return best, (*repairs, *(Repair(kind=change.kind, detail=change.detail) for change in used))


@dataclass(frozen=True, slots=True)
class _TextChange:
    kind: str
    detail: str
    apply: Callable[[str], str]


def _apply_changes(changes: Sequence[_TextChange], text: str) -> tuple[str, tuple[_TextChange, ...]]:
    """Return ``text`` after ``changes``, and the changes that had an effect."""
    effective = []
    for change in changes:
        changed = change.apply(text)
        if changed != text:
            effective.append(change)
            text = changed
    return text, tuple(effective)


def _drop_needless(changes: tuple[_TextChange, ...], text: str, rows: int) -> tuple[_TextChange, ...]:
    """Drop each change without which at least ``rows`` rows of ``text`` still parse."""
    for change in changes:
        fewer = tuple(c for c in changes if c is not change)
        if _count_parsed_rows(_apply_changes(fewer, text)[0]) >= rows:
            changes = fewer
    return changes


def _count_parsed_rows(text: str) -> int:
    return sum(s.rows for s in split_statements(text) if s.tree is not None)


def _expand_tabs(width: int) -> Callable[[str], str]:
    return lambda text: text.expandtabs(width)


def _dedent_hanging(text: str) -> str:
    """Dedent code whose first line lost its indentation in copying while the other lines kept theirs."""
    first, _, rest = text.partition("\n")
    return f"{first}\n{dedent_text(rest)}" if measure_margin(rest) and not first.rstrip().endswith(":") else text


_SMART = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " ", "–": "-", "−": "-", "…": "..."}
    | {"\u3000": " ", "\uff0c": ",", "\uff1a": ":", "\uff1b": ";", "\uff08": "(", "\uff09": ")", "\uff1d": "="}
)
"""Typographic characters, and the full-width ones of Chinese and Japanese keyboards."""


def straighten_row(row: str) -> str:
    """Return a row with plain quotes, dashes, spaces and punctuation."""
    return row.translate(_SMART)


def make_straight_repair() -> Repair:
    """Return the record of rows that `straighten_row` changed."""
    return Repair(kind=_STRAIGHTEN.kind, detail=_STRAIGHTEN.detail)


_UNESCAPE = _TextChange("unescape", "HTML entities to characters", html.unescape)
_STRAIGHTEN = _TextChange(
    "straighten-quotes",
    "typographic quotes, dashes, spaces and punctuation to plain ones",
    lambda text: text.translate(_SMART),
)
_HANG = _TextChange("dedent", "lines after the first moved to the margin", _dedent_hanging)
_RECIPES: tuple[tuple[_TextChange, ...], ...] = tuple(
    (_UNESCAPE, _STRAIGHTEN, _TextChange("expand-tabs", f"tabs to {width} columns", _expand_tabs(width)), *more)
    for width in (4, 8)
    for more in ((), (_HANG,))
)
"""Changes to try together, in this order. Only the changes that the code needs are kept."""
