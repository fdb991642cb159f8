"""Read the programs that the runs of a testcase print. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from runners.core.failure.printed.filters import is_counting
from runners.core.failure.printed.programs.program import MIN_OPERATIONS, Operation, number_values, read_operations
from runners.core.protocol import Exited, Observation, Outcome, Plan, Testcase, Variant

Program = tuple[Operation, ...]
"""An MLIR program, whose values have their numbers in order."""
GAP = re.compile(r"\.{3}|…")
"""Text that a report leaves out of a quotation."""


def list_runs(plan: Plan, observations: Sequence[Observation]) -> list[Observation]:
    """Return the runs of the posted program, also in the notation of the build, that ended with exit code 0."""

    def ends_well(seen: Observation) -> bool:
        is_posted = seen.variant is Variant.ORIGINAL or (seen.variant is Variant.PORTED and seen.notation_only)
        return is_posted and seen.device == plan.device and seen.ended == Exited(code=0)

    return [seen for seen in observations if ends_well(seen)]


def is_unjudged(seen: Observation) -> bool:
    """True for a run that no comparison with the claim has judged."""
    return seen.outcome is Outcome.OTHER_FAILURE


def read_programs(runs: Sequence[Observation]) -> dict[str, Program]:
    """Return the MLIR program that each build prints.

    Empty if a run prints no program, if runs of one build differ, or if only the end of a program was kept. The
    missing part is unknown.
    """
    return _read_each(runs, lambda printed: tuple(number_values(read_operations(printed))))


def print_programs(runs: Sequence[Observation]) -> bool:
    """True if each run prints a whole program, in MLIR or in TVMScript, and runs of one build agree."""
    return bool(_read_each(runs, _read_script_or_mlir))


def print_filtered(plan: Plan, runs: Sequence[Observation]) -> bool:
    """True if the excerpt of each run has the rows that the report's filters keep of a long output."""
    keeps = not is_counting(plan.testcase.read_filters())
    return keeps and bool(runs) and all(seen.excerpt.startswith(FILTERED) for seen in runs)


def list_posted(testcase: Testcase) -> list[str]:
    """Return the files of a testcase that contain a program as it is printed: MLIR, or TVMScript in Python."""
    return [
        text
        for name, text in testcase.files.items()
        if _SCRIPT.search(text) or (name.endswith(".mlir") and len(read_operations(text)) >= MIN_OPERATIONS)
    ]


_Rows = tuple[tuple[str, ...], ...]


def _read_each(runs: Sequence[Observation], read: Callable[[str], _Rows]) -> dict[str, _Rows]:
    programs: dict[str, _Rows] = {}
    for seen in runs:
        program = read(seen.excerpt)
        is_whole = len(program) >= MIN_OPERATIONS and not seen.excerpt.startswith((CUT, FILTERED))
        if not is_whole or programs.setdefault(seen.version, program) != program:
            return {}
    return programs


CUT = "[…]"
"""Mark before the kept end of a long output."""
FILTERED = "[filtered as in the report]"
"""Mark before the rows that the report's filters keep of a long output."""
_SCRIPT = re.compile(r"^[ \t]*@(?:I\.ir_module|T\.prim_func|R\.function)\b", re.M)


def _read_script_or_mlir(printed: str) -> _Rows:
    if _SCRIPT.search(printed):
        return tuple(tuple(row.split()) for row in printed.splitlines() if row.strip())
    return tuple(number_values(read_operations(printed)))
