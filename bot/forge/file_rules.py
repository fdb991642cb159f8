"""Limits for linked files, and the file names that are taken. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from bot.extract.types import is_binary_name

MAX_FILES = 8
"""Limit for the links followed, and for the files taken out of each zip."""
MAX_FILE_BYTES = 8 * 1024**2
MAX_TOTAL_BYTES = 24 * 1024**2
"""Limit for all bytes fetched and unpacked together."""

TEXT = frozenset({".py", ".mlir", ".txt", ".json"})

_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)
"""Names that Windows treats as a device, with any suffix."""


def is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def check_file_name(name: str) -> str:
    """Return why a file of this name is neither fetched nor unpacked; empty if it may be. A gist has no name."""
    suffix = PurePosixPath(name).suffix.lower()
    if not name or suffix in TEXT or suffix == ".zip":
        is_safe = re.fullmatch(r"[\w+][\w.+ -]{0,199}", name) and not _DEVICE.match(name)
        return "" if is_safe or not name else "has a name that no file should have"
    if is_binary_name(name):
        return "is a binary file, which a testcase cannot hold yet"
    return f"is none of {', '.join(sorted({*TEXT, '.zip'}))}"
