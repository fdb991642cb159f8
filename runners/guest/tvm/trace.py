"""Find the testcase's names for the data and kernels at run time: variables by their values, operators by kernel.

Values are compared by content. Conversions, copies and reshapes separate a variable of the testcase from the buffer
of a kernel, so neither identity nor address would match.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy
from tvm import relax, te

MAX_ELEMENTS = 4 * 1024 * 1024
MAX_DEPTH = 2
RESCHEDULES = re.compile(r"\bSchedule\(|\bdlight\b|meta_schedule|(?:\b|s_)tirx?\.transform\.")
SEARCHES = re.compile(r"arg|sort|topk|unique|nonzero|bucketize|searchsorted|multinomial|sample")
MOVES_INSIDE = ("clip", "wrap")
"""Modes of an operator that also accepts indices outside."""
PRIM_FUNC = re.compile(r"@[\w.]*prim_func\b[^\n]*\n\s*def\s+(\w+)")


class Tracer:
    """Text of a testcase, the operators that it uses, and the arguments of the calls in progress."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._kernels = frozenset(PRIM_FUNC.findall(text))
        self._operators: set[str] = set()
        self._moving: set[str] = set()
        """Operators that a module requests to move indices inside."""
        self._mixed: set[str] = set()
        """Operators that one module requests to do so in one call, but not in another."""
        self._constants: list[tuple[str, Any]] = []
        self._has_library_kernel = False
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        """Calls into compiled code in progress, innermost last: name and arguments."""

    def defines_kernel(self, kernel: str) -> bool:
        """True if the testcase wrote the kernel: a prim_func in its text (possibly fused), or its own te program."""
        if any(re.search(rf"(^|_){re.escape(name)}(_|\d*$)", kernel) for name in self._kernels):
            return True
        written = any(word in self._text for word in ("create_prim_func", "IRBuilder", "from_source"))
        return kernel == "main" and written and not self._has_library_kernel

    def watch_expressions(self, is_of_library: Callable[[list[Any]], bool]) -> None:
        """Record kernels whose expressions come from the compiler's operator library."""
        original = te.create_prim_func

        @functools.wraps(original)
        def create(*args: Any, **words: Any) -> Any:
            given = args[0] if args else words.get("ops")
            if isinstance(given, list | tuple) and is_of_library(list(given)):
                self._has_library_kernel = True
            return original(*args, **words)

        te.create_prim_func = create

    @property
    def has_rescheduling(self) -> bool:
        """True if the testcase rewrites kernels, so that an index may differ from its text."""
        return RESCHEDULES.search(self._text) is not None

    @property
    def has_index_search(self) -> bool:
        """True if the testcase uses an operator that computes indices."""
        return any(SEARCHES.search(name) for name in self._operators)

    def defines_pass(self, name: str) -> bool:
        """True if the testcase's text defines a pass of this name, as a function, class or string."""
        return (
            re.search(rf"(def|class)\s+{re.escape(name)}\b|name\s*=\s*[\"']{re.escape(name)}[\"']", self._text)
            is not None
        )

    # ------------------------------------------------------------------------------------------ operators

    def before_pass(self, module: Any, applied: Any) -> None:
        """Record the input of a pass, because a testcase that legalizes its module removes the operators."""
        if applied is not None:
            self.record_module(module)

    def after_pass(self, name: str, snapshot: None, given: Any, result: Any, applied: Any) -> None:
        """Ignore the result, because only the inputs of passes contain operators."""

    def record_module(self, module: Any) -> None:
        """Remember operators and integer constants of a module that is about to be built."""
        calls: set[tuple[str, bool]] = set()
        for gv, function in module.functions.items():
            if isinstance(function, relax.Function):
                relax.analysis.post_order_visit(
                    function, lambda node, gv=gv: self._record_node(node, gv.name_hint, calls)
                )
        moving = {name for name, moves in calls if moves}
        self._moving |= moving
        self._mixed |= moving & {name for name, moves in calls if not moves}

    def _record_node(self, node: Any, function: str, calls: set[tuple[str, bool]]) -> None:
        if type(node).__name__ in ("Constant", "GenericConst") and len(self._constants) < 64:
            data = to_array(node.value if hasattr(node, "value") else node.data)
            if data is not None and data.dtype.kind in "iu" and data.size > 1:
                self._constants.append((f"a constant of {function}", data.ravel()))
        name = getattr(getattr(node, "op", None), "name", None)
        if isinstance(name, str) and name.startswith("relax.") and len(self._operators) < 512:
            self._operators.add(name)
            calls.add((name, str(getattr(getattr(node, "attrs", None), "mode", "")) in MOVES_INSIDE))

    def moves_inside(self, kernel: str) -> bool:
        """True if a module, possibly before a pass, requests the operator of a kernel to move indices inside."""
        return self.find_operator(kernel) in self._moving

    def also_keeps_indices(self, kernel: str) -> bool:
        """True if another call in the same module uses each index unchanged."""
        return self.find_operator(kernel) in self._mixed

    def find_operator(self, kernel: str) -> str | None:
        """Return the Relax operator with the most similar name. A fused kernel's name contains several operators."""
        bare = re.sub(r"\d+$", "", kernel).removeprefix("te_")
        names = {name.rsplit(".", 1)[-1]: name for name in sorted(self._operators)}
        if bare in names:
            return names[bare]
        fitting = [short for short in names if re.search(rf"(^|_){re.escape(short)}\d*(_|$)", bare)]
        fitting = fitting or [short for short in names if short.startswith(f"{bare}_")]  # gather: gather_elements
        indexing = [s for s in fitting if re.search("take|gather|scatter|index|slice|embedding|one_hot", s)]
        best = max(indexing or fitting, key=len, default=None)
        return names[best] if best else None

    # ------------------------------------------------------------------------------------------ values

    def find_value_name(self, elements: Any) -> str | None:
        """Return a description of the testcase's value that equals ``elements`` (flat). None without a match."""
        for name, value in self._iterate_candidates():
            if value.size == elements.size and np.array_equal(value.ravel(), elements):
                return name
        return None

    def _iterate_candidates(self) -> Iterator[tuple[str, Any]]:
        for frame in self._iterate_frames():
            # A copy, because other threads of the testcase may change its variables.
            for name, value in list(frame.f_locals.items()):
                if not name.startswith("__"):
                    yield from _iterate_arrays(f"`{name}`", value)
        for call, arguments in reversed(self.calls):
            for position, value in enumerate(arguments):
                yield from _iterate_arrays(f"argument {position + 1} of {call}", value)
        yield from self._constants

    def _iterate_frames(self) -> Iterator[FrameType]:
        """Yield the frames of the testcase's own file, innermost first and its module level last."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._path:
                yield frame
            frame = frame.f_back


def _iterate_arrays(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the integer arrays in ``value``: the value itself, or items of a list, tuple or dict."""
    data = to_array(value)
    if data is not None:
        if data.dtype.kind in "iu" and data.size <= MAX_ELEMENTS:
            yield name, data
    elif depth < MAX_DEPTH and isinstance(value, dict):
        for key, item in list(value.items())[:64]:
            yield from _iterate_arrays(f"{name}[{key!r}]", item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list | tuple):
        for position, item in enumerate(value[:64]):
            yield from _iterate_arrays(f"{name}[{position}]", item, depth + 1)


def to_array(value: Any) -> Any:
    """Return an array, a tensor on the CPU or a list of integers as a numpy array. None for other values."""
    try:
        if isinstance(value, np.ndarray):
            return value
        if isinstance(value, list | tuple) and value and isinstance(value[0], int | list) and len(value) < 100_000:
            array = np.asarray(value)
            return array if array.dtype.kind in "iu" else None
        home = type(value).__module__.split(".")[0]
        if home in ("tvm", "tvm_ffi") and hasattr(value, "numpy"):
            return value.numpy()  # Tensor, NDArray until 0.22
        if home == "torch" and hasattr(value, "detach"):
            return value.detach().cpu().numpy()
    except Exception:
        return None
    return None
