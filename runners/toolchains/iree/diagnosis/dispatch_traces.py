"""Read the trace of an IREE program's run: its dispatches, with inputs and outputs. The trace is a claim."""

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
"""Maximum size of the unpacked claim."""
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


class _Line(msgspec.Struct, frozen=True):
    kind: str
    data: Annotated[str, msgspec.Meta(max_length=64 * 1024)]


@dataclass(frozen=True)
class TracedTensor:
    """A tensor of a trace: its type, a digest of all printed values, and the first printed values."""

    type: str
    digest: str
    words: str

    @property
    def is_whole(self) -> bool:
        """True if all values are known."""
        extents = [int(part) for part in self.type.split("x")[:-1]]
        return len(self.tensor.values) == math.prod(extents)

    @cached_property
    def tensor(self) -> Tensor:
        found = _TYPE.fullmatch(self.type)
        assert found is not None
        return Tensor(shape=found[1], dtype=found[2], values=tuple(_read_number(word) for word in self.words.split()))


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch of a run."""

    name: str
    inputs: tuple[TracedTensor, ...]
    outputs: tuple[TracedTensor, ...]

    @property
    def description(self) -> str:
        """The name without its number: the operation and the shapes."""
        return re.sub(r"^.*?dispatch_\d+(?:::.*?dispatch_\d+)?_?", "", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One traced run: its dispatches in order, and the results that the program printed."""

    dispatches: tuple[Dispatch, ...]
    results: tuple[Tensor, ...] | None


def _read_number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


_LINES, _TRACES = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Trace)
"""Made at import: msgspec 0.22 ends the process if two threads are the first to use a type."""


def read_trace(claims: str) -> Trace | None:
    """Decode a claim. None if the claim is malformed or too large."""
    try:
        claimed = _LINES.decode(claims.partition("\n")[0])
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(claimed.data, validate=True), MAX_TRACE_BYTES)
        if claimed.kind != "dispatch-trace" or not unpacking.eof:
            return None
        claim = _TRACES.decode(data)
        tensors = [TracedTensor(kind, digest, words) for kind, digest, words in claim.tensors]
        dispatches = tuple(
            Dispatch(one.name, tuple(tensors[at] for at in one.inputs), tuple(tensors[at] for at in one.outputs))
            for one in claim.dispatches
        )
    except (msgspec.MsgspecError, RecursionError, binascii.Error, zlib.error, IndexError):
        return None
    return Trace(dispatches=dispatches, results=read_tensors(claim.results))
