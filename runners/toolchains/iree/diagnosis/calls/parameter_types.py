"""Find an array whose element type differs from that of the parameter it becomes, and convert the array.

A parameter is a range of bytes. Neither ``ParameterIndex.add_buffer`` nor an archive knows an element type. The
compiled program reads the bytes with the type that its text declares. So the bytes of a float64 array may be read as
f32.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import msgspec

from runners.core.failure.oracle import CHECKS, OUTPUT
from runners.core.findings.calls import OtherParameterType
from runners.core.mlir.types import match_static
from runners.core.protocol import Exited, TestcaseKind
from runners.core.toolchain.diagnosis import Failure
from runners.core.toolchain.wrong_call import WrongCall

_DECLARED = re.compile(r'#(?:flow|stream)\.parameter\.named<(?:"[^"\n]{0,200}"::)?"(?P<key>[^"\n]{1,200})">\s*:')
_ELEMENT = re.compile(r"f16|f32|f64|[su]?i(?:8|16|32|64)")
_NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64"}
_ADDS = frozenset({"add_buffer"})
_SAVES = frozenset({"save_archive_file", "create_archive_file", "save_file"})
"""Functions that write an archive from a dictionary of arrays, including those of safetensors."""
MAX_CHARS = 200_000


def find_parameter_of_other_type(failure: Failure) -> WrongCall | None:
    """Return the arrays that become parameters, converted to the declared types, if the report calls values wrong."""
    testcase, seen = failure.testcase, failure.seen
    checked = seen.signature is not None and seen.signature.type in (OUTPUT, *CHECKS)
    if testcase.kind is not TestcaseKind.PYTHON or failure.is_flaky or not checked:
        return None
    if not isinstance(seen.ended, Exited):
        return None
    texts = [text for text in testcase.files.values() if len(text) <= MAX_CHARS]
    types = {key: element for text in texts for key, element in _list_declared(text)}
    files = {
        name: _convert_arrays(text, types) if types and name.endswith(".py") and len(text) <= MAX_CHARS else text
        for name, text in testcase.files.items()
    }
    if files == dict(testcase.files):
        return None
    changed = next(key for key in types if any(repr(key) in text or f'"{key}"' in text for text in texts))
    return WrongCall(
        call=OtherParameterType(name=changed, taken=types[changed], function=_name_function(texts)),
        mended=(msgspec.structs.replace(testcase, files=files),),
    )


def _list_declared(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of the parameters that are declared as tensors of numbers, with their element types."""
    for found in _DECLARED.finditer(text):
        kind = match_static(text, found.end())
        if kind is not None and _ELEMENT.fullmatch(kind.element):
            yield found["key"], kind.element


def _name_function(texts: list[str]) -> str:
    """Return the name of the function that takes the array."""
    return next(name for name in (*sorted(_ADDS), *sorted(_SAVES), "") if any(name in text for text in texts))


def _convert_arrays(text: str, types: dict[str, str]) -> str:
    """Convert each array that becomes a declared parameter: ``(x).astype("float32")``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    rows = text.split("\n")
    found = sorted(_list_arrays(tree, types), key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True)
    for array, dtype in found:
        if array.end_lineno is None or array.end_col_offset is None:
            continue
        _insert(rows, array.end_lineno, array.end_col_offset, f').astype("{dtype}")')
        _insert(rows, array.lineno, array.col_offset, "(")
    return "\n".join(rows)


def _list_arrays(tree: ast.AST, types: dict[str, str]) -> Iterator[tuple[ast.expr, str]]:
    saves = any(isinstance(node, ast.Attribute | ast.Name) and _get_name(node) in _SAVES for node in ast.walk(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys, values=values) if saves:
                for key, array in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in types:
                        yield array, _name_dtype(types[key.value])
            case ast.Call(
                func=ast.Attribute(attr=name), args=[ast.Constant(value=str(key)), ast.expr() as array, *_]
            ) if name in _ADDS and key in types:
                yield array, _name_dtype(types[key])
            case _:
                pass


def _get_name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _name_dtype(element: str) -> str:
    width = element.lstrip("sui")
    return _NUMPY.get(element) or f"{'uint' if element.startswith('u') else 'int'}{width}"


def _insert(rows: list[str], row: int, column: int, words: str) -> None:
    line = rows[row - 1].encode()  # the columns of a syntax tree count bytes
    rows[row - 1] = (line[:column] + words.encode() + line[column:]).decode()
