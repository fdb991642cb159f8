"""Cut text into top-level Python statements and parse each by itself. Linear; no statement is ever run.

A fence often contains more than code: a prompt, output, a traceback. Such text must not hide the code around it, so
the statements are found by a scanner that knows only strings and brackets. The error-tolerant parser parso was
rejected: its time is quadratic in escaped quotes (7 s for 16 KB), and 64 KB of open brackets take 9 s.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice

MAX_STATEMENT_CHARS = 200_000
"""A longer statement is not parsed: the parser's memory grows with the length."""
_SHORT, _LONG = 200, 66_000
"""Lengths of the texts whose trees are kept: many short ones or few long ones. A tree takes hundreds of its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One top-level statement with its decorators and branches, or text that does not parse (``tree`` is None)."""

    text: str
    row: int
    """0-based row in the whole text."""
    rows: int
    tree: ast.Module | None

    @property
    def body(self) -> Sequence[ast.stmt]:
        return self.tree.body if self.tree else ()


def parse_python(text: str) -> ast.Module | None:
    """Return the syntax tree, or None if ``text`` is not Python. Never raises.

    Many readers ask for the tree of the same text, and get the same tree: change no tree.
    """
    if len(text) > _LONG:
        return _parse(text) if len(text) <= MAX_STATEMENT_CHARS else None
    return _parse_short(text) if len(text) <= _SHORT else _parse_long(text)


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in the reporter's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


_parse_short = lru_cache(maxsize=512)(_parse)
_parse_long = lru_cache(maxsize=4)(_parse)


def forget_trees() -> None:
    """Free the trees of the texts that were parsed last: a dense text of 64 KB has a tree of 30 MB."""
    _parse_short.cache_clear()
    _parse_long.cache_clear()


_NO_NODES = frozenset({"ctx", "id", "attr", "kind", "type_comment"})
_BELOW = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _NO_NODES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each node that may hold nodes."""


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield ``node`` and every node below it except contexts, in the order of `ast.walk`, in a third of its time."""
    found = [node]
    for one in found:  # it grows meanwhile
        for name in _BELOW[type(one)]:
            value = getattr(one, name, None)
            if isinstance(value, list):
                found += [inner for inner in value if isinstance(inner, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
        yield one


def is_docstring(node: ast.stmt) -> bool:
    """True for a statement that is only a string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def split_statements(text: str) -> list[Statement]:
    """Cut ``text`` (not indented as a whole) into top-level statements. Every line belongs to one statement."""
    rows = text.split("\n")
    if rows and rows[-1] == "":
        rows.pop()
    # The parser knows best where the statements of valid code begin; the scanner is for text that is not.
    tree = None if "\r" in text else parse_python(text)
    return list(_cut_statements(rows, _list_node_rows(tree)) if tree and tree.body else iter_statements(rows))


def _list_node_rows(tree: ast.Module) -> list[int]:
    """Return the rows where the top-level statements begin, decorators included, and row 0."""
    starts = {0}
    free = 0
    for node in tree.body:
        decorators = node.decorator_list if isinstance(node, _DECORATED) else []
        begin = min(node.lineno, *(d.lineno for d in decorators)) - 1 if decorators else node.lineno - 1
        if begin >= free:  # else it shares a row with the statement before: ``a = 1; b = 2``
            starts.add(begin)
        free = max(free, node.end_lineno or node.lineno)
    return sorted(starts)


_DECORATED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def iter_statements(rows: Sequence[str]) -> Iterator[Statement]:
    """Yield the statements of ``rows`` one by one. A caller that stops early pays only for the rows read so far."""
    return _cut_statements(rows, _find_statement_rows(rows))


def _cut_statements(rows: Sequence[str], starts: Iterable[int]) -> Iterator[Statement]:
    begin = 0
    for end in chain(islice(starts, 1, None), [len(rows)] if rows else []):
        piece = "\n".join(rows[begin:end]) + "\n"
        yield Statement(text=piece, row=begin, rows=end - begin, tree=parse_python(piece))
        begin = end


_CONTINUES = re.compile(r"(?:else|elif|except|finally)\b")
_RESYNC = re.compile(
    r"(?:import \w|from [\w.]+ import|def \w|class \w|@\w|with \w|if __name__|print\(|\$ |>>> |Traceback \(most)"
)


def _find_statement_rows(rows: Sequence[str]) -> Iterator[int]:
    """Yield the rows where a top-level statement begins. Row 0 is always among them."""
    decorated = False
    for row, inside in _scan_rows(rows):
        line = rows[row]
        blank_or_comment = not line.strip() or line.lstrip().startswith("#")
        if inside or (row and (blank_or_comment or line[0] in " \t" or _CONTINUES.match(line))):
            continue
        if not decorated:
            yield row
        decorated = line.startswith("@") or (decorated and blank_or_comment)


_TOKEN = re.compile(r"'''|\"\"\"|['\"]|[(\[{]|[)\]}]|#|\\$")
_STRING_BODY = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}") for quote in "'\""}


def _scan_rows(rows: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield each row, and whether a bracket, string or continuation from above is still open there."""
    scan = _Scan(rows=rows)
    for row, line in enumerate(rows):
        if scan.depth and not scan.quote and _RESYNC.match(line):
            scan.depth = 0  # an unclosed bracket must not swallow the rest
        yield row, bool(scan.depth or scan.quote or scan.continued)
        scan.read_row(row, line)


@dataclass(slots=True)
class _Scan:
    """The brackets, triple quotes and backslashes that are open at the end of a row."""

    rows: Sequence[str]
    depth: int = 0
    quote: str = ""
    continued: bool = False
    last: dict[str, int] = field(default_factory=dict)
    """Last row with each triple quote. Looked up at the first such quote."""

    def read_row(self, row: int, line: str) -> None:
        self.continued, at = False, 0
        unclosed: set[str] = set()
        while at < len(line):
            if self.quote:
                end = _find_unescaped(line, self.quote, at)
                if end < 0:
                    return
                at, self.quote = end + 3, ""
                continue
            found = _TOKEN.search(line, at)
            if found is None or found[0] == "#":
                return
            at = self._take_token(found[0], row, line, found.end(), unclosed)

    def _take_token(self, token: str, row: int, line: str, at: int, unclosed: set[str]) -> int:
        """Read ``token``, which ends at offset ``at``. Return the offset at which to continue."""
        if token == "\\":
            self.continued = True
        elif token in ("'''", '"""'):
            if line.find(token, at) >= 0 or self._is_closed_below(token, row):
                self.quote = token
        elif token in "([{":
            self.depth += 1
        elif token in ")]}":
            self.depth = max(0, self.depth - 1)
        elif token not in unclosed:
            string = _STRING_BODY[token].match(line, at)
            if string is not None:
                return string.end()
            unclosed.add(token)  # an apostrophe; a search from each of them would be quadratic
        return at

    def _is_closed_below(self, token: str, row: int) -> bool:
        if token not in self.last:
            self.last[token] = _find_last_row(self.rows, token)
        return self.last[token] > row


def _find_unescaped(line: str, quote: str, at: int) -> int:
    """Return the offset of the first ``quote`` from ``at`` on without a backslash before it; -1 if there is none."""
    end = line.find(quote, at)
    while end > 0 and _is_escaped(line, end):
        end = line.find(quote, end + 1)
    return end


def _is_escaped(line: str, at: int) -> bool:
    return line[at - 1] == "\\" and not (at > 1 and line[at - 2] == "\\")


def _find_last_row(rows: Sequence[str], quote: str) -> int:
    return next((row for row in range(len(rows) - 1, -1, -1) if quote in rows[row]), -1)
