"""Run ``linalg.fill``, ``linalg.generic`` with any affine maps, and named operations as such loops. Pure.

A reduction begins with the tensor of ``outs``, as the operations define.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from runners.core.mlir.affine_maps import AffineMap, list_maps
from runners.core.mlir.brackets import split_list, strip_parentheses
from runners.core.mlir.operations import VALUE
from runners.core.mlir.types import DYNAMIC, TensorType, match_static, parse_type
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, is_known, wrap_value
from runners.toolchains.iree.diagnosis.reference.elementwise import MAX_LINES, run_line
from runners.toolchains.iree.diagnosis.reference.excluded import check_index
from runners.toolchains.iree.diagnosis.reference.named_loops import find_named, write_generic
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values, find_place, is_near

MAX_STEPS = 400_000
"""Maximum number of iterations of one operation."""
_OPERATION = re.compile(
    rf"\s*+{VALUE}(?::\d{{1,2}}|(?:\s*+,\s*+{VALUE})*)\s*+=\s*+linalg\.(?P<name>\w+)\s*+"
    r"(?P<attributes>\{[^{}]*\})?\s*+"
    rf"(?:ins\((?P<ins>[^:()]*):(?P<given>[^()]*)\)\s*+)?outs\((?P<outs>[^:()]*):[^()]*\)\s*+"
    r"(?:\{\s*+\^\w+\((?P<elements>[^()]*)\)\s*+:(?P<body>[^{}^]*)\}\s*+)?->\s*+"
    r"(?P<types>[^{}]+)$"
)
_YIELD = re.compile(r"linalg\.yield\s")
_COUNTER = re.compile(rf"(?P<to>{VALUE})\s*=\s*linalg\.index\s+(?P<loop>\d{{1,2}})\s*:\s*\w+$")
_EXTRACT = re.compile(rf"(?P<to>{VALUE})\s*=\s*tensor\.extract\s+(?P<of>{VALUE})\[(?P<at>[^\[\]]*)\]\s*:[^\n]*$")


@dataclass(frozen=True, slots=True)
class _Loops:
    """A loop nest: the kind of each loop, the map of each operand, and the lines of one iteration."""

    kinds: tuple[str, ...]
    maps: tuple[AffineMap | None, ...]
    """The map of each input and of each result. None for a map that cannot be read."""
    elements: tuple[str, ...]
    """The names of one element of each operand."""
    lines: tuple[str, ...]


def run_loops(text: str, known: Mapping[str, Values], maps: Mapping[str, str]) -> list[Values]:
    """Return the results of one ``linalg`` operation. Raises `UndefinedResult` for any other."""
    operation = _OPERATION.match(write_generic(text))
    results = _run_operation(operation, known, maps) if operation is not None else None
    if results is None:
        raise UndefinedResult(text[:80])
    return results


def _run_operation(
    found: re.Match[str], known: Mapping[str, Values], aliases: Mapping[str, str]
) -> list[Values] | None:
    names, outs = split_list(found["ins"] or ""), split_list(found["outs"])
    typed = split_list(strip_parentheses(found["types"]))
    types = [_read_type(one, known.get(name)) for name, one in zip(outs, typed, strict=False)]
    inputs = [known[name] for name in names if name in known]
    if len(outs) != len(typed) or any(math.prod(one.shape) > MAX_STEPS for one in types):
        return None
    if found["name"] == "fill":
        filled = len(inputs) == len(names) == len(types) == 1 and len(inputs[0].numbers) == 1
        return [_fill(types[0], inputs[0].numbers[0], inputs[0].is_rounded)] if filled else None
    loops = _read_generic(found, aliases) if found["name"] == "generic" else _read_named(found, types[0].element)
    if loops is None or len(loops.maps) != len(names) + len(outs):
        return None
    if found["name"].startswith("pooling"):
        window = _find_window(found)
        inputs = [*inputs[:1], Values(types[0].element, (0,), window)] if window else []
    if len(inputs) != len(names):
        return None
    starts = [
        _find_start(loops, known.get(name), one, at - len(outs))
        for at, (name, one) in enumerate(zip(outs, types, strict=True))
    ]
    begun = [one for one in starts if one is not None]
    if len(begun) < len(starts):
        return None
    results = _run_loops(loops, inputs, begun, known)
    reduces = "reduction" in loops.kinds
    if results is None or not _may_round(loops, [*inputs, *begun]):
        return results
    wide = _run_loops(
        _widen(loops),
        [_widen_values(one) for one in inputs],
        [_widen_values(one) for one in begun],
        {name: _widen_values(one) for name, one in known.items()},
    )
    if wide is None:
        return [replace(one, is_rounded=True) for one in results]
    pairs = zip(results, wide, strict=True)
    exact = all(own.numbers == one.numbers if reduces else is_near(own, one) for own, one in pairs)
    return [replace(one, is_rounded=one.is_rounded or not exact) for one in results]


def _may_round(loops: _Loops, operands: Sequence[Values]) -> bool:
    """True if another order of additions, or a product that is not rounded before an addition, may change a result.

    A body that rounds explicitly without a reduction (``arith.truncf``) requires its rounding.
    """
    if not any(one.element in FLOATS for one in operands):
        return False
    return "reduction" in loops.kinds or not any("truncf" in line for line in loops.lines)


def _read_type(text: str, given: Values | None) -> TensorType:
    """Return the type of a result. Its dynamic extents are those of the tensor of ``outs``."""
    kind = parse_type(text)
    if not isinstance(kind, TensorType) or not is_known(kind.element):
        raise UndefinedResult(text[:80])
    shape = kind.shape
    if given is not None and len(given.shape) == len(shape):
        shape = tuple(own if one == DYNAMIC else one for one, own in zip(shape, given.shape, strict=True))
    if DYNAMIC in shape:
        raise UndefinedResult(text[:80])
    return TensorType(shape, kind.element)


def _fill(of: TensorType, number: Number, is_rounded: bool = False) -> Values:
    return Values(of.element, (number,) * math.prod(of.shape), of.shape, is_rounded)


def _find_start(loops: _Loops, given: Values | None, of: TensorType, at: int) -> Values | None:
    """Return the initial tensor of a result. None if it was never written and is read."""
    if given is not None and given.numbers:
        size = math.prod(of.shape)
        return replace(given, shape=of.shape, numbers=given.numbers * (size if len(given.numbers) == 1 else 1))
    name = re.escape(loops.elements[at])
    is_read = any(re.search(rf"{name}(?![\w$.-])", line) for line in loops.lines)
    return None if "reduction" in loops.kinds or is_read else _fill(of, 0)  # the tensor is overwritten


def _widen(loops: _Loops) -> _Loops:
    """Return the loops in float64. If they give the same values, nothing was rounded."""
    return replace(loops, lines=tuple(re.sub(r"\bf(?:16|32)\b", "f64", line) for line in loops.lines))


def _widen_values(values: Values) -> Values:
    return replace(values, element="f64") if values.element in FLOATS else values


def _read_generic(found: re.Match[str], aliases: Mapping[str, str]) -> _Loops | None:
    attributes = found["attributes"] or ""
    kinds = re.search(r"iterator_types\s*=\s*\[([^\[\]]*)\]", attributes)
    elements = re.findall(rf"({VALUE})\s*:", found["elements"] or "")
    maps = tuple(list_maps(attributes.partition("iterator_types")[0], aliases))
    if kinds is None or not elements or len(maps) != len(elements):
        return None
    body = re.sub(r"(?<![\w.%$-])index\b", "i64", found["body"])
    lines = tuple(filter(None, map(str.strip, body.split("\n"))))
    return _Loops(tuple(re.findall(r"\w+", kinds[1])), maps, tuple(elements), lines[:MAX_LINES])


def _read_named(found: re.Match[str], element: str) -> _Loops | None:
    """Return the loop nest of a named operation, from its definition."""
    named = find_named(found["name"], found["attributes"] or "", element) if found["body"] is None else None
    if named is None:
        return None
    listed = (*named.parallel, *named.reduced)
    return _Loops(
        kinds=("parallel",) * len(named.parallel) + ("reduction",) * len(named.reduced),
        maps=tuple(AffineMap(listed, tuple(split_list(one))) for one in named.maps),
        elements=named.elements,
        lines=named.lines,
    )


def _find_window(found: re.Match[str]) -> tuple[int, ...]:
    """Return the extents of a pooling's window. Only its type matters."""
    _, window = (*split_list(found["given"] or ""), "", "")[:2]
    kind = match_static(window, 0)
    return kind.shape if kind else ()


