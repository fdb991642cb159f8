"""Run the operations of MLIR's ``tensor`` dialect, by their definitions. Pure.

Offsets, sizes and extents are constants of the text, or values that the program has computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from runners.core.mlir.brackets import split_list
from runners.core.mlir.types import DYNAMIC, fits_shape
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.control_flow import RunRegion
from runners.toolchains.iree.diagnosis.reference.excluded import (
    ExcludedOperand,
    IndexOutside,
    Operand,
    WrongExtent,
    check_index,
)
from runners.toolchains.iree.diagnosis.reference.statements import Statement, UndefinedResult, read_integers
from runners.toolchains.iree.diagnosis.reference.tensors import Values

_LISTED = re.compile(r"\[([-\d,\s%\w$.#]*)\]")
_GROUPS = re.compile(r"\[(?P<groups>\[[-\d,\s\[\]]*\]|)\]")


def run_tensor(statement: Statement, values: Mapping[str, Values], run_region: RunRegion) -> Values:
    """Return the result of one operation.

    Raises:
        UndefinedResult: the operation is unknown, or its result is undefined.
        ExcludedOperand: an index or an extent is outside the tensor.
    """
    text, to = statement.attributes, statement.types[0]
    operands = [values[name] for name in statement.operands]
    match statement.operation.partition(".")[2]:
        case "empty":
            return _make_empty(statement, operands)
        case "dim" if len(operands) == 2:
            return Values("i64", (operands[0].shape[int(operands[1].pick(0))],))
        case "extract" if operands:
            at = _find_element(statement, operands[0], 1, values)
            return replace(operands[0], numbers=(operands[0].pick(at),), shape=())
        case "insert" if len(operands) >= 2 and len(operands[0].numbers) == 1:
            numbers = list(tensors.list_elements(operands[1]))
            numbers[_find_element(statement, operands[1], 2, values)] = operands[0].numbers[0]
            rounded = operands[0].is_rounded or operands[1].is_rounded
            return replace(operands[1], numbers=tuple(numbers), is_rounded=rounded)
        case "extract_slice" if operands:
            starts, sizes, steps = _read_slice(statement, operands[0].shape, values)
            cut = tensors.cut_slice(operands[0], starts, steps, sizes)
            return tensors.reshape(cut, _drop_units(sizes, to.shape))
        case "insert_slice" if len(operands) >= 2:
            return _insert_slice(statement, operands, values)
        case "expand_shape":
            return tensors.reshape(operands[0], _find_expanded(statement, operands[0], values))
        case "collapse_shape":
            return tensors.reshape(operands[0], _find_collapsed(text, operands[0].shape))
        case "cast" if len(operands[0].shape) == len(to.shape):
            if not fits_shape(to.shape, operands[0].shape):
                raise UndefinedResult("a cast to another extent")
            return operands[0]
        case "generate" if len(statement.regions) == 1:
            return _generate(statement, operands, run_region)
        case _ if DYNAMIC in to.shape:
            raise UndefinedResult("a dynamic extent")
        case "reshape":
            return tensors.reshape(operands[0], to.shape)
        case "splat" if len(operands) == 1:
            return replace(operands[0], shape=to.shape)
        case "from_elements":
            numbers = [one.pick(0) for one in operands]
            return Values(to.element, tuple(numbers), to.shape, any(one.is_rounded for one in operands))
        case "concat":
            found = re.search(r"dim\((\d+)\)", text)
            return tensors.concatenate(operands, int(found[1]) if found else -1, to)
        case "pad" if len(operands) == 1 and len(statement.regions) == 1:
            low = read_integers(re.sub(r"\b(low|high)\[", r"\1 = [", text), "low")
            yielded = re.fullmatch(r"\s*tensor\.yield\s+(%[\w$.-]+)\s*:\s*\w+\s*", statement.regions[0].text)
            if low is None or yielded is None:
                raise UndefinedResult("padding")
            return tensors.pad(operands[0], values[yielded[1]], low, [0] * len(low), to.shape)
        case _:
            raise UndefinedResult(statement.operation)


def _make_empty(statement: Statement, operands: Sequence[Values]) -> Values:
    """Return a tensor without elements but with a known shape. An operation that reads an element has no result."""
    return Values(statement.types[0].element, (), _fill_shape(statement.types[0].shape, operands))


def _fill_shape(shape: Sequence[int], operands: Sequence[Values]) -> tuple[int, ...]:
    """Return a shape whose dynamic extents are the operands, in order."""
    extents = [int(one.pick(0)) for one in operands]
    if len(extents) != list(shape).count(DYNAMIC) or min(extents, default=0) < 0:
        raise UndefinedResult("extents of a tensor")
    given = iter(extents)
    return tuple(next(given) if n == DYNAMIC else n for n in shape)


def _generate(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Values:
    to = statement.types[0]
    shape = _fill_shape(to.shape, operands)
    elements = [
        run_region(statement.regions[0], [Values("i64", (at,)) for at in index])[0]
        for index in tensors.iterate_indices(shape)
    ]
    numbers = tuple(one.pick(0) for one in elements)
    return Values(to.element, numbers, shape, any(one.is_rounded for one in elements))


def _find_element(statement: Statement, of: Values, first: int, values: Mapping[str, Values]) -> int:
    """Return the position of the element whose indices are the operands from ``first`` on."""
    names = statement.operands[first:]
    indices = [values[name] for name in names]
    if len(indices) != len(of.shape) or any(len(one.numbers) != 1 for one in indices):
        raise UndefinedResult("indices of an element")
    place = [int(one.numbers[0]) for one in indices]
    check_index(statement.operation, statement.results[0], names, place, of.shape)
    return tensors.find_place(of.shape, place)


# ---------------------------------------------------------------------------------------------- slices


def _read_slice(
    statement: Statement, shape: Sequence[int], values: Mapping[str, Values]
) -> tuple[list[int], list[int], list[int]]:
    """Return offsets, sizes and strides of a slice that is inside a tensor of this shape."""
    listed = [split_list(one) for one in _LISTED.findall(statement.attributes)]
    if len(listed) != 3 or any(len(words) != len(shape) for words in listed):
        raise UndefinedResult("offsets, sizes and strides")
    starts, sizes, steps = ([_read_index(word, values) for word in words] for words in listed)
    if min(sizes, default=0) < 0 or min(steps, default=1) < 1:
        raise UndefinedResult("sizes and strides")
    for axis, (start, size, step, extent) in enumerate(zip(starts, sizes, steps, shape, strict=True)):
        last = start + max(size - 1, 0) * step
        if size and not (start >= 0 and last < extent):
            _exclude_slice(statement, listed, axis, extent, start if start < 0 else last)
    return starts, sizes, steps


def _exclude_slice(
    statement: Statement, listed: Sequence[Sequence[str]], axis: int, extent: int, outside: int
) -> None:
    """Blame the offset of a slice, if the program computes it and the slice would fit at the start."""
    offset, size, step = (words[axis] for words in listed)
    plain = size.isdigit() and step.isdigit()
    if not offset.startswith("%") or not plain or (int(size) - 1) * int(step) >= extent:
        raise UndefinedResult("a slice outside the tensor")
    raise ExcludedOperand(
        Operand(
            operation=statement.operation,
            result=statement.results[0],
            name=offset,
            value=outside,
            fault=IndexOutside(extent - (int(size) - 1) * int(step), axis),
        )
    )


def _drop_units(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a slice: the sizes, without extents of one that the result's type omits."""
    if DYNAMIC not in shape:
        return tuple(shape)
    if len(sizes) == len(shape):
        return tuple(sizes)
    kept = [n for n in sizes if n != 1]
    if len(kept) != len(shape):
        raise UndefinedResult("dimensions of a slice")
    return tuple(kept)


