"""Define the operators of neural networks in NumPy: normalizations, convolutions, pools. See `basic`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, Value, demand, is_float, read_axes, spread_along

SPATIAL = "DHW"
"""The axes of an image. A layout contains the last one, two or three."""
MAX_WINDOWS = 50_000_000
"""Maximum number of elements in all windows of a convolution or pool."""


def normalize_exponents(x: Array, axis: int) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def compute_softmax(call: Call) -> Array:
    return normalize_exponents(call[0], int(call.get("axis", -1)))


def compute_log_softmax(call: Call) -> Array:
    x, axis = call[0], int(call.get("axis", -1))
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


def _scale_and_shift(call: Call, x: Array, axes: Sequence[int]) -> Array:
    if call.get("scale", True):
        x = x * spread_along(call[1], axes, x.ndim)
    return x + spread_along(call[2], axes, x.ndim) if call.get("center", True) else x


def normalize_layer(call: Call) -> Array:
    x = call[0]
    axes = tuple(axis % x.ndim for axis in read_axes(call.get("axes")) or ())
    return _scale_and_shift(call, _standardize(x, axes, float(call.get("epsilon"))), axes)


def normalize_instance(call: Call) -> Array:
    x, channel = call[0], int(call.get("channel_axis")) % call[0].ndim
    axes = tuple(axis % x.ndim for axis in read_axes(call.get("axes")) or ())
    return _scale_and_shift(call, _standardize(x, axes, float(call.get("epsilon"))), (channel,))


def normalize_groups(call: Call) -> Array:
    x, channel, groups = call[0], int(call.get("channel_axis")) % call[0].ndim, int(call.get("num_groups"))
    axes = tuple(axis % x.ndim for axis in read_axes(call.get("axes")) or ())
    demand(x.shape[channel] % groups == 0 and channel not in axes, "groups of unequal size")
    shape = (*x.shape[:channel], groups, x.shape[channel] // groups, *x.shape[channel + 1 :])
    inner = (channel + 1, *(axis + (axis > channel) for axis in axes))
    done = _standardize(x.reshape(shape), inner, float(call.get("epsilon"))).reshape(x.shape)
    return _scale_and_shift(call, done, (channel,))


def normalize_square(call: Call) -> Array:
    x = call[0]
    axes = tuple(axis % x.ndim for axis in read_axes(call.get("axes")) or ())
    scaled = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + float(call.get("epsilon")))
    return scaled * spread_along(call[1], axes, x.ndim)


def convolve(call: Call) -> Array:
    """Compute a convolution of any rank and layout."""
    layout, kernel, result = (str(call.get(name)) for name in ("data_layout", "kernel_layout", "out_layout"))
    image = _get_spatial(layout)
    x, weight = _order(call[0], layout, f"NC{image}"), _order(call[1], kernel, f"OI{image}")
    groups, rank = int(call.get("groups", 1)), len(image)
    x = _pad_image(x, call.get("padding"), 0)
    strides, dilation = _read_each(call, "strides", rank), _read_each(call, "dilation", rank)
    windows = _cut_windows(x, weight.shape[2:], strides, dilation)
    inner, outer = weight.shape[1], weight.shape[0] // groups
    dtype = call.dtype
    parts = []
    for group in range(groups):
        taken = windows[:, group * inner : (group + 1) * inner].astype(dtype)
        filters = weight[group * outer : (group + 1) * outer].astype(dtype)
        # Axes of the windows: batch, channel, output places, places in the window.
        axes = [1, *range(2 + rank, 2 + 2 * rank)]
        parts.append(np.moveaxis(np.tensordot(taken, filters, axes=(axes, list(range(1, 2 + rank)))), -1, 1))
    return _order(np.concatenate(parts, axis=1), f"NC{image}", result if result != "None" and result else layout)


def convolve_transposed(call: Call) -> Array:
    """Compute a transposed convolution of any rank and layout: each input element adds its scaled filter."""
    layout, kernel, result = (str(call.get(name)) for name in ("data_layout", "kernel_layout", "out_layout"))
    image = _get_spatial(layout)
    x, weight = _order(call[0], layout, f"NC{image}"), _order(call[1], kernel, f"IO{image}")
    groups, rank = int(call.get("groups", 1)), len(image)
    strides, dilation = _read_each(call, "strides", rank), _read_each(call, "dilation", rank)
    more = tuple(int(one) for one in call.get("output_padding") or (0,))
    more = more * rank if len(more) == 1 else more
    widths = _read_widths(call.get("padding"), rank)
    size = weight.shape[2:]
    reach = [(s - 1) * t + (k - 1) * d + 1 for s, t, k, d in zip(x.shape[2:], strides, size, dilation, strict=True)]
    demand(all(0 <= extra < max(t, d) for extra, t, d in zip(more, strides, dilation, strict=True)), "more outputs")
    inner, outer = x.shape[1] // groups, weight.shape[1]
    whole = np.zeros(
        (x.shape[0], groups * outer, *(n + extra for n, extra in zip(reach, more, strict=True))), call.dtype
    )
    for place in product(*map(range, size)):
        begin = [at * step for at, step in zip(place, dilation, strict=True)]
        window = tuple(
            slice(low, low + (extent - 1) * step + 1, step)
            for low, extent, step in zip(begin, x.shape[2:], strides, strict=True)
        )
        for group in range(groups):
            taken = x[:, group * inner : (group + 1) * inner].astype(call.dtype)
            filters = weight[(slice(group * inner, (group + 1) * inner), slice(None), *place)].astype(call.dtype)
            added = np.moveaxis(np.tensordot(taken, filters, axes=([1], [0])), -1, 1)
            whole[(slice(None), slice(group * outer, (group + 1) * outer), *window)] += added
    kept = tuple(
        slice(low, extent - high)
        for low, high, extent in zip(widths[:rank], widths[rank:], whole.shape[2:], strict=True)
    )
    done = whole[(slice(None), slice(None), *kept)]
    return _order(done, f"NC{image}", result if result != "None" and result else layout)


def shuffle_pixels(call: Call) -> Array:
    """Move groups of channels into the pixels of a larger image."""
    x, factor = call[0], int(call.get("upscale_factor"))
    *rows, channels, height, width = x.shape
    parts = x.reshape(*rows, channels // factor**2, factor, factor, height, width)
    at = len(rows)
    order = (*range(at), at, at + 3, at + 1, at + 4, at + 2)
    return parts.transpose(order).reshape(*rows, channels // factor**2, height * factor, width * factor)


def pool_with(function: Callable[..., Array], padded: float) -> Callable[[Call], Array]:
    def pool(call: Call) -> Array:
        demand(not call.get("ceil_mode", False), "a pool that is rounded up")
        layout = str(call.get("layout"))
        image = _get_spatial(layout)
        demand(str(call.get("out_layout") or layout) == layout, "another layout of the result")
        x = _order(call[0], layout, f"NC{image}")
        rank = len(image)
        size = _read_each(call, "pool_size", rank)
        strides, dilation = _read_each(call, "strides", rank), _read_each(call, "dilation", rank)
        demand(is_float(x) or padded == 0 or not any(call.get("padding") or ()), "padding of integers")

        def cut(padded_image: Array) -> Array:
            return _cut_windows(padded_image, size, strides, dilation)

        axes = tuple(range(2 + rank, 2 + 2 * rank))
        padding = call.get("padding")
        done = function(cut(_pad_image(x, padding, padded)), axis=axes)
        if padded == 0:  # an average
            ones = np.ones_like(x) if not call.get("count_include_pad", False) else np.ones(())
            counted = (
                cut(_pad_image(ones, padding, 0)).sum(axis=axes) if ones.shape else float(np.prod(np.array(size)))
            )
            done = done / counted
        return _order(done, f"NC{image}", layout)

    return pool


def average_adaptively(call: Call) -> Array:
    layout = str(call.get("layout"))
    image = _get_spatial(layout)
    demand(is_float(call[0]) and str(call.get("out_layout") or layout) == layout, "another layout or type")
    x = _order(call[0], layout, f"NC{image}")
    sizes = [int(size) for size in call.get("output_size") or x.shape[2:]]
    bounds = [
        [(at * extent // size, -(-(at + 1) * extent // size)) for at in range(size)]
        for extent, size in zip(x.shape[2:], sizes, strict=True)
    ]
    done = np.empty((*x.shape[:2], *sizes), x.dtype)
    for place in product(*(range(size) for size in sizes)):
        window = tuple(slice(*bounds[axis][at]) for axis, at in enumerate(place))
        done[(..., *place)] = x[(..., *window)].mean(axis=tuple(range(2, x.ndim)))
    return _order(done, f"NC{image}", layout)


def attend(call: Call) -> Array:
    demand(call.get("window_size") is None, "a window")
    query, key, value = (np.moveaxis(one, 2, 1) for one in call.operands[:3])
    demand(query.shape[1] == key.shape[1] == value.shape[1], "heads that are shared")
    scale = call.get("scale")
    factor = query.shape[-1] ** -0.5 if scale is None else float(scale)
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) * factor
    if len(call.operands) > 3:
        scores = scores + call[3]
    scores = _hide_later(scores, call.get("causal_mask"))
    return np.moveaxis(np.matmul(normalize_exponents(scores, -1), value), 1, 2)


def _hide_later(scores: Array, mask: Any) -> Array:
    """Return the scores. Those of keys after a query's own place become minus infinity.

    ``TopLeft`` aligns the first query with the first key, ``BottomRight`` the last with the last.
    """
    if mask is None:
        return scores
    queries, keys = scores.shape[-2:]
    demand(str(mask) in ("TopLeft", "BottomRight") and queries <= keys, f"the mask {mask}")
    offset = keys - queries if str(mask) == "BottomRight" else 0
    return np.where(np.tri(queries, keys, offset, dtype=bool), scores, -np.inf)


def normalize_batch(call: Call) -> Value:
    x, gamma, beta, mean, variance = call.operands[:5]
    axis = (int(call.get("axis", 1)) % x.ndim,)
    kept = mean, variance
    if call.get("training"):  # the statistics of the batch; the returned ones move towards these
        others, share = tuple(at for at in range(x.ndim) if at != axis[0]), float(call.get("momentum"))
        mean, variance = x.mean(axis=others), x.var(axis=others)
        kept = tuple((1 - share) * old + share * new for old, new in zip(kept, (mean, variance), strict=True))
    done = (x - spread_along(mean, axis, x.ndim)) / np.sqrt(
        spread_along(variance, axis, x.ndim) + float(call.get("epsilon"))
    )
    if call.get("scale", True):
        done = done * spread_along(gamma, axis, x.ndim)
    if call.get("center", True):
        done = done + spread_along(beta, axis, x.ndim)
    return done, *kept


def _get_spatial(layout: str) -> str:
    image = "".join(axis for axis in layout if axis in SPATIAL)
    demand(layout.isalpha() and layout.isupper() and len(layout) == len(image) + 2, f"the layout {layout}")
    return "".join(sorted(image, key=SPATIAL.index))


def _order(x: Array, given: str, wanted: str) -> Array:
    demand(sorted(given) == sorted(wanted), f"the layout {given}")
    return np.transpose(x, [given.index(axis) for axis in wanted])


def _read_each(call: Call, name: str, rank: int) -> tuple[int, ...]:
    values = tuple(int(value) for value in call.get(name) or (1,))
    return values * rank if len(values) == 1 else values


def _read_widths(padding: Any, rank: int) -> list[int]:
    """Return the padding before all axes of the image, then the padding after them."""
    widths = [int(width) for width in padding or (0,)]
    widths = widths * 2 * rank if len(widths) == 1 else widths * 2 if len(widths) == rank else widths
    demand(len(widths) == 2 * rank and min(widths) >= 0, "a way to pad")
    return widths


def _pad_image(x: Array, padding: Any, value: float) -> Array:
    rank = x.ndim - 2
    widths = _read_widths(padding, rank)
    if not any(widths):
        return x
    return np.pad(x, [(0, 0), (0, 0), *zip(widths[:rank], widths[rank:], strict=True)], constant_values=value)


def _cut_windows(x: Array, size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """Return a view of all windows: batch, channel, places of the windows, places inside."""
    reach = [(extent - 1) * step + 1 for extent, step in zip(size, dilation, strict=True)]
    demand(all(extent >= need for extent, need in zip(x.shape[2:], reach, strict=True)), "a window beyond the image")
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    places = tuple(slice(None, None, step) for step in strides)
    windows = windows[(slice(None), slice(None), *places, *(slice(None, None, step) for step in dilation))]
    demand(windows.size <= MAX_WINDOWS, "an image of this size")
    return windows
