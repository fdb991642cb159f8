"""Cut MLIR at marks outside brackets, strings and comments. Pure.

The ``>`` of an arrow and of a comparison is not a bracket. A closing bracket without an opening one is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

SKIPPED = r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*'
"""Pattern of a string, which may lack its end, and of a comment."""
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_COMMENT = re.compile(SKIPPED)
_ROW_BRACKET = re.compile(rf"{SKIPPED}|(?P<open>[(\[{{])|(?P<close>[)\]}}])")


def blank_comments(text: str) -> str:
    """Return the text with blanks instead of comments, so that offsets do not change."""
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), text)


def remove_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else "", text)


def count_opened(row: str) -> int:
    """Return how many more brackets a row opens than it closes, angle brackets aside."""
    found = [one.lastgroup for one in _ROW_BRACKET.finditer(row)]
    return found.count("open") - found.count("close")


@cache
def _compile_pair(opening: str) -> re.Pattern[str]:
    both = re.escape(opening), re.escape(_CLOSING[opening])
    return re.compile(rf"{SKIPPED}|->|[<>=]=|(?P<open>{both[0]})|(?P<close>{both[1]})")


def find_closing(text: str, begin: int) -> int:
    """Return the offset of the bracket that closes the one at ``begin``. -1 without one. Other kinds do not count."""
    depth = 0
    for found in _compile_pair(text[begin]).finditer(text, begin):
        depth += (found.lastgroup == "open") - (found.lastgroup == "close")
        if not depth:
            return found.start()
    return -1


@cache
def _compile_mark(mark: str) -> re.Pattern[str]:
    return re.compile(rf"{SKIPPED}|(?P<mark>{re.escape(mark)})|->|[<>=]=|(?P<open>[(\[{{<])|(?P<close>[)\]}}>])")


def find_marks(text: str, mark: str) -> Iterator[int]:
    """Yield the offsets of a mark outside brackets."""
    depth = 0
    for found in _compile_mark(mark).finditer(text):
        match found.lastgroup:
            case "mark" if not depth:
                yield found.start()
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case _:
                pass


def split_list(text: str, mark: str = ",") -> list[str]:
    """Return the parts of a list without blanks around them: ``tensor<2x3xf32>, vector<4xi8>``. No part is empty."""
    begin, parts = 0, []
    for at in find_marks(text, mark):
        parts.append(text[begin:at].strip())
        begin = at + len(mark)
    return [one for one in (*parts, text[begin:].strip()) if one]


def partition(text: str, mark: str) -> tuple[str, str, str]:
    """Partition a text at the first ``mark`` outside brackets."""
    at = next(find_marks(text, mark), -1)
    return (text[:at].strip(), mark, text[at + len(mark) :].strip()) if at >= 0 else (text, "", "")


def rpartition(text: str, mark: str) -> tuple[str, str, str]:
    """Partition a text at the last ``mark`` outside brackets."""
    at = max(find_marks(text, mark), default=-1)
    return (text[:at].strip(), mark, text[at + len(mark) :].strip()) if at >= 0 else ("", "", text)


def strip_parentheses(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if bare.startswith("(") and find_closing(bare, 0) == len(bare) - 1 else bare
