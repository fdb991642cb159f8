"""Run ``linalg.fill``, ``linalg.generic`` with any affine maps, and the operations of `_NAMED`. Pure.

A reduction begins with the tensor that ``outs`` gives, as the operations define.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, is_known, wrap_value
from runners.toolchains.iree.diagnosis.reference.elementwise import MAX_LINES, run_line
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult, read_shape
from runners.toolchains.iree.diagnosis.reference.tensors import Values

MAX_STEPS = 100_000
"""Most iterations of one operation."""
_VALUE = r"%[A-Za-z0-9_$.-]{1,80}"
_OPERATION = re.compile(
    rf"\s*(?P<to>{_VALUE})\s*=\s*linalg\.(?P<name>\w+)\s*(?P<attributes>\{{[^{{}}]*\}})?\s*"
    rf"ins\((?P<ins>[^:()]*):[^()]*\)\s*outs\((?P<outs>{_VALUE})\s*:[^()]*\)\s*"
    r"(?:\{\s*\^\w+\((?P<elements>[^()]*)\)\s*:(?P<body>[^{}^]*)\}\s*)?->\s*tensor<(?P<type>[^<>]*)>[ \t]*$",
    re.M,
)
_MAP = re.compile(r"#\w+|affine_map<[^<>]*->[^<>]*>")
_YIELD = re.compile(r"linalg\.yield\s")


@dataclass(frozen=True, slots=True)
class _Loops:
    """A loop nest: the kind of each loop, the map of each operand, and the lines that one iteration runs."""

    kinds: tuple[str, ...]
    maps: tuple[str, ...]
    """One for each input and one for the result, as ``affine_map`` texts."""
    elements: tuple[str, ...]
    """The names of one element of each operand."""
    lines: tuple[str, ...]


def run_loops(text: str, known: Mapping[str, Values], maps: Mapping[str, str]) -> Values:
    """Return the result of one ``linalg`` operation. Raises `UndefinedResult` for any other."""
    operation = _OPERATION.match(text)
    result = _run_operation(operation, known, maps) if operation is not None else None
    if result is None:
        raise UndefinedResult(text[:80])
    return result


def _run_operation(found: re.Match[str], known: Mapping[str, Values], aliases: Mapping[str, str]) -> Values | None:
    *extents, element = found["type"].split("x")
    if not is_known(element) or not all(extent.isdigit() for extent in extents):
        return None
    shape = tuple(map(int, extents))
    if math.prod(shape) > MAX_STEPS:
        return None
    names = [name.strip() for name in found["ins"].split(",")]
    inputs = [known[name] for name in names if name in known]
    if found["name"] == "fill":
        filled = len(inputs) == len(names) == 1 and len(inputs[0].numbers) == 1
        return Values(element, inputs[0].numbers * math.prod(shape), shape) if filled else None
    loops = _read_generic(found, aliases) if found["name"] == "generic" else _read_named(found, element)
    start = known.get(found["outs"])
    if loops is None or len(loops.maps) != len(names) + 1:
        return None
    if found["name"] != "generic" and found["name"].startswith("pooling"):
        window = _find_window(found)
        inputs = [*inputs[:1], Values(element, (0,), window)] if window else []
    if len(inputs) != len(names):
        return None
    if start is None and "reduction" not in loops.kinds and not _reads_result(loops):
        start = Values(element, (0,) * math.prod(shape), shape)  # the tensor is overwritten
    if start is None:
        return None
    result = _run_loops(loops, inputs, replace(start, shape=shape), known)
    if result is None or "reduction" not in loops.kinds or element not in FLOATS:
        return result
    wide = _run_loops(
        _widen(loops),
        [_widen_values(one) for one in inputs],
        _widen_values(replace(start, shape=shape)),
        {name: _widen_values(one) for name, one in known.items()},
    )
    return replace(result, is_rounded=result.is_rounded or wide is None or wide.numbers != result.numbers)


def _widen(loops: _Loops) -> _Loops:
    """Return the loops in float64: where these give the same values, nothing was rounded on the way."""
    return replace(loops, lines=tuple(re.sub(r"\bf(?:16|32)\b", "f64", line) for line in loops.lines))


def _widen_values(values: Values) -> Values:
    return replace(values, element="f64") if values.element in FLOATS else values


def _reads_result(loops: _Loops) -> bool:
    return any(re.search(rf"{re.escape(loops.elements[-1])}(?![\w$.-])", line) for line in loops.lines)


def _read_generic(found: re.Match[str], aliases: Mapping[str, str]) -> _Loops | None:
    attributes = found["attributes"] or ""
    kinds = re.search(r"iterator_types\s*=\s*\[([^\[\]]*)\]", attributes)
    elements = re.findall(rf"({_VALUE})\s*:", found["elements"] or "")
    maps = tuple(aliases.get(one, one) for one in _MAP.findall(attributes.partition("iterator_types")[0]))
    if kinds is None or not elements or len(maps) != len(elements):
        return None
    lines = tuple(filter(None, map(str.strip, found["body"].split("\n"))))
    return _Loops(tuple(re.findall(r"\w+", kinds[1])), maps, tuple(elements), lines[:MAX_LINES])


# ---------------------------------------------------------------------------------------------- named operations

_WINDOW = "h * SH + y * DH, w * SW + x * DW"
"""The rows and columns under a window, by the strides and the dilations."""
_NAMED: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "matmul": ("i j | k", ("i, k", "k, j", "i, j"), "product"),
    "batch_matmul": ("b i j | k", ("b, i, k", "b, k, j", "b, i, j"), "product"),
    "matvec": ("i | k", ("i, k", "k", "i"), "product"),
    "vecmat": ("j | k", ("k", "k, j", "j"), "product"),
    "dot": ("| k", ("k", "k", ""), "product"),
    "pooling_nhwc_max": ("n h w c | y x", (f"n, {_WINDOW}, c", "y, x", "n, h, w, c"), "maximum"),
    "pooling_nhwc_min": ("n h w c | y x", (f"n, {_WINDOW}, c", "y, x", "n, h, w, c"), "minimum"),
    "pooling_nhwc_sum": ("n h w c | y x", (f"n, {_WINDOW}, c", "y, x", "n, h, w, c"), "sum"),
    "pooling_nchw_max": ("n c h w | y x", (f"n, c, {_WINDOW}", "y, x", "n, c, h, w"), "maximum"),
    "pooling_nchw_sum": ("n c h w | y x", (f"n, c, {_WINDOW}", "y, x", "n, c, h, w"), "sum"),
    "conv_2d_nhwc_hwcf": ("n h w f | y x c", (f"n, {_WINDOW}, c", "y, x, c, f", "n, h, w, f"), "product"),
    "conv_2d_nchw_fchw": ("n f h w | c y x", (f"n, c, {_WINDOW}", "f, c, y, x", "n, f, h, w"), "product"),
}
"""Operation → its parallel and reduction loops, the maps of its operands, and the combination of each iteration."""


def _read_named(found: re.Match[str], element: str) -> _Loops | None:
    """Return the loop nest of a named operation, from its definition."""
    if found["name"] not in _NAMED or found["body"] is not None:
        return None
    loops, operands, how = _NAMED[found["name"]]
    parallel, reduced = (re.findall(r"\w", part) for part in loops.split("|"))
    attributes = found["attributes"] or ""
    for letter, name in (("S", "strides"), ("D", "dilations")):
        pair = _read_pair(attributes, name)
        if pair is None:
            return None
        operands = tuple(
            one.replace(f"{letter}H", str(pair[0])).replace(f"{letter}W", str(pair[1])) for one in operands
        )
    listed = ", ".join((*parallel, *reduced))
    suffix = "f" if element in FLOATS else "i"
    steps = {
        "product": (f"%m = arith.mul{suffix} %a, %b : {element}", f"%r = arith.add{suffix} %o, %m : {element}"),
        "sum": (f"%r = arith.add{suffix} %o, %a : {element}",),
        "maximum": (f"%r = arith.max{'imumf' if suffix == 'f' else 'si'} %o, %a : {element}",),
        "minimum": (f"%r = arith.min{'imumf' if suffix == 'f' else 'si'} %o, %a : {element}",),
    }[how]
    return _Loops(
        kinds=("parallel",) * len(parallel) + ("reduction",) * len(reduced),
        maps=tuple(f"affine_map<({listed}) -> ({one})>" for one in operands),
        elements=("%a", "%b", "%o"),
        lines=(*steps, f"linalg.yield %r : {element}"),
    )


def _read_pair(attributes: str, name: str) -> tuple[int, int] | None:
    """Return ``strides = dense<2>`` or ``dense<[2, 1]>`` as a pair; ones if the attribute is absent."""
    found = re.search(rf"\b{name}\s*=\s*dense<\[?([\d, ]+)\]?>", attributes)
    if found is None:
        return None if re.search(rf"\b{name}\b", attributes) else (1, 1)
    numbers = [int(one) for one in re.findall(r"\d+", found[1])]
    return (numbers[0], numbers[-1]) if 1 <= len(numbers) <= 2 else None


def _find_window(found: re.Match[str]) -> tuple[int, ...]:
    """Return the extents of a pooling's window, of which only the type matters."""
    typed = re.search(r"ins\([^:()]*:[^()]*?tensor<[^<>]*>\s*,\s*tensor<((?:\d{1,9}x){1,2})\w+>", found[0])
    return read_shape(typed[1]) if typed else ()


