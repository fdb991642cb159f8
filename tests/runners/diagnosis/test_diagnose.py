"""The order of a diagnosis: generic diagnosers first, and none after the cause is settled."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runners.core.findings.kinds import KINDS, Settles
from runners.core.protocol import (
    Exited,
    Finding,
    FindingKind,
    Observation,
    Outcome,
    Signature,
    Testcase,
    TestcaseKind,
    Variant,
)
from runners.core.toolchain.diagnosis import Diagnoser, Diagnosis, Failure, Means
from runners.diagnosis.diagnose import diagnose_failure
from runners.diagnosis.forgotten_import import insert_first
from runners.diagnosis.nondeterminism import Rerun, Setup
from runners.toolchains import find_toolchain
from runners.toolchains.tvm.diagnosis.reference import ask_reference
from tests.support.means import diagnose_once, make_means
from tests.support.observed import observe

PYTHON = Testcase(
    kind=TestcaseKind.PYTHON,
    toolchain="tvm",
    files={"r.py": "from __future__ import annotations\nimport tvm\ntvm.relax.frontend.onnx.f()\n"},
    steps=(("python", "r.py"),),
)
NO_SUBMODULE = Signature(type="AttributeError", message="module 'tvm.relax.frontend' has no attribute 'onnx'")


def scripted(outcome: Outcome) -> tuple[Means, list[Testcase]]:
    """Runs that all end in one way; the testcases that were run are recorded."""
    ran: list[Testcase] = []

    def run(version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        ran.append(testcase)
        return observe(version, outcome, device=device)

    return make_means(run), ran


def failure(signature: Signature | None = None, clean: Observation | None = None) -> Failure:
    return Failure(testcase=PYTHON, seen=observe("1.0", Outcome.MATCH, signature=signature), clean=clean)


def test_a_forgotten_import_is_proved_by_a_run_with_it() -> None:
    """The control differs by that one line, and runs on the failing release."""
    means, ran = scripted(Outcome.PASS)
    found = diagnose_once((), failure(NO_SUBMODULE), means)
    assert [finding.kind for finding in found.findings] == [FindingKind.MISSING]
    assert len(found.controls) == 1
    assert ran[0].files["r.py"].splitlines()[:2] == [
        "from __future__ import annotations",
        "import tvm.relax.frontend.onnx",
    ]


def test_without_proof_there_is_no_finding() -> None:
    """The submodule may really be gone."""
    means, _ = scripted(Outcome.OTHER_FAILURE)
    assert diagnose_once((), failure(NO_SUBMODULE), means).findings == ()


def test_a_line_is_inserted_after_the_future_imports() -> None:
    """Python refuses such imports after other statements."""
    assert insert_first(PYTHON, "import x").files["r.py"].startswith("from __future__ import annotations\nimport x\n")


def finder(kind: FindingKind, **more: object) -> Diagnoser:
    """A diagnoser that always returns this finding."""
    found = Diagnosis(findings=(Finding(kind=kind, summary="x"),))
    return Diagnoser(kind=TestcaseKind.PYTHON, diagnose=lambda _failure, _means: found, **more)  # type: ignore[arg-type]  # fields


MUTATED, OUTSIDE = finder(FindingKind.INPUT_MUTATED), finder(FindingKind.OUT_OF_BOUNDS_ACCESS)
SEARCH = finder(FindingKind.GUILTY_PASS, needs_reproducible=True)


@pytest.mark.parametrize(("first", "searched"), [(MUTATED, True), (OUTSIDE, False)])
def test_no_diagnoser_runs_after_the_cause_is_settled(first: Diagnoser, searched: bool) -> None:
    """The search for a pass costs most, so it runs only if no cheaper diagnoser settled the cause."""
    found = diagnose_once((first, SEARCH), failure(), make_means())
    assert (FindingKind.GUILTY_PASS in {one.kind for one in found.findings}) is searched


def test_pass_bisection_is_skipped_for_flaky_failures() -> None:
    """A search that leaves out passes would find accidents."""
    flaky = failure(clean=observe("1.0", Outcome.PASS))
    found = diagnose_once((MUTATED, SEARCH), flaky, make_means())
    assert [one.kind for one in found.findings] == [FindingKind.INPUT_MUTATED]


def test_a_diagnoser_of_another_kind_of_testcase_does_not_run() -> None:
    """For example, a diagnoser of command lines ignores a Python script."""
    commands = Diagnoser(kind=TestcaseKind.COMMAND_LINE, diagnose=OUTSIDE.diagnose)
    assert diagnose_once((commands,), failure(), make_means()) == Diagnosis()


@pytest.mark.parametrize("varies", [False, True])
def test_reruns_beside_the_diagnosers_find_the_same(varies: bool) -> None:
    """The findings and their order do not depend on the threads."""
    unsteady = itertools.count()

    def run_under(_version: str, _testcase: Testcase, setup: Setup) -> Rerun:
        result = str(next(unsteady)) if varies and setup.seed is None else "same"
        return Rerun(setup=setup, ended=Exited(code=1), result=result)

    seen = failure(Signature(type="AssertionError", message="x"))
    alone = diagnose_failure(seen, (MUTATED, SEARCH), make_means(), run_under)
    with ThreadPoolExecutor(1) as executor:
        beside = diagnose_failure(seen, (MUTATED, SEARCH), make_means(), run_under, executor=executor)
    assert [one.kind for one in beside.findings] == [one.kind for one in alone.findings]
    assert (FindingKind.NONDETERMINISTIC in {one.kind for one in beside.findings}) is varies


WAIT_S = 30.0


def run_nothing_under(_version: str, _testcase: Testcase, _setup: Setup) -> None:
    """No rerun gives a result."""


def make_beside(begun: threading.Event, go_on: threading.Event) -> Diagnoser:
    """A diagnoser that cannot settle the cause, and ends only when it may go on."""

    def diagnose(_failure: Failure, _means: Means) -> Diagnosis:
        begun.set()
        assert go_on.wait(WAIT_S)
        return Diagnosis(findings=(Finding(kind=FindingKind.REFERENCE, summary="x"),))

    return Diagnoser(kind=TestcaseKind.PYTHON, diagnose=diagnose, settles=False)


def test_a_diagnoser_that_cannot_settle_the_cause_runs_beside_the_next() -> None:
    """The next one begins before its end, and the findings keep the order of the diagnosers."""
    begun, go_on = threading.Event(), threading.Event()

    def search(_failure: Failure, _means: Means) -> Diagnosis:
        assert begun.wait(WAIT_S)
        go_on.set()
        return SEARCH.diagnose(_failure, _means)

    searching = Diagnoser(kind=TestcaseKind.PYTHON, diagnose=search)
    with ThreadPoolExecutor(2) as executor:
        found = diagnose_failure(
            failure(), (MUTATED, make_beside(begun, go_on), searching), make_means(), run_nothing_under,
            executor=executor,
        )  # fmt: skip
    kinds = [FindingKind.INPUT_MUTATED, FindingKind.REFERENCE, FindingKind.GUILTY_PASS]
    assert [one.kind for one in found.findings] == kinds


def test_no_diagnoser_begins_before_one_that_may_settle_the_cause_has_ended() -> None:
    """Neither the search nor a diagnoser that could run beside it: their runs would be in vain."""
    begun = threading.Event()
    with ThreadPoolExecutor(4) as executor:
        found = diagnose_failure(
            failure(), (OUTSIDE, make_beside(begun, begun), SEARCH), make_means(), run_nothing_under,
            executor=executor,
        )  # fmt: skip
    assert [one.kind for one in found.findings] == [FindingKind.OUT_OF_BOUNDS_ACCESS]
    assert not begun.is_set()


def test_a_diagnosis_ends_where_no_thread_is_free() -> None:
    """Diagnoses may fill all threads and wait for a diagnoser: then each makes that one itself."""
    begun = threading.Event()
    begun.set()
    with ThreadPoolExecutor(1) as executor:
        found = executor.submit(
            diagnose_failure, failure(), (make_beside(begun, begun), SEARCH), make_means(), run_nothing_under,
            executor=executor,
        ).result(WAIT_S)  # fmt: skip
    assert [one.kind for one in found.findings] == [FindingKind.REFERENCE, FindingKind.GUILTY_PASS]


def test_the_diagnoser_beside_the_search_settles_nothing() -> None:
    """A vote of NumPy names no cause. A finding that settled the cause would make the search superfluous."""
    beside = [one for one in find_toolchain("tvm").load_diagnosers() if not one.settles]
    assert [one.diagnose for one in beside] == [ask_reference]
    assert KINDS[FindingKind.REFERENCE].settles is Settles.NEVER
