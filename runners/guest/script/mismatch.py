"""Two arrays that a failed check compared: how they differ, found in the frames that the exception left behind.

Nothing is patched, so that a check which passes costs nothing: ``numpy.testing`` and ``torch.testing`` keep the
arrays in their own frames; of ``assert numpy.allclose(a, b)`` the line itself names them.
"""

from __future__ import annotations

import ast
import linecache
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

MAX_ELEMENTS = 1 << 24
MAX_SHOWN = 4
_COMPARE = {"assert_array_compare": ("x", "y"), "assert_close": ("actual", "expected")}
"""Function → its names for the actual and the expected array."""
_PREDICATES = ("allclose", "array_equal")
_TOLERANCES = {"allclose": (1e-5, 1e-8), "array_equal": (0.0, 0.0)}
_HARMLESS = ("numpy", "asnumpy", "detach", "cpu", "to_host")


def find(error: BaseException) -> dict[str, Any] | None:
    """None when the exception is no comparison of arrays that can still be looked at."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(error, AssertionError):
        return None
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    for frame, line in reversed(frames):
        found = _of_library(frame) or _of_assertion(frame, line)
        if found is not None:
            actual, desired, relative, absolute, check = found
            return {"check": check, **difference(numpy, actual, desired, relative, absolute)}
    return None


def _of_library(frame: FrameType) -> tuple[Any, Any, float, float, str] | None:
    name = frame.f_code.co_name
    if name not in _COMPARE or "testing" not in frame.f_code.co_filename:
        return None
    actual, desired = (frame.f_locals.get(local) for local in _COMPARE[name])
    above = frame.f_back
    while above is not None and "testing" in above.f_code.co_filename and "rtol" not in above.f_locals:
        above = above.f_back
    known = above.f_locals if above is not None and "testing" in above.f_code.co_filename else {}
    relative, absolute = (_number(known.get(key), 0.0) for key in ("rtol", "atol"))
    return actual, desired, relative, absolute, name


def _of_assertion(frame: FrameType, line: int) -> tuple[Any, Any, float, float, str] | None:
    text = linecache.getline(frame.f_code.co_filename, line).strip()
    if not text.startswith("assert ") or len(text) > 2000:
        return None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PREDICATES:
            if len(node.args) < 2 or not all(map(_may_be_read, node.args[:2])):
                return None
            actual, desired = (_read(argument, frame) for argument in node.args[:2])
            given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            defaults = _TOLERANCES[node.func.attr]
            relative = _number(given.get("rtol"), defaults[0])
            return actual, desired, relative, _number(given.get("atol"), defaults[1]), node.func.attr
    return None


def _may_be_read(node: ast.expr) -> bool:
    """A name, its parts, and the calls that only hand out an array: reading it again changes nothing."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return _may_be_read(node.value)
    if isinstance(node, ast.Subscript):
        return _may_be_read(node.value) and isinstance(node.slice, ast.Constant)
    if isinstance(node, ast.Call):
        return (
            not node.args
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _HARMLESS
            and _may_be_read(node.func.value)
        )
    return False


def _read(node: ast.expr, frame: FrameType) -> Any:
    code = compile(ast.Expression(node), "<assertion>", "eval")
    return eval(code, frame.f_globals, frame.f_locals)  # noqa: S307  # the script's own words, in its own process


def _number(value: Any, default: float) -> float:
    return float(value) if isinstance(value, (int, float)) and value >= 0 else default


def difference(numpy: Any, actual: Any, desired: Any, relative: float, absolute: float) -> dict[str, Any]:
    """Shapes, share and size of the difference, and where NaN and infinity are; plain JSON values."""
    x, y = (numpy.asarray(value.detach() if hasattr(value, "detach") else value) for value in (actual, desired))
    shapes = {
        "shape": list(x.shape),
        "desired_shape": list(y.shape),
        "dtype": str(x.dtype),
        "desired_dtype": str(y.dtype),
    }
    try:
        x, y = numpy.broadcast_arrays(x, y)
    except ValueError:
        return shapes
    if x.size > MAX_ELEMENTS or x.size == 0 or x.dtype.kind not in "fiubc" or y.dtype.kind not in "fiubc":
        return shapes
    if x.dtype.kind != "c" and y.dtype.kind != "c":
        x, y = x.astype("float64"), y.astype("float64")
    with numpy.errstate(all="ignore"):
        close = numpy.isclose(x, y, rtol=relative, atol=absolute, equal_nan=True)
        gap = numpy.abs(x - y)
        finite = numpy.isfinite(gap)
        scaled = gap / numpy.abs(y)
    wrong = numpy.argwhere(~close)
    return {
        **shapes,
        "elements": int(x.size),
        "mismatched": int(x.size - close.sum()),
        "max_absolute": _largest(gap[finite]),
        "max_relative": _largest(scaled[finite & (y != 0)]),
        "tolerance": [relative, absolute],
        "actual_nan": int(numpy.isnan(x).sum()),
        "desired_nan": int(numpy.isnan(y).sum()),
        "actual_infinite": int(numpy.isinf(x).sum()),
        "desired_infinite": int(numpy.isinf(y).sum()),
        "first": [[list(map(int, at)), _shown(x[tuple(at)]), _shown(y[tuple(at)])] for at in wrong[:MAX_SHOWN]],
    }


def _largest(values: Any) -> float | None:
    return float(values.max()) if values.size else None


def _shown(value: Any) -> str:
    """Text: JSON has no NaN."""
    return f"{value:.9g}"
