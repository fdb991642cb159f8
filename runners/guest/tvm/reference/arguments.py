"""Read the arguments and the results of a testcase's compiled functions as NumPy values."""

from __future__ import annotations

from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import CannotEvaluate, Value
from runners.guest.tvm.trace import to_array


def read_value(value: Any) -> Value:
    """Return a copy of a tensor, a number, or a tuple of values.

    Raises:
        CannotEvaluate: it is something else.
    """
    array = to_array(value)
    if array is not None:
        return np.array(array)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple) or type(value).__name__ in ("Array", "Shape", "ShapeTuple"):
        return tuple(read_value(one) for one in value)
    raise CannotEvaluate(type(value).__name__)
