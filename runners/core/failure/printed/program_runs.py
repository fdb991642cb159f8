"""Read the programs that the runs of a testcase print. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.core.failure.printed.program import MIN_OPERATIONS, number_values, read_operations
from runners.core.protocol import Exited, Observation, Outcome, Plan, Variant

Program = tuple[tuple[str, ...], ...]
"""The MLIR operations, or the rows of TVMScript, by which two printed programs are compared."""


def list_runs(plan: Plan, observations: Sequence[Observation]) -> list[Observation]:
    """Return the runs of the posted program, also ported to the names of the build, that ended with exit code 0."""

    def ends_well(seen: Observation) -> bool:
        is_posted = seen.variant in (Variant.ORIGINAL, Variant.PORTED)
        return is_posted and seen.device == plan.device and seen.ended == Exited(code=0)

    return [seen for seen in observations if ends_well(seen)]


def is_unjudged(seen: Observation) -> bool:
    """True for a run that no comparison with the claim has judged."""
    return seen.outcome is Outcome.OTHER_FAILURE


def read_programs(runs: Sequence[Observation]) -> dict[str, Program]:
    """Return the program that each build prints.

    Empty if a run prints no program, if runs of one build differ, or if only the end of a program was kept. The
    missing part is unknown.
    """
    programs: dict[str, Program] = {}
    for seen in runs:
        program = _read_program(seen.excerpt)
        if not program or seen.excerpt.startswith(_CUT) or programs.setdefault(seen.version, program) != program:
            return {}
    return programs


_CUT = "[…]"
"""Mark before the kept end of a long output."""
_SCRIPT = re.compile(r"^[ \t]*@(?:I\.ir_module|T\.prim_func|R\.function)\b", re.M)


def _read_program(printed: str) -> Program:
    """Return a printed program. Empty for any other output."""
    if _SCRIPT.search(printed):
        return tuple(tuple(row.split()) for row in printed.splitlines() if row.strip())
    operations = number_values(read_operations(printed))
    return tuple(operations) if len(operations) >= MIN_OPERATIONS else ()
