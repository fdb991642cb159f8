"""Run the operations of the torch dialect that compute along dimensions. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.definitions import Number
from runners.toolchains.iree.diagnosis.reference.dialects.torch.call import Call, Run, cast
from runners.toolchains.iree.diagnosis.reference.statements import UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values, check_steps, find_place, list_elements


def list_rows(values: Values, axes: Sequence[int]) -> tuple[tuple[int, ...], list[list[Number]]]:
    """Return the extents of the other dimensions, and, for each place there, the elements along ``axes``."""
    elements, shape = list_elements(values), values.shape
    check_steps(math.prod(shape))
    kept = [at for at in range(len(shape)) if at not in axes]
    rows = []
    for outer in product(*(range(shape[at]) for at in kept)):
        chosen = dict(zip(kept, outer, strict=True))
        inner = (dict(zip(axes, one, strict=True)) for one in product(*(range(shape[at]) for at in axes)))
        rows.append([elements[find_place(shape, [(chosen | one)[at] for at in range(len(shape))])] for one in inner])
    return tuple(shape[at] for at in kept), rows


def _keep_axes(shape: Sequence[int], axes: Sequence[int], *, keeps: bool) -> tuple[int, ...]:
    return tuple(1 if at in axes else extent for at, extent in enumerate(shape) if keeps or at not in axes)


_Places = tuple[int, int] | None
"""The positions of two operands: the dimensions, and whether to keep them. None: reduce all, and keep none."""


def _plan(call: Call, shape: Sequence[int], places: _Places) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of a reduction, and the shape of the result."""
    if places is None:
        return tuple(range(len(shape))), ()
    axes = call.get_axes(places[0], len(shape))
    return axes, _keep_axes(shape, axes, keeps=call.get_integer(places[1], 0) != 0)


def _reduce(compute: Callable[[list[Number]], Number], *, places: _Places) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        given = call[0]
        axes, shape = _plan(call, given.shape, places)
        _, rows = list_rows(given, axes)
        return call.keep([compute(row) for row in rows], shape, given)

    return run


def _add_up(*, places: _Places, mean: bool = False) -> Callable[[Call], Values]:
    def run(call: Call) -> Values:
        given = cast(call[0], call.element)
        axes, shape = _plan(call, given.shape, places)
        _, rows = list_rows(given, axes)
        to = TensorType(shape, call.element)
        total = tensors.add_terms(rows, to, is_rounded=given.is_rounded)
        if not mean:
            return total
        count = math.prod(given.shape[at] for at in axes)
        if not count:
            raise UndefinedResult("the mean of nothing")
        return replace(call.keep([one / count for one in total.numbers], to.shape), is_rounded=total.is_rounded)

    return run


def find_greatest(row: list[Number]) -> Number:
    return _extreme(row, max)


def _least(row: list[Number]) -> Number:
    return _extreme(row, min)


def _extreme(row: list[Number], choose: Callable[[list[Number]], Number]) -> Number:
    if not row:
        raise UndefinedResult("the greatest of nothing")
    return next((one for one in row if one != one), choose(row))


def _find_extreme(choose: Callable[[list[Number]], Number]) -> Callable[[Call], Values]:
    """Run ``argmax``: find the first of the greatest elements. NaN counts as the greatest and as the least."""

    def run(call: Call) -> Values:
        given = call[0]
        rank = len(given.shape)
        axes = tuple(range(rank)) if call[1].element == "none" else (call.get_axis(1, rank),)
        _, rows = list_rows(given, axes)
        shape = _keep_axes(given.shape, axes, keeps=call.get_integer(2, 0) != 0)
        return call.keep([_place(row, choose) for row in rows], shape, given)

    return run


def _place(row: list[Number], choose: Callable[[list[Number]], Number]) -> int:
    wanted = _extreme(row, choose)
    return next(at for at, one in enumerate(row) if one == wanted or (one != one and wanted != wanted))


