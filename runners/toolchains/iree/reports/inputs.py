"""Generate the inputs of a run whose report gives only the types of the function's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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

    Empty if the call passes inputs, or if the function takes none. None if a type has no generated value: a dynamic
    extent, or an element that the runner reads in another notation.
    """
    if any(_INPUT.match(word) for word in argv):
        return ()
    functions = [found for found in _FUNCTION.finditer(text) if not found["private"]]
    called = next((found["name"] for word in argv if (found := _CALLED.match(word))), None)
    chosen = [found for found in functions if called is None or found["name"] == called]
    if len(chosen) != 1:
        return ()
    flags: list[str] = []
    for kind in _list_argument_types(text[chosen[0].end() :][:MAX_SIGNATURE_CHARS]):
        value = _write_value(kind)
        if value is None:
            return None
        flags.append(f"--input={value}")
    return tuple(flags)


def _list_argument_types(text: str) -> Iterator[str]:
    """Yield the types of the arguments, up to the parenthesis that ends them."""
    depth, begin = 0, 0
    for at, char in enumerate(text):
        if char in "(<[{":
            depth += 1
        elif char in ")>]}" and depth:
            depth -= 1
        elif char in ",)" and not depth:
            if written := text[begin:at].strip():
                yield _read_type(written)
            begin = at + 1
            if char == ")":
                return


_ATTRIBUTES = re.compile(r"\s*\{[^{}]{0,400}\}\s*$")


def _read_type(argument: str) -> str:
    """Return ``tensor<4xf32>`` for ``%a: tensor<4xf32> {iree.identifier = "a"}``."""
    kind = _ATTRIBUTES.sub("", argument)
    return re.sub(r"^%[\w.$-]+\s*:\s*", "", kind).replace(" ", "")


def _write_value(kind: str) -> str | None:
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
