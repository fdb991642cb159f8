"""Make the effects of an investigation and of its diagnoses from one function that executes runs.

That function may be a sandbox, a ledger or a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from runners.core.failure.outcomes import is_rejected
from runners.core.progress import Sink
from runners.core.protocol import Cell, Finding, Observation, Plan, Testcase, Variant
from runners.core.toolchain.contract import Toolchain
from runners.diagnosis.reach import check_reach
from runners.investigation.state import Port, Tools
from runners.probe.observe import make_observation, make_request
from runners.toolchains import find_toolchain
from runners.workbench.ahead import Runs
from runners.workbench.diagnosis_runs import DiagnosisRuns
from runners.workbench.means import make_means, retarget


def make_tools(
    plan: Plan,
    runs: Runs,
    executor: Executor,
    progress: Sink,
    *,
    stand_ins: Sequence[str] = (),
    background: Executor | None = None,
) -> Tools:
    """Return the effects of an investigation of a plan. ``stand_ins`` are the stand-in devices of this machine.

    With ``background``, the diagnosis may begin early.
    """
    toolchain = find_toolchain(plan.testcase.toolchain)
    diagnosis = DiagnosisRuns(plan, runs, progress, background)

    def run_cell(cell: Cell, attempt: int) -> Observation:
        request = make_request(cell, attempt, fresh=cell.variant is Variant.CONTROL)
        result = runs.execute(request)
        diagnosis.record(request, result)
        return make_observation(plan, cell, attempt, result)

    def look_for_reach(version: str, testcase: Testcase) -> tuple[Finding, ...]:
        means = make_means(runs.execute, progress, plan)
        return check_reach(testcase, version, plan.claim.accused, toolchain.FAILURES.packages, means)

    return Tools(
        run=run_cell,
        port=lambda testcase, version: _port_with_changes(testcase, version, toolchain),
        port_again=lambda testcase, version, said: _port_with_changes(testcase, version, toolchain, said),
        supply_data=toolchain.REWRITING.supply_data,
        is_rejected=lambda seen: is_rejected(seen, toolchain.FAILURES),
        retarget=retarget,
        compile_for=toolchain.REWRITING.compile_for,
        targets=toolchain.REWRITING.targets,
        diagnose=diagnosis.diagnose,
        ask_references=diagnosis.ask_references,
        compare=diagnosis.compare,
        check_reach=look_for_reach,
        expect=lambda cell, attempt: runs.expect(make_request(cell, attempt)),
        background=background,
        finish_search=runs.finish_search,
        executor=executor,
        progress=progress,
        stand_ins=tuple(stand_ins),
    )


def _port_with_changes(testcase: Testcase, version: str, toolchain: Toolchain, said: str = "") -> Port | None:
    from runners.rewrite.testcase import port_testcase  # its parser takes 0.15 s, which few plans need

    ported = port_testcase(testcase, version, toolchain, said)
    if ported is None:
        return None
    changes = dict.fromkeys(f"{change.old} → {change.new}"[:500] for change in ported.substitutions)
    return Port(
        testcase=ported.testcase,
        changes=tuple(changes),
        notation_only=ported.is_notation_only,
        prints_all=ported.prints_all,
    )


@contextmanager
def open_executor(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Open threads around sandbox processes. An interrupt drops tasks that have not begun."""
    executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="probe")
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