# ---------------------------------------------------------------------------------------------- loops


def _run_loops(loops: _Loops, inputs: Sequence[Values], start: Values, known: Mapping[str, Values]) -> Values | None:
    """Run a loop nest: for each point of the reduction loops, all points of the parallel loops at once."""
    maps = [_read_map(one) for one in loops.maps]
    operands = [*inputs, start]
    read = [one for one in maps if one is not None]
    if len(read) < len(maps) or len({one.dimensions for one in read}) != 1:
        return None
    extents = _find_extents(read, operands)
    if extents is None or len(extents) != len(loops.kinds) or math.prod(extents) > MAX_STEPS:
        return None
    reduced = [at for at, kind in enumerate(loops.kinds) if kind == "reduction"]
    parallel = [at for at, kind in enumerate(loops.kinds) if kind == "parallel"]
    if len(reduced) + len(parallel) != len(extents):
        return None
    points = list(product(*(range(extents[at]) for at in parallel)))
    result = [wrap_value(number, start.element) for number in start.numbers]
    outer = {name: one for name, one in known.items() if len(one.numbers) == 1 and name not in loops.elements}
    for step in product(*(range(extents[at]) for at in reduced)):
        index = [dict(zip((*parallel, *reduced), (*point, *step), strict=True)) for point in points]
        pairs = zip(read, operands, strict=True)
        places = [[_find_place(one, operand.shape, at) for at in index] for one, operand in pairs]
        if any(place is None for each in places for place in each):
            return None
        values = _run_body(loops, operands, places, result, outer)
        if values is None:
            return None
        for place, number in zip(places[-1], values, strict=True):
            assert place is not None
            result[place] = number
    return Values(start.element, tuple(result), start.shape, any(one.is_rounded for one in inputs))


