"""Describe an access out of bounds: its site, its origin, its evidence and its summary."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np  # type: ignore[import-not-found]  # part of the compiler's environment, absent for mypy

if TYPE_CHECKING:
    from runners.guest.tvm.trace import Tracer

Json = dict[str, Any]

MAX_SOURCE_ELEMENTS = 4 * 1024 * 1024
FORGIVING = ("strided_slice",)
"""Operators that accept any value by definition and clamp it, so that the testcase is never at fault."""
TAKES_NEGATIVE = ("scatter_elements", "index_put")
"""Operators whose kernels add the extent to a negative index."""
IMPORTERS = frozenset({f"tvm.relax.frontend.{name}" for name in ("onnx", "stablehlo", "tflite", "torch")})
"""Frontends, which TVM does not import by itself. ``x[-1]`` of PyTorch became an access at -1 on 0.25 to 0.27."""
MAKES_FINDING = frozenset({"testcase-kernel", "testcase-data", "computed-data", "unknown"})
"""Results of `judge_origin` that make a finding. The others make a note."""


@dataclass(frozen=True)
class Source:
    """A buffer whose elements are part of an index. ``argument`` is its position among the kernel's arguments."""

    name: str
    dtype: str
    rank: int
    argument: int | None


@dataclass
class Site:
    """A checked access: facts from compilation, and the sum of its reports at run time."""

    kernel: str
    buffer: str
    argument: int | None
    store: bool
    checks: tuple[tuple[int, str, bool], ...]
    """Axis, text of the index, and True if the index is an unchanged element of a source."""
    sources: tuple[Source, ...]
    count: int = 0
    axis: int = -1
    low: int = 0
    high: int = 0
    extent: int = 0
    data: list[Json] = field(default_factory=list)


def read_elements(address: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Return a flat copy of a buffer's elements. None if there are more than ``MAX_SOURCE_ELEMENTS``."""
    where = getattr(address, "value", address)
    count = int(np.prod(shape, dtype="int64"))
    if not where or count > MAX_SOURCE_ELEMENTS or count < 0:
        return None
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(int(where))
    return np.frombuffer(bytes(raw), dtype=dtype)


def judge_origin(site: Site, tracer: Tracer) -> str:
    """Return the origin of the access.

    - ``testcase-kernel``: the testcase wrote the kernel.
    - ``testcase-data``: a value of the testcase is outside the operator's range.
    - ``computed-data``: a value computed by arithmetic from the testcase's values is outside.
    - ``unknown``: such a value of a program that a frontend imported, or of one of several calls of an operator, of
      which some move indices inside. No convention takes the value: a negative index may count from the end. It
      blames neither side, because the frontend or a pass may have made the index.
    - ``computed-index``: a result of a sort or search is outside. The kernel of the search may be wrong.
    - ``compiler``: the data is legal, or there is no data: the compiler generated or rescheduled the index.
    """
    lowest = -site.extent if any(name in site.kernel for name in TAKES_NEGATIVE) else 0
    outside = [e for e in site.data if "range" in e and (e["range"][0] < lowest or e["range"][1] >= site.extent)]
    _, _, is_element = site.checks[site.axis]
    if tracer.defines_kernel(site.kernel):
        # The compiler resizes buffers inside a kernel, and schedules rewrite every index.
        as_written = not tracer.has_rescheduling and (bool(site.data) or site.argument is not None)
        legal = is_element and bool(site.data) and not outside
        return "testcase-kernel" if outside or (as_written and not legal) else "compiler"
    if not outside or any(name in site.kernel for name in FORGIVING):
        return "compiler"
    far = "unknown" if site.high >= site.extent or site.low < -site.extent else "compiler"
    if tracer.moves_inside(site.kernel):
        return far if is_element and tracer.also_keeps_indices(site.kernel) else "compiler"
    if any(entry.get("testcase_value") for entry in outside):
        return "testcase-data"
    if not IMPORTERS.isdisjoint(sys.modules):
        return far
    return "computed-index" if tracer.has_index_search else "computed-data"


def find_index_source(site: Site) -> Json | None:
    """Return the source that most likely contains the index: outside the axis first, then known in the testcase."""

    def rank_source(entry: Json) -> tuple[bool, bool]:
        low, high = entry.get("range", (0, 0))
        return (not (low < 0 or high >= site.extent), entry.get("testcase_value") is None)

    return min(site.data, key=rank_source, default=None)


def collect_evidence(site: Site, tracer: Tracer, origin: str) -> Json:
    axis, index, _ = site.checks[site.axis]
    source = find_index_source(site)
    return {
        "kernel": site.kernel,
        "operator": tracer.find_operator(site.kernel),
        "access": "store" if site.store else "load",
        "buffer": site.buffer,
        "buffer_argument": site.argument,
        "axis": axis,
        "index": index,
        "index_range": source["range"] if source and "range" in source else [site.low, site.high],
        "outside_range": [site.low, site.high],
        "extent": site.extent,
        "count": site.count,
        "origin": origin,
        "testcase_value": source.get("testcase_value") if source else None,
        "sources": site.data,
    }


def summarize_access(site: Site, tracer: Tracer) -> str:
    axis, index, _ = site.checks[site.axis]
    source = find_index_source(site)
    where = f"[{site.low}, {site.high}]" if site.low != site.high else str(site.low)
    verb = "writes to" if site.store else "reads"
    operator = tracer.find_operator(site.kernel)
    subject = f"{operator} (kernel {site.kernel})" if operator else f"kernel {site.kernel}"
    text = f"{subject} {verb} {site.buffer} at index {where} of axis {axis}, which has {site.extent} elements"
    if source and source.get("testcase_value"):
        low, high = source["range"]
        return f"{text}; the index comes from {source['testcase_value']}, whose values range over [{low}, {high}]"
    return f"{text}; the index is {index}"
