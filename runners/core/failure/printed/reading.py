"""Define the possible results of comparing printed text with a report."""

from __future__ import annotations

from enum import Enum, auto


class Reading(Enum):
    """How the output of a run compares with the report."""

    WRONG = auto()
    """The output contains the values that the report calls wrong, or contradicts the expected value."""
    RIGHT = auto()
    """The output contains the values that the report expects."""
    CHANGED = auto()
    """Instead of the wrong value, the output contains a value that is clearly right (True, no difference)."""
    SIMILAR = auto()
    """The output is a program with a few operations more or fewer than the one that the report calls wrong."""
    UNKNOWN = auto()
    """The output cannot be compared with the report."""
