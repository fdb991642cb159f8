"""A diagnosis takes runs of the search as its own where they are equal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec

from runners.core.conditions import COULD_DIFFER
from runners.core.progress import Silent
from runners.core.protocol import Claim, ClaimKind, Exited, Plan, Signature, StepResult, Testcase, TestcaseKind
from runners.core.runs import RunRequest, RunResult
from runners.core.toolchain.diagnosis import Failure
from runners.diagnosis.nondeterminism import UNSEEDED
from runners.investigation.state import make_cell
from runners.workbench.ahead import NoRunsAhead
from runners.workbench.means import run_under
from runners.workbench.tools import make_tools

FAILED = Signature(type=sorted(COULD_DIFFER)[0], message="boom")
TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="python", files={"r.py": "assert 0"}, steps=(("python", "r.py"),)
)
PLAN = Plan(
    testcase=TESTCASE,
    claim=Claim(kind=ClaimKind.WRONG_RESULT, signature=FAILED),
    device="cpu",
    order=("3.10", "3.11"),
    first=("3.11",),
)


class Recorder:
    """An `Execute` that records its requests. Every run fails in the same way."""

    def __init__(self) -> None:
        self.asked: list[RunRequest] = []

    def __call__(self, request: RunRequest) -> RunResult:
        self.asked.append(request)
        return RunResult(ended=Exited(code=1), steps=(StepResult(argv=("python", "r.py"), ended=Exited(code=1)),))


def count_reruns_as_posted(*, searched: str, flaky: bool = False) -> int:
    """Run the testcase as a search does, then diagnose it on 3.11. Count its reruns under the same conditions."""
    execute = Recorder()
    with ThreadPoolExecutor(1) as executor:
        tools = make_tools(PLAN, NoRunsAhead(execute), executor, Silent())
        found = tools.run(make_cell(PLAN, searched), 1)
        seen = msgspec.structs.replace(found, version="3.11", signature=FAILED)
        execute.asked.clear()
        tools.diagnose(Failure(testcase=TESTCASE, seen=seen, clean=seen if flaky else None))
    wanted = Recorder()
    run_under(wanted, PLAN, "3.11", TESTCASE, UNSEEDED)
    return [request.key for request in execute.asked].count(wanted.asked[0].key)


def test_the_run_of_the_search_is_one_of_the_reruns_as_posted() -> None:
    """Two are compared, and one of them is known. A run on another release is another run."""
    assert count_reruns_as_posted(searched="3.11") == 1
    assert count_reruns_as_posted(searched="3.10") == 2


def test_a_flaky_failure_is_rerun_anew() -> None:
    """Its known run was chosen because it failed: among draws it would count too much."""
    assert count_reruns_as_posted(searched="3.11", flaky=True) == count_reruns_as_posted(searched="3.10", flaky=True)
