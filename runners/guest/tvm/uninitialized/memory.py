"""Store the contents of a buffer during the interpretation of a function: known, unknown or undefined values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class Unknown:
    """A value that was written but is unknown."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Undefined:
    """The value of an element that was never written. ``index`` is None if unknown."""

    buffer: str
    index: tuple[int, ...] | None


Value = Any
"""A number, ``UNKNOWN`` or an `Undefined`."""
Index = tuple[Value, ...]


@dataclass(frozen=True)
class UndefinedUse:
    """A place where an undefined value takes effect. ``elements`` counts the elements that such a value reaches."""

    read: Undefined
    where: str
    elements: int = 1


class CannotTell(Exception):
    """The function uses a feature that the interpreter does not support."""


class UseFound(Exception):
    """An undefined value decides how the function continues."""

    def __init__(self, use: UndefinedUse) -> None:
        super().__init__(use)
        self.use = use


@dataclass
class Memory:
    """Contents of a buffer. ``fresh``: elements that are not in ``cells`` were never written."""

    name: str
    extents: tuple[int, ...] | None
    """None if an extent is unknown."""
    fresh: bool
    cells: dict[tuple[int, ...], Value] = field(default_factory=dict)
    given: Any = None
    """Initial contents, an array of the buffer's shape. None if unknown."""
    read_unwritten: bool = False
    """True if an undefined element was read, even without effect."""

    def forget(self) -> None:
        """Count the whole buffer as written with unknown values from now on."""
        self.fresh = False
        self.cells.clear()
        self.extents = self.given = None

    def read_element(self, index: Index) -> Value:
        if not self._is_known(index):
            nothing_written = self.fresh and not self.cells
            return self._record_unwritten(None) if nothing_written else UNKNOWN
        if index in self.cells:
            return self.cells[index]
        if not self._is_inside(index):
            return UNKNOWN
        if self.given is not None:
            return self.given[index].item()
        return self._record_unwritten(index) if self.fresh else UNKNOWN

    def write_element(self, index: Index, value: Value) -> None:
        if not self._is_known(index):
            self.forget()
        elif not self._is_inside(index):
            raise CannotTell(f"a store outside {self.name}")
        else:
            self.cells[index] = value

    def count_missing(self) -> int:
        """Return the number of elements that were never written. 0 if the shape is unknown."""
        if not self.fresh or self.extents is None:
            return 0
        count = 1
        for extent in self.extents:
            count *= extent
        return count - len(self.cells)

    def find_missing(self) -> tuple[int, ...]:
        index = [0] * len(self.extents or ())
        while tuple(index) in self.cells:
            for axis in reversed(range(len(index))):
                index[axis] += 1
                if index[axis] < (self.extents or ())[axis]:
                    break
                index[axis] = 0
        return tuple(index)

    def _record_unwritten(self, index: tuple[int, ...] | None) -> Undefined:
        self.read_unwritten = True
        return Undefined(self.name, index)

    def _is_known(self, index: Index) -> bool:
        return self.extents is not None and all(type(part) is int for part in index)

    def _is_inside(self, index: tuple[int, ...]) -> bool:
        extents = self.extents or ()
        return len(index) == len(extents) and all(0 <= at < size for at, size in zip(index, extents, strict=True))


def iterate_leftovers(memory: Memory) -> Iterator[UndefinedUse]:
    """Yield the undefined values in an argument at the end, one use for each source buffer."""
    undefined = {index: value for index, value in memory.cells.items() if isinstance(value, Undefined)}
    by_buffer: dict[str, list[tuple[tuple[int, ...], Undefined]]] = {}
    for index, value in undefined.items():
        by_buffer.setdefault(value.buffer, []).append((index, value))
    for cells in by_buffer.values():
        index, value = cells[0]
        yield UndefinedUse(value, f"element {list(index)} of {memory.name}", len(cells))
    if missing := memory.count_missing():
        yield UndefinedUse(Undefined(memory.name, memory.find_missing()), "its caller", missing)
