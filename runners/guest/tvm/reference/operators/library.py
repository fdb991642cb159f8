"""Define the functions of TVM's operator library (TOPI) in NumPy, by their documentation.

Most functions have the meaning of a Relax operator, and use its equivalent. Parameters for which a function has
another meaning are left out: see `basic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, Value, apply_float, demand, is_float, reduce_with
from runners.guest.tvm.reference.operators.table import OPERATORS


@dataclass(frozen=True)
class Equivalent:
    """How to compute a function."""

    compute: Callable[[Call], Value]
    operands: tuple[str, ...] = ()
    """The parameters that are operands, in order. Empty: those that contain tensors."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Other parameters → their names as attributes."""
    expected: Mapping[str, Any] = field(default_factory=dict)
    """Parameters for which the equivalent supports only one value."""


def _take_relax(
    name: str, operands: tuple[str, ...] = (), *, expected: Mapping[str, Any] | None = None, **renamed: str
) -> Equivalent:
    return Equivalent(OPERATORS[f"relax.{name}"], operands, renamed, expected or {})


def _take(call: Call) -> Array:
    x, indices, axes = call[0], np.asarray(call[1]), call.axes
    demand(int(call.get("batch_dims", 0)) == 0, "batches")
    mode = str(call.get("mode", "fast"))
    extent = x.size if axes is None else x.shape[axes[0]]
    inside = bool(np.all((indices >= 0) & (indices < extent)))
    demand(inside or mode in ("clip", "wrap"), "an index outside its axis")
    return np.take(x, indices, axis=None if axes is None else axes[0], mode="raise" if inside else mode)


def _with_tuples_last(name: str) -> Callable[[Call], Array]:
    """Compute a Relax operator, whose index tuples are along the last axis. The library's are along the first."""

    def compute(call: Call) -> Array:
        operands = (call[0], np.moveaxis(call[1], 0, -1), *call.operands[2:])
        return OPERATORS[f"relax.{name}"](Call(operands, call.attributes, call.dtype, call.shape))

    return compute


def _multiply(call: Call) -> Array:
    left, right = call[0].astype(call.dtype), call[1].astype(call.dtype)
    names = ("transp_a", "transpose_a"), ("transp_b", "transpose_b")
    left, right = (
        np.swapaxes(one, -1, -2) if any(call.get(name) for name in given) else one
        for one, given in zip((left, right), names, strict=True)
    )
    done = np.matmul(left, right)
    return done + call[2] if len(call.operands) > 2 and call[2] is not None else done


def _multiply_transposed(call: Call) -> Array:
    """Compute a dense layer: the weights have the shape (outputs, inputs)."""
    done = np.matmul(call[0].astype(call.dtype), call[1].astype(call.dtype).T)
    return done + call[2] if len(call.operands) > 2 and call[2] is not None else done


def _contract(call: Call) -> Array:
    axes = call.get("axes")
    demand(axes is not None, "the default axes")
    return np.tensordot(call[0], call[1], axes=axes if isinstance(axes, int) else tuple(map(tuple, axes)))


def _slice(call: Call) -> Array:
    x, begins, ends = call[0], call.get("begin"), call.get("end")
    demand(str(call.get("slice_mode", "end")) == "end", "a slice by its size")
    axes = call.get("axes") or list(range(len(begins)))
    strides = call.get("strides") or [1]
    strides = strides * len(axes) if len(strides) == 1 else strides
    operands = (x, axes, begins, ends, strides)
    return OPERATORS["relax.strided_slice"](Call(operands, {}, call.dtype, call.shape))


def _keep_triangle(call: Call) -> Array:
    return (np.triu if call.get("upper") else np.tril)(call[0], int(call.get("k", 0)))