# ---------------------------------------------------------------------------------------------- loops


def _run_loops(
    loops: _Loops, inputs: Sequence[Values], starts: Sequence[Values], known: Mapping[str, Values]
) -> list[Values] | None:
    """Run a loop nest: for each point of the reduction loops, run all points of the parallel loops at once."""
    maps = [None if one is None else _parse_results(one) for one in loops.maps]
    operands = [*inputs, *starts]
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
    results = [[wrap_value(number, one.element) for number in one.numbers] for one in starts]
    outer = {name: one for name, one in known.items() if name not in loops.elements}
    forms = [_find_form(one, operand.shape, extents) for one, operand in zip(read, operands, strict=True)]
    bases = [[] if form is None else form.list_places(parallel, points) for form in forms]
    counts = None in forms or any(map(_COUNTER.match, loops.lines))
    for step in product(*(range(extents[at]) for at in reduced)):
        index = [dict(zip((*parallel, *reduced), (*point, *step), strict=True)) for point in points] if counts else ()
        places: list[list[int]] = []
        for form, base, one, operand in zip(forms, bases, read, operands, strict=True):
            if form is None:
                found = [_find_place(one, operand.shape, at) for at in index]
                if None in found:
                    return None
                places.append([place for place in found if place is not None])
            else:
                shift = form.find_shift(reduced, step)
                places.append([place + shift for place in base] if shift else base)
        columns: list[Sequence[Number]] = [*(one.numbers for one in inputs), *results]
        elements = [
            Values(one.element, tuple([numbers[place % len(numbers)] for place in each]))
            for one, numbers, each in zip(operands, columns, places, strict=True)
        ]
        values = _run_body(loops, elements, index, outer, len(points))
        if values is None:
            return None
        for numbers, each, new in zip(results, places[len(inputs) :], values, strict=True):
            for place, number in zip(each, new, strict=True):
                numbers[place] = number
    rounded = any(one.is_rounded for one in (*inputs, *starts))
    return [
        replace(one, numbers=tuple(numbers), is_rounded=rounded) for one, numbers in zip(starts, results, strict=True)
    ]


