"""Run ``iree_linalg_ext`` operations of IREE on tensors, by their descriptions in ``LinalgExtOps.td``. Pure."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from runners.core.mlir.affine_maps import list_maps
from runners.core.mlir.types import DYNAMIC
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.control_flow import RunRegion
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, Number, wrap_value
from runners.toolchains.iree.diagnosis.reference.dialects.stablehlo import sort
from runners.toolchains.iree.diagnosis.reference.excluded import check_places
from runners.toolchains.iree.diagnosis.reference.statements import Statement, UndefinedResult, require_integers
from runners.toolchains.iree.diagnosis.reference.tensors import Index, Values, check_steps, find_place, list_elements

_OPERANDS = re.compile(r"\b(ins|outs)\(([^:()]*):")
_NAME = re.compile(r"%[\w$.-]{1,80}(?:#\d{1,2})?")


def run_linalg_ext(
    statement: Statement, values: Mapping[str, Values], run_region: RunRegion, maps: Mapping[str, str]
) -> Sequence[Values]:
    """Return the results of one operation. ``maps`` contains the named affine maps (``#map``)."""
    if statement.operation.endswith(".sort"):
        return sort(statement, [values[one] for one in statement.operands], run_region)
    if any(DYNAMIC in one.shape for one in statement.types):
        raise UndefinedResult("a dynamic extent")
    inputs, starts = ([values[name] for name in _list_names(statement, kind)] for kind in ("ins", "outs"))
    if not inputs or len(starts) != len(statement.types):
        raise UndefinedResult("operands")
    combine = functools.partial(_combine, statement, run_region)
    match statement.operation.rpartition(".")[2]:
        case "scan":
            return _scan(statement, inputs[0], starts, combine)
        case "scatter":
            return [_scatter(statement, inputs, starts[0], combine)]
        case "gather":
            return [_gather(statement, inputs, starts[0])]
        case "topk":
            return _choose_greatest(statement, inputs, starts, combine)
        case "arg_compare":
            return _find_extreme(statement, inputs, combine)
        case "attention":
            return [_attend(statement, inputs, maps)]
        case _:
            raise UndefinedResult(statement.operation)


def _list_names(statement: Statement, kind: str) -> list[str]:
    """Return the operands of ``ins`` or of ``outs``."""
    return [
        name
        for found, names in _OPERANDS.findall(statement.attributes)
        if found == kind
        for name in _NAME.findall(names)
    ]


def _combine(statement: Statement, run_region: RunRegion, element: str, one: Number, other: Number) -> Number:
    (result,) = run_region(statement.regions[0], [Values(element, (one,)), Values(element, (other,))])
    return result.numbers[0]


def _iterate_rows(shape: Sequence[int], at: int) -> Iterator[list[int]]:
    """Yield the places of the elements along dimension ``at``, for each index of the other dimensions."""
    if not 0 <= at < len(shape):
        raise UndefinedResult("a dimension")
    for index in tensors.iterate_indices([1 if n == at else extent for n, extent in enumerate(shape)]):
        yield [find_place(shape, [*index[:at], i, *index[at + 1 :]]) for i in range(shape[at])]


def _scan(
    statement: Statement, given: Values, starts: Sequence[Values], combine: functools.partial[Number]
) -> Sequence[Values]:
    """Run ``scan``. Releases differ in whether the accumulator of a single element changes."""
    (at,), elements = require_integers(statement.attributes, "dimension"), list_elements(given)
    is_inclusive = re.search(r"inclusive\s*[(=]\s*true", statement.attributes) is not None
    if given.shape[at : at + 1] in ((), (0,), (1,)) or (given.element in FLOATS and _has_nan(given)):
        raise UndefinedResult("a scan of one element")
    begin = () if is_inclusive else list_elements(starts[1])
    numbers, last = list(elements), []
    for row, places in enumerate(_iterate_rows(given.shape, at)):
        total = elements[places[0]] if is_inclusive else begin[row]
        numbers[places[0]] = total
        for place, before in zip(places[1:], places, strict=False):
            total = combine(given.element, total, elements[place if is_inclusive else before])
            numbers[place] = total
        last.append(total)
    to, kept = statement.types[:2]
    return [Values(to.element, tuple(numbers), to.shape), Values(kept.element, tuple(last), kept.shape)]


def _has_nan(values: Values) -> bool:
    return any(math.isnan(one) for one in values.numbers)


def _list_slices(
    statement: Statement, inputs: Sequence[Values], of: Values
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield the batch index of each slice, and, by ``indices``, the place of its first element in ``of``."""
    indices, mask = inputs[1], inputs[2] if len(inputs) > 2 else None
    dimensions = require_integers(statement.attributes, "dimension_map")
    depth, rank = len(dimensions), len(of.shape)
    if sorted(dimensions) != list(range(depth)) or depth > rank:
        raise UndefinedResult("a map of dimensions")
    batch = inputs[0].shape if statement.operation.endswith("scatter") else statement.types[0].shape
    batch = batch[: len(batch) - (rank - depth)]
    has_depth = len(indices.shape) == len(batch) + 1
    if indices.shape[: len(batch)] != batch or (not has_depth and depth != 1):
        raise UndefinedResult("a batch of indices")
    numbers, chosen = list_elements(indices), list_elements(mask) if mask is not None else ()
    for number, index in enumerate(tensors.iterate_indices(batch)):
        if mask is not None and not chosen[number]:
            continue
        start = [0] * depth
        for at, dimension in enumerate(dimensions):
            start[dimension] = int(numbers[find_place(indices.shape, [*index, at] if has_depth else index)])
        if not all(0 <= n < extent for n, extent in zip(start, of.shape, strict=False)):
            raise UndefinedResult("an index outside the tensor")
        yield index, start


def _scatter(
    statement: Statement, inputs: Sequence[Values], original: Values, combine: functools.partial[Number]
) -> Values:
    """Run ``scatter``.

    Raises:
        ExcludedOperand: two updates have the same place, although the indices are declared unique.
    """
    updates, numbers = list_elements(inputs[0]), list(list_elements(original))
    unique = re.search(r"unique_indices\s*[(=]\s*false", statement.attributes) is None
    check_steps(len(updates) * 4)
    places: list[int] = []
    for index, start in _list_slices(statement, inputs, original):
        for inner in product(*map(range, original.shape[len(start) :])):
            place = find_place(original.shape, [*start, *inner])
            places.append(place)
            update = updates[find_place(inputs[0].shape, [*index, *inner])]
            numbers[place] = combine(original.element, update, numbers[place])
    if unique:
        check_places(statement.operation, statement.results[0], _list_names(statement, "ins")[1], places)
    return replace(original, numbers=tuple(numbers))


def _gather(statement: Statement, inputs: Sequence[Values], start: Values) -> Values:
    source, to = inputs[0], statement.types[0]
    elements = list_elements(source)
    numbers: list[Number | None] = [*list_elements(start)] if start.numbers else [None] * math.prod(to.shape)
    for index, first in _list_slices(statement, inputs, source):
        for inner in product(*map(range, source.shape[len(first) :])):
            numbers[find_place(to.shape, [*index, *inner])] = elements[find_place(source.shape, [*first, *inner])]
    written = [one for one in numbers if one is not None]
    if len(written) < len(numbers):
        raise UndefinedResult("elements that are never written")
    return Values(to.element, tuple(written), to.shape, source.is_rounded)


def _choose_greatest(
    statement: Statement, inputs: Sequence[Values], starts: Sequence[Values], combine: functools.partial[Number]
) -> Sequence[Values]:
    """Run ``topk``: each element moves up past the results that the comparison places below it."""
    (at,), given = require_integers(statement.attributes, "dimension"), inputs[0]
    to, places = statement.types[0], list_elements(inputs[1]) if len(inputs) > 1 else ()
    if _has_nan(given):
        raise UndefinedResult("an order of NaN")
    check_steps(math.prod(given.shape) * to.shape[at])
    elements, results = list_elements(given), [list(list_elements(one)) for one in starts]
    for row, chosen in zip(_iterate_rows(given.shape, at), _iterate_rows(to.shape, at), strict=True):
        for number, place in enumerate(row):
            moved = (elements[place], places[place] if places else number)
            for slot in chosen:
                if combine(given.element, moved[0], results[0][slot]):
                    held = (results[0][slot], results[1][slot])
                    results[0][slot], results[1][slot] = moved
                    moved = held
    pairs = zip(results, statement.types, strict=True)
    return [Values(one.element, tuple(numbers), one.shape) for numbers, one in pairs]


def _find_extreme(
    statement: Statement, inputs: Sequence[Values], combine: functools.partial[Number]
) -> Sequence[Values]:
    """Run ``arg_compare`` without given indices. The first of equal elements counts."""
    (at,), given = require_integers(statement.attributes, "dimension"), inputs[0]
    if len(inputs) > 1 or "index_base" in statement.attributes or _has_nan(given):
        raise UndefinedResult("given indices")
    elements, best, found = list_elements(given), [], []
    for row in _iterate_rows(given.shape, at):
        if not row:
            raise UndefinedResult("an empty dimension")
        chosen = 0
        for number, place in enumerate(row):
            if combine(given.element, elements[place], elements[row[chosen]]):
                chosen = number
        best.append(elements[row[chosen]])
        found.append(chosen)
    value, index = statement.types
    return [Values(value.element, tuple(best), value.shape), Values(index.element, tuple(found), index.shape)]


def _read_maps(statement: Statement, named: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the loops that index each operand, as names of loops."""
    listed = []
    for one in list_maps(statement.attributes, named):
        if one is None or not frozenset(one.results) <= frozenset(one.dimensions):
            raise UndefinedResult("a map that computes")
        listed.append(one.results)
    return listed


def _attend(statement: Statement, inputs: Sequence[Values], maps: Mapping[str, str]) -> Values:
    """Run ``attention``: softmax(Q · K · scale, masked) · V, the softmax over the loops that only K and V have.

    A completely masked row has no agreed result. The body may only yield its argument.
    """
    indexed, to = _read_maps(statement, maps), statement.types[0]
    region = statement.regions[0] if statement.regions else None
    plain = region is None or re.fullmatch(rf"\s*\S*yield\s+{re.escape(region.arguments[0])}\s*:.*\s*", region.text)
    if len(indexed) != len(inputs) + 1 or len(inputs) not in (4, 5) or not plain or to.element not in FLOATS:
        raise UndefinedResult("an attention")
    extents = {
        loop: n for loops, one in zip(indexed, inputs, strict=False) for loop, n in zip(loops, one.shape, strict=True)
    }
    query, key, value, _, *_ = indexed
    result = indexed[-1]
    summed = [one for one in query if one not in result]
    softened = [one for one in key if one in value and one not in result]
    check_steps(math.prod(extents.values()))
    elements = [list_elements(one) for one in inputs]

    def read(at: int, loops: Mapping[str, int]) -> Number:
        index: Index = tuple(loops[name] for name in indexed[at])
        return elements[at][find_place(inputs[at].shape, index)]

    def iterate(names: Sequence[str], outer: Mapping[str, int]) -> Iterator[dict[str, int]]:
        for index in product(*(range(extents[name]) for name in names)):
            yield {**outer, **dict(zip(names, index, strict=True))}

    numbers = []
    for outer in iterate(result, {}):
        scores, weighed = [], []
        for inner in iterate(softened, outer):
            score = sum(read(0, loops) * read(1, loops) for loops in iterate(summed, inner)) * read(3, inner)
            if len(inputs) == 5:
                shift = read(4, inner)
                score = (score if shift else -math.inf) if inputs[4].element in ("i1", "i8") else score + shift
            scores.append(score)
            weighed.append(read(2, inner))
        greatest = max(scores, default=-math.inf)
        if not math.isfinite(greatest) or any(map(math.isnan, scores)):
            raise UndefinedResult("a row that is masked as a whole")
        powers = [math.exp(one - greatest) for one in scores]
        total = sum(power * one for power, one in zip(powers, weighed, strict=True)) / sum(powers)
        numbers.append(wrap_value(total, to.element))
    return Values(to.element, tuple(numbers), to.shape, is_rounded=to.element not in ("f32", "f64"))
