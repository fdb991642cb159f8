"""Compare returned values with NumPy's, evaluated in float64 and in the program's own types.

A value differs only if both evaluations agree with each other and not with the value. If they disagree, the program
is ill-conditioned, and rounding decides. Then a value is the same only if the program's own types give it, because a
compiler that drops a cast to a narrow type returns the wide value. Between "the same" and "differs" is a range
without an answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

from runners.guest.tvm.reference.operators.basic import Value

SAME, UNCERTAIN, DIFFERS = "agrees", "uncertain", "differs"
_LIMITS = {
    "float64": (1e-9, 1.5e-8),  # half of the digits are lost
    "float32": (2e-5, 1e-3),
    "float16": (5e-3, 5e-2),
    "bfloat16": (4e-2, 4e-1),
    "float8_e4m3fn": (0.13, 0.8),
    "float8_e5m2": (0.26, 0.9),
}
"""Type of a result → the maximum error of equal values, and the minimum error of different ones. Errors are relative
to the element, plus a twentieth of the largest element."""


OWN_ERRORS = 4
"""Multiple of the rounding error of NumPy's evaluation in the same type that still counts as rounding."""
_NORMAL = {"float64": 2.3e-308, "float32": 1.2e-38, "float16": 6.2e-5}
"""The smallest number with all digits of a type. Builds may treat smaller numbers as zero."""
_SMALLEST_NORMAL = _NORMAL["float32"]


class Difference:
    """The first element that differs."""

    def __init__(self, path: str, returned: Any, expected: Any) -> None:
        self.path = path
        self.returned = str(returned)
        self.expected = str(expected)


def compare_values(
    returned: Value, wide: Value, own: Value, path: str = "", *, exact: bool = False, alone: bool = False
) -> tuple[str, Difference | None]:
    """Return ``SAME``, ``UNCERTAIN`` or ``DIFFERS``, with the first element that differs.

    With ``exact``, no rounding explains a difference. With ``alone``, no element is a sum over others, whose order
    the compiler may choose. Then an element may also differ relative to its own size. Subnormal numbers may be zero.
    """
    if isinstance(wide, tuple) or isinstance(returned, tuple):
        if not (isinstance(wide, tuple) and isinstance(returned, tuple) and len(wide) == len(returned)):
            return UNCERTAIN, None
        parts = [
            compare_values(one, first, second, f"{path}[{at}]", exact=exact, alone=alone)
            for at, (one, first, second) in enumerate(zip(returned, wide, own, strict=True))
        ]
        worst = next((part for part in parts if part[0] == DIFFERS), None)
        return worst or (SAME if all(part[0] == SAME for part in parts) else UNCERTAIN, None)
    return _compare_arrays(np.asarray(returned), np.asarray(wide), np.asarray(own), path, exact=exact, alone=alone)


def narrow_floats(value: Value) -> Value:
    """Return a value with its floats in half precision, which makes the comparison equally coarse."""
    if isinstance(value, tuple):
        return tuple(map(narrow_floats, value))
    array = np.asarray(value)
    with np.errstate(over="ignore"):
        return array.astype("float16") if array.dtype.kind == "f" else value


def _compare_arrays(
    returned: Any, wide: Any, own: Any, path: str, *, exact: bool, alone: bool
) -> tuple[str, Difference | None]:
    if returned.shape != wide.shape:
        return DIFFERS, Difference(f"{path}.shape", returned.shape, wide.shape)
    if any(one.dtype.kind not in "biuf" and not _is_float(one) for one in (returned, wide, own)):
        return UNCERTAIN, None
    if not all(map(_is_float, (returned, wide, own))):
        same, other = (returned == wide) | (returned == own), wide == own
        differs = other & ~same
    elif exact:
        value, expected = returned.astype("float64"), own.astype("float64")
        with np.errstate(invalid="ignore"):
            close = np.abs(value - expected) <= _SMALLEST_NORMAL
        same = (value == expected) | (np.isnan(value) & np.isnan(expected)) | close
        differs = ~same
    else:
        limits = _LIMITS.get(returned.dtype.name)
        if limits is None:
            return UNCERTAIN, None
        from_wide, from_own, rounding = (
            _measure_error(one, other) for one, other in ((returned, wide), (returned, own), (own, wide))
        )
        most = min(limits[0] * 10, limits[1])
        settled = rounding <= most
        # A long sum in the type itself loses more digits. A result may have a few times the error of NumPy's own.
        accurate = min(most, max(limits[0], OWN_ERRORS * float(np.max(rounding, initial=0.0, where=settled))))
        same = (from_own <= limits[0]) | (settled & (from_wide <= accurate))
        differs = settled & (np.minimum(from_wide, from_own) > limits[1])
        if alone:
            differs = differs | _differs_by_own_size(returned, wide, own, limits)
    if np.any(differs):
        at = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(differs)))
        first = tuple(at) if returned.ndim else ()
        place = path + (str(list(first)) if first else "")
        return DIFFERS, Difference(place, returned[first], wide[first])
    return (SAME if np.all(same) else UNCERTAIN), None


def _differs_by_own_size(returned: Any, wide: Any, own: Any, limits: tuple[float, float]) -> Any:
    """Return True for each element on which both evaluations agree and whose digits the result has lost.

    An element below the smallest normal number of its type has few digits anyway.
    """
    least = _NORMAL.get(returned.dtype.name, np.inf)
    returned, wide, own = (one.astype("float64") for one in (returned, wide, own))
    with np.errstate(all="ignore"):
        normal = np.isfinite(wide) & (np.abs(wide) >= least)
        off = [np.abs(one - other) / np.abs(wide) for one, other in ((own, wide), (returned, wide), (returned, own))]
    return normal & (off[0] <= limits[0]) & (np.minimum(off[1], off[2]) > limits[1])


def _is_float(array: Any) -> bool:
    """True for the floats of NumPy and of the package ``ml_dtypes``, most of which have no own kind."""
    return array.dtype.kind == "f" or array.dtype.name in _LIMITS


def _measure_error(value: Any, expected: Any) -> Any:
    """Return the error of each element: 0 for equal infinities and two NaN, infinite if only one is finite."""
    value, expected = value.astype("float64"), expected.astype("float64")
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    with np.errstate(all="ignore"):
        error = np.abs(value - expected) / (np.abs(expected) + largest / 20 + 1e-4)
    equal = (value == expected) | (np.isnan(value) & np.isnan(expected))
    return np.where(equal, 0.0, np.where(np.isnan(error), np.inf, error))