def _insert_slice(statement: Statement, operands: Sequence[Values], values: Mapping[str, Values]) -> Values:
    target = operands[1]
    starts, sizes, steps = _read_slice(statement, target.shape, values)
    source = tensors.reshape(operands[0], sizes)
    numbers = list(tensors.list_elements(target))
    for index, number in zip(tensors.iterate_indices(sizes), tensors.list_elements(source), strict=True):
        place = [a + i * s for a, i, s in zip(starts, index, steps, strict=True)]
        numbers[tensors.find_place(target.shape, place)] = number
    return replace(target, numbers=tuple(numbers), is_rounded=source.is_rounded or target.is_rounded)


def _read_index(word: str, values: Mapping[str, Values]) -> int:
    return int(values[word].pick(0)) if word.startswith("%") else int(word)


# ---------------------------------------------------------------------------------------------- reshapes


def _read_groups(text: str) -> list[int]:
    """Return the sizes of the groups of dimensions of ``[[0, 1], [2]]``."""
    found = _GROUPS.search(text)
    if found is None:
        raise UndefinedResult("groups of dimensions")
    return [len(re.findall(r"\d+", one)) for one in re.findall(r"\[([^\[\]]*)\]", found["groups"])]


def _cut_groups(shape: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    ends = [0, *accumulate(sizes)]
    if ends[-1] != len(shape):
        raise UndefinedResult("groups of dimensions")
    return [shape[begin:end] for begin, end in pairwise(ends)]


def _find_collapsed(text: str, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(group) for group in _cut_groups(shape, _read_groups(text)))


def _find_expanded(statement: Statement, given: Values, values: Mapping[str, Values]) -> tuple[int, ...]:
    """Return the shape of a result. Each group of its extents contains the elements of one extent of the operand."""
    found = re.search(r"\boutput_shape\s*\[([^\[\]]*)\]", statement.attributes)
    words = split_list(found[1]) if found else [str(n) for n in statement.types[0].shape]
    sizes = _read_groups(statement.attributes)
    shape = [_read_index(word, values) for word in words]
    if min(shape, default=0) < 0 or len(sizes) != len(given.shape):
        raise UndefinedResult("a dynamic extent")
    ends = [0, *accumulate(sizes)]
    for axis, group in enumerate(_cut_groups(shape, sizes)):
        if math.prod(group) != given.shape[axis]:
            _exclude_extent(statement, words[ends[axis] : ends[axis + 1]], group, given.shape[axis])
    return tuple(shape)


def _exclude_extent(statement: Statement, words: Sequence[str], group: Sequence[int], count: int) -> None:
    """Blame the only extent of a group that the program computes, if another value would be right."""
    named = [(word, n) for word, n in zip(words, group, strict=True) if word.startswith("%")]
    others = math.prod(n for word, n in zip(words, group, strict=True) if not word.startswith("%"))
    if len(named) != 1 or not others or count % others:
        raise UndefinedResult("a reshape to another number of elements")
    raise ExcludedOperand(
        Operand(
            operation=statement.operation,
            result=statement.results[0],
            name=named[0][0],
            value=named[0][1],
            fault=WrongExtent(count // others),
        )
    )
