"""Kernels of TVM's that are no code of the compiler's: what they are asked for is checked before they are called.

Of what Relax and TOPI call on a CPU from 0.25 to 0.27, two take a number that may lie beyond an axis, and neither
looks: ``topk`` leaves what it has no element for as it was in memory, ``argsort_nms`` reads behind its input. No
other takes an index: sorting takes an axis, which the compiler checks; ``unique`` and ``nonzero`` are numpy's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tvm_ffi

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.trace import Tracer

TOPK, ARGSORT_NMS = "tvm.contrib.sort.topk", "tvm.contrib.sort.argsort_nms"


class OpaqueKernels:
    """Puts a check before each of them; the kernel itself runs as ever."""

    def __init__(self, findings: Findings, tracer: Tracer, text: str) -> None:
        self._findings = findings
        self._tracer = tracer
        self._text = text

    def install(self) -> None:
        for name, check in ((TOPK, self._topk), (ARGSORT_NMS, self._argsort)):
            original = tvm_ffi.get_global_func(name, allow_missing=True)
            if original is not None:
                tvm_ffi.register_global_func(name, self._checked(name, original, check), override=True)

    def _checked(self, name: str, original: Any, check: Callable[..., None]) -> Callable[..., Any]:
        def kernel(*arguments: Any) -> Any:
            try:
                check(*arguments)
            except Exception as error:
                self._findings.note("a kernel's arguments were not checked", kernel=name, why=str(error)[-200:])
            return original(*arguments)

        return kernel

    def _topk(self, data: Any, *rest: Any) -> None:
        """``data``, one output or two, then k, axis, what is returned, and the order."""
        count, axis = int(rest[-4]), int(rest[-3]) % len(data.shape)
        extent = int(data.shape[axis])
        if count > extent:
            # The number is an attribute of the call: the compiler's own doing where the testcase has no such number.
            own = re.search(rf"\b{count}\b", self._text) is not None
            self._report(TOPK, (count, count), axis, extent, f"the number {count}" if own else None)

    def _argsort(self, data: Any, counts: Any, _out: Any, axis: Any, *_rest: Any) -> None:
        at = int(axis) % len(data.shape)
        extent, values = int(data.shape[at]), counts.numpy().ravel()
        if not values.size:
            return
        low, high = int(values.min()), int(values.max())
        if low < 0 or high > extent:
            self._report(ARGSORT_NMS, (low, high), at, extent, self._tracer.name_of(values))

    def _report(self, kernel: str, asked: tuple[int, int], axis: int, extent: int, value: str | None) -> None:
        many = str(asked[1]) if asked[0] == asked[1] else f"[{asked[0]}, {asked[1]}]"
        from_it = f"; that is {value} of the testcase" if value else ""
        summary = f"{kernel} is asked for {many} elements of axis {axis}, which has {extent}{from_it}"
        evidence = {
            "kernel": kernel,
            "operator": kernel.rpartition(".")[2],
            "axis": axis,
            "index_range": list(asked),
            "outside_range": list(asked),
            "extent": extent,
            "origin": "testcase-data" if value else "compiler",
            "testcase_value": value,
        }
        kind = "out-of-bounds-access" if value else "note"
        self._findings.add(f"opaque:{kernel}:{axis}", kind, summary, evidence)
