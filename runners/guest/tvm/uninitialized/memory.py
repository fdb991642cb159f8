"""What a buffer holds while a function is followed: values, something unknown, or what nothing ever wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class Unknown:
    """Some value that was written."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Undefined:
    """What an element holds that was never written. ``index`` is None where it is not known."""

    buffer: str
    index: tuple[int, ...] | None


Value = Any
"""A number, ``UNKNOWN`` or an `Undefined`."""
Index = tuple[Value, ...]


@dataclass(frozen=True)
class Use:
    """Where a value that nothing defined takes effect. ``elements`` counts those of ``where`` that it reaches."""

    read: Undefined
    where: str
    elements: int = 1


class CannotTell(Exception):
    """The function does something that is not followed here."""


class Found(Exception):
    """An undefined value decides what happens next: what follows depends on it."""

    def __init__(self, use: Use) -> None:
        super().__init__(use)
        self.use = use


@dataclass
class Memory:
    """What a buffer holds. ``fresh``: elements not in ``cells`` hold nothing that was ever written."""

    name: str
    extents: tuple[int, ...] | None
    """None where one of them is not known."""
    fresh: bool
    cells: dict[tuple[int, ...], Value] = field(default_factory=dict)
    given: Any = None
    """What it held from the start: an array of its shape; None where that is not known."""
    read_unwritten: bool = False
    """An element was read that had not been written, whether it mattered or not."""

    def blur(self) -> None:
        """Anything may have been written anywhere, now or later."""
        self.fresh = False
        self.cells.clear()
        self.extents = self.given = None

    def read(self, index: Index) -> Value:
        if not self._known(index):
            nothing_written = self.fresh and not self.cells
            return self._unwritten(None) if nothing_written else UNKNOWN
        if index in self.cells:
            return self.cells[index]
        if not self._inside(index):
            return UNKNOWN
        if self.given is not None:
            return self.given[index].item()
        return self._unwritten(index) if self.fresh else UNKNOWN

    def write(self, index: Index, value: Value) -> None:
        if not self._known(index):
            self.blur()
        elif not self._inside(index):
            raise CannotTell(f"a store outside {self.name}")
        else:
            self.cells[index] = value

    def missing(self) -> int:
        """Elements that were never written, of a buffer of a known shape."""
        if not self.fresh or self.extents is None:
            return 0
        count = 1
        for extent in self.extents:
            count *= extent
        return count - len(self.cells)

    def first_missing(self) -> tuple[int, ...]:
        index = [0] * len(self.extents or ())
        while tuple(index) in self.cells:
            for axis in reversed(range(len(index))):
                index[axis] += 1
                if index[axis] < (self.extents or ())[axis]:
                    break
                index[axis] = 0
        return tuple(index)

    def _unwritten(self, index: tuple[int, ...] | None) -> Undefined:
        self.read_unwritten = True
        return Undefined(self.name, index)

    def _known(self, index: Index) -> bool:
        return self.extents is not None and all(type(one) is int for one in index)

    def _inside(self, index: tuple[int, ...]) -> bool:
        extents = self.extents or ()
        return len(index) == len(extents) and all(0 <= at < size for at, size in zip(index, extents, strict=True))


def left_in(memory: Memory) -> Iterator[Use]:
    """What an argument holds at the end that nothing defined."""
    undefined = {index: value for index, value in memory.cells.items() if isinstance(value, Undefined)}
    by_buffer: dict[str, list[tuple[tuple[int, ...], Undefined]]] = {}
    for index, value in undefined.items():
        by_buffer.setdefault(value.buffer, []).append((index, value))
    for found in by_buffer.values():
        index, value = found[0]
        yield Use(value, f"element {list(index)} of {memory.name}", len(found))
    if missing := memory.missing():
        yield Use(Undefined(memory.name, memory.first_missing()), "its caller", missing)