def _run_body(
    loops: _Loops,
    operands: Sequence[Values],
    places: Sequence[Sequence[int | None]],
    result: Sequence[Number],
    outer: Mapping[str, Values],
) -> tuple[Number, ...] | None:
    """Run the lines of a body for all parallel points at once. Return what they yield."""
    inner = dict(outer)
    for name, operand, each in zip(loops.elements, operands, places, strict=True):
        numbers = result if operand is operands[-1] else operand.numbers
        element = operands[-1].element if name == "%b" and len(operand.numbers) < 2 else operand.element
        inner[name] = Values(element, tuple(numbers[place % len(numbers)] for place in each if place is not None))
    for line in loops.lines:
        if _YIELD.match(line):
            returned = re.findall(_VALUE, line.partition(":")[0])
            values = inner.get(returned[0]) if len(returned) == 1 else None
            count = len(places[-1])
            return None if values is None else tuple(values.pick(at) for at in range(count))
        if not run_line(line, inner):
            return None
    return None


@dataclass(frozen=True, slots=True)
class _Map:
    dimensions: tuple[str, ...]
    results: tuple[ast.expr, ...]


def _read_map(text: str) -> _Map | None:
    found = re.search(r"\(([^()]*)\)\s*->\s*\((.*)\)>?\s*$", text)
    if found is None or len(text) > 2_000:
        return None
    dimensions = tuple(one.strip() for one in found[1].split(",") if one.strip())
    try:
        listed = ast.parse(f"({found[2].replace('floordiv', '//').replace(' mod ', ' % ')},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None if found[2].strip() else _Map(dimensions, ())
    return _Map(dimensions, tuple(listed.elts)) if isinstance(listed, ast.Tuple) else None


def _find_extents(maps: Sequence[_Map], operands: Sequence[Values]) -> tuple[int, ...] | None:
    """Return the number of iterations of each loop, from the extents of tensors that a loop alone indexes."""
    names = maps[0].dimensions
    found: dict[str, int] = {}
    for one, operand in zip(maps, operands, strict=True):
        if len(one.results) != len(operand.shape):
            return None
        for expression, extent in zip(one.results, operand.shape, strict=True):
            if isinstance(expression, ast.Name) and found.setdefault(expression.id, extent) != extent:
                return None
    return tuple(found[name] for name in names) if set(names) <= found.keys() else None


def _find_place(one: _Map, shape: Sequence[int], index: Mapping[int, int]) -> int | None:
    """Return the position of an element in a tensor; None outside the tensor, and for an unknown expression."""
    values = {name: index[at] for at, name in enumerate(one.dimensions)}
    place = 0
    for expression, extent in zip(one.results, shape, strict=True):
        at = _compute_index(expression, values)
        if at is None or not 0 <= at < extent:
            return None
        place = place * extent + at
    return place


def _compute_index(expression: ast.expr, values: Mapping[str, int]) -> int | None:
    match expression:
        case ast.Name(id=name):
            return values.get(name)
        case ast.Constant(value=int() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            negated = _compute_index(inner, values)
            return None if negated is None else -negated
        case ast.BinOp(left=left, op=how, right=right):
            a, b = _compute_index(left, values), _compute_index(right, values)
            return None if a is None or b is None else _combine(how, a, b)
        case _:
            return None


def _combine(how: ast.operator, a: int, b: int) -> int | None:
    match how:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.FloorDiv() if b:
            return a // b
        case ast.Mod() if b:
            return a % b
        case _:
            return None
