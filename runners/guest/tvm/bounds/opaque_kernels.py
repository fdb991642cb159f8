"""Check the arguments of TVM's library kernels, which the compiler does not generate, before each call.

Of the library kernels that Relax and TOPI call on a CPU from 0.25 to 0.27, two take a number that may exceed an axis,
and neither checks it: ``topk`` leaves its surplus outputs uninitialized, and ``argsort_nms`` reads beyond its input.
No other kernel takes an index: sorting takes an axis, which the compiler checks, and ``unique`` and ``nonzero`` call
numpy.
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
    """Adds a check to each of these kernels. The kernels themselves run unchanged."""

    def __init__(self, findings: Findings, tracer: Tracer, text: str) -> None:
        self._findings = findings
        self._tracer = tracer
        self._text = text

    def install(self) -> None:
        for name, check in ((TOPK, self._check_topk), (ARGSORT_NMS, self._check_argsort)):
            original = tvm_ffi.get_global_func(name, allow_missing=True)
            if original is not None:
                tvm_ffi.register_global_func(name, self._wrap_kernel(name, original, check), override=True)

    def _wrap_kernel(self, name: str, original: Any, check: Callable[..., None]) -> Callable[..., Any]:
        def call_kernel(*arguments: Any) -> Any:
            try:
                check(*arguments)
            except Exception as error:
                self._findings.note("a kernel's arguments were not checked", kernel=name, why=str(error)[-200:])
            return original(*arguments)

        return call_kernel

    def _check_topk(self, data: Any, *rest: Any) -> None:
        """Check ``topk``: ``data``, one or two outputs, then k, axis, kind of result, and order."""
        count, axis = int(rest[-4]), int(rest[-3]) % len(data.shape)
        extent = int(data.shape[axis])
        if count > extent:
            # The number is an attribute of the call. If the testcase does not contain it, the compiler chose it.
            own = re.search(rf"\b{count}\b", self._text) is not None
            self._add_finding(TOPK, (count, count), axis, extent, f"the number {count}" if own else None)

    def _check_argsort(self, data: Any, counts: Any, _out: Any, axis: Any, *_rest: Any) -> None:
        at = int(axis) % len(data.shape)
        extent, values = int(data.shape[at]), counts.numpy().ravel()
        if not values.size:
            return
        low, high = int(values.min()), int(values.max())
        if low < 0 or high > extent:
            self._add_finding(ARGSORT_NMS, (low, high), at, extent, self._tracer.find_value_name(values))

    def _add_finding(
        self, kernel: str, requested: tuple[int, int], axis: int, extent: int, value: str | None
    ) -> None:
        many = str(requested[1]) if requested[0] == requested[1] else f"[{requested[0]}, {requested[1]}]"
        origin = f"; that is {value} of the testcase" if value else ""
        summary = f"{kernel} is asked for {many} elements of axis {axis}, which has {extent}{origin}"
        evidence = {
            "kernel": kernel,
            "operator": kernel.rpartition(".")[2],
            "axis": axis,
            "index_range": list(requested),
            "outside_range": list(requested),
            "extent": extent,
            "origin": "testcase-data" if value else "compiler",
            "testcase_value": value,
        }
        kind = "out-of-bounds-access" if value else "note"
        self._findings.add(f"opaque:{kernel}:{axis}", kind, summary, evidence)
