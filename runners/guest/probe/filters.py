"""Apply the filters of a report (``| grep -c x``) to the output of a step, as the supervisor reads it.

The host reads the filters and describes them as data. A pattern has no repetition, and no row is read twice, so the
time is linear in the output. A result that is too long, or that the filters would not give exactly, is unknown.
"""

from __future__ import annotations

import collections
import re

TYPE_CHECKING = False  # every probe pays for each import here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

MAX_ROW_BYTES = 64 * 1024
"""A longer row ends the filtering."""


class Filtered:
    """What the filters leave of the streams of a step. The first filter reads row by row, the others at the end."""

    def __init__(self, pipe: dict[str, Any], limit_bytes: int) -> None:
        self.first, *self.others = pipe["filters"]
        self.keeps = _make_keep(self.first)
        self.counts = self.first["kind"] == "count" or bool(self.first.get("counts"))
        self.limit_bytes = limit_bytes
        self.chunks: dict[int, list[bytes]] = {}
        self.held: dict[int, int] = {}
        last = self.first["number"] if self.first["kind"] == "take" and self.first["last"] else None
        self.rows: collections.deque[str] = collections.deque(maxlen=last)
        self.size = 0
        self.read = 0
        self.kept = 0
        self.is_exact = True

    def add(self, stream: int, data: bytes) -> None:
        """Read bytes of a stream. Streams are cut into rows separately."""
        if not self.is_exact:
            return
        chunks = self.chunks.setdefault(stream, [])
        if b"\n" not in data:
            chunks.append(data)
            self.held[stream] = self.held.get(stream, 0) + len(data)
            if self.held[stream] > MAX_ROW_BYTES:
                self._give_up()
            return
        *whole, rest = (b"".join(chunks) + data).split(b"\n")
        self.chunks[stream], self.held[stream] = [rest], len(rest)
        for row in whole:
            self._read_row(row)

    def _give_up(self) -> None:
        self.is_exact = False
        self.chunks.clear()
        self.rows.clear()

    def _read_row(self, row: bytes) -> None:
        self.read += 1
        text = row.decode("utf-8", "replace")
        if not self.is_exact or not self.keeps(text):
            return
        self.kept += 1
        is_over = self.first["kind"] == "take" and not self.first["last"] and self.kept > self.first["number"]
        if self.counts or is_over:
            return
        self.rows.append(f"{self.read}:{text}" if self.first.get("numbers") else text)
        if self.rows.maxlen is None:
            self.size += len(self.rows[-1].encode()) + 1
            if self.size > self.limit_bytes:
                self._give_up()

    def finish(self) -> str | None:
        """Return what the filters leave. None if that is too long to be kept, or not exact."""
        rest = [row for row in (b"".join(chunks) for chunks in self.chunks.values()) if row]
        if rest and (len(rest) > 1 or not self._ends_rows()):
            return None  # `wc -l` counts the ends of rows, and this one has none
        for row in rest:
            self._read_row(row)
        if not self.is_exact:
            return None
        rows = [str(self.kept)] if self.counts else list(self.rows)
        for step in self.others:
            if self._is_too_long(rows):
                return None
            rows = _apply(step, rows)
        return None if self._is_too_long(rows) else "\n".join(rows)

    def _ends_rows(self) -> bool:
        """True if no filter counts rows before another one has ended the last row, as ``grep`` does."""
        kinds = [step["kind"] for step in (self.first, *self.others)]
        return "count" not in kinds or "grep" in kinds[: kinds.index("count")]

    def _is_too_long(self, rows: Iterable[str]) -> bool:
        return sum(len(row.encode()) + 1 for row in rows) > self.limit_bytes


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
