"""Read the Python programs of a testcase as syntax trees. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import msgspec

from runners.core.protocol import Testcase

MOST_CHARS = 100_000


def parse_programs(testcase: Testcase, word: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Yield name and tree of each Python file of moderate size that can be parsed and contains ``word``."""
    for name, text in testcase.files.items():
        # For Python, a lone carriage return ends a line. Then positions would differ from those of the text.
        if name.endswith(".py") and word in text and len(text) <= MOST_CHARS and "\r" not in text:
            try:
                yield name, ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


BLOCKS = frozenset({"sblock", "block"})
"""The name of a block in TVMScript: ``T.sblock`` since 0.25, ``T.block`` before."""


def get_method(node: ast.expr) -> str:
    """Return ``sblock`` for ``T.sblock("y")``. Empty for another expression."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


Change = tuple[ast.expr, str]
"""An expression, and the text that replaces it. ``{}`` is the old text."""


def replace_expressions(testcase: Testcase, file: str, changes: Sequence[Change]) -> Testcase:
    """Return the testcase with some expressions of a file replaced."""
    lines = testcase.files[file].encode().split(b"\n")  # offsets of a syntax tree count bytes
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = b"\n".join(lines)
    for node, new in sorted(_drop_inner(changes), key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or node.col_offset)
        text = text[:begin] + new.encode().replace(b"{}", text[begin:end]) + text[end:]
    return msgspec.structs.replace(testcase, files={**testcase.files, file: text.decode()})


def _drop_inner(changes: Sequence[Change]) -> list[Change]:
    """Drop the expressions inside another one, because they would move its end."""
    inner = {id(one) for node, _ in changes for one in ast.walk(node) if one is not node}
    return [change for change in changes if id(change[0]) not in inner]
