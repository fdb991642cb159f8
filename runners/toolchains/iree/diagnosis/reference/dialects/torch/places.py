"""Run the operations of the torch dialect that make tensors, or that place elements. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import FLOATS, wrap_value
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import Call, Listed, Run, cast, join_shapes
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult, read_dense
from runners.toolchains.iree.diagnosis.reference.tensors import Index, Values, check_steps, find_place, list_elements


def _make_literal(call: Call) -> Values:
    to = call.statement.types[0]
    return Values(to.element, read_dense(call.statement.attributes, to.element, math.prod(to.shape)), to.shape)


def _make_list(call: Call) -> Values:
    return Listed("list", (), items=call.operands)


def _reshape(call: Call) -> Values:
    given, sizes = call[0], call.get_integers(1)
    if sizes is None or sum(one == -1 for one in sizes) > 1:
        raise UndefinedResult("a reshape")
    known = math.prod(one for one in sizes if one != -1)
    count = math.prod(given.shape)
    if -1 in sizes and (not known or count % known):
        raise UndefinedResult("a reshape")
    return tensors.reshape(given, tuple(count // known if one == -1 else one for one in sizes))


def _flatten(call: Call) -> Values:
    given = call[0]
    rank = len(given.shape)
    first, last = call.get_axis(1, rank, 0), call.get_axis(2, rank, -1)
    if first > last:
        raise UndefinedResult("a flattening")
    middle = math.prod(given.shape[first : last + 1])
    return tensors.reshape(given, (*given.shape[:first], middle, *given.shape[last + 1 :]))


def _unsqueeze(call: Call) -> Values:
    given = call[0]
    at = call.get_axis(1, len(given.shape) + 1)
    return tensors.reshape(given, (*given.shape[:at], 1, *given.shape[at:]))


def _squeeze(call: Call) -> Values:
    given = call[0]
    axes = range(len(given.shape)) if len(call.operands) < 2 else call.get_axes(1, len(given.shape))
    return tensors.reshape(given, [n for at, n in enumerate(given.shape) if n != 1 or at not in axes])


def _permute(call: Call) -> Values:
    axes = call.get_integers(1) or ()
    return tensors.transpose(call[0], [axis % len(call[0].shape) for axis in axes])


def _transpose(call: Call) -> Values:
    order = list(range(len(call[0].shape)))
    if len(call.operands) < 3:
        return tensors.transpose(call[0], order[::-1] if len(order) <= 2 else [])
    a, b = (call.get_axis(at, len(order)) for at in (1, 2))
    order[a], order[b] = order[b], order[a]
    return tensors.transpose(call[0], order)


def _expand(call: Call) -> Values:
    given, sizes = call[0], call.get_integers(1) or ()
    added = len(sizes) - len(given.shape)
    if added < 0:
        raise UndefinedResult("an expansion")
    to = [given.shape[at - added] if n == -1 and at >= added else n for at, n in enumerate(sizes)]
    return tensors.broadcast(given, to, range(added, len(sizes)))


def _concatenate(call: Call) -> Values:
    parts = [cast(one, call.element) for one in call.get_list(0)]
    if not parts:
        raise UndefinedResult("nothing to concatenate")
    axis = call.get_axis(1, len(parts[0].shape), 0)
    shape = list(parts[0].shape)
    shape[axis] = sum(one.shape[axis] for one in parts)
    return tensors.concatenate(parts, axis, TensorType(tuple(shape), call.element))


def _stack(call: Call) -> Values:
    parts = [cast(one, call.element) for one in call.get_list(0)]
    if not parts:
        raise UndefinedResult("nothing to stack")
    axis = call.get_axis(1, len(parts[0].shape) + 1, 0)
    inserted = [tensors.reshape(one, (*one.shape[:axis], 1, *one.shape[axis:])) for one in parts]
    shape = (*parts[0].shape[:axis], len(parts), *parts[0].shape[axis:])
    return tensors.concatenate(inserted, axis, TensorType(shape, call.element))


def _slice(call: Call) -> Values:
    given = call[0]
    axis = call.get_axis(1, len(given.shape), 0)
    extent, step = given.shape[axis], call.get_integer(4, 1)
    if step < 1:
        raise UndefinedResult("a slice that goes backwards")
    begin, end, _ = slice(call.get_integer(2, 0), call.get_integer(3, extent), step).indices(extent)
    to = [len(range(begin, end, step)) if at == axis else n for at, n in enumerate(given.shape)]
    starts, steps = (
        [one if at == axis else other for at in range(len(to))] for one, other in ((begin, 0), (step, 1))
    )
    return tensors.cut_slice(given, starts, steps, to)


def _select_index(call: Call) -> Values:
    given = call[0]
    axis = call.get_axis(1, len(given.shape))
    at = call.get_integer(2)
    place = at + given.shape[axis] if at < 0 else at
    to = [n for dimension, n in enumerate(given.shape) if dimension != axis]
    return tensors.move_elements(given, to, lambda index: (*index[:axis], place, *index[axis:]))


def _select_indices(call: Call) -> Values:
    given, indices = call[0], call[2]
    axis, places = call.get_axis(1, len(given.shape)), list_elements(indices)
    to = [len(places) if at == axis else n for at, n in enumerate(given.shape)]
    return tensors.move_elements(
        given, to, lambda index: (*index[:axis], int(places[index[axis]]), *index[axis + 1 :])
    )


def _gather(call: Call) -> Values:
    given, indices = call[0], call[2]
    axis, places = call.get_axis(1, len(given.shape)), list_elements(indices)
    return tensors.move_elements(
        given,
        indices.shape,
        lambda index: (*index[:axis], int(places[find_place(indices.shape, index)]), *index[axis + 1 :]),
    )


def _look_up(call: Call) -> Values:
    """Run ``embedding``."""
    weight, indices = call[0], call[1]
    places, rank = list_elements(indices), len(indices.shape)
    return tensors.move_elements(
        weight,
        (*indices.shape, *weight.shape[1:]),
        lambda index: (int(places[find_place(indices.shape, index[:rank])]), *index[rank:]),
    )


def _index(call: Call) -> Values:
    """Run ``x[i, :, j]``. A negative index counts from the end."""
    given, read, shape = call[0], *_plan_indexing(call[0], call.get_list(1))
    return tensors.move_elements(given, shape, read)


def _plan_indexing(given: Values, indices: Sequence[Values]) -> tuple[Callable[[Index], Index], tuple[int, ...]]:
    """Return, for each place of ``given[indices]``, the place in ``given``, and the shape of ``given[indices]``."""
    used = [at for at, one in enumerate(indices) if one.element != "none"]
    if not used or len(indices) > len(given.shape) or any(indices[at].element in (*FLOATS, "i1") for at in used):
        raise UndefinedResult("indices")
    joined = join_shapes(*(indices[at] for at in used))
    inner = joined[0].shape
    places = {at: list_elements(one) for at, one in zip(used, joined, strict=True)}
    rest = [at for at in range(len(given.shape)) if at not in used]
    # If indices are not adjacent, their dimensions come first.
    first = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    before = [at for at in rest if at < first]
    shape = (*(given.shape[at] for at in before), *inner, *(given.shape[at] for at in rest if at not in before))

    def read(index: Index) -> Index:
        at = find_place(inner, index[len(before) : len(before) + len(inner)])
        outer = iter((*index[: len(before)], *index[len(before) + len(inner) :]))
        chosen = {axis: int(listed[at]) for axis, listed in places.items()}
        return tuple(
            chosen[axis] + (extent if chosen[axis] < 0 else 0) if axis in chosen else next(outer)
            for axis, extent in enumerate(given.shape)
        )

    return read, shape


def _put(call: Call) -> Values:
    """Run ``index_put``. Two values for one place need a sum."""
    given = call[0]
    read, shape = _plan_indexing(given, call.get_list(1))
    added = list_elements(tensors.broadcast_alike(cast(call[2], given.element), shape))
    sums = call.get_integer(3, 0) != 0
    numbers, seen = list(list_elements(given)), set()
    for at, index in enumerate(tensors.iterate_indices(shape)):
        source = read(index)
        if not all(0 <= one < extent for one, extent in zip(source, given.shape, strict=True)):
            raise UndefinedResult("an index outside the tensor")
        place = find_place(given.shape, source)
        if place in seen and not sums:
            raise UndefinedResult("two values for one place")
        seen.add(place)
        numbers[place] = numbers[place] + added[at] if sums else added[at]
    return call.keep(numbers, given.shape, given, call[2])


def _flip(call: Call) -> Values:
    return tensors.reverse(call[0], call.get_axes(1, len(call[0].shape)))


def _roll(call: Call) -> Values:
    """Move elements along dimensions. Elements that leave at the end return at the beginning."""
    given, shifts, axes = call[0], call.get_integers(1) or (), call.get_integers(2) or ()
    rank = len(given.shape)
    inside = all(-rank <= axis < rank for axis in axes)
    if len(shifts) != len(axes) or not axes or not inside or 0 in given.shape:
        raise UndefinedResult("a roll of the flat tensor, or of another dimension")
    moved = dict.fromkeys(range(rank), 0)
    for axis, shift in zip(axes, shifts, strict=True):
        moved[axis % rank] += shift
    return tensors.move_elements(
        given,
        given.shape,
        lambda index: tuple((at - moved[axis]) % given.shape[axis] for axis, at in enumerate(index)),
    )


def _repeat(call: Call) -> Values:
    given, counts = call[0], call.get_integers(1) or ()
    added = len(counts) - len(given.shape)
    if added < 0:
        raise UndefinedResult("a repetition")
    extents = (*[1] * added, *given.shape)
    whole = tensors.reshape(given, extents)
    to = [n * count for n, count in zip(extents, counts, strict=True)]
    return tensors.move_elements(whole, to, lambda index: tuple(i % n for i, n in zip(index, extents, strict=True)))


def _pad(call: Call) -> Values:
    given, widths = call[0], call.get_integers(1) or ()
    rank = len(given.shape)
    if len(widths) % 2 or len(widths) > 2 * rank or min(widths, default=0) < 0:
        raise UndefinedResult("widths of padding")
    low = [0] * rank
    to = list(given.shape)
    for at in range(len(widths) // 2):  # the last dimension first
        low[rank - 1 - at] = widths[2 * at]
        to[rank - 1 - at] += widths[2 * at] + widths[2 * at + 1]
    fill = Values(given.element, (wrap_value(call.get_float(2), given.element),))
    return tensors.pad(given, fill, low, [0] * rank, to)


def _keep_triangle(*, upper: bool) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        given, diagonal = call[0], call.get_integer(1, 0)
        elements = list_elements(given)
        numbers = [
            elements[at] if (index[-1] - index[-2] >= diagonal if upper else index[-1] - index[-2] <= diagonal) else 0
            for at, index in enumerate(tensors.iterate_indices(given.shape))
        ]
        return call.keep(numbers, given.shape, given)

    return run


def _fill(value: float | None, *, like: bool) -> Callable[[Call], Values]:
    """Make a tensor of one value: with a given size, or like another tensor. ``value`` may come from an operand."""

    def run(call: Call) -> Values:
        shape = call[0].shape if like else call.get_integers(0) or ()
        number = call.get_float(1) if value is None else value
        count = check_steps(math.prod(shape))
        return call.keep([number if call.element in FLOATS else int(number)] * count, shape)

    return run


PLACES: Mapping[str, Run] = {
    "vtensor.literal": _make_literal,
    "prim.ListConstruct": _make_list,
    "aten.view": _reshape,
    "aten.reshape": _reshape,
    "aten._unsafe_view": _reshape,
    "aten.flatten.using_ints": _flatten,
    "aten.unsqueeze": _unsqueeze,
    "aten.squeeze": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.permute": _permute,
    "aten.transpose.int": _transpose,
    "aten.t": _transpose,
    "aten.expand": _expand,
    "aten.broadcast_to": _expand,
    "aten.cat": _concatenate,
    "aten.stack": _stack,
    "aten.slice": _slice,
    "aten.select.int": _select_index,
    "aten.index_select": _select_indices,
    "aten.gather": _gather,
    "aten.embedding": _look_up,
    "aten.index": _index,
    "aten.index.Tensor_hacked_twin": _index,
    "aten.index_put": _put,
    "aten.index_put.hacked_twin": _put,
    "aten.flip": _flip,
    "aten.repeat": _repeat,
    "aten.roll": _roll,
    "aten.constant_pad_nd": _pad,
    "aten.triu": _keep_triangle(upper=True),
    "aten.tril": _keep_triangle(upper=False),
    "aten.zeros": _fill(0, like=False),
    "aten.ones": _fill(1, like=False),
    "aten.full": _fill(None, like=False),
    "aten.zeros_like": _fill(0, like=True),
    "aten.ones_like": _fill(1, like=True),
    "aten.full_like": _fill(None, like=True),
}
