"""Define the losses of Relax, and its median, in NumPy."""

from __future__ import annotations

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, Value, demand, is_float


def compute_cross_entropy(call: Call) -> Array:
    """Return ``-sum(x * y) / N``. The first of several dimensions is the batch."""
    predictions, labels = call[0], call[1]
    demand(predictions.shape == labels.shape, "labels of another shape")
    return -np.sum(predictions * labels) / (predictions.shape[0] if predictions.ndim > 1 else 1)


def compute_likelihood(call: Call) -> Array:
    """Return the negative log likelihood of predictions ``(N, C, …)`` for targets ``(N, …)``."""
    predictions, targets = call[0], call[1]
    if predictions.ndim == 1:
        predictions, targets = predictions[None], targets[None]
    classes, ignored = predictions.shape[1], int(call.get("ignore_index", -100))
    weights = call[2] if len(call.operands) > 2 else np.ones(classes, predictions.dtype)
    kept = targets != ignored
    demand(np.all((targets >= 0) & (targets < classes) | ~kept), "a target outside the classes")
    places = np.where(kept, targets, 0).astype("int64")
    likelihood = np.take_along_axis(predictions, places[:, None], axis=1)[:, 0]
    weighed = np.where(kept, weights[places], 0)
    losses = -likelihood * weighed
    reduction = str(call.get("reduction"))
    demand(reduction in ("mean", "sum", "none"), f"the reduction {reduction}")
    if reduction == "none":
        return losses.reshape(call.shape) if call.shape is not None else losses
    demand(reduction == "sum" or np.any(weighed), "a mean without weights")
    return np.sum(losses) / (np.sum(weighed) if reduction == "mean" else 1)


def find_median(call: Call) -> Value:
    """Return the middle of an odd number of elements. For an even number, libraries choose different ones."""
    x, axes = call[0], call.axes
    demand(axes is None or len(axes) == 1, "several axes")
    count = x.size if axes is None else x.shape[axes[0]]
    demand(count % 2 == 1 and not (is_float(x) and np.any(np.isnan(x))), "an even number of elements, or NaN")
    keeps = bool(call.get("keepdims"))
    if axes is None:
        middle = np.median(x).astype(x.dtype)
        return middle.reshape((1,) * x.ndim) if keeps else middle
    ordered = np.argsort(x, axis=axes[0], kind="stable")
    sorted_x = np.take_along_axis(x, ordered, axes[0])
    demand(np.all(np.diff(sorted_x, axis=axes[0]) > 0), "equal elements")
    places = np.take(ordered, [count // 2], axis=axes[0])
    values = np.take_along_axis(x, places, axes[0])
    found = (values, places.astype("int64"))
    return found if keeps else tuple(np.squeeze(one, axis=axes[0]) for one in found)


def slice_dynamically(call: Call) -> Array:
    """Return a slice whose ends are values. Ends outside an axis have no value."""
    x, *bounds = call.operands
    begin, end, steps = (tuple(map(int, one)) for one in bounds)
    demand(len(begin) == len(end) == len(steps) == x.ndim and min(steps, default=1) > 0, "steps backwards")
    inside = (0 <= a <= b <= n for a, b, n in zip(begin, end, x.shape, strict=True))
    demand(all(inside), "a slice beyond its axis")
    return x[tuple(slice(a, b, s) for a, b, s in zip(begin, end, steps, strict=True))]
