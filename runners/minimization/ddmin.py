"""Delta debugging: choose the smaller texts to try. Pure.

A reducer cuts its text into pieces and passes a function that builds the text without some of them. ``remove_pieces``
removes pieces, large groups first (Lithium's order), until no single piece can be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Whole = TypeVar("Whole")
"""The type that is reduced: a text, or a testcase."""


@dataclass(frozen=True, slots=True)
class Pieces(Generic[Whole]):
    """The pieces of a whole that may be removable, ``count`` in number.

    ``build`` takes the numbers of the removed pieces and returns the rest. It returns None if the rest is not a valid
    program, which saves a run.
    """

    count: int
    build: Callable[[frozenset[int]], Whole | None]


def remove_pieces(pieces: Pieces[Whole], keeps: Callable[[Whole], bool]) -> Whole | None:
    """Return the smallest rest found that ``keeps`` accepts. None if no piece can be removed."""
    gone: frozenset[int] = frozenset()
    best = None
    size = max(1, pieces.count // 2)
    while pieces.count:
        progress = False
        for group in _list_groups([i for i in range(pieces.count) if i not in gone], size):
            left = pieces.build(gone | group)
            if left is not None and keeps(left):
                gone, best, progress = gone | group, left, True
        if size == 1 and not progress:
            break
        size = max(1, size // 2)
    return best


def _list_groups(left: Sequence[int], size: int) -> Iterator[frozenset[int]]:
    """Group the pieces from the end, because no later piece needs the last one."""
    for end in range(len(left), 0, -size):
        yield frozenset(left[max(0, end - size) : end])


def find_kept(texts: Iterable[str | None], keeps: Callable[[str], bool]) -> str | None:
    """Return the first of some texts that ``keeps`` accepts."""
    return next((text for text in texts if text is not None and keeps(text)), None)
