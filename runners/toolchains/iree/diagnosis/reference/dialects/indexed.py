"""Run the operations of StableHLO that select the places of elements by a tensor, by their specification. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from runners.core.mlir.types import TensorType
from runners.toolchains.iree.diagnosis.reference import tensors
from runners.toolchains.iree.diagnosis.reference.excluded import check_places
from runners.toolchains.iree.diagnosis.reference.statements import (
    Statement,
    UndefinedResult,
    read_integers,
    require_integers,
)
from runners.toolchains.iree.diagnosis.reference.tensors import Index, Values, check_steps, find_place, list_elements


@dataclass(frozen=True, slots=True)
class _Starts:
    """Where the slices of a gather or a scatter begin."""

    indices: Values
    dimensions: tuple[int, ...]
    """For each number of an index vector, the dimension of the operand."""
    vector: int
    """The dimension of ``indices`` along which an index vector extends."""
    batches: tuple[tuple[int, int], ...]
    """Dimensions of the operand, each with the corresponding dimension of ``indices``."""

    def find_start(self, batch: Sequence[int], rank: int) -> list[int]:
        """Return the start of a slice, without its batching dimensions."""
        start = [0] * rank
        for i, dimension in enumerate(self.dimensions):
            lies_inside = self.vector < len(self.indices.shape)
            where = [*batch[: self.vector], i, *batch[self.vector :]] if lies_inside else batch
            start[dimension] = int(self.indices.pick(find_place(self.indices.shape, where)))
        return start

    def find_batch(self, batch: Sequence[int], rank: int) -> list[int]:
        place = [0] * rank
        for dimension, at in self.batches:
            place[dimension] = batch[at - (at > self.vector)]
        return place


def _read_starts(text: str, indices: Values, targets: str, own: str, theirs: str) -> _Starts:
    pairs = zip(read_integers(text, own) or (), read_integers(text, theirs) or (), strict=True)
    return _Starts(
        indices=replace(indices, numbers=list_elements(indices)),
        dimensions=read_integers(text, targets) or (),
        vector=(read_integers(text, "index_vector_dim") or (0,))[0],
        batches=tuple(pairs),
    )


def gather(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``gather``. An index that is too large is moved inside, as specified."""
    source, indices = operands
    text = statement.attributes
    starts = _read_starts(text, indices, "start_index_map", "operand_batching_dims", "start_indices_batching_dims")
    offsets = read_integers(text, "offset_dims") or ()
    left_out = {*(read_integers(text, "collapsed_slice_dims") or ()), *(at for at, _ in starts.batches)}
    sizes = require_integers(text, "slice_sizes", len(source.shape))
    kept = [at for at in range(len(source.shape)) if at not in left_out]

    def read(index: Index) -> Index:
        batch = [n for at, n in enumerate(index) if at not in offsets]
        inner = dict(zip(kept, (index[at] for at in offsets), strict=True))
        first = starts.find_start(batch, len(source.shape))
        moved = [max(0, min(n, extent - size)) for n, extent, size in zip(first, source.shape, sizes, strict=True)]
        whole = zip(moved, starts.find_batch(batch, len(source.shape)), strict=True)
        return tuple(a + b + inner.get(at, 0) for at, (a, b) in enumerate(whole))

    return tensors.move_elements(source, to.shape, read)


def scatter(statement: Statement, operands: Sequence[Values], combine: tensors.Combination) -> Sequence[Values]:
    """Run ``scatter``. An update outside the tensor is ignored.

    Raises:
        ExcludedOperand: two updates have the same place, although the indices are declared unique.
    """
    count = len(operands) // 2
    given, updates = operands[:count], operands[count + 1 :]
    shape = given[0].shape
    alike = all(one.shape == shape for one in given) and all(one.shape == updates[0].shape for one in updates)
    if len(operands) != 2 * count + 1 or not count or not alike:
        raise UndefinedResult("operands of a scatter")
    text = statement.attributes
    starts = _read_starts(
        text,
        operands[count],
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    )
    window = read_integers(text, "update_window_dims") or ()
    left_out = {*(read_integers(text, "inserted_window_dims") or ()), *(at for at, _ in starts.batches)}
    kept = [at for at in range(len(shape)) if at not in left_out]
    results = [list(list_elements(one)) for one in given]
    listed = [list_elements(one) for one in updates]
    check_steps(len(listed[0]) * 4)
    rounded = any(one.is_rounded for one in operands)
    places: list[int] = []
    for number, index in enumerate(tensors.iterate_indices(updates[0].shape)):
        batch = [n for at, n in enumerate(index) if at not in window]
        inner = dict(zip(kept, (index[d] for d in window), strict=True))
        first = zip(starts.find_start(batch, len(shape)), starts.find_batch(batch, len(shape)), strict=True)
        at = [a + b + inner.get(dimension, 0) for dimension, (a, b) in enumerate(first)]
        if all(0 <= n < extent for n, extent in zip(at, shape, strict=True)):
            place = find_place(shape, at)
            places.append(place)
            old = [Values(one.element, (numbers[place],)) for one, numbers in zip(given, results, strict=True)]
            new = [Values(one.element, (numbers[number],)) for one, numbers in zip(updates, listed, strict=True)]
            for numbers, one in zip(results, combine([*old, *new]), strict=True):
                numbers[place], rounded = one.numbers[0], rounded or one.is_rounded
    if re.search(r"unique_indices\s*=\s*true", text):
        check_places(statement.operation, statement.results[0], statement.operands[count], places)
    return [
        replace(one, numbers=tuple(numbers), is_rounded=rounded) for one, numbers in zip(given, results, strict=True)
    ]


def select_index(statement: Statement, operands: Sequence[Values], to: TensorType) -> Values:
    """Run ``torch_index_select``: select the slices of a tensor by the indices."""
    source, indices = operands
    at = require_integers(statement.attributes, "dim", 1)[0]
    batches = require_integers(statement.attributes, "batch_dims", 1)[0]
    places, rank = list_elements(indices), len(indices.shape)

    def read(index: Index) -> Index:
        inner = (*index[:batches], *index[at : at + rank - batches])
        return (*index[:at], int(places[find_place(indices.shape, inner)]), *index[at + rank - batches :])

    return tensors.move_elements(source, to.shape, read)
