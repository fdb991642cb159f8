"""Names from the testcase for what its kernels see: which variable holds these values, which operator is this kernel.

Values are compared by content: between a variable of the testcase and the buffer a kernel reads lie conversions,
copies and reshapes, so neither identity nor address would do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np  # type: ignore[import-not-found]  # the toolchain's own, absent where this is checked
from tvm import relax

MAX_ELEMENTS = 4 * 1024 * 1024
MAX_DEPTH = 2
RESCHEDULES = re.compile(r"\bSchedule\(|\bdlight\b|meta_schedule|(?:\b|s_)tirx?\.transform\.")
SEARCHES = re.compile(r"arg|sort|topk|unique|nonzero|bucketize|searchsorted|multinomial|sample")
PRIM_FUNC = re.compile(r"@[\w.]*prim_func\b[^\n]*\n\s*def\s+(\w+)")


class Tracer:
    """What is known of one testcase: its text, the operators it uses, the arguments of the calls in progress."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._text = text
        self._written = frozenset(PRIM_FUNC.findall(text))
        self._operators: set[str] = set()
        self._constants: list[tuple[str, Any]] = []
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        """Calls into compiled code in progress, innermost last: name and arguments."""

    def wrote_kernel(self, kernel: str) -> bool:
        """Whether the kernel's body is the testcase's: a prim_func in its text (maybe fused), or a te program."""
        if any(re.search(rf"(^|_){re.escape(name)}(_|\d*$)", kernel) for name in self._written):
            return True
        return kernel == "main" and any(
            word in self._text for word in ("create_prim_func", "IRBuilder", "from_source")
        )

    @property
    def reschedules(self) -> bool:
        """Whether the testcase has kernels rewritten, so that an index need not be what was written."""
        return RESCHEDULES.search(self._text) is not None

    @property
    def searches(self) -> bool:
        """Whether an operator in use computes indices by itself."""
        return any(SEARCHES.search(name) for name in self._operators)

    def wrote_pass(self, name: str) -> bool:
        """Whether the testcase's text defines a pass of this name, as a function, class or string."""
        return (
            re.search(rf"(def|class)\s+{re.escape(name)}\b|name\s*=\s*[\"']{re.escape(name)}[\"']", self._text)
            is not None
        )

    # ------------------------------------------------------------------------------------------ operators

    def before(self, module: Any, applied: Any) -> None:
        """Operators are gone once a testcase has legalised its module itself, so each input of its passes is read."""
        if applied is not None:
            self.saw_module(module)

    def after(self, name: str, snapshot: None, given: Any, result: Any, applied: Any) -> None:
        """Nothing: only the inputs tell operators."""

    def saw_module(self, module: Any) -> None:
        """Remember operators and integer constants of a module that is about to be built."""
        for gv, function in module.functions.items():
            if isinstance(function, relax.Function):
                relax.analysis.post_order_visit(function, lambda node, gv=gv: self._saw_node(node, gv.name_hint))

    def _saw_node(self, node: Any, function: str) -> None:
        if type(node).__name__ in ("Constant", "GenericConst") and len(self._constants) < 64:
            data = array_of(node.value if hasattr(node, "value") else node.data)
            if data is not None and data.dtype.kind in "iu" and data.size > 1:
                self._constants.append((f"a constant of {function}", data.ravel()))
        name = getattr(getattr(node, "op", None), "name", None)
        if isinstance(name, str) and name.startswith("relax.") and len(self._operators) < 512:
            self._operators.add(name)

    def operator_of(self, kernel: str) -> str | None:
        """The Relax operator that most likely became ``kernel``, which is named after it, or after all it fuses."""
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

    def name_of(self, elements: Any) -> str | None:
        """The value of the testcase that holds exactly ``elements`` (flat), in words; None when there is none."""
        for name, value in self._candidates():
            if value.size == elements.size and np.array_equal(value.ravel(), elements):
                return name
        return None

    def _candidates(self) -> Iterator[tuple[str, Any]]:
        for frame in self._testcase_frames():
            # A copy: the testcase's other threads may change its variables meanwhile.
            for name, value in list(frame.f_locals.items()):
                if not name.startswith("__"):
                    yield from _arrays(f"`{name}`", value)
        for call, arguments in reversed(self.calls):
            for position, value in enumerate(arguments):
                yield from _arrays(f"argument {position + 1} of {call}", value)
        yield from self._constants

    def _testcase_frames(self) -> Iterator[FrameType]:
        """Frames of the testcase's own file on the stack, innermost first, with its module level last."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._path:
                yield frame
            frame = frame.f_back


def _arrays(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Integer arrays in ``value``: itself, or items of a list, tuple or dict."""
    data = array_of(value)
    if data is not None:
        if data.dtype.kind in "iu" and data.size <= MAX_ELEMENTS:
            yield name, data
    elif depth < MAX_DEPTH and isinstance(value, dict):
        for key, item in list(value.items())[:64]:
            yield from _arrays(f"{name}[{key!r}]", item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list | tuple):
        for position, item in enumerate(value[:64]):
            yield from _arrays(f"{name}[{position}]", item, depth + 1)


def array_of(value: Any) -> Any:
    """``value`` as a numpy array when it is one, a tensor on the CPU, or a list of numbers; else None."""
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
