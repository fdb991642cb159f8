"""Run the diagnoses of one investigation.

A diagnosis may begin early, and another failure may take the place of its failure. It may use the runs of the search.
"""

from __future__ import annotations

from concurrent.futures import Executor

from runners.core.conditions import is_native
from runners.core.findings.kinds import Blame
from runners.core.findings.questions import add_refutation, get_blame
from runners.core.progress import Sink
from runners.core.protocol import Finding, FindingKind, Plan
from runners.core.runs import RunRequest, RunResult
from runners.core.toolchain.diagnosis import ComparedRun, Diagnosis, Failure
from runners.diagnosis.diagnose import diagnose_failure
from runners.diagnosis.nondeterminism import EarlierRun
from runners.toolchains import find_toolchain
from runners.workbench.ahead import Runs, Withdrawn, make_key
from runners.workbench.means import make_means, make_rerun_request, run_under


class DiagnosisRuns:
    """The diagnoses of a plan, and the runs of its matrix and its search."""

    def __init__(self, plan: Plan, runs: Runs, progress: Sink, background: Executor | None) -> None:
        self._plan = plan
        self._runs = runs
        self._progress = progress
        self._background = background
        self._toolchain = find_toolchain(plan.testcase.toolchain)
        self._diagnosed: list[Failure] = []
        self._made: dict[bytes, tuple[RunRequest, RunResult]] = {}

    def record(self, request: RunRequest, result: RunResult) -> None:
        """Record a run of the matrix or the search."""
        self._made[make_key(request)] = request, result

    def diagnose(self, failure: Failure) -> Diagnosis:
        """Look for the cause of a failure. A later call for another failure ends this one.

        Raises:
            Withdrawn: another failure took the place of this one.
        """
        self._diagnosed.append(failure)
        # The failing run of a flaky failure is not a random sample: it was chosen because it failed.
        before = {} if failure.is_flaky else dict(self._made)  # a copy: the search may continue in other threads
        usable = {key: result for key, (_, result) in before.items()}

        def is_current() -> bool:
            return self._diagnosed[-1] is failure

        def execute(request: RunRequest) -> RunResult:
            if not is_current():
                raise Withdrawn("the diagnosis of another failure took its place")
            return self._runs.execute_early(request)

        def expect(request: RunRequest) -> None:
            self._runs.expect(request, wanted=is_current)

        def rerun(request: RunRequest) -> RunResult:
            """Return an equal run of the search if it was not used yet, or make one."""
            return usable.pop(make_key(request), None) or execute(request)

        plan = self._plan
        return diagnose_failure(
            failure,
            self._toolchain.load_diagnosers(),
            make_means(execute, self._progress, plan, failure.seen.varied, expect=expect),
            lambda version, testcase, setup: run_under(rerun, plan, version, testcase, setup),
            expect_under=lambda version, testcase, setup: expect(make_rerun_request(plan, version, testcase, setup)),
            executor=self._background,
            native=is_native(failure.testcase, self._toolchain.GUEST),
            list_earlier=lambda: self._list_earlier(failure),
        )

    def _list_earlier(self, failure: Failure) -> list[EarlierRun]:
        """Return the runs of the search on the build and the device of a failure."""
        self._runs.wait_for_search()
        return [
            EarlierRun(varied=asked.varied, ended=result.ended, steps=result.steps)
            for asked, result in list(self._made.values())
            if _is_run_of(failure, asked)
        ]

    def ask_references(self, failure: Failure) -> Diagnosis:
        """Return the votes of the references on the values of a run, and what its testcase leaves undefined."""
        means = make_means(self._runs.execute, self._progress, self._plan, failure.seen.varied)
        asked = [one for one in self._toolchain.load_diagnosers() if one.votes or one.finds_undefined]
        found = [one.diagnose(failure, means) for one in asked if one.applies_to(failure)]
        told = (finding for one in found for finding in one.findings if _tells_of_values(finding))
        controls = tuple(control for one in found for control in one.controls)
        return Diagnosis(controls=controls, findings=tuple(map(add_refutation, told)))

    def compare(self, bad: ComparedRun, good: ComparedRun) -> tuple[Finding, ...]:
        """Return findings about the first difference of two runs."""
        means = make_means(self._runs.execute, self._progress, self._plan, expect=self._runs.expect)
        return tuple(
            finding for compare in self._toolchain.load_comparisons() for finding in compare(bad, good, means)
        )


def _tells_of_values(finding: Finding) -> bool:
    """True for a vote, and for values that are undefined because of the testcase."""
    undefined = finding.kind in _LEAVES_UNDEFINED
    return finding.kind is FindingKind.REFERENCE or (undefined and get_blame(finding) is Blame.TESTCASE)


_LEAVES_UNDEFINED = (FindingKind.UNINITIALIZED_READ, FindingKind.OUT_OF_BOUNDS_ACCESS, FindingKind.BROKEN_RULE)
"""Faults of a testcase that leave its values undefined."""


def _is_run_of(failure: Failure, request: RunRequest) -> bool:
    return (request.version, request.device, request.testcase) == (
        failure.seen.version,
        failure.seen.device,
        failure.testcase,
    )
