"""Read the functions that a text declares, and generate inputs of their argument types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from runners.core.mlir.brackets import find_closing, partition, split_list
from runners.core.mlir.types import DYNAMIC, ScalarType, TensorType, Type, fits_shape, parse_type, replace_types

_FUNCTION = re.compile(
    r"^[ \t]{0,40}(?:util\.)?func(?:\.func)?[ \t]+(?P<private>private[ \t]+)?(?:public[ \t]+)?"
    r"@(?P<name>[\w.$-]{1,200})\(",
    re.M,
)
_INPUT = re.compile(r"--?(?:input|function[_-]input|inputs_file)\b")
_CALLED = re.compile(r"--?(?:function|entry[_-]function)=@?(?P<name>[\w.$-]+)$")
_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_INTEGERS = re.compile(r"[su]?i(?:8|16|32|64)$|index$")
MAX_SIGNATURE_CHARS = 20_000


def generate_inputs(argv: Sequence[str], text: str) -> tuple[str, ...] | None:
    """Return the flags that pass generated inputs to the function that a run calls.

    Empty if the call passes inputs, or if the function takes none. None if no value can be generated for a type,
    because of a dynamic extent or an element that the runner reads in another notation.
    """
    if any(_INPUT.match(word) for word in argv):
        return ()
    called = find_called(argv)
    chosen = [one for one in list_functions(text) if not one.private and called in (None, one.name)]
    if len(chosen) != 1:
        return ()
    flags: list[str] = []
    for kind in chosen[0].types:
        value = write_value(kind)
        if value is None:
            return None
        flags.append(f"--input={value}")
    return tuple(flags)


_TOLD_SHAPE = re.compile(r"(?<![\w.])(?:\d{1,6}x){1,8}(?=[a-z]{1,4}\d{1,2}\b)")
SMALL = 8
"""An extent that most reshapes and tiles divide."""


def choose_extents(text: str, told: str) -> str:
    """Return MLIR with an extent for each dynamic one: that of a static shape of the same form, else `SMALL`.

    ``told`` is the text of the report. Its shapes are preferred. Only the types of the result are used.
    """
    words = (found[0].split("x")[:-1] for found in _TOLD_SHAPE.finditer(f"{told[:100_000]}\n{text[:100_000]}"))
    shapes = [tuple(map(int, extents)) for extents in words]

    def settle(kind: Type) -> str | None:
        if not isinstance(kind, TensorType) or DYNAMIC not in kind.shape:
            return None
        own = kind.shape
        fits = (shape for shape in shapes if fits_shape(own, shape))
        return str(replace(kind, shape=next(fits, tuple(SMALL if n == DYNAMIC else n for n in own))))

    return replace_types(text, settle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that a text declares."""

    name: str
    private: bool
    at: int
    """Offset of its line in the text."""
    names: tuple[str, ...]
    """The names of its arguments. Empty texts for those of a declaration."""
    types: tuple[str, ...]
    """Their types, without blanks."""


def list_functions(text: str) -> tuple[Function, ...]:
    """Return the functions that a text declares, in order."""
    found = list(_FUNCTION.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    return tuple(_read_function(one, end) for one, end in zip(found, ends, strict=False))


def _read_function(found: re.Match[str], following: int) -> Function:
    """Return the function at a match. ``following``: where the next one begins."""
    listed = found.string[found.end() - 1 : min(found.end() + MAX_SIGNATURE_CHARS, following)]
    end = find_closing(listed, 0)
    arguments = list(map(_read_argument, split_list(listed[1:end] if end > 0 else listed[1:])))
    return Function(
        name=found["name"],
        private=bool(found["private"]),
        at=found.start(),
        names=tuple(name for name, _ in arguments),
        types=tuple(kind for _, kind in arguments),
    )


def find_called(argv: Sequence[str]) -> str | None:
    """Return the function that a command names. None if it names none."""
    return next((found["name"] for word in argv if (found := _CALLED.match(word))), None)


def _read_argument(argument: str) -> tuple[str, str]:
    """Return ``%a`` and ``tensor<4xf32>`` for ``%a: tensor<4xf32> {iree.identifier = "a"}``."""
    name, colon, kind = partition(argument, ":")
    return name if colon else "", partition(kind if colon else argument, "{")[0].replace(" ", "")


def write_value(kind: str) -> str | None:
    """Return a value of a type, as the runner reads it. None for a type without a generated value."""
    declared = parse_type(kind)
    if not isinstance(declared, ScalarType | TensorType):
        return None
    element = declared.element
    value = "0.5" if element in _FLOATS else "1" if _INTEGERS.match(element) else None
    if value is None or isinstance(declared, ScalarType):
        return value
    if declared.encoding or DYNAMIC in declared.shape:
        return None
    return f"{''.join(f'{extent}x' for extent in declared.shape)}{element.removeprefix('s')}={value}"