def _search(call: Call) -> Array:
    ordered, values = call[0], call[1]
    demand(not any(is_float(one) and np.any(np.isnan(one)) for one in (ordered, values)), "NaN")
    demand(np.all(np.diff(ordered, axis=-1) >= 0), "a sequence that decreases")
    side = "right" if call.get("right") else "left"
    if ordered.ndim == 1:
        return np.searchsorted(ordered, values, side=side).astype(call.dtype)
    demand(ordered.shape[:-1] == values.shape[:-1], "other outer axes")
    rows = zip(ordered.reshape(-1, ordered.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return np.stack([np.searchsorted(row, one, side=side) for row, one in rows]).reshape(values.shape)


def _mask_sequences(call: Call) -> Array:
    data, lengths, axis = call[0], call[1], int(call.get("axis", 0))
    demand(axis in (0, 1) and lengths.shape == (data.shape[1 - axis],), "another number of lengths")
    places = np.arange(data.shape[axis])
    inside = places[:, None] < lengths[None, :] if axis == 0 else places[None, :] < lengths[:, None]
    inside = inside.reshape(*inside.shape, *[1] * (data.ndim - 2))
    return np.where(inside, data, np.asarray(call.get("mask_value", 0), data.dtype))


def _slide_window(call: Call) -> Array:
    data, axis = call[0], int(call.get("axis")) % call[0].ndim
    shape, strides = (tuple(map(int, call.get(name))) for name in ("window_shape", "strides"))
    demand(len(shape) == len(strides) == data.ndim - axis, "a window of another rank")
    windows = np.lib.stride_tricks.sliding_window_view(data, shape, axis=tuple(range(axis, data.ndim)))
    return windows[(slice(None),) * axis + tuple(slice(None, None, step) for step in strides)]


def _unravel(call: Call) -> Array:
    demand(np.all(call[0] >= 0) and np.all(call[0] < np.prod(call[1])), "an index outside its shape")
    return np.stack(np.unravel_index(call[0], tuple(int(size) for size in call[1]))).astype(call.dtype)


def _sort(call: Call) -> Array:
    return OPERATORS["relax.sort"](_turn(call, "descending"))


def _sort_indices(call: Call) -> Array:
    demand(call.get("valid_count") is None, "some elements alone")
    return OPERATORS["relax.argsort"](_turn(call, "descending"))


def _take_top(call: Call) -> Value:
    return OPERATORS["relax.topk"](_turn(call, "largest"))


def _turn(call: Call, name: str) -> Call:
    """Return a call whose attribute ``name`` is the opposite of ``is_ascend``."""
    attributes = {key: call.get(key) for key in ("axis", "k", "ret_type", "dtype")}
    attributes[name] = not call.get("is_ascend", name == "descending")
    return Call(call.operands, attributes, call.dtype, call.shape)


def _pad(call: Call) -> Array:
    x, before = call[0], [int(one) for one in call.get("pad_before")]
    after = [int(one) for one in call.get("pad_after") or before]
    demand(min([*before, *after], default=0) >= 0, "a negative width")
    value = np.asarray(call.get("pad_value", 0.0)).astype(x.dtype)
    return np.pad(x, list(zip(before, after, strict=True)), constant_values=value)


def _mirror(call: Call) -> Array:
    before = [int(one) for one in call.get("pad_before")]
    after = [int(one) for one in call.get("pad_after") or before]
    modes = {"SYMMETRIC": "symmetric", "REFLECT": "reflect"}
    mode = modes.get(str(call.get("mode", "SYMMETRIC")))
    demand(mode is not None, "a way to pad")
    return np.pad(call[0], list(zip(before, after, strict=True)), mode=mode)


def _pool(call: Call) -> Array:
    kind, layout = str(call.get("pool_type")), str(call.get("layout"))
    rank = len(layout) - 2
    demand(kind in ("avg", "max") and rank in (1, 2, 3), "a pool of another kind")
    names = {"pool_size": "kernel", "strides": "stride"}
    attributes = {name: call.get(names.get(name, name)) for name in (
        "pool_size", "strides", "dilation", "padding", "ceil_mode", "layout", "count_include_pad"
    )}  # fmt: skip
    return OPERATORS[f"relax.nn.{kind}_pool{rank}d"](Call(call.operands, attributes, call.dtype, call.shape))


def _pool_adaptively(call: Call) -> Array:
    layout, kind = str(call.get("layout")), str(call.get("pool_type"))
    demand(kind == "avg", "a pool of another kind")
    attributes = {"output_size": call.get("output_size"), "layout": layout}
    name = f"relax.nn.adaptive_avg_pool{len(layout) - 2}d"
    return OPERATORS[name](Call(call.operands, attributes, call.dtype, call.shape))


def _convolve(layout: str, kernel: str) -> Callable[[Call], Array]:
    def convolve(call: Call) -> Array:
        padding = call.get("padding")
        demand(not isinstance(padding, str), "padding by name")
        widths = padding if isinstance(padding, list | tuple) else [padding]
        attributes = {"data_layout": layout, "kernel_layout": kernel, "out_layout": layout, "padding": widths}
        for name, given in (("strides", "stride"), ("dilation", "dilation")):
            value = call.get(given)
            attributes[name] = value if isinstance(value, list | tuple) else [value]
        return OPERATORS["relax.nn.conv2d"](Call(call.operands[:2], attributes, call.dtype, call.shape))

    return convolve


_SAME = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp"),
    *("floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round", "rsqrt", "sigmoid", "sign"),
    *("sin", "sinh", "sqrt", "tan", "tanh", "trunc", "sum", "prod", "max", "min", "where", "expand_dims", "squeeze"),
    *("stack", "split", "flip", "repeat", "scatter_elements", "reverse_sequence", "cumsum", "cumprod"),
    *("index_tensor", "meshgrid", "index_put", "reshape"),
)
_BINARY = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod", "power", "maximum", "minimum"),
    *("left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "less"),
    *("less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "atan2", "log_add_exp"),
)
_FIRST = {"select_last_index": False}

LIBRARY: Mapping[str, Equivalent] = {
    **{name: _take_relax(name) for name in _SAME},
    **{name: _take_relax(name, ("lhs", "rhs")) for name in _BINARY},
    "identity": Equivalent(lambda call: call[0]),
    "log2": Equivalent(apply_float(np.log2)),
    "log10": Equivalent(apply_float(np.log10)),
    "all": Equivalent(reduce_with(np.all)),
    "any": Equivalent(reduce_with(np.any)),
    "argmax": _take_relax("argmax", expected=_FIRST),
    "argmin": _take_relax("argmin", expected=_FIRST),
    "clip": _take_relax("clip", ("x", "a_min", "a_max")),
    "cast": _take_relax("astype"),
    "transpose": _take_relax("permute_dims"),
    "concatenate": _take_relax("concat"),
    "broadcast_to": Equivalent(lambda call: np.broadcast_to(call[0], call.shape)),
    "full": Equivalent(lambda call: np.full(call.shape, call[0], dtype=call.dtype), ("fill_value",)),
    "full_like": Equivalent(lambda call: np.full(call.shape, call[1], dtype=call.dtype), ("x", "fill_value")),
    "tile": _take_relax("tile", reps="repeats"),
    "take": Equivalent(_take),
    "gather": _take_relax("gather_elements", ("data", "indices")),
    "adv_index": _take_relax("index_tensor"),
    "gather_nd": Equivalent(_with_tuples_last("gather_nd")),
    "scatter_nd": Equivalent(_with_tuples_last("scatter_nd"), (), {"mode": "reduction"}),
    "one_hot": _take_relax("one_hot", ("indices", "on_value", "off_value")),
    "trilu": Equivalent(_keep_triangle),
    "strided_slice": Equivalent(_slice),
    "matmul": Equivalent(_multiply),
    "tensordot": Equivalent(_contract),
    "searchsorted": Equivalent(_search),
    "sequence_mask": Equivalent(_mask_sequences),
    "sliding_window": Equivalent(_slide_window),
    "unravel_index": Equivalent(_unravel, ("indices", "shape")),
    "sort": Equivalent(_sort),
    "argsort": Equivalent(_sort_indices),
    "topk": Equivalent(_take_top),
    "nn.relu": _take_relax("nn.relu"),
    "nn.softmax": _take_relax("nn.softmax"),
    "nn.log_softmax": _take_relax("nn.log_softmax"),
    "nn.leaky_relu": _take_relax("nn.leakyrelu"),
    "nn.prelu": _take_relax("nn.prelu"),
    "nn.softplus": _take_relax("nn.softplus"),
    "nn.layer_norm": _take_relax("nn.layer_norm", axis="axes"),
    "nn.rms_norm": _take_relax("nn.rms_norm", axis="axes"),
    "nn.instance_norm": _take_relax("nn.instance_norm", axis="axes"),
    "nn.group_norm": _take_relax("nn.group_norm"),
    "nn.dense": Equivalent(_multiply_transposed),
    "nn.batch_matmul": Equivalent(_multiply),
    "nn.matmul": Equivalent(_multiply),
    "nn.flatten": _take_relax("nn.batch_flatten"),
    "nn.pad": Equivalent(_pad),
    "nn.mirror_pad": Equivalent(_mirror),
    "nn.pool1d": Equivalent(_pool),
    "nn.pool2d": Equivalent(_pool),
    "nn.pool3d": Equivalent(_pool),
    "nn.adaptive_pool": Equivalent(_pool_adaptively),
    "nn.adaptive_pool1d": Equivalent(_pool_adaptively),
    "nn.adaptive_pool3d": Equivalent(_pool_adaptively),
    "nn.conv2d_nchw": Equivalent(_convolve("NCHW", "OIHW")),
    "nn.conv2d_nhwc": Equivalent(_convolve("NHWC", "HWIO")),
}
"""The functions below ``tvm.topi`` by name. A function without an equivalent is left out."""
