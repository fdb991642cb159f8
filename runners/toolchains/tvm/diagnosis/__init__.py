"""List the diagnosers for failures of TVM, cheapest first."""

from __future__ import annotations

from collections.abc import Sequence

from runners.core.protocol import TestcaseKind
from runners.core.toolchain.diagnosis import Diagnoser
from runners.core.toolchain.undefined_casts import check_numpy_casts
from runners.toolchains.tvm.diagnosis.calls import check_call
from runners.toolchains.tvm.diagnosis.instrumentation import run_instrumented
from runners.toolchains.tvm.diagnosis.pass_bisect import bisect_passes
from runners.toolchains.tvm.diagnosis.reference import ask_reference
from runners.toolchains.tvm.diagnosis.rules.argument_order import check_argument_order
from runners.toolchains.tvm.diagnosis.rules.block_access import check_block_access
from runners.toolchains.tvm.diagnosis.rules.dataflow_outputs import check_dataflow_outputs
from runners.toolchains.tvm.diagnosis.rules.documented_changes import check_documented_changes
from runners.toolchains.tvm.diagnosis.rules.invalid_model import check_model
from runners.toolchains.tvm.diagnosis.rules.live_argument import check_live_argument
from runners.toolchains.tvm.diagnosis.rules.missing_init import check_missing_init
from runners.toolchains.tvm.diagnosis.rules.parallel_writes import check_parallel_writes
from runners.toolchains.tvm.diagnosis.rules.switched_off import check_switches
from runners.toolchains.tvm.diagnosis.rules.unfit_shapes import check_shapes

DIAGNOSERS: Sequence[Diagnoser] = (
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_numpy_casts),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_call),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_model),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_shapes),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_dataflow_outputs),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_live_argument),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_missing_init),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_parallel_writes),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_block_access),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_switches),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_argument_order),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=check_documented_changes),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=run_instrumented, finds_undefined=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=ask_reference, needs_reproducible=True, settles=False, votes=True),
    Diagnoser(kind=TestcaseKind.PYTHON, diagnose=bisect_passes, needs_reproducible=True),
)
