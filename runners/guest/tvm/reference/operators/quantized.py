"""Define the operators of Relax that convert between floats and quantized integers, in NumPy."""

from __future__ import annotations

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, demand, is_float, spread_along


def quantize(call: Call) -> Array:
    """Compute ``clamp(round(x / scale) + zero_point)``. Libraries round ties differently."""
    x, (scale, zero) = call[0], _spread_parameters(call)
    dtype = np.dtype(str(call.get("out_dtype")))
    demand(is_float(x) and dtype.kind in "iu", "a type of quantized values")
    quotient = x / scale
    demand(np.all(np.isfinite(quotient)) and np.all(np.abs(quotient) < 2**31), "a value out of range")
    demand(np.all(np.abs(quotient - np.floor(quotient) - 0.5) > 1e-4), "a tie, or nearly one")
    limits = np.iinfo(dtype)
    return np.clip(np.round(quotient).astype("int64") + zero.astype("int64"), limits.min, limits.max).astype(dtype)


def dequantize(call: Call) -> Array:
    """Compute ``scale * (q - zero_point)``. The integer difference does not wrap around."""
    q, (scale, zero) = call[0], _spread_parameters(call)
    demand(q.dtype.kind in "iu" and str(call.get("out_dtype")) == "float32", "a type of dequantized values")
    return (q.astype("int64") - zero.astype("int64")) * scale


def _spread_parameters(call: Call) -> tuple[Array, Array]:
    """Return scale and zero point along the channels. A single one applies to all."""
    scale, zero = (_spread(np.asarray(one), call) for one in call.operands[1:3])
    demand(is_float(scale) and zero.dtype.kind in "iu", "types of scale and zero point")
    return scale, zero


def _spread(one: Array, call: Call) -> Array:
    rank = call[0].ndim
    return one.reshape(()) if one.size == 1 else spread_along(one, (int(call.get("axis", -1)) % rank,), rank)
