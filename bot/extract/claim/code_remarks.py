"""Find the failure that a program states itself, in its comments and in lone strings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from bot.extract.blocks.pieces import Kind, Piece
from bot.extract.blocks.sections import Cue
from bot.extract.python.parse import is_docstring, parse_python
from runners.core.failure.parse import NATIVE, parse_signature
from runners.core.protocol import Signature
from runners.toolchains import ALL_FAILURES

MAX_CODE_CHARS = 100_000
_NOT_SEEN = re.compile(
    r"\b(?:should|expect\w*|want\w*|works?|fine|ok|correct|instead|no longer|fixed|todo|if|unless|except|without)\b",
    re.I,
)
"""Words of a remark that is about another program, or about what ought to happen."""
_NAME = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception)\b|Check failed|Traceback")
"""Where a remark names its failure. A word is read from its beginning: a search from each letter is quadratic."""
_VERB = re.compile(
    r"^(?:it |this |here |which |now )?"
    r"(?:raises?|throws?|gives?|fails?(?: with)?|crash(?:es)?(?: with)?|error|[-=]+>|got)[:\s]+",
    re.I,
)


def find_stated_failure(pieces: Sequence[Piece]) -> Signature | None:
    """Return the first failure that the remarks of a program state with a message, or as a crash."""
    for piece in pieces:
        if (
            piece.kind is not Kind.PYTHON
            or piece.cue in (Cue.WORKS, Cue.EXPECTED)
            or len(piece.text) > MAX_CODE_CHARS
        ):
            continue
        if (found := find_in_code(piece.text)) is not None:
            return found
    return None


@lru_cache(maxsize=16)
def find_in_code(code: str) -> Signature | None:
    """Return the first failure that ``code`` states. An extraction asks for it about five times."""
    for remark in _list_remarks(code):
        found = parse_signature(_VERB.sub("", remark), ALL_FAILURES)
        if found is not None and (found.message or found.type in NATIVE):
            return found
    return None


def _list_remarks(code: str) -> Iterator[str]:
    """Yield the lone strings and the comments; those of neighbouring rows as one text."""
    tree = parse_python(code)
    if tree is None:
        return
    for at, node in enumerate(tree.body):
        if at and is_docstring(node):  # the first one describes the program
            yield str(ast.literal_eval(node.value)).strip() if isinstance(node, ast.Expr) else ""
    rows: list[str] = []
    for above, (row, whole, text) in pairwise([(-2, False, ""), *_list_comments(code)]):
        if rows and not (whole and above[1] and row == above[0] + 1):
            yield "\n".join(rows)
            rows = []
        if rows or not _NOT_SEEN.search(_NAME.split(text)[0]):
            rows.append(text)
    if rows:
        yield "\n".join(rows)


def _list_comments(code: str) -> Iterator[tuple[int, bool, str]]:
    """Yield row, whether the comment is the whole row, and text of each comment."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
    for token in tokens:
        text = re.sub(r"^#+ ?", "", token.string).rstrip()
        if token.type == tokenize.COMMENT and "#" not in text:  # else: disabled code with its own remark
            yield token.start[0], not token.line[: token.start[1]].strip(), text
