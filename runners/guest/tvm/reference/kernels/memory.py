"""Store the contents of buffers during interpretation, and detect races between concurrent iterations."""

from __future__ import annotations

import itertools
from typing import Any

from runners.guest.tvm.reference.kernels.types import Number, UndefinedAccess, UndefinedResult

_SEVERAL = None
"""More than one iteration."""


class Memory:
    """Elements in their order in memory. None for an element that was never written."""

    serial = itertools.count()

    def __init__(self, name: str, cells: list[Number | None], dtype: str) -> None:
        self.name = name
        self.cells = cells
        self.dtype = dtype
        self.key = next(self.serial)


class Iterations:
    """The accesses of a loop whose iterations may run concurrently, or in any order.

    An iteration is identified by the value of the loop's variable, in its slot of the function's variables.
    """

    def __init__(self, variables: list[Any], slot: int) -> None:
        self._variables, self._slot = variables, slot
        self._writers: dict[tuple[int, int], int] = {}
        self._readers: dict[tuple[int, int], int | None] = {}

    def note_read(self, memory: Memory, place: int) -> None:
        key, at = (memory.key, place), self._variables[self._slot]
        if self._writers.get(key, at) != at:
            raise UndefinedResult(f"iterations at once that read and write an element of {memory.name}")
        if self._readers.setdefault(key, at) != at:
            self._readers[key] = _SEVERAL

    def note_write(self, memory: Memory, place: int) -> None:
        key, at = (memory.key, place), self._variables[self._slot]
        if self._readers.get(key, at) != at or self._writers.setdefault(key, at) != at:
            raise UndefinedResult(f"iterations at once that write an element of {memory.name} another one uses")


def find_place(name: str, extents: tuple[int, ...], index: tuple[Any, ...]) -> int:
    """Return the place of an element in its memory, in row-major order.

    Raises:
        UndefinedAccess: the index is outside the buffer.
    """
    place = 0
    for at, extent in zip(index, extents, strict=True):
        if not 0 <= at < extent:
            raise UndefinedAccess(f"an index outside its buffer: {name}{list(index)} of shape {list(extents)}"[:150])
        place = place * extent + at
    return place
