"""Resize images as Relax defines it, in NumPy.

``image.grid_sample`` is left out: releases disagree with their own documentation on the layout of its grid. Places
between pixels are computed as fractions. A compiler that computes them in float32 may round to another pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Array, Call, demand, is_float

_HALF = Fraction(1, 2)
_PLACES: dict[str, Callable[[int, int, int], Fraction]] = {
    "half_pixel": lambda at, size, to: (at + _HALF) * size / to - _HALF,
    "pytorch_half_pixel": lambda at, size, to: (at + _HALF) * size / to - _HALF if to > 1 else Fraction(0),
    "asymmetric": lambda at, size, to: Fraction(at * size, to),
    "align_corners": lambda at, size, to: Fraction(at * (size - 1), to - 1) if to > 1 else Fraction(0),
    "tf_half_pixel_for_nn": lambda at, size, to: (at + _HALF) * size / to,
}
"""Mode → the place, in the image, of a pixel of the result, as ONNX defines it for ``Resize``."""
MAX_EXTENT = 1_000


def resize(call: Call) -> Array:
    """Return the image in another size. A cropping mode has no value."""
    image, sizes, layout = call[0], call[1], str(call.get("layout"))
    mode, method = str(call.get("coordinate_transformation_mode")), str(call.get("method"))
    demand(mode in _PLACES, f"the mode {mode}")
    demand(method == _NEAREST or (method in _WEIGHS and is_float(image)), f"the method {method}")
    demand(len(sizes) == 2 and layout.count("H") == layout.count("W") == 1 and len(layout) == image.ndim, layout)
    for letter, to in zip("HW", sizes, strict=True):
        axis = layout.index(letter)
        image = _resize_axis(image, axis, [_PLACES[mode](at, image.shape[axis], to) for at in range(to)], call)
    return image


def _resize_axis(image: Array, axis: int, places: list[Fraction], call: Call) -> Array:
    size = image.shape[axis]
    demand(max(size, len(places)) <= MAX_EXTENT, "a large image")
    if str(call.get("method")) == _NEAREST:
        found = [min(max(_round(place, str(call.get("rounding_method"))), 0), size - 1) for place in places]
        return np.take(image, found, axis=axis)
    weights = np.zeros((len(places), size), dtype=image.dtype)
    for row, place in enumerate(places):
        for at, weight in _WEIGHS[str(call.get("method"))](place, size, call):
            weights[row, min(max(at, 0), size - 1)] += weight
    return np.moveaxis(np.tensordot(weights, image, axes=(1, axis)), 0, axis)


def _round(place: Fraction, method: str) -> int:
    demand(method in ("round", "floor", "ceil", ""), f"rounding by {method}")
    if method == "floor":
        return math.floor(place)
    if method == "ceil":
        return math.ceil(place)
    demand(place % 1 != _HALF, "a place in the middle of two pixels")
    return math.floor(place + _HALF)


def _weigh_linearly(place: Fraction, size: int, call: Call) -> list[tuple[int, float]]:
    first = math.floor(place)
    return [(first, float(1 - (place - first))), (first + 1, float(place - first))]


def _weigh_cubically(place: Fraction, size: int, call: Call) -> list[tuple[int, float]]:
    """Return weights by Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    first, a = math.floor(place), float(call.get("cubic_alpha"))
    weighed = []
    for at in range(first - 1, first + 3):
        x = abs(float(place - at))
        near = (a + 2) * x**3 - (a + 3) * x**2 + 1
        weighed.append((at, near if x <= 1 else a * (x**3 - 5 * x**2 + 8 * x - 4)))
    if call.get("cubic_exclude"):
        inside = [(at, weight) for at, weight in weighed if 0 <= at < size]
        whole = sum(weight for _, weight in inside)
        demand(whole, "weights that cancel out")
        weighed = [(at, weight / whole) for at, weight in inside]
    return weighed


_WEIGHS: dict[str, Callable[[Fraction, int, Call], list[tuple[int, float]]]] = {
    "linear": _weigh_linearly,
    "cubic": _weigh_cubically,
}
"""Method → the pixels around a place, with their weights."""
_NEAREST = "nearest_neighbor"
