"""Check the accesses of TVM kernels for out-of-bounds indices while the unmodified testcase runs.

Every kernel for the CPU is rewritten just before the pipeline flattens its buffers, while each index still belongs to
an axis. The compiler's own analyzer proves most accesses. Each other access gets a check of exactly its indices,
under exactly its conditions:

    if 0 <= ids[i] < 12:  out[i] = table[ids[i]]
    else:                 call_packed("reprobot.out_of_bounds", site, ids[i], 0, 12, …)

So a faulty access is skipped and reported. It neither crashes the process nor hides the testcase's own failure.
Functions without an unproven access are unchanged, so the run takes little longer than a plain run.

The compiler's own bound checker is unsuitable. The compiler never emits the attribute that it needs. It checks both
sides of a ``Select``, stops at the first ``if_then_else``, and reports neither axis nor index. It reports by an
assertion that a ``T.parallel`` loop ignores. Here, parallel and vectorized loops around a check become serial.

An index outside is not always a fault of the testcase. ``access.judge_origin`` decides: the testcase wrote the
kernel, or the testcase's data has a value that the operator does not accept. Other accesses, such as an index that
the compiler may have computed wrongly, become notes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx

from runners.guest.tvm.bounds.access import (
    MAKES_FINDING,
    Json,
    Site,
    collect_evidence,
    judge_origin,
    read_elements,
    summarize_access,
)
from runners.guest.tvm.bounds.checks import REPORT, KernelChecker
from runners.guest.tvm.ir import Node

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.trace import Tracer

MAX_REPORTS = 200_000
"""Maximum number of reports in a run. Each report takes microseconds, and the first one contains the evidence."""


class BoundsDiagnoser:
    """Adds the checks to every build and turns reports into findings."""

    def __init__(self, findings: Findings, tracer: Tracer) -> None:
        self._findings = findings
        self._tracer = tracer
        self._sites: list[Site] = []
        self._reports = 0

    def install(self) -> None:
        """Replace ``FlattenBuffer`` in the compiler's own pipelines. The testcase itself gets the original pass."""
        stock = tirx.transform.FlattenBuffer
        tvm_ffi.register_global_func(REPORT, self._handle_report, override=True)

        def make_flatten_buffer() -> Node:
            caller = str(sys._getframe(1).f_globals.get("__name__", ""))
            if not caller.startswith("tvm."):
                return stock()
            check = tirx.transform.prim_func_pass(self._check_kernel, opt_level=0, name="reprobot.CheckBounds")
            return tvm.ir.transform.Sequential([check, stock()])

        tirx.transform.FlattenBuffer = make_flatten_buffer

    def _check_kernel(self, function: Node, _module: Node, _context: Node) -> Node:
        """Rewrite a kernel, as a pass. After an error, the kernel is unchanged, and a note is written."""
        name = str((function.attrs or {}).get("global_symbol", "main"))
        before = len(self._sites)
        try:
            target = (function.attrs or {}).get("target", None)
            if target is not None and str(target.kind.name) not in ("llvm", "c"):
                raise NotImplementedError(f"target {target.kind.name}")
            checker = KernelChecker(function, name, self._sites)
            checked = checker.rewrite_function()
            if checker.unchecked:
                self._findings.note("vector indices were not checked", kernel=name)
            return checked
        except Exception as error:
            del self._sites[before:]
            self._findings.note("a kernel was built without bound checks", kernel=name, why=str(error)[-200:])
            return function

    def _handle_report(self, site_number: int, *values: Any) -> None:
        self._reports += 1
        if self._reports > MAX_REPORTS:
            raise RuntimeError(f"out of bounds more than {MAX_REPORTS} times, given up")
        site = self._sites[site_number]
        for position in range(len(site.checks)):
            index, low, extent = (int(value) for value in values[3 * position : 3 * position + 3])
            if low <= index < extent:
                continue
            site.low = min(site.low, index) if site.count else index
            site.high = max(site.high, index) if site.count else index
            site.count += 1
            if site.axis < 0:
                site.axis, site.extent = position, extent
                site.data = self._read_sources(site, values[3 * len(site.checks) :])
                self._record_site(site)
            return

    def _read_sources(self, site: Site, values: tuple[Any, ...]) -> list[Json]:
        """Return the value range of each source at this time, and the testcase's name for its values."""
        described = []
        at = 0
        for source in site.sources:
            address, shape = values[at], tuple(int(extent) for extent in values[at + 1 : at + 1 + source.rank])
            at += 1 + source.rank
            elements = read_elements(address, source.dtype, shape)
            entry: Json = {"kernel_argument": source.argument, "buffer": source.name, "dtype": source.dtype}
            entry["shape"] = list(shape)
            if elements is not None and elements.size:
                entry["range"] = [int(elements.min()), int(elements.max())]
                entry["testcase_value"] = self._tracer.find_value_name(elements)
            described.append(entry)
        return described

    def _record_site(self, site: Site) -> None:
        origin = judge_origin(site, self._tracer)
        evidence = collect_evidence(site, self._tracer, origin)
        key = f"bounds:{site.kernel}:{site.buffer}:{site.checks[site.axis][0]}"
        if origin in MAKES_FINDING:
            self._findings.add(key, "out-of-bounds-access", summarize_access(site, self._tracer), evidence)
        else:
            summary = "not shown to be the testcase's fault: " + summarize_access(site, self._tracer)
            self._findings.add(key, "note", summary, evidence)

    def finish(self) -> None:
        """Write the final counts and ranges."""
        for site in self._sites:
            if site.count:
                self._record_site(site)
