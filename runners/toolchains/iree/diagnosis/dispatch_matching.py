"""Match the dispatches of two traces, and find the first match with equal inputs and different outputs. Pure.

Names, numbers and positions of dispatches differ between builds and devices. So dispatches are matched by their
inputs. The counterpart is the dispatch with the same name without its number, if unique. Otherwise it is the only
dispatch with these inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runners.core.failure.tensor_difference import find_differing_values
from runners.toolchains.iree.diagnosis.dispatch_traces import Dispatch, TracedTensor

MAX_VALUES = 5_000_000
"""Maximum number of compared values of inputs with different digests. It limits the work to seconds."""
INPUTS_SHARE = 0.1
"""Tolerance of inputs, as a share of that of outputs. A small difference must not grow into a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference between two traces: a dispatch, its first differing output, and the first such value."""

    at: int
    """Number of the dispatch in the first trace, 1-based."""
    dispatch: Dispatch
    other: Dispatch
    output: int
    count: int
    index: int
    values: tuple[float, float]
    matched: int
    """Number of dispatches before it that match, with equal outputs."""


def find_divergence(these: Sequence[Dispatch], those: Sequence[Dispatch]) -> Divergence | None:
    """Find the first dispatch with the same inputs as a dispatch of the other trace, and with different outputs."""
    matched, inputs, ours, theirs = 0, _Inputs(), _group_by_types(these), _group_by_types(those)
    for at, dispatch in enumerate(these, 1):
        types = _get_types(dispatch)
        other = _find_counterpart(dispatch, ours[types], theirs.get(types, []), inputs)
        if other is None:
            continue
        parts = next(_list_differing_outputs(dispatch, other), None)
        if parts is not None:
            number, off = parts
            index, x, y = off[0]
            return Divergence(
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


def _get_types(dispatch: Dispatch) -> _Types:
    return tuple(one.type for one in dispatch.inputs), tuple(one.type for one in dispatch.outputs)


def _group_by_types(dispatches: Sequence[Dispatch]) -> dict[_Types, list[Dispatch]]:
    groups: dict[_Types, list[Dispatch]] = {}
    for dispatch in dispatches:
        groups.setdefault(_get_types(dispatch), []).append(dispatch)
    return groups


def _list_differing_outputs(a: Dispatch, b: Dispatch) -> Iterator[tuple[int, list[tuple[int, float, float]]]]:
    """List the differing outputs, and their differences."""
    for number, (one, other) in enumerate(zip(a.outputs, b.outputs, strict=True)):
        off = _find_differences(one, other, 1.0)
        if off:
            yield number, off


def _find_counterpart(
    dispatch: Dispatch, these: Sequence[Dispatch], those: Sequence[Dispatch], inputs: _Inputs
) -> Dispatch | None:
    """Find the same dispatch in the other trace, at any position. None if the match is ambiguous.

    ``these`` and ``those`` are the dispatches with its types in its own trace and in the other.
    """
    alike = [one for one in those if inputs.are_equal(dispatch, one)]
    named = [one for one in alike if one.description == dispatch.description]
    agreeing = next((one for one in named if next(_list_differing_outputs(dispatch, one), None) is None), None)
    if agreeing is not None or not alike:
        return agreeing
    twins = [one for one in these if inputs.are_equal(dispatch, one)]
    if not named:
        return alike[0] if dispatch.inputs and len(alike) == len(twins) == 1 else None
    # Dispatches of one name may take one tensor and work on different parts of it. Then the match is ambiguous.
    own = [one for one in twins if one.description == dispatch.description]
    return named[0] if _have_equal_outputs(own) and _have_equal_outputs(named) else None


def _have_equal_outputs(calls: Sequence[Dispatch]) -> bool:
    return len({tuple(output.digest for output in call.outputs) for call in calls}) == 1


class _Inputs:
    """Comparisons of inputs. A partly known input never equals another by its values.

    Each pair of tensors is compared once, and the number of compared values is bounded: a trace is a claim, and may
    have thousands of dispatches.
    """

    def __init__(self) -> None:
        self._same: dict[tuple[str, str, str], bool] = {}
        self._left = MAX_VALUES

    def are_equal(self, a: Dispatch, b: Dispatch) -> bool:
        """True if two dispatches of the same types have equal inputs."""
        return all(map(self._is_equal, a.inputs, b.inputs))

    def _is_equal(self, a: TracedTensor, b: TracedTensor) -> bool:
        if a.digest == b.digest:
            return True
        pair = (a.type, a.digest, b.digest)
        if pair not in self._same:
            self._same[pair] = self._compare_values(a, b)
        return self._same[pair]

    def _compare_values(self, a: TracedTensor, b: TracedTensor) -> bool:
        if self._left <= 0 or not (a.is_whole and b.is_whole):
            return False
        self._left -= len(a.tensor.values)
        return not _find_differences(a, b, INPUTS_SHARE)


def _find_differences(a: TracedTensor, b: TracedTensor, share: float) -> list[tuple[int, float, float]]:
    """List the differences between the known values of two tensors. Unknown values are not compared."""
    if a.digest == b.digest or len(a.tensor.values) != len(b.tensor.values):
        return []
    return find_differing_values(a.tensor, b.tensor, share)
