"""Define the operands that the definition of an operation excludes, so that the program has no result. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runners.toolchains.iree.diagnosis.reference.definitions import Number
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult


@dataclass(frozen=True, slots=True)
class CastOutOfRange:
    """A float is cast to an integer type that cannot represent it. The result is poison."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ZeroDivisor:
    """An integer is divided by zero."""


@dataclass(frozen=True, slots=True)
class ShiftTooFar:
    """An integer is shifted by its number of bits or more. The result is poison."""

    bits: int


@dataclass(frozen=True, slots=True)
class IndexOutside:
    """An index is outside its axis."""

    extent: int
    axis: int


@dataclass(frozen=True, slots=True)
class WrongExtent:
    """A shape has another number of elements than the tensor."""

    right: int
    """The only extent with which the numbers of elements are equal."""


@dataclass(frozen=True, slots=True)
class EqualIndices:
    """A scatter promises distinct indices (``unique_indices``), but two updates have the same place."""


@dataclass(frozen=True, slots=True)
class OutsideAssumption:
    """A value is outside the unsigned bounds that the program promises (``util.assume.int``)."""

    low: int
    high: int


Fault = CastOutOfRange | ZeroDivisor | ShiftTooFar | IndexOutside | WrongExtent | EqualIndices | OutsideAssumption


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One operand of one operation that the called function reaches."""

    operation: str
    """With its dialect: ``arith.divsi``."""
    result: str
    """The name of the operation's result."""
    name: str
    """The name of the operand."""
    value: Number
    fault: Fault


class ExcludedOperand(UndefinedResult):
    """The program runs an operation with an operand that its definition excludes."""

    def __init__(self, operand: Operand) -> None:
        super().__init__(f"{operand.operation} of {operand.name} = {operand.value}")
        self.operand = operand


def check_assumption(operation: str, result: str, name: str, numbers: Sequence[int], bounds: tuple[int, int]) -> None:
    """Raise `ExcludedOperand` for the first number that is outside the bounds, both included."""
    for number in numbers:
        if not bounds[0] <= number <= bounds[1]:
            raise ExcludedOperand(
                Operand(operation=operation, result=result, name=name, value=number, fault=OutsideAssumption(*bounds))
            )


def check_places(operation: str, result: str, name: str, places: Sequence[int]) -> None:
    """Raise `ExcludedOperand` for the first place of two updates of a scatter, by the indices ``name``."""
    seen: set[int] = set()
    for place in places:
        if place in seen:
            raise ExcludedOperand(
                Operand(operation=operation, result=result, name=name, value=place, fault=EqualIndices())
            )
        seen.add(place)


def check_index(
    operation: str, result: str, names: Sequence[str], place: Sequence[int], shape: Sequence[int]
) -> None:
    """Raise `ExcludedOperand` for the first index outside its axis."""
    for axis, (name, at, extent) in enumerate(zip(names, place, shape, strict=True)):
        if not 0 <= at < extent:
            raise ExcludedOperand(
                Operand(operation=operation, result=result, name=name, value=at, fault=IndexOutside(extent, axis))
            )
