"""Define the operators of Relax in NumPy.

An operator is included only if NumPy has the same definition. The evaluation ends with `CannotEvaluate` if
definitions of array libraries differ (ties of `round`, order of equal keys), or if an operation is undefined (an
index outside its axis, a division by zero, a shift beyond the width). No value is better than a doubtful one.

A function gets a `Call`: operands as NumPy values, attributes by name. Floats have the type in which the program is
evaluated (float64, or their own).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

Array = Any
Value = Any
"""An array, a number, or a tuple of values; a shape is a tuple of integers."""


class CannotEvaluate(Exception):
    """The program uses an operation that has no equivalent here, or an operation is undefined for its operands."""


@dataclass(frozen=True)
class Call:
    """One call of an operator."""

    operands: tuple[Value, ...]
    attributes: Mapping[str, Any]
    dtype: Any
    """Type of the result. None if the result is not a single tensor."""
    shape: tuple[int, ...] | None
    """Shape of the result. None if unknown."""

    def __getitem__(self, position: int) -> Value:
        return self.operands[position]

    def get(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name)
        return default if value is None else value

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The attribute ``axis`` as a tuple; None for all axes."""
        return read_axes(self.get("axis"))


def read_axes(axes: Any) -> tuple[int, ...] | None:
    if axes is None:
        return None
    return tuple(map(int, axes)) if isinstance(axes, list | tuple) else (int(axes),)


def demand(holds: Any, otherwise: str) -> None:
    """End the evaluation unless a condition holds.

    Raises:
        CannotEvaluate: it does not.
    """
    if not holds:
        raise CannotEvaluate(otherwise)


def is_float(array: Array) -> bool:
    return bool(np.asarray(array).dtype.kind == "f")


# ------------------------------------------------------------------------------------------ element by element


def apply_unary(function: Callable[[Array], Array]) -> Callable[[Call], Array]:
    return lambda call: function(call[0])


def apply_float(function: Callable[[Array], Array]) -> Callable[[Call], Array]:
    """Apply a function that is defined only for floats."""

    def apply(call: Call) -> Array:
        demand(is_float(call[0]), "a function of floats, applied to another type")
        return function(call[0])

    return apply


def apply_binary(function: Callable[[Array, Array], Array]) -> Callable[[Call], Array]:
    def apply(call: Call) -> Array:
        left, right = call[0], call[1]
        demand(left.dtype == right.dtype, "operands of different types")
        return function(left, right)

    return apply


def divide(left: Array, right: Array) -> Array:
    demand(is_float(left), "libraries round the quotient of integers in different ways")
    return left / right


def divide_floor(left: Array, right: Array) -> Array:
    demand(is_float(left) or np.all(right != 0), "a division by zero")
    return np.floor_divide(left, right)


def take_modulo(left: Array, right: Array) -> Array:
    demand(is_float(left) or np.all(right != 0), "a division by zero")
    return np.mod(left, right)


def take_remainder(left: Array, right: Array) -> Array:
    demand(np.all(left >= 0) and np.all(right > 0), "libraries give the remainder of negative numbers another sign")
    return np.mod(left, right)


def raise_power(base: Array, exponent: Array) -> Array:
    demand(is_float(base) or np.all(exponent >= 0), "a negative power of an integer")
    return np.power(base, exponent)


def shift_with(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def shift(left: Array, right: Array) -> Array:
        demand(np.all(right >= 0) and np.all(right < 8 * left.dtype.itemsize), "a shift beyond the width")
        return function(left, right)

    return shift


def round_nearest(x: Array) -> Array:
    demand(np.all(np.abs(x - np.trunc(x)) != 0.5), "libraries round ties in different ways")
    return np.rint(x)


def compute_erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype) if x.size else x


def compute_gelu(x: Array) -> Array:
    return x * (1 + compute_erf(x / math.sqrt(2))) / 2


def compute_gelu_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def compute_sigmoid(x: Array) -> Array:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def compute_selu(x: Array) -> Array:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def compute_leaky(call: Call) -> Array:
    return np.where(call[0] >= 0, call[0], call[0] * float(call.get("alpha", 0.01)))


def compute_prelu(call: Call) -> Array:
    x, axis = call[0], int(call.get("axis", 1)) % call[0].ndim
    return np.where(x >= 0, x, x * spread_along(call[1], (axis,), x.ndim))


def compute_softplus(call: Call) -> Array:
    beta, threshold = float(call.get("beta", 1)), float(call.get("threshold", 20))
    return np.where(call[0] * beta > threshold, call[0], np.logaddexp(0, call[0] * beta) / beta)


def clip(call: Call) -> Array:
    x, low, high = call[0], *(np.asarray(bound) for bound in call.operands[1:3])
    demand(is_float(x) or all(float(bound) == int(bound) for bound in (low, high)), "a bound between two integers")
    return np.clip(x, low, high).astype(x.dtype)


