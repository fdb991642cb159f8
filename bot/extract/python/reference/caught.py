"""Find the text that a program prints with an exception that it catches. Pure.

A program with ``except Exception as e: print("crashed:", e)`` ends well on each build, even if it failed there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from bot.extract.python.parse import parse_python, walk
from runners.core.protocol import Testcase

MAX_LABELS, MAX_LABEL = 20, 200


def find_caught_labels(testcase: Testcase) -> tuple[str, ...]:
    """Return the literal texts that a testcase prints directly before an exception that it caught.

    A label is empty if the exception is printed alone, or after a value of the run. There is no label if the testcase
    prints no caught exception.
    """
    texts = [text for name, text in testcase.files.items() if name.endswith(".py")]
    labels = (label for text in texts for label in list_caught_labels(text))
    return tuple(dict.fromkeys(islice(labels, MAX_LABELS)))


def list_caught_labels(code: str) -> tuple[str, ...]:
    """Return the labels of one program, see `find_caught_labels`; none for a text that is not Python."""
    tree = parse_python(code)
    return tuple(islice(_iterate_labels(tree), MAX_LABELS)) if tree is not None else ()


def _iterate_labels(tree: ast.Module) -> Iterator[str]:
    handlers = (node for node in walk(tree) if isinstance(node, ast.ExceptHandler) and node.name)
    for handler in handlers:
        for node in (inner for statement in handler.body for inner in walk(statement)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"):
                continue
            label = _find_label(node, str(handler.name))
            if label is not None:
                yield label


def _find_label(call: ast.Call, name: str) -> str | None:
    """Return the text before the exception ``name`` in a call of print; None if the call does not print it."""
    if not any(isinstance(one, ast.Name) and one.id == name for one in walk(call)):
        return None
    words = ""
    for argument in call.args:
        for part in argument.values if isinstance(argument, ast.JoinedStr) else [argument]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                words += part.value
            elif any(isinstance(one, ast.Name) and one.id == name for one in walk(part)):
                return words.rpartition("\n")[2].strip()[:MAX_LABEL]
            else:
                return ""
        words += " "
    return ""
