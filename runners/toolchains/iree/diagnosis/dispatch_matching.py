"""Which dispatch of one trace is which of another, and where the first two of them part. Pure.

Dispatches have other names, numbers and places on other builds and devices, so they are matched by what they take:
the same name but for its number where that says enough, else the only dispatch with those very inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.tensor_difference import find_differing_values
from runners.toolchains.iree.diagnosis.dispatch_traces import Dispatch, TracedTensor

MAX_VALUES = 5_000_000
"""Compared in all between inputs that are not printed alike: seconds of work, whatever a trace claims."""
INPUTS_SHARE = 0.1
"""Inputs are the same within a tenth of what outputs may differ by: a difference shall not grow into a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where two traces part: dispatch ``at`` (from 1) of the first, its first output that differs, and where."""

    at: int
    dispatch: Dispatch
    other: Dispatch
    output: int
    count: int
    index: int
    values: tuple[float, float]
    matched: int
    """Dispatches before it that were found on both sides, with the same outputs."""


def first_parting(these: Sequence[Dispatch], those: Sequence[Dispatch]) -> Parting | None:
    """The first dispatch that takes what one on the other side takes, and gives something else."""
    matched, inputs, ours, theirs = 0, _Inputs(), _by_types(these), _by_types(those)
    for at, dispatch in enumerate(these, 1):
        types = _types(dispatch)
        other = _counterpart(dispatch, ours[types], theirs.get(types, []), inputs)
        if other is None:
            continue
        parts = next(_parts(dispatch, other), None)
        if parts is not None:
            number, off = parts
            index, x, y = off[0]
            return Parting(
                at=at,
                dispatch=dispatch,
                other=other,
                output=number,
                count=len(off),
                index=index,
                values=(x, y),
                matched=matched,
            )
        matched += 1
    return None


_Types = tuple[tuple[str, ...], tuple[str, ...]]


def _types(dispatch: Dispatch) -> _Types:
    return tuple(one.type for one in dispatch.inputs), tuple(one.type for one in dispatch.outputs)


def _by_types(dispatches: Sequence[Dispatch]) -> dict[_Types, list[Dispatch]]:
    groups: dict[_Types, list[Dispatch]] = {}
    for dispatch in dispatches:
        groups.setdefault(_types(dispatch), []).append(dispatch)
    return groups


def _parts(a: Dispatch, b: Dispatch) -> Iterator[tuple[int, list[tuple[int, float, float]]]]:
    """The outputs that differ, and where."""
    for number, (one, other) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        off = _apart(one, other, 1.0)
        if off:
            yield number, off


def _counterpart(
    dispatch: Dispatch, these: Sequence[Dispatch], those: Sequence[Dispatch], inputs: _Inputs
) -> Dispatch | None:
    """The same dispatch on the other side, wherever it ran there; None where that cannot be told.

    ``these`` and ``those`` are the dispatches of its types on its own side and on the other.
    """
    alike = [one for one in those if inputs.taken_by_both(dispatch, one)]
    named = [one for one in alike if one.says == dispatch.says]
    agreeing = next((one for one in named if next(_parts(dispatch, one), None) is None), None)
    if agreeing is not None or not alike:
        return agreeing
    twins = [one for one in these if inputs.taken_by_both(dispatch, one)]
    if not named:
        return alike[0] if dispatch.inputs and len(alike) == len(twins) == 1 else None
    # Dispatches may have one name and take one tensor, and be of different parts of it: then which is which?
    own = [one for one in twins if one.says == dispatch.says]
    return named[0] if _all_give_the_same(own) and _all_give_the_same(named) else None


def _all_give_the_same(calls: Sequence[Dispatch]) -> bool:
    return len({tuple(output.digest for output in call.outputs) for call in calls}) == 1


class _Inputs:
    """Which inputs are the same. One that is not known whole may differ where it isn't known.

    Two tensors are compared once, and no more values in all than would be worth the time: a trace is a claim, and may
    hold thousands of dispatches whose inputs all have to be looked at.
    """

    def __init__(self) -> None:
        self._same: dict[tuple[str, str, str], bool] = {}
        self._left = MAX_VALUES

    def taken_by_both(self, a: Dispatch, b: Dispatch) -> bool:
        """Of two dispatches of the same types."""
        return all(map(self._are_the_same, a.inputs, b.inputs))

    def _are_the_same(self, a: TracedTensor, b: TracedTensor) -> bool:
        if a.digest == b.digest:
            return True
        pair = (a.type, a.digest, b.digest)
        if pair not in self._same:
            self._same[pair] = self._compared(a, b)
        return self._same[pair]

    def _compared(self, a: TracedTensor, b: TracedTensor) -> bool:
        if self._left <= 0 or not (a.whole and b.whole):
            return False
        self._left -= len(a.tensor.values)
        return not _apart(a, b, INPUTS_SHARE)


def _apart(a: TracedTensor, b: TracedTensor, share: float) -> list[tuple[int, float, float]]:
    """Where the values that are known differ. Values that are not all there are compared as far as they go."""
    if a.digest == b.digest or len(a.tensor.values) != len(b.tensor.values):
        return []
    return find_differing_values(a.tensor, b.tensor, share)
