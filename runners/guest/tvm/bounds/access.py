"""An access out of bounds: what is known of it, whose fault it is, and how to say so."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np  # type: ignore[import-not-found]  # the toolchain's own, absent where this is checked

if TYPE_CHECKING:
    from runners.guest.tvm.trace import Tracer

Json = dict[str, Any]

MAX_SOURCE_ELEMENTS = 4 * 1024 * 1024
FORGIVING = ("strided_slice",)
"""Operators that take any value by definition and clamp it: an index outside is never the testcase's fault."""
TAKES_NEGATIVE = ("scatter_elements", "index_put")
"""Operators whose kernels add the extent to a negative index."""
BLAMES_TESTCASE = frozenset({"testcase-kernel", "testcase-data", "computed-data"})
"""Answers of `judge_access` that make a finding; the others make a note."""


@dataclass(frozen=True)
class Source:
    """A buffer whose elements take part in an index. ``argument`` is its position among the kernel's arguments."""

    name: str
    dtype: str
    rank: int
    argument: int | None


@dataclass
class Site:
    """A checked access: what is known when it is compiled, and what its reports add up to."""

    kernel: str
    buffer: str
    argument: int | None
    store: bool
    checks: tuple[tuple[int, str, bool], ...]
    """Axis, text of the index, whether the index is an element of a source as it stands."""
    sources: tuple[Source, ...]
    count: int = 0
    axis: int = -1
    low: int = 0
    high: int = 0
    extent: int = 0
    data: list[Json] = field(default_factory=list)


def read_elements(address: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """A flat copy of the elements of a buffer at ``address``; None when they are too many to look at."""
    where = getattr(address, "value", address)
    count = int(np.prod(shape, dtype="int64"))
    if not where or count > MAX_SOURCE_ELEMENTS or count < 0:
        return None
    raw = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(int(where))
    return np.frombuffer(bytes(raw), dtype=dtype)


def judge_access(site: Site, tracer: Tracer) -> str:
    """Whose fault the access is: one of BLAMES_TESTCASE, or one that blames nobody.

    ``testcase-kernel``: the testcase wrote the kernel. ``testcase-data``: a value of the testcase lies outside what
    the operator takes. ``computed-data``: a value computed from it by arithmetic does.
    ``computed-index``: so does one that came out of a sort or search, whose kernel may be wrong as well.
    ``compiler``: the data is legal, or there is none, and the compiler generated or rescheduled the index.
    """
    lowest = -site.extent if any(name in site.kernel for name in TAKES_NEGATIVE) else 0
    outside = [e for e in site.data if "range" in e and (e["range"][0] < lowest or e["range"][1] >= site.extent)]
    _, _, is_element = site.checks[site.axis]
    if tracer.wrote_kernel(site.kernel):
        # Buffers within a kernel are resized by the compiler, and schedules rewrite every index.
        as_written = not tracer.reschedules and (bool(site.data) or site.argument is not None)
        legal = is_element and bool(site.data) and not outside
        return "testcase-kernel" if outside or (as_written and not legal) else "compiler"
    if not outside or any(name in site.kernel for name in FORGIVING):
        return "compiler"
    if any(entry.get("testcase_value") for entry in outside):
        return "testcase-data"
    return "computed-index" if tracer.searches else "computed-data"


def culprit(site: Site) -> Json | None:
    """The source that most likely holds the index: one outside the axis, and known in the testcase, comes first."""

    def rank(entry: Json) -> tuple[bool, bool]:
        low, high = entry.get("range", (0, 0))
        return (not (low < 0 or high >= site.extent), entry.get("testcase_value") is None)

    return min(site.data, key=rank, default=None)


def evidence_of(site: Site, tracer: Tracer, origin: str) -> Json:
    axis, index, _ = site.checks[site.axis]
    source = culprit(site)
    return {
        "kernel": site.kernel,
        "operator": tracer.operator_of(site.kernel),
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


def summary_of(site: Site, tracer: Tracer) -> str:
    axis, index, _ = site.checks[site.axis]
    source = culprit(site)
    where = f"[{site.low}, {site.high}]" if site.low != site.high else str(site.low)
    what = "writes to" if site.store else "reads"
    operator = tracer.operator_of(site.kernel)
    subject = f"{operator} (kernel {site.kernel})" if operator else f"kernel {site.kernel}"
    text = f"{subject} {what} {site.buffer} at index {where} of axis {axis}, which has {site.extent} elements"
    if source and source.get("testcase_value"):
        low, high = source["range"]
        return f"{text}; the index comes from {source['testcase_value']}, whose values range over [{low}, {high}]"
    return f"{text}; the index is {index}"
