"""Represent one operation of the torch dialect with the values of its operands. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, wrap_value
from runners.toolchains.iree.diagnosis.reference.dialects.stablehlo import map_elements
from runners.toolchains.iree.diagnosis.reference.scalars import truncate_number
from runners.toolchains.iree.diagnosis.reference.statements import Statement, UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values, check_steps, list_elements


@dataclass(frozen=True, slots=True)
class Listed(Values):
    """A list of values, a string, or a missing value. It has no numbers."""

    items: tuple[Values, ...] = ()
    string: str | None = None


NOTHING = Listed("none", ())


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with the values of its operands."""

    statement: Statement
    operands: tuple[Values, ...]
    wide: bool

    @property
    def element(self) -> str:
        """The element type of the first result."""
        return self.statement.types[0].element

    def __getitem__(self, at: int) -> Values:
        if at >= len(self.operands):
            raise UndefinedResult(self.statement.operation)
        return self.operands[at]

    def get_integer(self, at: int, default: int | None = None) -> int:
        one = self.operands[at] if at < len(self.operands) else NOTHING
        if one.element == "none" and default is not None:
            return default
        if one.element in FLOATS or len(one.numbers) != 1:
            raise UndefinedResult("an integer")
        return abs(int(one.numbers[0])) if one.element == "i1" else int(one.numbers[0])

    def get_float(self, at: int) -> float:
        one = self[at]
        if len(one.numbers) != 1:
            raise UndefinedResult("a number")
        return float(abs(one.numbers[0]) if one.element == "i1" else one.numbers[0])

    def get_integers(self, at: int) -> tuple[int, ...] | None:
        """Return a list of integers. None for a missing value."""
        one = self[at]
        if one.element == "none":
            return None
        if not isinstance(one, Listed) or any(len(item.numbers) != 1 for item in one.items):
            raise UndefinedResult("a list of integers")
        return tuple(int(item.numbers[0]) for item in one.items)

    def get_list(self, at: int) -> tuple[Values, ...]:
        one = self[at]
        if not isinstance(one, Listed) or one.element != "list":
            raise UndefinedResult("a list")
        return one.items

    def get_string(self, at: int) -> str:
        one = self[at]
        if not isinstance(one, Listed) or one.string is None:
            raise UndefinedResult("a string")
        return one.string

    def get_axis(self, at: int, rank: int, default: int | None = None) -> int:
        axis = self.get_integer(at, default)
        if not -rank <= axis < rank:
            raise UndefinedResult("a dimension")
        return axis % rank

    def get_axes(self, at: int, rank: int) -> tuple[int, ...]:
        """Return dimensions in order. Return all for a missing value or an empty list."""
        one = self[at]
        axes = self.get_integers(at) if isinstance(one, Listed) else (self.get_integer(at),)
        if any(not -rank <= axis < rank for axis in axes or ()):
            raise UndefinedResult("a dimension")
        return tuple(sorted({axis % rank for axis in axes or range(rank)}))

    def keep(self, numbers: Sequence[Number], shape: Sequence[int], *sources: Values, element: str = "") -> Values:
        """Return the elements in the type of the result, or in ``element``."""
        kind = element or self.element
        kept = numbers if self.wide and kind in FLOATS else [wrap_value(one, kind) for one in numbers]
        return Values(kind, tuple(kept), tuple(shape), any(one.is_rounded for one in sources))


def cast(values: Values, element: str) -> Values:
    if values.element == element:
        return values
    numbers = (truncate_number(one, values.element, element) for one in values.numbers)
    return replace(values, element=element, numbers=tuple(wrap_value(one, element) for one in numbers))


def join_shapes(*operands: Values) -> list[Values]:
    """Broadcast the operands to one shape."""
    shape: list[int] = []
    for extents in zip_longest(*(reversed(one.shape) for one in operands), fillvalue=1):
        largest = {one for one in extents if one != 1}
        if len(largest) > 1:
            raise UndefinedResult("shapes that do not fit")
        shape.append(next(iter(largest), 1))
    to = tuple(reversed(shape))
    check_steps(math.prod(to))
    return [tensors.broadcast_alike(replace(one, numbers=list_elements(one)), to) for one in operands]


def map_each(call: Call, operands: Sequence[Values], compute: Callable[..., Number], element: str = "") -> Values:
    """Compute each element from the elements at its place."""
    joined = join_shapes(*operands)
    to = TensorType(joined[0].shape, element or call.element)
    if not math.prod(to.shape):
        return Values(to.element, (), to.shape)
    joined = [replace(one, numbers=list_elements(one)) for one in joined]
    return map_elements(joined, to, lambda given: compute(*given), wide=call.wide)


Run = Callable[[Call], Values | list[Values]]
