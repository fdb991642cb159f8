"""Write the types of the torch dialect as builtin types, and its constants with a type. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from runners.core.mlir.types import OtherType, TensorType, Type, replace_types

_SCALARS = {"int": "i64", "float": "f64", "bool": "i1"}
_OTHERS = frozenset({"str", "none", "Device", "Generator", "number", "any"})
_NESTED = frozenset({"list", "optional", "union", "tuple", "dict"})
_SIGNED = re.compile(r"si(?=\d{1,2}$)")
_CONSTANT = re.compile(
    r"(?P<all>torch\.constant\.(?P<kind>int|float|bool|str|none|number)\b[^:\n]{0,400}?)[ \t]*$", re.M
)
_OPAQUE = "i64"
"""The type that represents a string, a list or a missing value. Such values know their own kind."""


def write_builtin_types(text: str) -> str:
    """Return the text with ``tensor<2x3xf32>`` for ``!torch.vtensor<[2,3],f32>``, and so on."""
    if "torch." not in text:
        return text
    text = replace_types(text, _write_builtin)
    return _CONSTANT.sub(lambda found: f"{found['all']} : {_SCALARS.get(found['kind'], _OPAQUE)}", text)


def _write_builtin(kind: Type) -> str | None:
    match kind:
        case TensorType():
            return str(replace(kind, name="tensor", element=_SIGNED.sub("i", kind.element)))
        case OtherType(text=text) if text.startswith("!torch."):
            name = text.removeprefix("!torch.").partition("<")[0]
            return _OPAQUE if name in _OTHERS | _NESTED else _SCALARS.get(name)
        case _:
            return None
