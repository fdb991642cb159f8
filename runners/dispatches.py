"""The first dispatch of an IREE program that gives other values than elsewhere although it takes the same.

Both sides are traced in their sandboxes (``guest/trace_iree.py``): what comes out is a claim, bounded and decoded
strictly. Dispatches have other names, numbers and places on other builds and devices, so they are matched by what
they take: the same name but for its number where that says enough, else the only dispatch with those very inputs.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from runners.differ import Tensor, differing, read_tensors
from runners.protocol import Finding, FindingKind, Observation, Testcase
from runners.retarget import GUEST_HOOKS

TRACE_S = 60.0
MAX_TRACE_BYTES = 4 << 20
"""Of the unpacked claim."""
MAX_VALUES = 5_000_000
"""Compared in all between inputs that are not printed alike: seconds of work, whatever a trace claims."""
INPUTS_SHARE = 0.1
"""Inputs are the same within a tenth of what outputs may differ by: a difference shall not grow into a finding."""
_HOOK = f"{GUEST_HOOKS}/trace_iree.py"
_TYPE = re.compile(r"((?:\d{1,9}x)*)([a-zA-Z]\w{0,15})")

Search = Callable[[str, Testcase], str]

_Places = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, le=100_000)], ...], msgspec.Meta(max_length=256)]
_Type = Annotated[str, msgspec.Meta(max_length=200, pattern=r"^(\d{1,9}x)*[a-zA-Z]\w{0,15}$")]
_Digest = Annotated[str, msgspec.Meta(max_length=64)]
_Values = Annotated[str, msgspec.Meta(max_length=64 * 1024)]


class _Dispatch(msgspec.Struct, frozen=True):
    name: Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[\w.$:-]+$")]
    inputs: _Places
    outputs: _Places


class _Trace(msgspec.Struct, frozen=True):
    dispatches: Annotated[tuple[_Dispatch, ...], msgspec.Meta(max_length=2_000)]
    tensors: Annotated[tuple[tuple[_Type, _Digest, _Values], ...], msgspec.Meta(max_length=20_000)]
    results: Annotated[str, msgspec.Meta(max_length=8_000)]


class _Claimed(msgspec.Struct, frozen=True):
    kind: str
    data: Annotated[str, msgspec.Meta(max_length=64 * 1024)]


@dataclass(frozen=True)
class Seen:
    """A tensor of a trace: its type, a digest of all of its printed values, and the first of them."""

    type: str
    digest: str
    words: str

    @property
    def whole(self) -> bool:
        """Whether all of its values are known."""
        extents = [int(part) for part in self.type.split("x")[:-1]]
        return len(self.tensor.values) == math.prod(extents)

    @cached_property
    def tensor(self) -> Tensor:
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        return Tensor(shape=found[1], dtype=found[2], values=tuple(_number(word) for word in self.words.split()))


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch of a run."""

    name: str
    inputs: tuple[Seen, ...]
    outputs: tuple[Seen, ...]

    @property
    def says(self) -> str:
        """Its name without what numbers it: what it does and on which shapes."""
        return re.sub(r"^.*?dispatch_\d+(?:::.*?dispatch_\d+)?_?", "", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One traced run: its dispatches in order, and the results that the program printed."""

    dispatches: tuple[Dispatch, ...]
    results: tuple[Tensor, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison: a run that was seen, and the testcase that it was."""

    testcase: Testcase
    seen: Observation


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


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def compare_dispatches(bad: Side, good: Side, search: Search) -> tuple[Finding, ...]:
    """At most one finding. ``search`` runs a testcase with our hooks on a release and returns what they wrote."""
    traces = [traced(side, search) for side in (bad, good)]
    if traces[0] is None or traces[1] is None:
        return ()
    parting = first_parting(traces[0].dispatches, traces[1].dispatches)
    return () if parting is None else (_finding(parting, len(traces[0].dispatches), bad.seen, good.seen),)


def traced(side: Side, search: Search) -> Trace | None:
    """None where there is no trace, or the program prints something else when it is traced."""
    asked = msgspec.json.encode({"steps": side.testcase.steps, "seconds": TRACE_S}).decode()
    hooked = msgspec.structs.replace(side.testcase, steps=(("python", _HOOK, asked),))
    trace = read_trace(search(side.seen.version, hooked))
    untraced = read_tensors(side.seen.excerpt)
    return trace if trace is not None and _equal(trace.results, untraced) else None


def _equal(a: tuple[Tensor, ...] | None, b: tuple[Tensor, ...] | None) -> bool:
    """Whether two runs printed the same. NaN is a result like any other, and ``==`` of two of them is false."""
    if a is None or b is None or [_shape(one) for one in a] != [_shape(one) for one in b]:
        return False
    return not any(differing(one, other, 0.0) for one, other in zip(a, b, strict=True))


def _shape(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.shape, tensor.dtype, len(tensor.values)


def read_trace(claims: str) -> Trace | None:
    """A claim → a trace; None where it isn't well formed, however large it makes itself."""
    try:
        claimed = msgspec.json.decode(claims.partition("\n")[0], type=_Claimed)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(claimed.data, validate=True), MAX_TRACE_BYTES)
        if claimed.kind != "dispatch-trace" or not unpacking.eof:
            return None
        told = msgspec.json.decode(data, type=_Trace)
        tensors = [Seen(kind, digest, words) for kind, digest, words in told.tensors]
        dispatches = tuple(
            Dispatch(one.name, tuple(tensors[at] for at in one.inputs), tuple(tensors[at] for at in one.outputs))
            for one in told.dispatches
        )
    except (msgspec.MsgspecError, RecursionError, binascii.Error, zlib.error, IndexError):
        return None
    return Trace(dispatches=dispatches, results=read_tensors(told.results))


# ---------------------------------------------------------------------------------------------- matching


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

    def _are_the_same(self, a: Seen, b: Seen) -> bool:
        if a.digest == b.digest:
            return True
        pair = (a.type, a.digest, b.digest)
        if pair not in self._same:
            self._same[pair] = self._compared(a, b)
        return self._same[pair]

    def _compared(self, a: Seen, b: Seen) -> bool:
        if self._left <= 0 or not (a.whole and b.whole):
            return False
        self._left -= len(a.tensor.values)
        return not _apart(a, b, INPUTS_SHARE)


def _apart(a: Seen, b: Seen, share: float) -> list[tuple[int, float, float]]:
    """Where the values that are known differ. Values that are not all there are compared as far as they go."""
    if a.digest == b.digest or len(a.tensor.values) != len(b.tensor.values):
        return []
    return differing(a.tensor, b.tensor, share)


# ---------------------------------------------------------------------------------------------- in words


def _finding(parting: Parting, total: int, bad: Observation, good: Observation) -> Finding:
    kind = parting.dispatch.outputs[parting.output].type
    index = _unravel(parting.index, kind)
    here, there = f"{bad.version} on {bad.device}", f"{good.version} on {good.device}"
    x, y = parting.values
    place = f"[{', '.join(map(str, index))}]" if index else "its value"
    entry = parting.dispatch.name.rpartition("::")[2]
    return Finding(
        kind=FindingKind.GUILTY_PASS,
        summary=f"dispatch {parting.at} of {total}, {entry}, takes the same on {here} and {there} and gives other"
        f" values: output {parting.output} ({kind}) first differs at {place}: {x:g} against {y:g}",
        evidence={
            "name": entry,
            "level": "dispatch",
            "version": bad.version,
            "device": bad.device,
            "against": there,
            "against_name": parting.other.name.rpartition("::")[2],
            "position": parting.at,
            "of": total,
            "same_before": parting.matched,
            "inputs": [one.type for one in parting.dispatch.inputs][:16],
            "output": parting.output,
            "type": kind,
            "differing": parting.count,
            "first_index": list(index),
            "values": [f"{x:g}", f"{y:g}"],
            "refuted_by": "the same values from both, or scalars handed to it that differ: traces show tensors only",
        },
    )


def _unravel(index: int, kind: str) -> tuple[int, ...]:
    """A place in a tensor from its place in row-major order; nothing for a scalar or a shape that can't hold it."""
    shape = [int(part) for part in kind.split("x")[:-1]]
    found: list[int] = []
    for extent in reversed(shape):
        if extent == 0:
            return ()
        index, at = divmod(index, extent)
        found.append(at)
    return tuple(reversed(found)) if index == 0 else ()