def _run_body(
    loops: _Loops,
    elements: Sequence[Values],
    index: Sequence[Mapping[int, int]],
    outer: Mapping[str, Values],
    count: int,
) -> list[tuple[Number, ...]] | None:
    """Run the lines of a body for all ``count`` parallel points at once. Return the yielded values.

    ``index`` contains the loops' values at each point, if the body needs them.
    """
    inner = {name: one for name, one in outer.items() if len(one.numbers) == 1}
    inner.update(zip(loops.elements, elements, strict=True))
    for line in loops.lines:
        if _YIELD.match(line):
            returned = re.findall(VALUE, line.partition(":")[0])
            values = [inner[name] for name in returned if name in inner]
            if len(values) != len(returned):
                return None
            return [
                one.numbers if len(one.numbers) == count else tuple(one.pick(at) for at in range(count))
                for one in values
            ]
        if counter := _COUNTER.match(line):
            inner[counter["to"]] = Values("i64", tuple(at[int(counter["loop"])] for at in index))
        elif extract := _EXTRACT.match(line):
            inner[extract["to"]] = _extract(extract, inner, outer, count)
        elif not run_line(line, inner):
            return None
    return None


def _extract(found: re.Match[str], inner: Mapping[str, Values], outer: Mapping[str, Values], count: int) -> Values:
    """Return the elements that each point reads from a tensor outside the loops."""
    source = outer[found["of"]]
    names = split_list(found["at"])
    indices = [inner[name] for name in names]
    numbers = []
    for at in range(count):
        place = [int(one.pick(at)) for one in indices]
        check_index("tensor.extract", found["to"], names, place, source.shape)
        numbers.append(source.pick(find_place(source.shape, place)))
    return Values(source.element, tuple(numbers))


