"""Cut the body of an MLIR function into statements, and read the attributes of a statement. Pure."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from runners.core.mlir.brackets import find_closing, split_list
from runners.core.mlir.operations import VALUE, Operation, Region, split_operations
from runners.core.mlir.types import OtherType, ScalarType, TensorType, Type, find_types, parse_type
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, is_known, wrap_value


class UndefinedResult(Exception):
    """The interpreter does not know a part of the program, or the definitions do not determine its result."""


@dataclass(frozen=True, slots=True)
class Statement:
    """An operation with the types of its results."""

    operation: str
    """With its dialect: ``stablehlo.add``."""
    results: tuple[str, ...]
    operands: tuple[str, ...]
    types: tuple[TensorType, ...]
    """The types of the results."""
    attributes: str
    """The text between the operation and its types, without regions."""
    regions: tuple[Region, ...]
    text: str
    """The whole statement."""


MAX_STATEMENTS = 200
_KNOWN = re.compile(r"(?:[a-z_]+\.)?(?:return|yield)|scf\.(?:condition|for|if)|util\.global\.store")
"""Operations without a result."""
_SHAPE = re.compile(r"!tosa\.shape<(\d)>")
_REDUCER = re.compile(r"\breducer((?:\s*\([^()]*\))+)\s*\{")
_NAMED = re.compile(rf"({VALUE})\s*=\s*({VALUE}(?:#\d{{1,2}})?)")
_BOUNDS = re.compile(rf"\b(?:to|step)\s+({VALUE})")


def iterate_statements(body: str) -> Iterator[Statement]:
    """Yield the statements of a body. Raise `UndefinedResult` at text that is not a statement."""
    for number, one in enumerate(split_operations(_REDUCER.sub(_write_block, body))):
        if number >= MAX_STATEMENTS:
            raise UndefinedResult("too many statements")
        if not one.name or not (one.results or _KNOWN.fullmatch(one.name)):
            raise UndefinedResult(one.text[:40])
        yield _read_statement(one)


def _write_block(found: re.Match[str]) -> str:
    """Write the arguments of a reducer, ``(%a: t, %b: t) (%c: u, %d: u)``, as those of a block: a, c, b, d."""
    groups = [split_list(group) for group in re.findall(r"\(([^()]*)\)", found[1])]
    return f"{{^reducer({', '.join(one for column in zip(*groups, strict=False) for one in column)}):"


def _read_statement(one: Operation) -> Statement:
    types = tuple(map(_read_type, map(parse_type, one.types) if one.types else find_types(one.attributes)))
    if len(types) < len(one.results):
        raise UndefinedResult(f"{one.name}: {len(one.results)} results")
    operands, regions = one.operands, one.regions
    named = _NAMED.findall(one.attributes) if one.name.endswith((".while", ".for")) else []
    if named:  # (%i = %a, %j = %b)
        operands = tuple(value for _, value in named)
        if one.name == "scf.for":
            operands = (operands[0], *_BOUNDS.findall(one.attributes), *operands[1:])
        own = tuple(name for name, _ in named)
        regions = tuple(replace(region, arguments=region.arguments or own) for region in regions)
    return Statement(
        operation=one.name,
        results=one.results,
        operands=operands,
        types=types[len(types) - len(one.results) :],  # one list for operands and results ends with the results
        attributes=one.attributes,
        regions=regions,
        text=one.text,
    )


def _read_type(kind: Type | None) -> TensorType:
    match kind:
        case TensorType(shape=shape, element=element):
            return TensorType(shape, element)
        case ScalarType(element=element):
            return TensorType((), element)
        case OtherType(text=text) if rank := _SHAPE.fullmatch(text):
            return TensorType((int(rank[1]),), "i64")
        case _:
            raise UndefinedResult(str(kind)[:40])


# ---------------------------------------------------------------------------------------------- attributes


def read_integers(attributes: str, name: str) -> tuple[int, ...] | None:
    """Return ``name = [0, 1]``, ``array<i64: 0, 1>``, ``dense<[0, 1]>`` or ``0`` as flat integers. None if absent.

    TOSA writes ``name([0, 1])`` since the MLIR of October 2026.
    """
    found = re.search(rf"(?<![\w.]){name}\s*[=(]\s*(?P<array>array<i\d{{1,2}}|dense<)?:?\s*", attributes)
    if found is None:
        return None
    rest = attributes[found.end() :]
    if rest.startswith("["):
        rest = rest[: find_closing(rest, 0) + 1 or None]
    elif found["array"]:
        rest = rest.partition(">")[0]
    else:
        rest = rest[: len(rest) - len(rest.lstrip("-0123456789"))]
    if re.search(r"[^-\d,\s\[\]]", rest):
        raise UndefinedResult(f"{name} = {rest[:40]}")
    return tuple(map(int, re.findall(r"-?\d+", rest)))


def read_flags(attributes: str, name: str, count: int) -> tuple[bool, ...] | None:
    """Return ``name = [true, false]``, ``array<i1: true, false>`` or ``dense<true>``. None if absent."""
    found = re.search(rf"(?<![\w.]){name}\s*=\s*(?:array<i1:?|dense<)?\s*\[?(?P<flags>[\w,\s]*)", attributes)
    if found is None:
        return None
    flags = tuple(word in ("true", "1") for word in re.findall(r"true|false|\b[01]\b", found["flags"]))
    if len(flags) not in (1, count):
        raise UndefinedResult(f"{name} of another length")
    return flags if len(flags) == count else flags * count


def require_integers(attributes: str, name: str, count: int | None = None) -> tuple[int, ...]:
    """Return the integers of a required attribute. A single value represents ``count`` equal ones."""
    found = read_integers(attributes, name)
    if found is None:
        raise UndefinedResult(f"no {name}")
    if count is not None and len(found) == 1:
        return found * count
    if count is not None and len(found) != count:
        raise UndefinedResult(f"{name} of another length")
    return found


def read_float(attributes: str, name: str) -> float | None:
    """Return ``name = 1.5 : f32``. None if the attribute is absent."""
    found = re.search(rf"(?<![\w.]){name}\s*[=(]\s*([-+.\w]+)", attributes)
    try:
        return None if found is None else float(found[1])
    except ValueError:
        raise UndefinedResult(f"{name} = {found[1]}" if found else name) from None


def read_dense(text: str, element: str, count: int) -> tuple[Number, ...]:
    """Return the values of ``dense<[[1, 2], [3, 4]]>``: ``count`` values, or one for all."""
    found = re.search(r"dense<(?P<values>[^<>]*)>", text)
    if found is None or not is_known(element):
        raise UndefinedResult("no dense values")
    words = [word for word in re.split(r"[\s,\[\]]+", found["values"]) if word]
    if len(words) == 1 and words[0].startswith('"0x'):
        return _unpack(words[0].strip('"')[2:], element, count)
    numbers = tuple(read_literal(word, element) for word in words)
    if len(numbers) not in (1, count):
        raise UndefinedResult("dense values of another number")
    return numbers


def _unpack(digits: str, element: str, count: int) -> tuple[Number, ...]:
    """Return the values of little-endian hexadecimal digits."""
    formats = {"f32": "f", "f16": "e", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q"}
    try:
        raw = bytes.fromhex(digits)
        code = formats[element]
        values = struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)
    except (KeyError, ValueError, struct.error):
        raise UndefinedResult("packed values") from None
    if len(values) not in (1, count):
        raise UndefinedResult("packed values of another number")
    return values


def read_literal(word: str, element: str) -> Number:
    """Return a literal of MLIR. A hexadecimal literal of a float type represents its bits."""
    try:
        if word in ("true", "false"):
            return wrap_value(int(word == "true"), element)
        if element not in FLOATS:
            return wrap_value(int(word, 0), element)
        if word.lower().startswith("0x"):
            packed = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}[element]
            return float(struct.unpack(packed[1], struct.pack(packed[0], int(word, 16)))[0])
        return wrap_value(float(word), element)
    except (ValueError, KeyError, struct.error):
        raise UndefinedResult(word[:40]) from None
