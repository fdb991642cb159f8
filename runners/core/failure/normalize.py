"""Write failures for people, and normalize messages for comparison. Pure."""

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
"""One slash between two words without a dot is not a path: ``I/O type``, ``read/write``."""
_LINE_COLUMN = re.compile(r":\d+(?::\d+)?\b")
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
TOKEN = re.compile(r"[A-Za-z_][\w.:]*|<N>|[^\s\w]")
_SSA = re.compile(r"[%@#][\w.-]+")


def make_readable(message: str, vocabulary: FailureVocabulary) -> str:
    """Return the message on one line, without addresses and directories, and with long object dumps abbreviated."""
    text = _ADDRESS.sub("0x…", " ".join(message[:MAX_LINE_CHARS].split()))
    for long, short in vocabulary.abbreviations:
        text = long.sub(short, text)
    return _PATH.sub(r"\1", text)[:MAX_MESSAGE_CHARS]


def normalize_message(message: str, renames: Mapping[str, str] | None = None) -> str:
    """Replace the parts of a readable message that differ between two runs of one failure. Idempotent.

    ``renames`` maps old API names to new names, because messages change with the API.
    """
    text = make_readable(message, _ABBREVIATED).replace("0x…", "<N>").replace("`", "'").replace('"', "'")
    for old, new in (renames or {}).items():
        text = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", new.replace("\\", r"\\"), text)
    text = _SSA.sub("%_", _LINE_COLUMN.sub("", text))
    return " ".join(_NUMBER.sub("<N>", text).split())


_ABBREVIATED = FailureVocabulary()
"""Empty, because `make_readable` has abbreviated the message already."""


def split_tokens(message: str, renames: Mapping[str, str] | None = None) -> list[str]:
    """Return the words and operators of the normalized message, without punctuation."""
    return [t for t in TOKEN.findall(normalize_message(message, renames)) if t not in "'|,.;:()"]


_TYPE_NAMES = {
    "mlir-error": "an MLIR error",
    "flag-error": "a command-line error",
    "unexpected-output": "an error message in the output",
    "output": "printed output",
    "timed-out": "a timeout",
    "out-of-memory": "an out-of-memory error",
    "crash": "a crash",
    "?": "an unknown failure",
}
"""Types of `Signature` that only this project uses, with their names for readers."""


STATUS = "status:"
"""The start of the type of a failure that IREE's runtime reports."""


def describe_type(failure_type: str) -> str:
    """Return a signature's type as words for a sentence: ``an MLIR error``; ``TypeError`` as it is."""
    if failure_type.startswith(STATUS):
        return f"status {failure_type.removeprefix(STATUS)}"
    return _TYPE_NAMES.get(failure_type, failure_type)


def name_type(failure_type: str) -> str:
    """Return a signature's type as a title without an article: ``MLIR error``, ``TypeError``."""
    name = describe_type(failure_type)
    return name if name == failure_type else name.removeprefix("an ").removeprefix("a ")


def simplify_name(name: str) -> str:
    """Return a name without case and underscores: an importer's class ``LayerNorm`` must match ``layer_norm``."""
    return name.replace("_", "").lower()
