"""Out-of-bounds accesses of TVM kernels, checked while the unmodified testcase runs.

Every kernel built for the CPU is rewritten just before the pipeline flattens its buffers, while each index still
belongs to an axis. An access that the compiler's own analyzer proves to be inside stays as it is; before the others
goes a check of exactly the indices the access would use, under exactly the conditions under which it would happen:

    if 0 <= ids[i] < 12:  out[i] = table[ids[i]]
    else:                 call_packed("reprobot.out_of_bounds", site, ids[i], 0, 12, …)

So a faulty access is skipped and reported, and neither crashes the process nor hides the testcase's own failure.
Functions without an unproven access are left untouched, which is why the cost is near that of the plain run.

The compiler's own bound checker is not used: nothing in it emits the attribute it looks for, it checks both sides of
a ``Select``, gives up behind the first ``if_then_else``, says neither axis nor index, and reports through an
assertion that a ``T.parallel`` loop swallows. Parallel and vectorised loops around a check become serial here.

An index outside is not yet a fault of the testcase. ``tvm_access.judge_access`` decides: the testcase wrote the
kernel, or the testcase's data holds a value that the operator doesn't take. Everything else (an index that the
compiler may have computed wrongly) is only noted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx

from runners.guest.tvm.bounds.access import (
    BLAMES_TESTCASE,
    Json,
    Site,
    evidence_of,
    judge_access,
    read_elements,
    summary_of,
)
from runners.guest.tvm.bounds.checks import REPORT, KernelChecker
from runners.guest.tvm.ir import Node

if TYPE_CHECKING:
    from runners.guest.tvm.findings import Findings
    from runners.guest.tvm.trace import Tracer

MAX_REPORTS = 200_000
"""Reports after which a run is given up: each costs microseconds, and the first one told the story."""


class BoundsDiagnoser:
    """Installs the rewriting into the build and turns reports into findings."""

    def __init__(self, findings: Findings, tracer: Tracer) -> None:
        self._findings = findings
        self._tracer = tracer
        self._sites: list[Site] = []
        self._reports = 0

    def install(self) -> None:
        """Replace ``FlattenBuffer`` for the compiler's own pipelines; the testcase's own uses get the stock pass."""
        stock = tirx.transform.FlattenBuffer
        tvm_ffi.register_global_func(REPORT, self._reported, override=True)

        def flatten_buffer() -> Node:
            caller = str(sys._getframe(1).f_globals.get("__name__", ""))
            if not caller.startswith("tvm."):
                return stock()
            check = tirx.transform.prim_func_pass(self._checked, opt_level=0, name="reprobot.CheckBounds")
            return tvm.ir.transform.Sequential([check, stock()])

        tirx.transform.FlattenBuffer = flatten_buffer

    def _checked(self, function: Node, _module: Node, _context: Node) -> Node:
        """The pass. Whatever goes wrong in it leaves the kernel as it was and says so in a note."""
        name = str((function.attrs or {}).get("global_symbol", "main"))
        before = len(self._sites)
        try:
            target = (function.attrs or {}).get("target", None)
            if target is not None and str(target.kind.name) not in ("llvm", "c"):
                raise NotImplementedError(f"target {target.kind.name}")
            checker = KernelChecker(function, name, self._sites)
            checked = checker.run()
            if checker.unchecked:
                self._findings.note("vector indices were not checked", kernel=name)
            return checked
        except Exception as error:
            del self._sites[before:]
            self._findings.note("a kernel was built without bound checks", kernel=name, why=str(error)[-200:])
            return function

    def _reported(self, site_number: int, *values: Any) -> None:
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
                self._record(site)
            return

    def _read_sources(self, site: Site, values: tuple[Any, ...]) -> list[Json]:
        """What each source holds now, and which value of the testcase that is."""
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
                entry["testcase_value"] = self._tracer.name_of(elements)
            described.append(entry)
        return described

    def _record(self, site: Site) -> None:
        verdict = judge_access(site, self._tracer)
        evidence = evidence_of(site, self._tracer, verdict)
        key = f"bounds:{site.kernel}:{site.buffer}:{site.checks[site.axis][0]}"
        if verdict in BLAMES_TESTCASE:
            self._findings.add(key, "out-of-bounds-access", summary_of(site, self._tracer), evidence)
        else:
            summary = "not shown to be the testcase's fault: " + summary_of(site, self._tracer)
            self._findings.add(key, "note", summary, evidence)

    def finish(self) -> None:
        """Write the final counts and ranges."""
        for site in self._sites:
            if site.count:
                self._record(site)