def convert_type(call: Call) -> Array:
    x, target = call[0], np.dtype(call.dtype)
    if target.kind in "iu" and is_float(x):
        info = np.iinfo(target)
        inside = np.isfinite(x) & (np.trunc(x) >= float(info.min)) & (np.trunc(x) <= float(info.max))
        demand(np.all(inside), "a number outside the range of the integer type")
    return x.astype(target)


# ------------------------------------------------------------------------------------------ reductions


def reduce_with(function: Callable[..., Array]) -> Callable[[Call], Array]:
    def reduce(call: Call) -> Array:
        keep = bool(call.get("keepdims", False))
        return function(call[0], axis=call.axes, keepdims=keep)

    return reduce


_COUNTS = "libraries count truth values, and add them in their own type, by choice"


def add_up(x: Array, **words: Any) -> Array:
    demand(x.dtype != np.bool_, _COUNTS)
    return np.sum(x, dtype=x.dtype, **words)


def multiply_up(x: Array, **words: Any) -> Array:
    demand(x.dtype != np.bool_, _COUNTS)
    return np.prod(x, dtype=x.dtype, **words)


def of_floats(function: Callable[..., Array]) -> Callable[..., Array]:
    def reduce(x: Array, **words: Any) -> Array:
        demand(is_float(x), "libraries round the mean of integers in different ways")
        return function(x, **words)

    return reduce


def find_extreme(function: Callable[..., Array]) -> Callable[[Call], Array]:
    def find(call: Call) -> Array:
        demand(not (is_float(call[0]) and np.any(np.isnan(call[0]))), "an order of values that are not numbers")
        axes = call.axes
        return function(call[0], axis=None if axes is None else axes[0], keepdims=bool(call.get("keepdims", False)))

    return find


def accumulate_with(function: Callable[..., Array], neutral: int) -> Callable[[Call], Array]:
    def accumulate(call: Call) -> Array:
        x, axes = call[0], call.axes
        x = x.astype(call.dtype)
        x, axis = (x.reshape(-1), 0) if axes is None else (x, axes[0])
        done = function(x, axis=axis, dtype=x.dtype)
        if not call.get("exclusive", False):
            return done
        first = np.full_like(np.take(done, [0], axis=axis), neutral)
        return np.concatenate([first, np.delete(done, -1, axis=axis)], axis=axis)

    return accumulate


# ------------------------------------------------------------------------------------------ shapes and places


def concatenate(call: Call) -> Array:
    axes = call.axes
    parts = [part.reshape(-1) for part in call[0]] if axes is None else call[0]
    return np.concatenate(parts, axis=0 if axes is None else axes[0])


