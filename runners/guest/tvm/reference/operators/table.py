"""Map the names of Relax operators to their equivalents in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators import basic, images, losses, networks, quantized, selection
from runners.guest.tvm.reference.operators.basic import (
    Call,
    Value,
    apply_binary,
    apply_float,
    apply_unary,
    fill_like,
    reduce_with,
)

_SAME = ("abs", "bitwise_not", "ceil", "floor", "isfinite", "isinf", "isnan", "logical_not", "negative", "sign",
    "square", "trunc")  # fmt: skip
_FLOAT = ("cos", "cosh", "exp", "log", "sin", "sinh", "sqrt", "tan", "tanh")
_INVERSE = ("acos", "acosh", "asin", "asinh", "atan", "atanh")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
_COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor")  # fmt: skip

_ELEMENTS: Mapping[str, Callable[[Call], Value]] = {
    **{name: apply_unary(getattr(np, name)) for name in _SAME},
    **{name: apply_float(getattr(np, name)) for name in _FLOAT},
    **{name: apply_float(getattr(np, f"arc{name[1:]}")) for name in _INVERSE},
    **{name: apply_binary(getattr(np, name)) for name in (*_BINARY, *_COMPARED)},
    "rsqrt": apply_float(lambda x: 1 / np.sqrt(x)),
    "round": apply_float(basic.round_nearest),
    "erf": apply_float(basic.compute_erf),
    "sigmoid": apply_float(basic.compute_sigmoid),
    "divide": apply_binary(basic.divide),
    "floor_divide": apply_binary(basic.divide_floor),
    "floor_mod": apply_binary(basic.take_modulo),
    "mod": apply_binary(basic.take_remainder),
    "power": apply_binary(basic.raise_power),
    "atan2": apply_binary(np.arctan2),
    "log_add_exp": apply_binary(np.logaddexp),
    "outer": apply_binary(np.outer),
    "left_shift": apply_binary(basic.shift_with(np.left_shift)),
    "right_shift": apply_binary(basic.shift_with(np.right_shift)),
    "ewise_fma": lambda call: call[0] * call[1] + call[2],
    "clip": basic.clip,
    "where": basic.select,
    "astype": basic.convert_type,
    "nn.relu": apply_unary(lambda x: np.maximum(x, np.zeros((), x.dtype))),
    "nn.gelu": apply_float(basic.compute_gelu),
    "nn.gelu_tanh": apply_float(basic.compute_gelu_tanh),
    "nn.silu": apply_float(lambda x: x * basic.compute_sigmoid(x)),
    "nn.selu": apply_float(basic.compute_selu),
    "nn.softplus": basic.compute_softplus,
    "nn.leakyrelu": basic.compute_leaky,
    "nn.prelu": basic.compute_prelu,
}
_REDUCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "sum": reduce_with(basic.add_up),
    "prod": reduce_with(basic.multiply_up),
    "max": reduce_with(np.max),
    "min": reduce_with(np.min),
    "mean": reduce_with(basic.of_floats(np.mean)),
    "variance": reduce_with(basic.of_floats(np.var)),
    "std": reduce_with(basic.of_floats(np.std)),
    "argmax": basic.find_extreme(np.argmax),
    "argmin": basic.find_extreme(np.argmin),
    "cumsum": basic.accumulate_with(np.cumsum, 0),
    "cumprod": basic.accumulate_with(np.cumprod, 1),
    "matmul": basic.multiply_matrices,
    "einsum": basic.sum_products,
}
_PLACES: Mapping[str, Callable[[Call], Value]] = {
    "reshape": basic.reshape,
    "flatten": lambda call: call[0].reshape(-1),
    "permute_dims": basic.permute,
    "expand_dims": basic.expand,
    "squeeze": basic.squeeze,
    "concat": basic.concatenate,
    "stack": lambda call: np.stack(call[0], axis=int(call.get("axis", 0))),
    "split": basic.split,
    "flip": lambda call: np.flip(call[0], call.axes),
    "broadcast_to": lambda call: np.broadcast_to(call[0], call[1]),
    "repeat": basic.repeat,
    "tile": lambda call: np.tile(call[0], [int(count) for count in call.get("repeats")]),
    "strided_slice": basic.slice_strided,
    "take": basic.take,
    "gather_elements": basic.gather,
    "gather_nd": basic.gather_tuples,
    "scatter_elements": basic.scatter,
    "scatter_nd": basic.scatter_tuples,
    "one_hot": basic.make_one_hot,
    "tril": basic.keep_triangle(np.tril),
    "triu": basic.keep_triangle(np.triu),
    "nonzero": lambda call: np.stack(np.nonzero(call[0])),
    "full": basic.fill,
    "full_like": fill_like(None),
    "zeros": lambda call: np.zeros(call[0], dtype=call.dtype),
    "ones": lambda call: np.ones(call[0], dtype=call.dtype),
    "zeros_like": fill_like(0),
    "ones_like": fill_like(1),
    "arange": basic.count_up,
    "dynamic_strided_slice": losses.slice_dynamically,
    "median": losses.find_median,
    **{f"grad.{name}": lambda call: call[0] for name in ("no_grad", "start_checkpoint", "end_checkpoint")},
    "sort": basic.sort,
    "argsort": basic.sort_indices,
    "nn.pad": basic.pad,
    "topk": selection.take_top,
    "bucketize": selection.find_buckets,
    "meshgrid": selection.make_grids,
    "eye": selection.make_eye,
    "eye_like": selection.make_eye_like,
    "index_tensor": selection.take_indices,
    "index_put": selection.put_values,
    "slice_scatter": selection.scatter_slice,
    "reverse_sequence": selection.reverse_sequences,
    "collapse_sum_to": selection.collapse_sum,
    "collapse_sum_like": selection.collapse_sum,
    "hamming_window": selection.make_window,
    "quantize": quantized.quantize,
    "dequantize": quantized.dequantize,
    "shape_of": lambda call: call[0].shape,
    "shape_to_tensor": lambda call: np.array(call[0], dtype="int64"),
    "tensor_to_shape": lambda call: tuple(int(size) for size in call[0]),
    "size": lambda call: np.array(call[0].size, dtype="int64"),
    "builtin.stop_lift_params": lambda call: call[0],
    "hint_on_device": lambda call: call[0],
    "to_vdevice": lambda call: call[0],
    "wrap_param": lambda call: call[0],
}
_NETWORKS: Mapping[str, Callable[[Call], Value]] = {
    "nn.softmax": networks.compute_softmax,
    "nn.log_softmax": networks.compute_log_softmax,
    "nn.layer_norm": networks.normalize_layer,
    "nn.instance_norm": networks.normalize_instance,
    "nn.group_norm": networks.normalize_groups,
    "nn.rms_norm": networks.normalize_square,
    "nn.batch_norm": networks.normalize_batch,
    **{f"nn.conv{rank}d": networks.convolve for rank in (1, 2, 3)},
    **{f"nn.max_pool{rank}d": networks.pool_with(np.max, -np.inf) for rank in (1, 2, 3)},
    **{f"nn.avg_pool{rank}d": networks.pool_with(np.sum, 0) for rank in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{rank}d": networks.average_adaptively for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": networks.convolve_transposed for rank in (1, 2, 3)},
    "nn.pixel_shuffle": networks.shuffle_pixels,
    "nn.batch_flatten": lambda call: call[0].reshape(call[0].shape[0], -1),
    "nn.cross_entropy_with_logits": losses.compute_cross_entropy,
    "nn.nll_loss": losses.compute_likelihood,
    "image.resize2d": images.resize,
    "nn.attention": networks.attend,
    "nn.attention_bias": networks.attend,
}

_MOVES = (
    *("abs", "negative", "sign", "maximum", "minimum", "clip", "where", "astype", "nn.relu", "isfinite", "isinf"),
    *("isnan", "max", "min", "argmax", "argmin", "nn.batch_flatten", "nn.pixel_shuffle"),
)
_COMPUTES = ("quantize", "dequantize", "median", "hamming_window", "collapse_sum_to", "collapse_sum_like")
EXACT = frozenset(f"relax.{name}" for name in {*_COMPARED, *_MOVES, *_PLACES} - {*_COMPUTES})
"""Operators that choose, move or convert values. Their results have no rounding that could differ."""

OPERATORS: Mapping[str, Callable[[Call], Value]] = {
    f"relax.{name}": function
    for part in (_ELEMENTS, _REDUCTIONS, _PLACES, _NETWORKS)
    for name, function in part.items()
}
