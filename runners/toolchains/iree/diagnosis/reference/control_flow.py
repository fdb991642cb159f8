"""Run the operations of StableHLO and ``scf`` that run regions: loops, branches and maps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from runners.core.mlir.operations import Region
from runners.toolchains.iree.diagnosis.reference.statements import Statement, UndefinedResult
from runners.toolchains.iree.diagnosis.reference.tensors import Values

MAX_ITERATIONS = 1_000
"""Maximum number of iterations of one loop."""
RunRegion = Callable[[Region, Sequence[Values]], Sequence[Values]]
"""Runs the statements of a region on its arguments, for all places at once."""
FLOW = frozenset({"while", "if", "case", "map"})


def run_flow(statement: Statement, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    """Return the results of one of the operations `FLOW` of StableHLO, or of ``scf``."""
    regions, operation = statement.regions, statement.operation.removeprefix("stablehlo.").removeprefix("mhlo.")
    match operation:
        case "scf.for" if len(regions) == 1 and len(operands) >= 3:
            return _count_up(regions[0], operands, run_region)
        case "scf.while" if len(regions) == 2:
            return _repeat_forwarding(regions[0], regions[1], operands, run_region)
        case "while" if len(regions) == 2:
            return _repeat(regions[0], regions[1], operands, run_region)
        case "if" | "scf.if" if len(regions) == 2 and len(operands) == 1:
            return run_region(regions[0 if _read_scalar(operands[0]) else 1], ())
        case "scf.if" if len(regions) == 1 and len(operands) == 1 and not statement.results:
            return run_region(regions[0], ()) if _read_scalar(operands[0]) else ()
        case "case" if regions and len(operands) == 1:
            chosen = _read_scalar(operands[0])
            return run_region(regions[chosen if 0 <= chosen < len(regions) else -1], ())
        case "map" if len(regions) == 1 and operands:
            (result,) = run_region(regions[0], [replace(one, shape=()) for one in operands])
            return [replace(result, shape=operands[0].shape)]
        case _:
            raise UndefinedResult(statement.operation)


def _repeat(condition: Region, body: Region, given: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    values = given
    for _ in range(MAX_ITERATIONS):
        (goes_on,) = run_region(condition, values)
        if not _read_scalar(goes_on):
            return values
        values = run_region(body, values)
    raise UndefinedResult("a long loop")


def _repeat_forwarding(
    condition: Region, body: Region, given: Sequence[Values], run_region: RunRegion
) -> Sequence[Values]:
    """Run ``scf.while``: the condition gives the values for the body, and finally the results."""
    values = given
    for _ in range(MAX_ITERATIONS):
        goes_on, *forwarded = run_region(condition, values)
        if not _read_scalar(goes_on):
            return forwarded
        values = run_region(body, forwarded)
    raise UndefinedResult("a long loop")


def _count_up(body: Region, operands: Sequence[Values], run_region: RunRegion) -> Sequence[Values]:
    """Run ``scf.for``, whose first operands are the bounds and the step."""
    first, end, step = map(_read_scalar, operands[:3])
    values = operands[3:]
    if step < 1 or len(range(first, end, step)) > MAX_ITERATIONS:
        raise UndefinedResult("a long loop")
    for at in range(first, end, step):
        values = run_region(body, (replace(operands[0], numbers=(at,)), *values))
    return values


def _read_scalar(values: Values) -> int:
    """Return the only element. The regions of a reduction run for many elements, which may branch differently."""
    if values.shape or len(values.numbers) != 1:
        raise UndefinedResult("a branch of many elements")
    return int(values.numbers[0])
