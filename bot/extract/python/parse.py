"""Text that is meant to be Python → its top-level statements, good and bad. Linear, and nothing is run.

A fence often holds more than code (a prompt, output, a traceback), so the text is cut into top-level statements by
a scanner that knows strings and brackets only, and each is parsed by itself.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

MAX_STATEMENT_CHARS = 200_000
"""A longer statement is not looked into: the parser's memory grows with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One top-level statement (decorators and ``else`` included), or a stretch that is none (``tree`` is None)."""

    text: str
    row: int
    """0-based row in the text it was cut from."""
    rows: int
    tree: ast.Module | None


def parse_python(text: str) -> ast.Module | None:
    """The syntax tree, or None when this is not Python. Never raises, whatever the text."""
    if len(text) > MAX_STATEMENT_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in strings are the reporter's own affair
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def split_statements(text: str) -> list[Statement]:
    """``text`` (not indented as a whole) cut into top-level statements, in order, covering every line."""
    rows = text.split("\n")
    if rows and rows[-1] == "":
        rows.pop()
    return list(iter_statements(rows))


def iter_statements(rows: Sequence[str]) -> Iterator[Statement]:
    """As `split_statements`, of lines, one by one: who stops early has read only that far."""
    begin = 0
    for end in chain(islice(_statement_rows(rows), 1, None), [len(rows)] if rows else []):
        piece = "\n".join(rows[begin:end]) + "\n"
        yield Statement(text=piece, row=begin, rows=end - begin, tree=parse_python(piece))
        begin = end


_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")
_RESYNC = re.compile(
    r"(?:import \w|from [\w.]+ import|def \w|class \w|@\w|with \w|if __name__|print\(|\$ |>>> |Traceback \(most)"
)


def _statement_rows(rows: Sequence[str]) -> Iterator[int]:
    """The rows where a top-level statement begins (row 0 always does)."""
    decorated = False
    for row, inside in _logical_rows(rows):
        line = rows[row]
        blank_or_comment = not line.strip() or line.lstrip().startswith("#")
        if inside or (row and (blank_or_comment or line[0] in " \t" or _CONTINUES.match(line))):
            continue
        if not decorated:
            yield row
        decorated = line.startswith("@") or (decorated and blank_or_comment)


_TOKEN = re.compile(r"'''|\"\"\"|['\"]|[(\[{]|[)\]}]|#|\\$")


_STRING_BODY = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}") for quote in "'\""}


def _logical_rows(rows: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Each row and whether it lies inside an open bracket, string or continuation begun above it."""
    scan = _Scan(rows=rows)
    for row, line in enumerate(rows):
        if scan.depth and not scan.quote and _RESYNC.match(line):
            scan.depth = 0  # a bracket that never closes must not swallow the rest
        yield row, bool(scan.depth or scan.quote or scan.continued)
        scan.read(row, line)


@dataclass(slots=True)
class _Scan:
    """How far brackets, triple quotes and backslashes reach, row by row."""

    rows: Sequence[str]
    depth: int = 0
    quote: str = ""
    continued: bool = False
    last: dict[str, int] = field(default_factory=dict)
    """Last row with each triple quote, looked up when the first one opens."""

    def read(self, row: int, line: str) -> None:
        self.continued, at = False, 0
        unclosed: set[str] = set()
        while at < len(line):
            if self.quote:
                end = _unescaped(line, self.quote, at)
                if end < 0:
                    return
                at, self.quote = end + 3, ""
                continue
            found = _TOKEN.search(line, at)
            if found is None or found[0] == "#":
                return
            at = self._token(found[0], row, line, found.end(), unclosed)

    def _token(self, token: str, row: int, line: str, at: int, unclosed: set[str]) -> int:
        """Take in ``token``, which ends at ``at``; where to go on."""
        if token == "\\":
            self.continued = True
        elif token in ("'''", '"""'):
            if line.find(token, at) >= 0 or self._closes_below(token, row):
                self.quote = token
        elif token in "([{":
            self.depth += 1
        elif token in ")]}":
            self.depth = max(0, self.depth - 1)
        elif token not in unclosed:
            string = _STRING_BODY[token].match(line, at)
            if string is not None:
                return string.end()
            unclosed.add(token)  # an apostrophe; looking again for each of them would be quadratic
        return at

    def _closes_below(self, token: str, row: int) -> bool:
        if token not in self.last:
            self.last[token] = _last_row_with(self.rows, token)
        return self.last[token] > row


def _unescaped(line: str, quote: str, at: int) -> int:
    end = line.find(quote, at)
    while end > 0 and _escaped(line, end):
        end = line.find(quote, end + 1)
    return end


def _last_row_with(rows: Sequence[str], quote: str) -> int:
    return next((row for row in range(len(rows) - 1, -1, -1) if quote in rows[row]), -1)


def _escaped(line: str, at: int) -> bool:
    return at > 0 and line[at - 1] == "\\" and not (at > 1 and line[at - 2] == "\\")
