"""Find the first dispatch of an IREE program that takes the same values on two runs and gives others.

Both sides are traced in their sandboxes (``guest/iree/trace.py``): what comes out is a claim
(``dispatch_traces.py``), and which dispatch is which is told by what they take (``dispatch_matching.py``).
"""

from __future__ import annotations

import msgspec

from runners.core.failure.tensor_difference import Tensor, find_differing_values, read_tensors
from runners.core.findings import LEVEL, REFUTED_BY
from runners.core.protocol import Finding, FindingKind, Observation
from runners.core.toolchain.diagnosis import ComparedRun, Means
from runners.core.toolchain.guest import make_launch_step
from runners.toolchains.iree.diagnosis.dispatch_matching import Parting, first_parting
from runners.toolchains.iree.diagnosis.dispatch_traces import Trace, read_trace

TRACE_S = 60.0
_PROGRAM = "iree.trace"


def compare_dispatches(bad: ComparedRun, good: ComparedRun, means: Means) -> tuple[Finding, ...]:
    """Trace both runs. Return at most one finding: the dispatch at which they part."""
    traces = [trace_run(side, means) for side in (bad, good)]
    if traces[0] is None or traces[1] is None:
        return ()
    parting = first_parting(traces[0].dispatches, traces[1].dispatches)
    return () if parting is None else (_blame_dispatch(parting, len(traces[0].dispatches), bad.seen, good.seen),)


def trace_run(run: ComparedRun, means: Means) -> Trace | None:
    """Rerun the testcase with its dispatches traced; None if there is no trace, or the results changed with it."""
    asked = msgspec.json.encode({"steps": run.testcase.steps, "seconds": TRACE_S}).decode()
    hooked = msgspec.structs.replace(run.testcase, steps=(make_launch_step(_PROGRAM, asked),))
    trace = read_trace(means.run_hook(run.seen.version, hooked))
    untraced = read_tensors(run.seen.excerpt)
    return trace if trace is not None and _are_equal(trace.results, untraced) else None


def _are_equal(a: tuple[Tensor, ...] | None, b: tuple[Tensor, ...] | None) -> bool:
    """Whether two runs printed the same. NaN is a result like any other, and ``==`` of two of them is false."""
    if a is None or b is None or [_shape(one) for one in a] != [_shape(one) for one in b]:
        return False
    return not any(find_differing_values(one, other, 0.0) for one, other in zip(a, b, strict=True))


def _shape(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.shape, tensor.dtype, len(tensor.values)


# ---------------------------------------------------------------------------------------------- in words


def _blame_dispatch(parting: Parting, total: int, bad: Observation, good: Observation) -> Finding:
    kind = parting.dispatch.outputs[parting.output].type
    index = _unravel(parting.index, kind)
    here, there = f"{bad.version} on {bad.device}", f"{good.version} on {good.device}"
    x, y = parting.values
    place = f"[{', '.join(map(str, index))}]" if index else "its value"
    entry = parting.dispatch.name.rpartition("::")[2]
    return Finding(
        kind=FindingKind.GUILTY_PASS,
        summary=f"dispatch {parting.at} of {total}, {entry}, takes the same on {here} and {there} and gives other"
        f" values: output {parting.output} ({kind}) first differs at {place}: {x:g} against {y:g}",
        evidence={
            "name": entry,
            LEVEL: "dispatch",
            "version": bad.version,
            "device": bad.device,
            "against": there,
            "against_name": parting.other.name.rpartition("::")[2],
            "position": parting.at,
            "of": total,
            "same_before": parting.matched,
            "inputs": [one.type for one in parting.dispatch.inputs][:16],
            "output": parting.output,
            "type": kind,
            "differing": parting.count,
            "first_index": list(index),
            "values": [f"{x:g}", f"{y:g}"],
            REFUTED_BY: "the same values from both, or scalars handed to it that differ: traces show tensors only",
        },
    )


def _unravel(index: int, kind: str) -> tuple[int, ...]:
    """A place in a tensor from its place in row-major order; nothing for a scalar or a shape that can't hold it."""
    shape = [int(part) for part in kind.split("x")[:-1]]
    found: list[int] = []
    for extent in reversed(shape):
        if extent == 0:
            return ()
        index, at = divmod(index, extent)
        found.append(at)
    return tuple(reversed(found)) if index == 0 else ()