def _extreme_with_place(choose: Callable[[list[Number]], Number]) -> Callable[[Call], list[Values]]:
    def run(call: Call) -> list[Values]:
        given = call[0]
        axes = (call.get_axis(1, len(given.shape)),)
        _, rows = list_rows(given, axes)
        shape = _keep_axes(given.shape, axes, keeps=call.get_integer(2, 0) != 0)
        found = call.keep([_extreme(row, choose) for row in rows], shape, given)
        return [found, call.keep([_place(row, choose) for row in rows], shape, given, element="i64")]

    return run


def _multiply_up(row: list[Number]) -> Number:
    return math.prod(row)


def _is_all(row: list[Number]) -> Number:
    return -int(all(row))


def _is_any(row: list[Number]) -> Number:
    return -int(any(row))


def _along_axis(compute: Callable[[list[Number]], Sequence[Number]]) -> Callable[[Call], Values]:
    """Compute a row of the same length from each row along the dimension of the second operand."""

    def run(call: Call) -> Values:
        given = cast(call[0], call.element)
        axis = call.get_axis(1, len(given.shape))
        outer, rows = list_rows(given, (axis,))
        moved = [one for row in rows for one in compute(row)]
        order = [at for at in range(len(given.shape)) if at != axis]
        back = [order.index(at) if at != axis else len(order) for at in range(len(given.shape))]
        whole = call.keep(moved, (*outer, given.shape[axis]), given)
        return tensors.transpose(whole, back)

    return run


def _soften(row: list[Number]) -> list[Number]:
    greatest = find_greatest(row)
    if not math.isfinite(greatest):
        raise UndefinedResult("a softmax")
    powers = [math.exp(one - greatest) for one in row]
    total = math.fsum(powers)
    return [one / total for one in powers]


def _soften_log(row: list[Number]) -> list[Number]:
    logarithm = _add_exponents(row)
    return [one - logarithm for one in row]


def _add_exponents(row: list[Number]) -> Number:
    """Compute ``logsumexp`` without an overflow, if the result itself does not overflow."""
    greatest = find_greatest(row)
    if not math.isfinite(greatest):
        return greatest
    return greatest + math.log(math.fsum(math.exp(one - greatest) for one in row))


def _accumulate(row: list[Number]) -> list[Number]:
    total: Number = 0
    return [total := total + one for one in row]


REDUCTIONS: Mapping[str, Run] = {
    "aten.sum": _add_up(places=None),
    "aten.sum.dim_IntList": _add_up(places=(1, 2)),
    "aten.mean": _add_up(places=None, mean=True),
    "aten.mean.dim": _add_up(places=(1, 2), mean=True),
    "aten.max": _reduce(find_greatest, places=None),
    "aten.min": _reduce(_least, places=None),
    "aten.amax": _reduce(find_greatest, places=(1, 2)),
    "aten.amin": _reduce(_least, places=(1, 2)),
    "aten.max.dim": _extreme_with_place(max),
    "aten.min.dim": _extreme_with_place(min),
    "aten.argmax": _find_extreme(max),
    "aten.argmin": _find_extreme(min),
    "aten.prod": _reduce(_multiply_up, places=None),
    "aten.prod.dim_int": _reduce(_multiply_up, places=(1, 2)),
    "aten.all": _reduce(_is_all, places=None),
    "aten.any": _reduce(_is_any, places=None),
    "aten.all.dim": _reduce(_is_all, places=(1, 2)),
    "aten.any.dim": _reduce(_is_any, places=(1, 2)),
    "aten.logsumexp": _reduce(_add_exponents, places=(1, 2)),
    "aten.softmax.int": _along_axis(_soften),
    "aten._softmax": _along_axis(_soften),
    "aten.log_softmax.int": _along_axis(_soften_log),
    "aten._log_softmax": _along_axis(_soften_log),
    "aten.cumsum": _along_axis(_accumulate),
}
