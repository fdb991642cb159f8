"""Look for undefined behaviour in the text of an MLIR testcase, and confirm it by a run with only that part repaired.

The behaviour is undefined when the program runs. A compiler may reject such a program, but a compiler that crashes or
hangs on it is at fault itself.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from runners.core.findings.kinds import CONTROL_ENDS, ControlEnd, Origin
from runners.core.findings.record import make_finding
from runners.core.findings.types import IndexAccess, UndefinedStep
from runners.core.protocol import Exited, Finding, Observation
from runners.core.toolchain.broken_rule import BrokenRule, confirm_broken_rule, find_absence
from runners.core.toolchain.diagnosis import NOTHING_FOUND, Diagnosis, Failure, Means
from runners.toolchains.iree.diagnosis.rules.computed_operands import find_computed_operand
from runners.toolchains.iree.diagnosis.rules.lookups import find_lookup
from runners.toolchains.iree.diagnosis.rules.operation_rules import find_broken_rule
from runners.toolchains.iree.diagnosis.rules.undefined_operands import Fault, find_fault


def check_source_text(failure: Failure, means: Means) -> Diagnosis:
    """Look for an undefined operand, then for a violated rule of an operation."""
    searches = (find_fault, find_lookup, find_broken_rule, find_computed_operand)
    found = next((one for search in searches if (one := search(failure.testcase)) is not None), None)
    if found is None or not _can_compile(failure, means):
        return NOTHING_FOUND
    match found:
        case Fault():
            return _confirm_fault(found, failure, means)
        case BrokenRule():
            return confirm_broken_rule(found, failure, means)
        case _:
            assert_never(found)


def _can_compile(failure: Failure, means: Means) -> bool:
    """True if the steps up to the last compilation, run alone, exit normally: cleanly, or with a rejection."""
    steps = failure.testcase.steps
    last = max((at for at, step in enumerate(steps) if step[0] == "iree-compile"), default=-1)
    if last < 0:
        return False
    compiling = msgspec.structs.replace(failure.testcase, steps=steps[: last + 1])
    return isinstance(means.run_control(failure, compiling).ended, Exited)


def _confirm_fault(fault: Fault, failure: Failure, means: Means) -> Diagnosis:
    """Run the testcase with this operand repaired. Return a finding if the failure is gone."""
    control = means.run_control(failure, fault.mended)
    gone = find_absence(control, failure.seen)
    if gone is None:
        return Diagnosis(controls=(control,))
    return Diagnosis(controls=(control,), findings=(_blame_operand(fault, failure.seen, gone),))


def _blame_operand(fault: Fault, failing: Observation, end: ControlEnd) -> Finding:
    right = fault.instead
    summary = f"{fault}; with {right} for that operand {CONTROL_ENDS[end]}"
    step = UndefinedStep(
        operation=fault.operation,
        file=fault.file,
        line=fault.line,
        value=fault.value,
        instead=right,
        version=failing.version,
        origin=Origin.TESTCASE,
        control=f"{fault.operation} with {right} instead: {CONTROL_ENDS[end]}",
        control_end=end,
    )
    if fault.extent is None:
        return make_finding(step, summary)
    return make_finding(IndexAccess(**msgspec.structs.asdict(step), extent=fault.extent, axis=fault.axis), summary)
