"""Apply the filters of a report (``| grep -c x``) to the output of a step, as the supervisor reads it.

The host reads the filters and describes them as data. A pattern has no repetition, so the time is linear in the
output.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # every probe pays for each import here
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_LINE_BYTES = 1024 * 1024
"""A longer row ends the filtering: no filter keeps more than the beginning of a row in memory."""


class Filtered:
    """What the filters leave of the streams of a step. The first filter reads row by row, the others at the end."""

    def __init__(self, pipe: dict[str, Any], limit_bytes: int) -> None:
        self.first, *self.others = pipe["filters"]
        self.keeps = _make_keep(self.first)
        self.limit_bytes = limit_bytes
        self.rest: dict[int, bytes] = {}
        self.rows: list[str] = []
        self.size = 0
        self.read = 0
        self.kept = 0
        self.is_exact = True

    def add(self, stream: int, data: bytes) -> None:
        """Read bytes of a stream. Streams are cut into rows separately."""
        if not self.is_exact:
            return
        *whole, rest = (self.rest.get(stream, b"") + data).split(b"\n")
        self.rest[stream] = rest
        if len(rest) > MAX_LINE_BYTES:
            self.is_exact = False
        for row in whole:
            self._read_row(row)

    def _read_row(self, row: bytes) -> None:
        self.read += 1
        text = row.decode("utf-8", "replace")
        if not self.keeps(text):
            return
        self.kept += 1
        kind = self.first["kind"]
        if kind == "count" or self.first.get("counts"):
            return
        if kind == "take" and not self.first["last"] and self.kept > self.first["number"]:
            return
        kept = f"{self.read}:{text}" if self.first.get("numbers") else text
        self.rows.append(kept)
        self.size += len(kept) + 1
        if kind == "take" and self.first["last"] and len(self.rows) > self.first["number"]:
            self.size -= len(self.rows.pop(0)) + 1
        if self.size > self.limit_bytes:
            self.is_exact = False

    def finish(self) -> str | None:
        """Return what the filters leave. None if that is too long to be kept."""
        for row in self.rest.values():
            if row:
                self._read_row(row)
        if not self.is_exact:
            return None
        rows = self.rows
        if self.first["kind"] == "count" or self.first.get("counts"):
            rows = [str(self.kept)]
        for step in self.others:
            rows = _apply(step, rows)
        return "\n".join(rows)


def _apply(step: dict[str, Any], rows: list[str]) -> list[str]:
    if step["kind"] == "count":
        return [str(len(rows))]
    if step["kind"] == "take":
        number = step["number"]
        return rows[max(0, len(rows) - number) :] if step["last"] else rows[:number]
    keeps = _make_keep(step)
    kept = [(at, row) for at, row in enumerate(rows, start=1) if keeps(row)]
    if step["counts"]:
        return [str(len(kept))]
    return [f"{at}:{row}" if step["numbers"] else row for at, row in kept]


def _make_keep(step: dict[str, Any]) -> Callable[[str], bool]:
    if step["kind"] != "grep":
        return lambda row: True
    case = re.IGNORECASE if step["ignores_case"] else 0
    sides = [[re.compile(piece, case) for piece in side] for side in step["sides"]]
    return lambda row: any(_has(row, side) for side in sides) is not step["inverts"]


def _has(row: str, pieces: Sequence[re.Pattern[str]]) -> bool:
    """True if the pieces occur one after another. The earliest place of each is the best: its length is fixed."""
    begin = 0
    for piece in pieces:
        found = piece.search(row, begin)
        if found is None:
            return False
        begin = found.end()
    return True
