"""Cut the body of an MLIR function into statements, and read the attributes of a statement. Pure."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, is_known, wrap_value


class UndefinedResult(Exception):
    """The interpreter does not know a part of the program, or the definitions do not determine its result."""


@dataclass(frozen=True, slots=True)
class TensorType:
    element: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """The body of an operation, such as the combination of a reduction."""

    arguments: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One operation, in the pretty or in the generic form."""

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
_NAME = r"%[A-Za-z0-9_$.-]{1,80}(?:#\d{1,2})?"
_BEGINS = re.compile(
    rf"[ \t]*(?:(?P<to>{_NAME}(?::\d{{1,2}})?(?:\s*,\s*{_NAME})*)\s*=\s*"
    r"\"?(?P<operation>[a-z_]+\.[A-Za-z_0-9.]+|call\b)\"?"
    r"|\"?(?P<end>(?:[a-z_]+\.)?(?:return|yield)|scf\.condition)\"?(?![\w.])"
    r"|(?P<effect>scf\.(?:for|if)|util\.global\.store)(?![\w.]))"
)
_TYPE = re.compile(
    r"tensor<(?P<shape>(?:(?:\d{1,9}|\?)x){0,8})(?P<element>[A-Za-z]\w{0,15})(?:,[^<>]*)?>|!tosa\.shape<(?P<rank>\d)>"
    r"|(?<![\w.<!#@%])(?P<alone>u?i\d{1,2}|b?f\d\w{0,10}|index)(?![\w.>])"
)
_BLOCK = re.compile(r"\s*\^\w+\((?P<arguments>[^()]*)\)\s*:")
_REDUCER = re.compile(r"\breducer((?:\s*\([^()]*\))+)\s*$")
_NAMED = re.compile(rf"({_NAME})\s*=\s*({_NAME})")
_BOUNDS = re.compile(rf"\b(?:to|step)\s+({_NAME})")
_REST = re.compile(r"\s*\Z")
_OPENING, _CLOSING = "([{", ")]}"


def iterate_statements(body: str) -> Iterator[Statement]:
    """Yield the statements of a body. Raise `UndefinedResult` at text that is not a statement."""
    at = 0
    for _ in range(MAX_STATEMENTS):
        while at < len(body) and body[at].isspace():
            at += 1
        if at == len(body):
            return
        found = _BEGINS.match(body, at)
        if found is None:
            raise UndefinedResult(body[at : at + 40])
        end = _find_end(body, found.end())
        yield _read_statement(found, body[found.end() : end])
        at = end
    raise UndefinedResult("too many statements")


def _find_end(body: str, at: int) -> int:
    """Return the end of a statement: the last row before a row outside brackets that begins another one."""
    depth = 0
    while at < len(body):
        char = body[at]
        depth += (char in _OPENING) - (char in _CLOSING)
        if depth < 0:
            raise UndefinedResult("unbalanced brackets")
        if char == "\n" and not depth and (_BEGINS.match(body, at + 1) or _REST.match(body, at)):
            return at
        at += 1
    return at


def _read_statement(found: re.Match[str], text: str) -> Statement:
    regions: list[Region] = []
    plain = _cut_regions(text, regions)
    head, tail = _split_types(plain)
    types = tuple(map(_read_type, _TYPE.finditer((tail or head).rpartition("->")[2])))
    results = _read_results(found["to"]) if found["to"] else ()
    if len(types) < len(results):
        raise UndefinedResult(f"{found['operation']}: {len(results)} results")
    operation = found["operation"] or found["end"] or found["effect"]
    operands = tuple(re.findall(_NAME, head))
    named = _NAMED.findall(head) if operation.endswith((".while", ".for")) else []
    if named:  # (%i = %a, %j = %b)
        operands = tuple(value for _, value in named)
        if operation == "scf.for":
            operands = (operands[0], *_BOUNDS.findall(head), *operands[1:])
        regions = [replace(one, arguments=one.arguments or tuple(name for name, _ in named)) for one in regions]
    return Statement(
        operation=operation,
        results=results,
        operands=operands,
        types=types[len(types) - len(results) :],  # a list of all operands' types ends with the result's type
        attributes=head,
        regions=tuple(regions),
        text=found[0].strip() + text,
    )


def _read_type(found: re.Match[str]) -> TensorType:
    if found["rank"]:
        return TensorType("i64", (int(found["rank"]),))
    return TensorType(found["element"] or found["alone"], read_shape(found["shape"] or ""))


def _read_results(text: str) -> tuple[str, ...]:
    name, colon, count = text.partition(":")
    return tuple(f"{name}#{at}" for at in range(int(count))) if colon else tuple(re.findall(_NAME, text))


def _cut_regions(text: str, regions: list[Region]) -> str:
    """Return the text without braces that contain operations. Add these to ``regions``."""
    kept, at = "", 0
    while (begin := text.find("{", at)) >= 0:
        end = find_closing(text, begin)
        inner = text[begin + 1 : end]
        if "%" not in inner:
            kept += text[at : end + 1]
        else:
            kept += text[at:begin]
            header, block = _REDUCER.search(kept), _BLOCK.match(inner)
            if header is not None:
                groups = [re.findall(_NAME, group) for group in re.findall(r"\(([^()]*)\)", header[1])]
                names = [name for column in zip(*groups, strict=False) for name in column]
                regions.append(Region(tuple(names), inner))
                kept = kept[: header.start()]
            elif block is not None:
                regions.append(Region(tuple(re.findall(_NAME, block["arguments"])), inner[block.end() :]))
            else:
                regions.append(Region((), inner))
        at = end + 1
    return kept + text[at:]


def find_closing(text: str, begin: int) -> int:
    """Return the position of the bracket that closes the bracket at ``begin``."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if not depth:
            return at
    raise UndefinedResult("unbalanced brackets")


def _split_types(text: str) -> tuple[str, str]:
    """Split at the last colon outside brackets. The types follow it."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in _CLOSING) - (text[at] in _OPENING)
        if text[at] == ":" and not depth and not _is_in_angles(text, at):
            return text[:at], text[at + 1 :]
    return text, ""


def _is_in_angles(text: str, at: int) -> bool:
    """True for the colon of ``array<i64: 1, 2>``."""
    return re.search(r"array<i\d{1,2}$", text[max(0, at - 12) : at]) is not None


def read_shape(text: str) -> tuple[int, ...]:
    """Return the extents of ``2x3x``. A dynamic extent is `DYNAMIC`."""
    return tuple(DYNAMIC if extent == "?" else int(extent) for extent in text.split("x") if extent)


DYNAMIC = -1


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
        rest = rest[: find_closing(rest, 0) + 1]
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