@dataclass(frozen=True, slots=True)
class _Map:
    dimensions: tuple[str, ...]
    results: tuple[ast.expr, ...]


def _parse_results(one: AffineMap) -> _Map | None:
    texts = [text.replace("floordiv", "//").replace(" mod ", " % ") for text in one.results]
    try:
        return _Map(one.dimensions, tuple(ast.parse(text, mode="eval").body for text in texts))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, slots=True)
class _Form:
    """The place of an element as a sum: a constant, and a multiple of each loop's value."""

    constant: int
    factors: tuple[int, ...]

    def list_places(self, loops: Sequence[int], points: Sequence[Sequence[int]]) -> list[int]:
        """Return the places at these values of some loops, with all other loops at zero."""
        factors = [self.factors[at] for at in loops]
        return [self.constant + sum(map(operator.mul, factors, point)) for point in points]

    def find_shift(self, loops: Sequence[int], values: Sequence[int]) -> int:
        return sum(self.factors[at] * value for at, value in zip(loops, values, strict=True))


def _find_form(one: _Map, shape: Sequence[int], extents: Sequence[int]) -> _Form | None:
    """Return the place as a sum. None if it is not a sum, or is outside the tensor in some iteration."""
    constant, factors = 0, [0] * len(extents)
    for expression, extent in zip(one.results, shape, strict=True):
        linear = _read_sum(expression, one.dimensions)
        if linear is None:
            return None
        reach = [factor * (count - 1) for factor, count in zip(linear.factors, extents, strict=True) if count]
        low, high = (linear.constant + sum(pick(0, one) for one in reach) for pick in (min, max))
        if not 0 <= low <= high < extent:
            return None
        constant = constant * extent + linear.constant
        factors = [mine * extent + own for mine, own in zip(factors, linear.factors, strict=True)]
    return _Form(constant, tuple(factors))


def _read_sum(expression: ast.expr, names: Sequence[str]) -> _Form | None:
    """Return an affine expression without divisions as a sum. None for any other expression."""
    nothing = (0,) * len(names)
    match expression:
        case ast.Name(id=name) if name in names:
            return _Form(0, tuple(int(one == name) for one in names))
        case ast.Constant(value=int() as number):
            return _Form(number, nothing)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _scale(_read_sum(inner, names), -1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as how, right=right):
            a, b = _read_sum(left, names), _read_sum(right, names)
            b = _scale(b, -1) if isinstance(how, ast.Sub) else b
            if a is None or b is None:
                return None
            factors = tuple(map(operator.add, a.factors, b.factors))
            return _Form(a.constant + b.constant, factors)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            a, b = _read_sum(left, names), _read_sum(right, names)
            if a is None or b is None or (any(a.factors) and any(b.factors)):
                return None
            return _scale(a, b.constant) if any(a.factors) else _scale(b, a.constant)
        case _:
            return None


def _scale(of: _Form | None, factor: int) -> _Form | None:
    return None if of is None else _Form(of.constant * factor, tuple(one * factor for one in of.factors))


def _find_extents(maps: Sequence[_Map], operands: Sequence[Values]) -> tuple[int, ...] | None:
    """Return the number of iterations of each loop, from the extents of tensors that only this loop indexes."""
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
    """Return the position of an element in a tensor. None outside the tensor, and for an unknown expression."""
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
