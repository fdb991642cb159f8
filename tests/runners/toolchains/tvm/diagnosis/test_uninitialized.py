"""Tests of claimed reads of unwritten memory: the failure must depend on the content of that memory."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from runners.core.findings.kinds import ControlEnd
from runners.core.protocol import Finding, FindingKind, Observation, Outcome, Testcase, TestcaseKind, Variant
from runners.core.toolchain.diagnosis import Diagnosis, Failure
from runners.core.toolchain.guest import make_launch_step
from runners.core.toolchain.memory_fills import FILLS
from runners.toolchains.tvm.diagnosis.instrumentation import run_instrumented
from tests.support.means import make_means
from tests.support.observed import observe

TESTCASE = Testcase(
    kind=TestcaseKind.PYTHON, toolchain="tvm", files={"r.py": "import tvm\n"}, steps=(("python", "r.py", "-x"),)
)
CLAIM = Finding(
    kind=FindingKind.UNINITIALIZED_READ,
    summary="f reads t[0]",
    evidence={"origin": "testcase", "fill": ["f/t", "f/t; rm -rf /"]},
)
FAILING = observe("1.0", Outcome.MATCH)


def trace(claim: Finding, run: Filled) -> Diagnosis:
    """Return the result of tracing an instrumented run with this claim."""
    means = make_means(run, hook=lambda _version, _testcase: msgspec.json.encode(claim).decode())
    return run_instrumented(Failure(testcase=TESTCASE, seen=FAILING), means)


class Filled:
    """Runs that end by the constant that is filled in; ``again`` says how later ones with the same end."""

    def __init__(self, ends: Mapping[str, Outcome], again: Mapping[str, Outcome] | None = None) -> None:
        self._ends = ends
        self._again = again or {}
        self.fills: list[str] = []

    def __call__(self, version: str, variant: Variant, testcase: Testcase, device: str) -> Observation:
        *program, fill, script, argument = testcase.steps[0]
        fill = fill.removesuffix("=f/t")
        assert (*program, script, argument) == make_launch_step("tvm.diagnose", "r.py", "-x")
        assert variant is Variant.CONTROL
        ends = self._again if fill in self.fills and fill in self._again else self._ends
        self.fills.append(fill)
        return observe(version, ends.get(fill, Outcome.MATCH))


def origin(run: Filled) -> object:
    (found,) = trace(CLAIM, run).findings
    return found.evidence["origin"]


def test_clean_with_one_constant_and_failing_with_another_blames_the_testcase() -> None:
    """Each constant twice. The runs are returned with their changes."""
    run = Filled({"fill-zero": Outcome.PASS})
    diagnosis = trace(CLAIM, run)
    (found,) = diagnosis.findings
    assert found.evidence["origin"] == "testcase"
    assert run.fills == ["fill-zero", "fill-highest", "fill-zero", "fill-highest"]
    assert [one.changes for one in diagnosis.controls][:1] == [("what it never wrote filled with 0",)]
    assert found.evidence["control_end"] == ControlEnd.FILL_DECIDES
    assert "filled with 0 the testcase runs cleanly, twice" in str(found.evidence["control"])


def test_any_of_the_constants_may_be_the_one_that_mends_it() -> None:
    """A maximum starts with the lowest number, a product with one."""
    for fill in FILLS:
        assert origin(Filled({fill: Outcome.PASS})) == "testcase"


def test_a_failure_with_every_fill_has_no_blame() -> None:
    """The cause is elsewhere, and the guest's claim about the origin does not count."""
    assert origin(Filled({})) == "unknown"


def test_a_failure_with_no_fill_has_no_blame() -> None:
    """Such as a compiler's crash that more code in the function avoids."""
    assert origin(Filled(dict.fromkeys(FILLS, Outcome.PASS))) == "unknown"


def test_a_flaky_failure_with_one_fill_has_no_blame() -> None:
    """The second pair of runs has to end as the first."""
    assert origin(Filled({"fill-zero": Outcome.PASS}, again={"fill-zero": Outcome.MATCH})) == "unknown"
    assert origin(Filled({"fill-zero": Outcome.PASS}, again={"fill-highest": Outcome.PASS})) == "unknown"


def test_a_skipped_run_counts_for_neither_side() -> None:
    """A run out of time or memory is no failure."""
    assert origin(Filled(dict.fromkeys(FILLS, Outcome.TIMEOUT) | {"fill-zero": Outcome.PASS})) == "unknown"


def test_without_a_claim_there_are_no_runs() -> None:
    """The six runs are for such a claim only; other findings stay as they are."""
    other = Finding(kind=FindingKind.INPUT_MUTATED, summary="s")
    run = Filled({})
    assert trace(other, run) == Diagnosis(findings=(other,))
    assert run.fills == []


def test_invalid_names_are_not_passed_on() -> None:
    """The guest's names go on a command line: letters, digits, dots and one slash."""
    run = Filled(dict.fromkeys(FILLS, Outcome.PASS))
    forged = Finding(kind=FindingKind.UNINITIALIZED_READ, summary="s", evidence={"fill": ["a b/c", 7, "../x", "f/"]})
    (found,) = trace(forged, run).findings
    assert (found.evidence["origin"], run.fills) == ("unknown", [])