def split(call: Call) -> Value:
    where, axis = call.get("indices_or_sections"), int(call.get("axis", 0))
    if isinstance(where, int):
        size = call[0].shape[axis]
        step = -(-size // where)
        where = [step * number for number in range(1, where)]
    return tuple(np.split(call[0], [int(at) for at in where], axis=axis))


def reshape(call: Call) -> Array:
    return call[0].reshape(call.shape if call.shape is not None else call[1])


def permute(call: Call) -> Array:
    axes = call.get("axes")
    return np.transpose(call[0], None if axes is None else [int(axis) for axis in axes])


def squeeze(call: Call) -> Array:
    return np.squeeze(call[0], axis=call.axes)


def expand(call: Call) -> Array:
    return np.expand_dims(call[0], call.axes or ())


def repeat(call: Call) -> Array:
    axes = call.axes
    return np.repeat(call[0], int(call.get("repeats")), axis=None if axes is None else axes[0])


def slice_strided(call: Call) -> Array:
    x, axes, begins, ends = call.operands[:4]
    strides = call[4] if len(call.operands) > 4 and call[4] is not None else [1] * len(axes)
    parts = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        size = x.shape[axis]
        demand(int(stride) > 0 and -size <= int(begin) <= size, "a slice that libraries treat in different ways")
        parts[int(axis)] = slice(int(begin), int(end), int(stride))
    return x[tuple(parts)]


def take(call: Call) -> Array:
    x, indices, axes = call[0], np.asarray(call[1]), call.axes
    demand(axes is not None or x.ndim == 1, "an axis is missing")
    axis = axes[0] if axes is not None else 0
    demand(np.all((indices >= 0) & (indices < x.shape[axis])), "an index outside its axis")
    return np.take(x, indices, axis=axis)


def gather(call: Call) -> Array:
    x, indices, axis = call[0], call[1], int(call.get("axis", 0))
    demand(np.all((indices >= 0) & (indices < x.shape[axis])), "an index outside its axis")
    demand(x.shape[:axis] == indices.shape[:axis], "shapes that do not match")
    return np.take_along_axis(x, indices, axis=axis)


def gather_tuples(call: Call) -> Array:
    x, indices = call[0], call[1]
    demand(int(call.get("batch_dims", 0)) == 0, "batches")
    places = tuple(np.moveaxis(indices, -1, 0))
    limits = zip(places, x.shape, strict=False)
    demand(all(np.all((at >= 0) & (at < size)) for at, size in limits), "an index outside its axis")
    return x[places]


def scatter(call: Call) -> Array:
    x, indices, updates = call[0].copy(), call[1], call[2]
    axis, how = int(call.get("axis", 0)), str(call.get("reduction", "update"))
    demand(np.all((indices >= 0) & (indices < x.shape[axis])), "an index outside its axis")
    places = list(np.indices(indices.shape))
    places[axis] = indices
    return _write(x, tuple(places), updates, how)


def scatter_tuples(call: Call) -> Array:
    x, indices, updates = call[0].copy(), call[1], call[2]
    places = tuple(np.moveaxis(indices, -1, 0))
    limits = zip(places, x.shape, strict=False)
    demand(all(np.all((at >= 0) & (at < size)) for at, size in limits), "an index outside its axis")
    return _write(x, places, updates, str(call.get("reduction", "update")))


def _write(x: Array, places: tuple[Array, ...], updates: Array, how: str) -> Array:
    if how == "update":
        flat = np.ravel_multi_index(tuple(at.ravel() for at in places), x.shape[: len(places)])
        demand(len(np.unique(flat)) == flat.size, "two updates of one element")
        x[places] = updates
        return x
    if how == "mean":  # the mean of the old element and all its updates, as in PyTorch's ``scatter_reduce``
        demand(is_float(x), "libraries round the mean of integers in different ways")
        counts = np.ones_like(x)
        np.add.at(x, places, updates)
        np.add.at(counts, places, 1)
        return x / counts
    functions = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    demand(how in functions, f"the reduction {how}")
    functions[how].at(x, places, updates)
    return x


def select(call: Call) -> Array:
    return np.where(call[0].astype(bool), call[1], call[2])


def make_one_hot(call: Call) -> Array:
    indices, on, off = call.operands[:3]
    depth, axis = int(call.get("depth")), int(call.get("axis", -1))
    hot = np.expand_dims(indices, axis) if axis >= 0 else np.expand_dims(indices, indices.ndim + 1 + axis)
    shape = [1] * hot.ndim
    shape[axis] = depth
    return np.where(np.arange(depth).reshape(shape) == hot, on, off).astype(call.dtype)


def pad(call: Call) -> Array:
    widths = [int(width) for width in call.get("pad_width")]
    pairs = list(zip(widths[::2], widths[1::2], strict=True))
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    mode = modes.get(str(call.get("pad_mode", "constant")))
    demand(mode is not None and min(widths, default=0) >= 0, "a way to pad")
    words = {"constant_values": call.get("pad_value", 0)} if mode == "constant" else {}
    return np.pad(call[0], pairs, mode=mode, **words)


def fill(call: Call) -> Array:
    return np.full(call[0], call[1], dtype=call.dtype)


def fill_like(value: int | None) -> Callable[[Call], Array]:
    def make(call: Call) -> Array:
        return np.full(call[0].shape, call[1] if value is None else value, dtype=call.dtype)

    return make


def count_up(call: Call) -> Array:
    return np.arange(*call.operands[:3], dtype=call.dtype)


def keep_triangle(function: Callable[..., Array]) -> Callable[[Call], Array]:
    return lambda call: function(call[0], int(call[1]) if len(call.operands) > 1 else int(call.get("k", 0)))


def sort(call: Call) -> Array:
    x, axis = call[0], int(call.get("axis", -1))
    demand(not (is_float(x) and np.any(np.isnan(x))), "an order of values that are not numbers")
    done = np.sort(x, axis=axis)
    return np.flip(done, axis) if call.get("descending", False) else done


def sort_indices(call: Call) -> Array:
    x, axis = call[0], int(call.get("axis", -1))
    done = np.sort(x, axis=axis)
    ties = np.any(np.diff(done, axis=axis) == 0) or (is_float(x) and np.any(np.isnan(x)))
    demand(not ties, "an order of equal values")
    indices = np.argsort(x, axis=axis)
    return (np.flip(indices, axis) if call.get("descending", False) else indices).astype(call.dtype)


# ------------------------------------------------------------------------------------------ linear algebra


def multiply_matrices(call: Call) -> Array:
    target = call.dtype
    left, right = call[0].astype(target), call[1].astype(target)
    return np.matmul(left, right)


def sum_products(call: Call) -> Array:
    return np.einsum(str(call.get("subscripts")), *call[0])


def spread_along(x: Array, axes: Sequence[int], rank: int) -> Array:
    """Return ``x`` with its axes at the places ``axes`` of a shape of ``rank`` axes, and 1 elsewhere."""
    shape = [1] * rank
    for axis, size in zip(axes, x.shape, strict=True):
        shape[axis] = size
    return x.reshape(shape)
