"""Find the first dispatch of an IREE program with the same inputs on two runs and different outputs.

Both runs are traced in their sandboxes (``guest/iree/trace.py``). The traces are claims (``dispatch_traces.py``);
their dispatches are matched by their inputs (``dispatch_matching.py``).
"""

from __future__ import annotations

import msgspec

from runners.core.failure.tensor_difference import Tensor, find_differing_values, read_tensors
from runners.core.findings.kinds import PassLevel
from runners.core.findings.record import make_finding
from runners.core.findings.types import DispatchEvidence
from runners.core.protocol import Finding, Observation, Testcase
from runners.core.toolchain.diagnosis import ComparedRun, Means
from runners.core.toolchain.guest import make_launch_step
from runners.toolchains.iree.diagnosis.dispatch_matching import Divergence, find_divergence
from runners.toolchains.iree.diagnosis.dispatch_traces import Trace, read_trace

TRACE_S = 60.0
_PROGRAM = "iree.trace"


def compare_dispatches(bad: ComparedRun, good: ComparedRun, means: Means) -> tuple[Finding, ...]:
    """Trace both runs. Return at most one finding: the first dispatch that differs."""
    for side in (bad, good):
        means.expect_hook(side.seen.version, _trace_dispatches(side.testcase))
    traces = [trace_run(side, means) for side in (bad, good)]
    if traces[0] is None or traces[1] is None:
        return ()
    divergence = find_divergence(traces[0].dispatches, traces[1].dispatches)
    return (
        () if divergence is None else (_blame_dispatch(divergence, len(traces[0].dispatches), bad.seen, good.seen),)
    )


def trace_run(run: ComparedRun, means: Means) -> Trace | None:
    """Rerun the testcase with its dispatches traced. None without a trace, or if tracing changed the results."""
    trace = read_trace(means.run_hook(run.seen.version, _trace_dispatches(run.testcase)))
    untraced = read_tensors(run.seen.excerpt)
    return trace if trace is not None and _are_equal(trace.results, untraced) else None


def _trace_dispatches(testcase: Testcase) -> Testcase:
    asked = msgspec.json.encode({"steps": testcase.steps, "seconds": TRACE_S}).decode()
    return msgspec.structs.replace(testcase, steps=(make_launch_step(_PROGRAM, asked),))


def _are_equal(a: tuple[Tensor, ...] | None, b: tuple[Tensor, ...] | None) -> bool:
    """True if two runs printed the same values. NaN equals NaN here, unlike with ``==``."""
    if a is None or b is None or [_get_shape(one) for one in a] != [_get_shape(one) for one in b]:
        return False
    return not any(find_differing_values(one, other, 0.0) for one, other in zip(a, b, strict=True))


def _get_shape(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.shape, tensor.dtype, len(tensor.values)


# ---------------------------------------------------------------------------------------------- in words


def _blame_dispatch(divergence: Divergence, total: int, bad: Observation, good: Observation) -> Finding:
    kind = divergence.dispatch.outputs[divergence.output].type
    index = _unravel_index(divergence.index, kind)
    here, there = f"{bad.version} on {bad.device}", f"{good.version} on {good.device}"
    x, y = divergence.values
    place = f"[{', '.join(map(str, index))}]" if index else "its value"
    entry = divergence.dispatch.name.rpartition("::")[2]
    evidence = DispatchEvidence(
        name=entry,
        level=PassLevel.DISPATCH,
        version=bad.version,
        device=bad.device,
        against=there,
        against_name=divergence.other.name.rpartition("::")[2],
        position=divergence.at,
        of=total,
        same_before=divergence.matched,
        inputs=tuple(one.type for one in divergence.dispatch.inputs)[:16],
        output=divergence.output,
        type=kind,
        differing=divergence.count,
        first_index=index,
        values=(f"{x:g}", f"{y:g}"),
        refuted_by="the same values from both, or scalars handed to it that differ: traces show tensors only",
    )
    return make_finding(
        evidence,
        f"dispatch {divergence.at} of {total}, {entry}, takes the same on {here} and {there} and gives other"
        f" values: output {divergence.output} ({kind}) first differs at {place}: {x:g} against {y:g}",
    )


def _unravel_index(index: int, kind: str) -> tuple[int, ...]:
    """Return the indices of a row-major index. Empty for a scalar, or if the index is outside the shape."""
    shape = [int(part) for part in kind.split("x")[:-1]]
    found: list[int] = []
    for extent in reversed(shape):
        if extent == 0:
            return ()
        index, at = divmod(index, extent)
        found.append(at)
    return tuple(reversed(found)) if index == 0 else ()
