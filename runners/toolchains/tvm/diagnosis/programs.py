"""Read the Python programs of a testcase as syntax trees. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runners.core.protocol import Testcase

MOST_CHARS = 100_000


def parse_programs(testcase: Testcase, word: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Yield name and tree of each Python file of moderate size that can be parsed and contains ``word``."""
    for name, text in testcase.files.items():
        # A lone carriage return ends a line for Python: positions would not be those of the text.
        if name.endswith(".py") and word in text and len(text) <= MOST_CHARS and "\r" not in text:
            try:
                yield name, ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue


BLOCKS = frozenset({"sblock", "block"})
"""The name of a block in TVMScript: ``T.sblock`` since 0.25, ``T.block`` before."""


def get_method(node: ast.expr) -> str:
    """Return ``sblock`` for ``T.sblock("y")``; empty for another expression."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""
