"""Make the effects of an investigation and of its diagnoses from one function that executes runs.

That function may be a sandbox, a ledger or a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import msgspec

from runners.core.conditions import USUAL, is_native
from runners.core.failure.outcomes import is_rejected
from runners.core.findings.kinds import Blame
from runners.core.findings.questions import add_refutation, get_blame
from runners.core.progress import Sink
from runners.core.protocol import Cell, Finding, FindingKind, Limits, Observation, Plan, Testcase, Variant, Varied
from runners.core.runs import Execute, RunRequest, RunResult, Tell
from runners.core.toolchain.contract import Toolchain
from runners.core.toolchain.diagnosis import ComparedRun, Diagnosis, Failure, Means
from runners.diagnosis.diagnose import diagnose_failure
from runners.diagnosis.nondeterminism import AS_IT_IS, EarlierRun, Rerun, Setup, record_rerun
from runners.diagnosis.reach import check_reach
from runners.investigation.state import BuildSearch, Port, Tools, make_cell
from runners.probe.observe import make_observation, make_request, observe_cell
from runners.toolchains import find_toolchain
from runners.workbench.ahead import RunsAhead, Withdrawn, make_key


def make_tools(
    plan: Plan,
    execute: Execute,
    executor: Executor,
    progress: Sink,
    *,
    stand_ins: Sequence[str] = (),
    between_releases: BuildSearch | None = None,
    ahead: RunsAhead | None = None,
    background: Executor | None = None,
    tell: Tell | None = None,
    find_younger: Callable[[str], Mapping[str, tuple[str, str]]] = lambda _version: {},
) -> Tools:
    """Return the effects of an investigation of a plan. ``stand_ins`` are the stand-in devices of this machine.

    With ``ahead`` and ``background``, runs and the diagnosis may begin early.
    """
    toolchain = find_toolchain(plan.testcase.toolchain)
    execute_early = execute if ahead is None else ahead.execute_early
    diagnosed: list[Failure] = []
    made: dict[bytes, tuple[RunRequest, RunResult]] = {}
    """Runs of the matrix and the search."""

    def run_cell(cell: Cell, attempt: int) -> Observation:
        request = make_request(cell, attempt, fresh=cell.variant is Variant.CONTROL)
        result = execute(request)
        made[make_key(request)] = request, result
        return make_observation(plan, cell, attempt, result)

    def look_for_cause(failure: Failure) -> Diagnosis:
        diagnosed.append(failure)
        # The failing run of a flaky failure is not a random sample: it was chosen because it failed.
        before = {} if failure.is_flaky else dict(made)  # a copy: the search may continue in other threads
        usable = {key: result for key, (_, result) in before.items()}

        def is_current() -> bool:
            return diagnosed[-1] is failure

        def execute_diagnosis(request: RunRequest) -> RunResult:
            if not is_current():
                raise Withdrawn("the diagnosis of another failure took its place")
            return execute_early(request)

        def expect(request: RunRequest) -> None:
            if ahead is not None:
                ahead.expect(request, wanted=is_current)

        def list_earlier() -> list[EarlierRun]:
            if ahead is not None:
                ahead.wait_for_search()
            return [
                EarlierRun(varied=asked.varied, ended=result.ended, steps=result.steps)
                for asked, result in list(made.values())
                if _is_run_of(failure, asked)
            ]

        def rerun(request: RunRequest) -> RunResult:
            """Return an equal run of the search if it was not used yet, or make one."""
            return usable.pop(make_key(request), None) or execute_diagnosis(request)

        return diagnose_failure(
            failure,
            toolchain.load_diagnosers(),
            make_means(execute_diagnosis, progress, plan, failure.seen.varied, expect=expect),
            lambda version, testcase, setup: run_under(rerun, plan, version, testcase, setup),
            expect_under=lambda version, testcase, setup: expect(_make_rerun_request(plan, version, testcase, setup)),
            executor=background,
            native=is_native(failure.testcase, toolchain.GUEST),
            list_earlier=list_earlier,
        )

    def ask_references(failure: Failure) -> Diagnosis:
        means = make_means(execute, progress, plan, failure.seen.varied)
        asked = [one for one in toolchain.load_diagnosers() if one.votes or one.finds_undefined]
        found = [one.diagnose(failure, means) for one in asked if one.applies_to(failure)]
        told = (finding for one in found for finding in one.findings if _tells_of_values(finding))
        controls = tuple(control for one in found for control in one.controls)
        return Diagnosis(controls=controls, findings=tuple(map(add_refutation, told)))

    def compare(bad: ComparedRun, good: ComparedRun) -> tuple[Finding, ...]:
        means = make_means(execute, progress, plan, expect=(lambda _request: None) if ahead is None else ahead.expect)
        return tuple(finding for compare in toolchain.load_comparisons() for finding in compare(bad, good, means))

    def look_for_reach(version: str, testcase: Testcase) -> tuple[Finding, ...]:
        means = make_means(execute, progress, plan)
        return check_reach(testcase, version, plan.claim.accused, toolchain.FAILURES.packages, means)

    return Tools(
        run=run_cell,
        port=lambda testcase, version: _port_with_changes(testcase, version, toolchain),
        port_again=lambda testcase, version, said: _port_with_changes(testcase, version, toolchain, said),
        supply_data=toolchain.REWRITING.supply_data,
        is_rejected=lambda seen: is_rejected(seen, toolchain.FAILURES),
        retarget=_retarget,
        compile_for=toolchain.REWRITING.compile_for,
        targets=toolchain.REWRITING.targets,
        diagnose=look_for_cause,
        ask_references=ask_references,
        compare=compare,
        check_reach=look_for_reach,
        find_younger=find_younger,
        expect=(lambda cell, attempt: None) if ahead is None else _make_expect(ahead),
        background=background,
        tell=tell,
        finish_search=(lambda: None) if ahead is None else ahead.finish_search,
        executor=executor,
        progress=progress,
        stand_ins=tuple(stand_ins),
        between_releases=between_releases,
    )


def _tells_of_values(finding: Finding) -> bool:
    """True for a vote, and for values that are undefined because of the testcase."""
    undefined = finding.kind in (FindingKind.UNINITIALIZED_READ, FindingKind.OUT_OF_BOUNDS_ACCESS)
    return finding.kind is FindingKind.REFERENCE or (undefined and get_blame(finding) is Blame.TESTCASE)


def _is_run_of(failure: Failure, request: RunRequest) -> bool:
    return (request.version, request.device, request.testcase) == (
        failure.seen.version,
        failure.seen.device,
        failure.testcase,
    )


def _make_expect(ahead: RunsAhead) -> Callable[[Cell, int], None]:
    return lambda cell, attempt: ahead.expect(make_request(cell, attempt))


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


def _retarget(testcase: Testcase, device: str) -> Testcase | None:
    from runners.rewrite.testcase import retarget_testcase

    return retarget_testcase(testcase, device)


def make_means(
    execute: Execute,
    progress: Sink,
    plan: Plan,
    under: Varied = USUAL,
    *,
    expect: Callable[[RunRequest], None] = lambda _request: None,
) -> Means:
    """Return the effects for a diagnosis of this plan, under the conditions in which its failure was seen.

    Every run has its own sandbox, because findings rest on single runs.
    """

    def make_run_cell(version: str, variant: Variant, testcase: Testcase, device: str) -> Cell:
        return make_cell(plan, version, variant=variant, testcase=testcase, device=device, under=under)

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        cell = make_run_cell(version, variant, testcase, device)
        progress.cell(cell, None)
        seen = observe_cell(execute, plan, cell, 1, fresh=True)
        progress.cell(cell, seen)
        return seen

    def make_hook_request(version: str, testcase: Testcase) -> RunRequest:
        limits = double_time(plan.limits)
        return RunRequest(
            version=version, device=plan.device, testcase=testcase, limits=limits, varied=under, fresh=True, hook=True
        )

    def run_hook(version: str, testcase: Testcase) -> str:
        return execute(make_hook_request(version, testcase)).hook_file or ""

    def expect_hook(version: str, testcase: Testcase) -> None:
        expect(make_hook_request(version, testcase))

    def expect_run(version: str, variant: Variant, testcase: Testcase, device: str) -> None:
        expect(make_request(make_run_cell(version, variant, testcase, device), 1, fresh=True))

    return Means(run=run, run_hook=run_hook, retarget=_retarget, expect=expect_run, expect_hook=expect_hook)


def run_under(execute: Execute, plan: Plan, version: str, testcase: Testcase, setup: Setup) -> Rerun | None:
    """Run a testcase once under chosen conditions. `AS_IT_IS` has new addresses in each run."""
    result = execute(_make_rerun_request(plan, version, testcase, setup))
    return record_rerun(setup, result.ended, result.steps)


def _make_rerun_request(plan: Plan, version: str, testcase: Testcase, setup: Setup) -> RunRequest:
    return RunRequest(
        version=version,
        device=plan.device,
        testcase=testcase,
        limits=plan.limits,
        varied=setup.varied,
        seed=setup.seed,
        may_fork=setup != AS_IT_IS,
        fresh=setup.fresh,
    )


def double_time(limits: Limits) -> Limits:
    """Return the limits of an instrumented run, which may take twice as long."""
    cpu_s = None if limits.cpu_s is None else 2 * limits.cpu_s
    return msgspec.structs.replace(limits, wall_s=2 * limits.wall_s, cpu_s=cpu_s)


@contextmanager
def open_executor(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Open threads around sandbox processes. An interrupt drops tasks that have not begun."""
    executor = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="probe")
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
