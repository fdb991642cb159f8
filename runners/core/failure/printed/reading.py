"""The comparison of printed text with a report: its possible results."""

from __future__ import annotations

from enum import Enum, auto


class Reading(Enum):
    """How the output of a run compares with the report."""

    WRONG = auto()
    """The output has the values that the report calls wrong, or contradicts the expected value."""
    RIGHT = auto()
    """The output has the values that the report expects."""
    CHANGED = auto()
    """In the place of the wrong value, the output has a value that is right by itself (True, no difference)."""
    SIMILAR = auto()
    """The output is a program with a few operations more or fewer than the one that the report calls wrong."""
    UNKNOWN = auto()
    """The output cannot be compared with the report."""
