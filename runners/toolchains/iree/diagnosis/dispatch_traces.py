"""What a traced run of an IREE program says: its dispatches, what they took and gave. A claim, decoded strictly."""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from runners.core.failure.tensor_difference import Tensor, read_tensors

MAX_TRACE_BYTES = 4 << 20
"""Of the unpacked claim."""
_TYPE = re.compile(r"((?:\d{1,9}x)*)([a-zA-Z]\w{0,15})")

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
class TracedTensor:
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
    inputs: tuple[TracedTensor, ...]
    outputs: tuple[TracedTensor, ...]

    @property
    def says(self) -> str:
        """Its name without what numbers it: what it does and on which shapes."""
        return re.sub(r"^.*?dispatch_\d+(?:::.*?dispatch_\d+)?_?", "", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One traced run: its dispatches in order, and the results that the program printed."""

    dispatches: tuple[Dispatch, ...]
    results: tuple[Tensor, ...] | None


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def read_trace(claims: str) -> Trace | None:
    """A claim → a trace; None where it isn't well formed, however large it makes itself."""
    try:
        claimed = msgspec.json.decode(claims.partition("\n")[0], type=_Claimed)
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(claimed.data, validate=True), MAX_TRACE_BYTES)
        if claimed.kind != "dispatch-trace" or not unpacking.eof:
            return None
        told = msgspec.json.decode(data, type=_Trace)
        tensors = [TracedTensor(kind, digest, words) for kind, digest, words in told.tensors]
        dispatches = tuple(
            Dispatch(one.name, tuple(tensors[at] for at in one.inputs), tuple(tensors[at] for at in one.outputs))
            for one in told.dispatches
        )
    except (msgspec.MsgspecError, RecursionError, binascii.Error, zlib.error, IndexError):
        return None
    return Trace(dispatches=dispatches, results=read_tensors(told.results))
