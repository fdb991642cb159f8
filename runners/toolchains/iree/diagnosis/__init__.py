"""List the diagnosers for failures of IREE, cheapest first, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Comparison, Diagnoser
from runners.core.toolchain.undefined_casts import check_numpy_casts
from runners.toolchains.iree.diagnosis.calls import check_call
from runners.toolchains.iree.diagnosis.dispatches import compare_dispatches
from runners.toolchains.iree.diagnosis.pass_bisect import bisect_passes
from runners.toolchains.iree.diagnosis.python_programs.called import CommandCheck, read_called
from runners.toolchains.iree.diagnosis.python_programs.embedded import compile_only, read_embedded
from runners.toolchains.iree.diagnosis.reference import check_definitions
from runners.toolchains.iree.diagnosis.rules.source_text import check_source_text
from runners.toolchains.iree.diagnosis.unwritten_tensors import check_unwritten_tensors
from runners.toolchains.iree.diagnosis.vmvx_bounds import check_bounds

check_called = read_called(
    CommandCheck(diagnose=check_definitions, same_values=True), CommandCheck(diagnose=check_bounds, same_values=False)
)
DIAGNOSERS: Sequence[Diagnoser] = (
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=check_call),
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=check_source_text, finds_undefined=True),
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=check_unwritten_tensors, finds_undefined=True),
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=check_bounds),
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=check_definitions, votes=True),
    Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=bisect_passes, needs_reproducible=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_call),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_numpy_casts),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=read_embedded(check_source_text), finds_undefined=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=read_embedded(check_unwritten_tensors), finds_undefined=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_called, votes=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=read_embedded(compile_only(bisect_passes)), needs_reproducible=True),
)
COMPARISONS: Sequence[Comparison] = (compare_dispatches,)
