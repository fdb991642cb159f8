"""The effects of an investigation, made from one function that executes runs: a sandbox, a ledger or a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from runners.core.progress import Sink
from runners.core.protocol import Finding, Plan, Testcase
from runners.core.runs import Execute
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.diagnosis import ComparedRun, Diagnosis, Failure
from runners.diagnosis.diagnose import diagnose_failure
from runners.investigation.state import BuildSearch, Tools
from runners.probe.observe import observe_cell
from runners.rewrite.testcase import port_testcase, retarget_testcase
from runners.toolchains import find_toolchain
from runners.workbench.means import make_means, run_under


def make_tools(
    plan: Plan,
    execute: Execute,
    executor: Executor,
    progress: Sink,
    *,
    stand_ins: Sequence[str] = (),
    between_releases: BuildSearch | None = None,
) -> Tools:
    toolchain = find_toolchain(plan.testcase.toolchain)

    def look_for_cause(failure: Failure) -> Diagnosis:
        return diagnose_failure(
            failure,
            toolchain.DIAGNOSERS,
            make_means(execute, progress, plan, failure.seen.varied),
            lambda version, testcase, setup: run_under(execute, plan, version, testcase, setup),
        )

    def compare(bad: ComparedRun, good: ComparedRun) -> tuple[Finding, ...]:
        means = make_means(execute, progress, plan)
        return tuple(finding for compare in toolchain.COMPARISONS for finding in compare(bad, good, means))

    return Tools(
        run=lambda cell, attempt: observe_cell(execute, plan, cell, attempt),
        port=lambda testcase, version: _port(testcase, version, toolchain),
        retarget=retarget_testcase,
        diagnose=look_for_cause,
        compare=compare,
        executor=executor,
        progress=progress,
        stand_ins=tuple(stand_ins),
        between_releases=between_releases,
    )


def _port(testcase: Testcase, version: str, toolchain: Toolchain) -> tuple[Testcase, tuple[str, ...]] | None:
    ported = port_testcase(testcase, version, toolchain)
    if ported is None:
        return None
    changes = dict.fromkeys(f"{change.old} → {change.new}"[:500] for change in ported.substitutions)
    return ported.testcase, tuple(changes)


@contextmanager
def open_executor(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads around sandbox processes; an interrupt drops tasks that have not begun."""
    executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="probe")
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
