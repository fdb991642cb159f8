"""Which smaller texts to try: delta debugging over the pieces of a testcase. Pure; nothing is run here.

A reducer goes through its text in passes. Each pass cuts the text into pieces and hands over a function that builds
the text without some of them; ``remove_pieces`` finds a set of pieces that can go, in big bites first (Lithium's
order), until none can go alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Whole = TypeVar("Whole")
"""What is cut down: a text, or a whole testcase."""


@dataclass(frozen=True, slots=True)
class Pieces(Generic[Whole]):
    """``pieces`` places where something can go, and what is left then.

    ``build`` takes the pieces that go, and gives None where what is left is no program: that costs nothing to know.
    """

    pieces: int
    build: Callable[[frozenset[int]], Whole | None]


def remove_pieces(part: Pieces[Whole], keeps: Callable[[Whole], bool]) -> Whole | None:
    """The smallest whole found in one pass that ``keeps``; None when nothing can go."""
    gone: frozenset[int] = frozenset()
    best = None
    size = max(1, part.pieces // 2)
    while part.pieces:
        progress = False
        for bite in _bites([i for i in range(part.pieces) if i not in gone], size):
            left = part.build(gone | bite)
            if left is not None and keeps(left):
                gone, best, progress = gone | bite, left, True
        if size == 1 and not progress:
            break
        size = max(1, size // 2)
    return best


def _bites(left: Sequence[int], size: int) -> Iterator[frozenset[int]]:
    """From the end: what comes last is needed by nothing after it."""
    for end in range(len(left), 0, -size):
        yield frozenset(left[max(0, end - size) : end])


def find_kept(texts: Iterable[str | None], keeps: Callable[[str], bool]) -> str | None:
    """The first of some rewritten texts that still shows the failure."""
    return next((text for text in texts if text is not None and keeps(text)), None)
