"""Decide whether the syntax of Python code is shallow enough for libcst. Pure."""

from __future__ import annotations

import ast
import warnings

MAX_DEPTH = 150
"""Levels of syntax. Above some 300, libcst's parser overflows the stack, which ends the process."""


def is_shallow(code: str) -> bool:
    """True for Python code that libcst can parse without overflow. CPython's parser has its own limits."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes such as `'\\d'`
            level: list[ast.AST] = [ast.parse(code)]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    for _ in range(MAX_DEPTH):
        if not level:
            return True
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return False
