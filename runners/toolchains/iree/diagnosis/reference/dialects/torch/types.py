"""Write the types of the torch dialect as builtin types, and its constants with a type. Pure."""

from __future__ import annotations

import re

_TENSOR = re.compile(r"!torch\.v?tensor<\[(?P<shape>[\d?, ]{0,100})\],\s?(?P<element>[A-Za-z]\w{0,12})>")
_SCALARS = {"int": "i64", "float": "f64", "bool": "i1"}
_SCALAR = re.compile(r"!torch\.(?:int|float|bool)\b")
_OTHER = re.compile(r"!torch\.(?:str|none|Device|Generator|number|any)\b")
_NESTED = re.compile(r"!torch\.(?:list|optional|union|tuple|dict)<")
_SIGNED = re.compile(r"(?<=[x<])si(?=\d{1,2}>)")
_CONSTANT = re.compile(
    r"(?P<all>torch\.constant\.(?P<kind>int|float|bool|str|none|number)\b[^:\n]{0,400}?)[ \t]*$", re.M
)
_OPAQUE = "i64"
"""The type that represents a string, a list or a missing value. Such values know their own kind."""


def write_builtin_types(text: str) -> str:
    """Return the text with ``tensor<2x3xf32>`` for ``!torch.vtensor<[2,3],f32>``, and so on."""
    if "torch." not in text:
        return text
    text = _drop_nested(text)
    text = _TENSOR.sub(_write_tensor, text)
    text = _SCALAR.sub(lambda found: _SCALARS[found[0].rpartition(".")[2]], text)
    text = _SIGNED.sub("i", _OTHER.sub(_OPAQUE, text))
    return _CONSTANT.sub(lambda found: f"{found['all']} : {_SCALARS.get(found['kind'], _OPAQUE)}", text)


def _write_tensor(found: re.Match[str]) -> str:
    extents = [one.strip() for one in found["shape"].split(",") if one.strip()]
    return f"tensor<{'x'.join([*extents, found['element']])}>"


def _drop_nested(text: str) -> str:
    """Replace each list and optional type, with the types in its brackets."""
    kept, at = [], 0
    while found := _NESTED.search(text, at):
        kept += [text[at : found.start()], _OPAQUE]
        at, depth = found.end(), 1
        while depth and at < len(text):
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
    return "".join((*kept, text[at:]))
