"""Read the types of MLIR: ``tensor<2x?xf32>``, ``memref<4xf32, strided<[1]>>``, ``vector<4xi8>``, ``index``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from runners.core.mlir.brackets import SKIPPED, find_closing, partition

DYNAMIC = -1
"""The extent ``?``."""
MAX_RANK = 64
"""Maximum number of dimensions. No program has as many, and work on a shape may grow with their square."""
MAX_DIGITS = 18
"""Maximum number of digits of an extent, which is a signed integer of 64 bits."""

MAX_TYPE_CHARS = 2_000
"""Maximum length of a type that is read at a given place. A text may have an open bracket at each of many places."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    element: str
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.element


@dataclass(frozen=True, slots=True)
class ShapedType:
    shape: tuple[int, ...]
    element: str
    encoding: str = ""
    """Encoding of a tensor, layout and memory space of a buffer."""
    name: str = ""

    def __str__(self) -> str:
        extents = ["?" if extent == DYNAMIC else str(extent) for extent in self.shape]
        if self.name in _TORCH_NAMES:
            return f"{self.name}<[{','.join(extents)}],{self.element}>"
        return f"{self.name}<{'x'.join((*extents, self.element))}{self.encoding and f', {self.encoding}'}>"


@dataclass(frozen=True, slots=True)
class TensorType(ShapedType):
    """A tensor of the builtin dialect, or of the torch dialect: ``!torch.vtensor<[2,?],f32>``."""

    name: str = "tensor"


@dataclass(frozen=True, slots=True)
class MemRefType(ShapedType):
    name: str = "memref"


@dataclass(frozen=True, slots=True)
class VectorType(ShapedType):
    name: str = "vector"


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that is only recognised: of a dialect, an alias, a tuple, or without rank."""

    text: str

    def __str__(self) -> str:
        return self.text


Type: TypeAlias = ShapedType | ScalarType | OtherType

_SCALAR = r"(?:index|none|tf32|bf16|[su]?i\d+|f\d+(?:E\w+)?)"
_OPENING = r"(?:\b(?:tensor|memref|vector|complex|tuple)<|![\w.$-]+<?)"
_FOUND = re.compile(rf"{SKIPPED}|(?P<type>{_OPENING}|(?<![\w.@#%]){_SCALAR}(?![\w.]))")
_WHOLE_SCALAR, _WHOLE_OPENING = re.compile(_SCALAR), re.compile(_OPENING)
_BLANK = re.compile(r"\s*")
_DIMENSION = re.compile(r"\s*(\d{1,18}|\?)\s*x\s*")
_ELEMENT = re.compile(r"!?[A-Za-z_][\w.$]*(?:<.*>)?", re.S)
_TORCH = re.compile(r"\s*\[(?P<shape>[\d?,\s]*)\],\s*(?P<element>[A-Za-z]\w*)\s*")
_SHAPED = {"tensor": TensorType, "memref": MemRefType, "vector": VectorType}
_TORCH_NAMES = frozenset({"!torch.vtensor", "!torch.tensor"})


def parse_type(text: str) -> Type | None:
    """Return the type that a text is. None for any other text."""
    bare = text.strip()
    if _WHOLE_SCALAR.fullmatch(bare):
        return ScalarType(bare)
    begin = _WHOLE_OPENING.match(bare)
    if begin is None:
        return None
    end = begin.end() - 1
    if begin[0].endswith("<"):
        end = find_closing(bare, end)
    if end != len(bare) - 1:
        return None
    name, inside = begin[0].removesuffix("<"), bare[begin.end() : end]
    if name in _TORCH_NAMES and (found := _TORCH.fullmatch(inside)):
        extents = [one.strip() for one in found["shape"].split(",") if one.strip()]
        shape = _read_extents(extents) if all(one == "?" or one.isdecimal() for one in extents) else None
        return OtherType(bare) if shape is None else TensorType(shape, found["element"], name=name)
    return _parse_shaped(name, inside) or OtherType(bare)


def _parse_shaped(name: str, inside: str) -> ShapedType | None:
    extents, at = [], 0
    while found := _DIMENSION.match(inside, at):
        extents.append(found[1])
        at = found.end()
    element, _, rest = partition(inside[at:].strip(), ",")
    shape = _read_extents(extents)
    if shape is None or not _ELEMENT.fullmatch(element):
        return None
    return _SHAPED[name](shape, element, rest) if name in _SHAPED and not (rest and name == "vector") else None


def _read_extents(extents: Sequence[str]) -> tuple[int, ...] | None:
    if len(extents) > MAX_RANK or any(len(one) > MAX_DIGITS for one in extents):
        return None
    return tuple(DYNAMIC if one == "?" else int(one) for one in extents)


def locate_types(text: str, begin: int = 0) -> Iterator[tuple[int, int, Type | None]]:
    """Yield begin, end and value of the outermost types of a text. A type without an end takes all the rest."""
    at = begin
    while found := _FOUND.search(text, at):
        at = found.end()
        if not found["type"]:
            continue
        if found[0].endswith("<"):
            at = find_closing(text, at - 1) + 1 or len(text)
        yield found.start(), at, parse_type(text[found.start() : at])


def find_types(text: str, begin: int = 0) -> Iterator[Type]:
    """Yield the outermost types of a text in their order."""
    yield from (kind for _, _, kind in locate_types(text, begin) if kind is not None)


def match_type(text: str, at: int) -> Type | None:
    """Return the type that begins at an offset, or after blanks there. None for any other text."""
    blank = _BLANK.match(text, at)
    begin = blank.end() if blank else at
    first, _, kind = next(locate_types(text[begin : begin + MAX_TYPE_CHARS]), (0, 0, None))
    return None if first else kind


def match_static(text: str, at: int) -> ShapedType | ScalarType | None:
    """Return the type at an offset if its shape is known. None for any other text."""
    kind = match_type(text, at)
    return None if kind is None or isinstance(kind, OtherType) or DYNAMIC in kind.shape else kind


def fits_shape(declared: Sequence[int], given: Sequence[int]) -> bool:
    """True if the extents are equal. A dynamic extent fits every other."""
    return len(declared) == len(given) and all(map(_fits, declared, given))


def _fits(declared: int, given: int) -> bool:
    return declared in (DYNAMIC, given)


def replace_types(text: str, write: Callable[[Type], str | None]) -> str:
    """Return the text with each outermost type written anew. None leaves a type as it is."""
    kept, at = [], 0
    for begin, end, kind in locate_types(text):
        written = None if kind is None else write(kind)
        if written is not None:
            kept += [text[at:begin], written]
            at = end
    return "".join((*kept, text[at:]))


def remove_types(text: str) -> str:
    """Return the text with a blank instead of each type."""
    kept, at = [], 0
    for begin, end, _ in locate_types(text):
        kept.append(text[at:begin])
        at = end
    return " ".join((*kept, text[at:]))
