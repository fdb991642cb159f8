"""Order versions of compilers by age."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from packaging.version import InvalidVersion, Version

FIRST_DATE = 20_000_101
"""Smallest first number that counts as a date, as in ``20230815.614``."""


@lru_cache(maxsize=4096)
def order_version(text: str) -> Version:
    """Parse a version for comparison. A dated version precedes every numbered one.

    IREE's releases were called ``20241104.1068`` until its release 2.9.0 of November 2024.

    Raises:
        InvalidVersion: the text is not a version.
    """
    version = Version(text.strip())
    return Version(f"0.{version}") if version.major >= FIRST_DATE else version


def parse_version(text: str) -> Version | None:
    """Parse a version with or without its ``v``, as `order_version` does. None if the text is not a version."""
    try:
        return order_version(text)
    except InvalidVersion:
        return None


def is_dated(version: str) -> bool:
    """True for a version that is a date and a number."""
    found = parse_version(version)
    return found is not None and len(found.release) == 3 and found.release[1] >= FIRST_DATE


def read_date(version: str) -> date | None:
    """Return the day in a version that is a date and a number. None for another version."""
    found = parse_version(version)
    if found is None or not is_dated(version):
        return None
    try:
        return date.fromisoformat(str(found.release[1]))
    except ValueError:
        return None
