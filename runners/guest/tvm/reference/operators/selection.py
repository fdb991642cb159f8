"""Define the operators of Relax that choose, place or order elements by their own rules, in NumPy."""

from __future__ import annotations

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, Value, demand, is_float


def find_buckets(call: Call) -> Array:
    """Return the bucket number of each value, as PyTorch's ``bucketize`` does."""
    values, bounds = call[0], call[1]
    demand(values.dtype == bounds.dtype and np.all(np.diff(bounds) > 0), "bounds that do not increase")
    demand(not np.any(np.isnan(values)) if is_float(values) else True, "NaN")
    return np.searchsorted(bounds, values, side="right" if call.get("right") else "left").astype(call.dtype)


def take_top(call: Call) -> Value:
    """Return the first elements in order, and their places. Libraries order equal elements differently."""
    x, axis, count = call[0], int(call.get("axis", -1)), int(call.get("k", 1))
    ordered = np.sort(x, axis=axis)
    demand(np.all(np.diff(ordered, axis=axis) > 0), "equal elements, or NaN")
    order = np.argsort(x, axis=axis)
    order = np.flip(order, axis) if call.get("largest", True) else order
    places = np.take(order, range(count if count > 0 else x.shape[axis]), axis=axis)
    values = np.take_along_axis(x, places, axis)
    places = places.astype(str(call.get("dtype", "int32")))
    return {"both": (values, places), "values": values, "indices": places}[str(call.get("ret_type"))]


def make_grids(call: Call) -> Value:
    return tuple(np.meshgrid(*call[0], indexing=str(call.get("indexing", "ij"))))


def make_eye(call: Call) -> Array:
    rows, columns, diagonal = (int(one) for one in call.operands[:3])
    return np.eye(rows, columns, diagonal, dtype=call.dtype)


def make_eye_like(call: Call) -> Array:
    rows, columns = call[0].shape
    return np.eye(rows, columns, int(call[1]), dtype=call.dtype)


def take_indices(call: Call) -> Array:
    """Select elements as ``data[indices]`` of NumPy does."""
    data, indices = call[0], call[1]
    _demand_inside(data, indices)
    return data[tuple(indices)]


def put_values(call: Call) -> Array:
    """Return the data with other values at some places. Two values for one place need a sum."""
    data, indices, values = call[0].copy(), call[1] if isinstance(call[1], tuple) else (call[1],), call[2]
    _demand_inside(data, indices)
    if call.get("accumulate"):
        np.add.at(data, tuple(indices), values)
        return data
    places = np.broadcast_arrays(*indices)
    flat = np.ravel_multi_index([one.ravel() % size for one, size in zip(places, data.shape, strict=False)],
                                data.shape[: len(places)])  # fmt: skip
    demand(len(set(flat.tolist())) == flat.size, "two values for one place")
    data[tuple(indices)] = values
    return data


def _demand_inside(data: Array, indices: Value) -> None:
    for index, extent in zip(indices, data.shape, strict=False):
        demand(np.all(index >= 0) and np.all(index < extent), "an index outside its axis")


def scatter_slice(call: Call) -> Array:
    data, axis = call[0].copy(), int(call.get("axis", 0))
    start, end, step = (int(one) for one in call.operands[2:5])
    extent = data.shape[axis]
    demand(0 <= start <= end <= extent and step > 0, "a slice from the end")
    data[(slice(None),) * (axis % data.ndim) + (slice(start, end, step),)] = call[1]
    return data


def reverse_sequences(call: Call) -> Array:
    data, lengths = call[0].copy(), call[1]
    rows, along = int(call.get("batch_axis", 0)), int(call.get("seq_axis", 1))
    demand(data.shape[rows] == len(lengths), "another number of lengths")
    demand(np.all(lengths >= 0) and np.all(lengths <= data.shape[along]), "a length outside its axis")
    moved = np.moveaxis(data, (rows, along), (0, 1))
    for row, length in enumerate(lengths):
        moved[row, : int(length)] = np.flip(moved[row, : int(length)], axis=0).copy()
    return data


def collapse_sum(call: Call) -> Array:
    """Sum over the axes along which a tensor of the requested shape was broadcast."""
    data, shape = call[0], tuple(call[1]) if isinstance(call[1], tuple) else call[1].shape
    added = data.ndim - len(shape)
    axes = (*range(added), *(added + at for at, size in enumerate(shape) if size == 1 != data.shape[added + at]))
    return data.sum(axis=axes, keepdims=True).reshape(shape).astype(data.dtype)


def make_window(call: Call) -> Array:
    """Compute ``alpha - beta * cos(2 π n / period)``."""
    size, periodic, alpha, beta = int(call[0]), bool(call[1]), float(call[2]), float(call[3])
    demand(size > 1, "a window of one element")
    period = size if periodic else size - 1
    return (alpha - beta * np.cos(2 * np.pi * np.arange(size) / period)).astype(call.dtype)
