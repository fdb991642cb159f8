"""A failure's message as people read it, and as two sightings of it are compared. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runners.core.toolchain.failures import FailureVocabulary

MAX_LINE_CHARS = 2_000
MAX_MESSAGE_CHARS = 1_000

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_DIRECTORY = r"(?:[\w.+@~-]{1,100}/)"
_PATH = re.compile(
    rf"(?<![\w:])(?:/{_DIRECTORY}{{1,30}}|{_DIRECTORY}{{2,30}}|{_DIRECTORY}(?=[\w+-]{{0,100}}\.\w))([\w.+-]{{1,100}})"
)
"""One slash between two words without a dot is no path: ``I/O type``, ``read/write``."""
_LINE_COLUMN = re.compile(r":\d+(?::\d+)?\b")
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
TOKEN = re.compile(r"[A-Za-z_][\w.:]*|<N>|[^\s\w]")
_SSA = re.compile(r"[%@#][\w.-]+")


def make_readable(message: str, vocabulary: FailureVocabulary) -> str:
    """The message as people may read it: one line, no addresses, no directories, no long-winded objects."""
    text = _ADDRESS.sub("0x…", " ".join(message[:MAX_LINE_CHARS].split()))
    for long, short in vocabulary.abbreviations:
        text = long.sub(short, text)
    return _PATH.sub(r"\1", text)[:MAX_MESSAGE_CHARS]


def normalize_message(message: str, renames: Mapping[str, str] | None = None) -> str:
    """A message from `make_readable` without what differs between two sightings of one failure. Idempotent.

    ``renames`` maps old API names to new ones, since messages drift with the API.
    """
    text = make_readable(message, _ABBREVIATED).replace("0x…", "<N>").replace("`", "'").replace('"', "'")
    for old, new in (renames or {}).items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new.replace("\\", r"\\"), text)
    text = _SSA.sub("%_", _LINE_COLUMN.sub("", text))
    return " ".join(_NUMBER.sub("<N>", text).split())


_ABBREVIATED = FailureVocabulary()
"""A readable message holds abbreviations already."""


def split_tokens(message: str, renames: Mapping[str, str] | None = None) -> list[str]:
    return [t for t in TOKEN.findall(normalize_message(message, renames)) if t not in "'|,.;:()"]
