"""Read the functions that a text declares, and generate inputs of their argument types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FUNCTION = re.compile(
    r"^[ \t]{0,40}(?:util\.)?func(?:\.func)?[ \t]+(?P<private>private[ \t]+)?(?:public[ \t]+)?"
    r"@(?P<name>[\w.$-]{1,200})\(",
    re.M,
)
_INPUT = re.compile(r"--?(?:input|function[_-]input|inputs_file)\b")
_CALLED = re.compile(r"--?(?:function|entry[_-]function)=@?(?P<name>[\w.$-]+)$")
_TENSOR = re.compile(
    r"(?:tensor<(?P<shape>(?:\d{1,6}x){0,8})(?P<element>\w{1,8})>"
    r"|!torch\.vtensor<\[(?P<sizes>\d{0,6}(?:,\d{1,6}){0,7})\],(?P<kind>\w{1,8})>)$"
)
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


_DYNAMIC = re.compile(
    r"(?<=tensor<)(?:(?:\d{1,6}|\?)x){1,8}(?=\w{1,8}>)|(?<=vtensor<\[)[\d?]{1,6}(?:,[\d?]{1,6}){0,7}(?=\],)"
)
_TOLD_SHAPE = re.compile(r"(?<![\w.])(?:\d{1,6}x){1,8}(?=[a-z]{1,4}\d{1,2}\b)")
SMALL = "8"
"""An extent that most reshapes and tiles divide."""


def choose_extents(text: str, told: str) -> str:
    """Return MLIR with an extent for each dynamic one: that of a static shape of the same form, else `SMALL`.

    ``told`` is the text of the report. Its shapes are preferred. Only the types of the result are used.
    """
    shapes = [found[0].split("x")[:-1] for found in _TOLD_SHAPE.finditer(f"{told[:100_000]}\n{text[:100_000]}")]

    def choose(found: re.Match[str]) -> str:
        comma = "," in found[0] or not found[0].endswith("x")
        extents = found[0].split(",") if comma else found[0].split("x")[:-1]
        if "?" not in extents:
            return found[0]
        fits = (shape for shape in shapes if len(shape) == len(extents) and all(map(_fits, extents, shape)))
        chosen = next(fits, [SMALL if extent == "?" else extent for extent in extents])
        return ",".join(chosen) if comma else "".join(f"{extent}x" for extent in chosen)

    return _DYNAMIC.sub(choose, text)


def _fits(extent: str, known: str) -> bool:
    return extent in ("?", known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that a text declares."""

    name: str
    private: bool
    at: int
    """Offset of its line in the text."""
    types: tuple[str, ...]
    """The types of its arguments, without blanks."""


def list_functions(text: str) -> tuple[Function, ...]:
    """Return the functions that a text declares, in order."""
    return tuple(
        Function(
            name=found["name"],
            private=bool(found["private"]),
            at=found.start(),
            types=_list_argument_types(text[found.end() : found.end() + MAX_SIGNATURE_CHARS]),
        )
        for found in _FUNCTION.finditer(text)
    )


def find_called(argv: Sequence[str]) -> str | None:
    """Return the function that a command names. None if it names none."""
    return next((found["name"] for word in argv if (found := _CALLED.match(word))), None)


def _list_argument_types(text: str) -> tuple[str, ...]:
    """Return the types of the arguments, up to the parenthesis that ends them."""
    types: list[str] = []
    depth, begin = 0, 0
    for at, char in enumerate(text):
        if char in "(<[{":
            depth += 1
        elif char in ")>]}" and depth:
            depth -= 1
        elif char in ",)" and not depth:
            if written := text[begin:at].strip():
                types.append(_read_type(written))
            begin = at + 1
            if char == ")":
                break
    return tuple(types)


_ATTRIBUTES = re.compile(r"\s*\{[^{}]{0,400}\}\s*$")


def _read_type(argument: str) -> str:
    """Return ``tensor<4xf32>`` for ``%a: tensor<4xf32> {iree.identifier = "a"}``."""
    kind = _ATTRIBUTES.sub("", argument)
    return re.sub(r"^%[\w.$-]+\s*:\s*", "", kind).replace(" ", "")


def write_value(kind: str) -> str | None:
    """Return a value of a type, as the runner reads it. None for a type without a generated value."""
    if kind in _FLOATS:
        return "0.5"
    if _INTEGERS.match(kind):
        return "1"
    found = _TENSOR.match(kind)
    if found is None:
        return None
    element = found["element"] or found["kind"]
    value = "0.5" if element in _FLOATS else "1" if _INTEGERS.match(element) else None
    extents = found["shape"] if found["element"] else "".join(f"{n}x" for n in found["sizes"].split(",") if n)
    return None if value is None else f"{extents}{element.removeprefix('s')}={value}"
