"""The order of an investigation: its runs, its reruns, its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from bench.proving.replay import Inline
from runners.core.progress import Silent
from runners.core.protocol import (
    SAID_TO_WORK,
    Budget,
    Cell,
    Claim,
    ClaimKind,
    Exited,
    Finding,
    FindingKind,
    Investigation,
    Limits,
    Observation,
    Outcome,
    Plan,
    Signalled,
    Signature,
    Testcase,
    TestcaseKind,
    TimedOut,
    Variant,
    Varied,
)
from runners.core.toolchain.diagnosis import ComparedRun, Diagnosis, Failure
from runners.investigation.investigate import investigate_plan
from runners.investigation.state import HOPELESS, Port, Tools
from tests.support.observed import observe

ORDER = tuple(f"3.{minor}.0" for minor in range(12))
TESTCASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))


def make_plan(**changes: object) -> Plan:
    plan = Plan(
        testcase=TESTCASE,
        claim=Claim(),
        device="llvm",
        order=ORDER,
        first=(ORDER[5], ORDER[-1], ORDER[0]),
        reported=ORDER[5],
    )
    return msgspec.structs.replace(plan, **changes)


def probed(cell: Cell, attempt: int, outcome: Outcome) -> Observation:
    return observe(
        cell.version, outcome, toolchain=cell.toolchain, device=cell.device, attempt=attempt, variant=cell.variant,
        ended=Exited(code=int(outcome is Outcome.OTHER_FAILURE)), changes=cell.changes, varied=cell.varied,
    )  # fmt: skip


def run(plan: Plan, truth: Callable[[Cell, int], Outcome], **changes: object) -> Investigation:
    with ThreadPoolExecutor(2) as executor:
        settings: dict[str, object] = {
            "run": lambda cell, attempt: probed(cell, attempt, truth(cell, attempt)),
            "port": lambda testcase, version: None,
            "retarget": lambda testcase, device: None,
            "diagnose": lambda failure: Diagnosis(),
            "executor": executor,
            "progress": Silent(),
        }
        return investigate_plan(plan, Tools(**(settings | changes)))  # type: ignore[arg-type]  # merged for brevity


def runs(seen: Investigation) -> list[str]:
    return [observation.version for observation in seen.observations]


def test_a_fix_is_bisected_and_both_of_its_sides_are_run_again() -> None:
    """The pair of releases is found, and both were run twice."""
    seen = run(make_plan(), lambda cell, _: Outcome.MATCH if ORDER.index(cell.version) < 8 else Outcome.PASS)
    assert runs(seen).count("3.7.0") == 2
    assert runs(seen).count("3.8.0") == 2
    assert len(seen.observations) <= 10


def test_the_matrix_always_runs() -> None:
    """The reported, the newest and the oldest release come first, in that order."""
    seen = run(make_plan(), lambda *_: Outcome.PASS)
    assert runs(seen)[:3] == ["3.5.0", "3.11.0", "3.0.0"]


def test_clean_builds_between_failing_ones_are_looked_for() -> None:
    """Oldest, reported and newest release fail, two in a gap pass: the release that fails again is found."""
    seen = run(make_plan(), lambda cell, _: Outcome.PASS if ORDER.index(cell.version) in {7, 8} else Outcome.MATCH)
    clean = {observation.version for observation in seen.observations if observation.outcome is Outcome.PASS}
    assert ORDER[8] in clean
    assert ORDER[9] in runs(seen)


def test_a_hang_runs_no_more_often_than_needed() -> None:
    """Each run of a hang takes the whole time limit."""
    claim = Claim(kind=ClaimKind.HANG, versions=("3.5.0",))
    seen = run(make_plan(claim=claim), lambda *_: Outcome.MATCH)
    assert set(runs(seen)) == {"3.5.0", "3.11.0", "3.0.0"}


@pytest.mark.parametrize("middle", [Outcome.TIMEOUT, Outcome.OTHER_FAILURE])
def test_a_search_that_meets_a_hang_gives_later_runs_less_time(middle: Outcome) -> None:
    """The report is not about a hang: such runs give no answer. Ten of them took twenty minutes."""
    limits: list[float] = []

    def observe_truth(cell: Cell, attempt: int) -> Outcome:
        limits.append(cell.limits.wall_s)
        number = ORDER.index(cell.version)
        return Outcome.PASS if number < 3 else Outcome.MATCH if number > len(ORDER) - 2 else middle

    run(make_plan(claim=Claim(kind=ClaimKind.ERROR)), observe_truth)
    usual = max(limits)
    assert (min(limits) < usual) is (middle is Outcome.TIMEOUT)
    assert set(limits) <= {usual, usual / 4}


def test_without_bisection_only_the_matrix_is_run() -> None:
    """--no-bisect means no more releases. The newest answer is still confirmed."""
    seen = run(make_plan(bisect=False), lambda *_: Outcome.MATCH)
    assert set(runs(seen)) == {"3.5.0", "3.11.0", "3.0.0"}


def test_a_testcase_that_no_release_can_run_is_given_up() -> None:
    """The search ends long before the list of releases, because skips give no information."""
    seen = run(make_plan(), lambda *_: Outcome.INCOMPATIBLE)
    assert len(seen.observations) == HOPELESS


def test_the_answer_is_told_before_the_diagnosis() -> None:
    """All runs on which the verdict rests are there. Without a failure the verdict follows at once."""
    events: list[str] = []

    def diagnose(_failure: Failure) -> Diagnosis:
        events.append("diagnosis")
        return Diagnosis()

    def tell(seen: tuple[Observation, ...]) -> None:
        events.append(f"{len(seen)} runs")

    seen = run(make_plan(), lambda *_: Outcome.MATCH, diagnose=diagnose, tell=tell)
    assert events == [f"{len(seen.observations)} runs", "diagnosis"]
    events.clear()
    run(make_plan(), lambda *_: Outcome.PASS, diagnose=diagnose, tell=tell)
    assert events == []


def test_runs_on_stand_ins_begin_together() -> None:
    """Every announced run is made, under the announced conditions."""
    announced: list[tuple[Cell, int]] = []
    made: list[tuple[Cell, int]] = []

    def truth(cell: Cell, attempt: int) -> Outcome:
        made.append((cell, attempt))
        return Outcome.MATCH

    run(
        make_plan(claim=Claim(kind=ClaimKind.WRONG_RESULT)), truth,
        stand_ins=("cpu", "vulkan"), retarget=lambda testcase, device: testcase,
        expect=lambda cell, attempt: announced.append((cell, attempt)),
    )  # fmt: skip
    moved = [(cell, attempt) for cell, attempt in announced if cell.variant is Variant.RETARGETED]
    assert {cell.device for cell, _ in moved} == {"cpu", "vulkan"}
    assert all(one in made for one in moved)


def test_an_early_diagnosis_lets_the_confirming_runs_begin_first() -> None:
    """The verdict rests on these runs, and would wait for the diagnosis otherwise."""
    events: list[str] = []

    def truth(cell: Cell, attempt: int) -> Outcome:
        events.append(f"{cell.version}, run {attempt}")
        return Outcome.MATCH if ORDER.index(cell.version) < 8 else Outcome.PASS

    def diagnose(_failure: Failure) -> Diagnosis:
        events.append("diagnosis")
        return Diagnosis()

    run(make_plan(), truth, diagnose=diagnose, executor=Inline(), background=Inline())
    confirming = [event for event in events if event.endswith("run 2")]
    assert len(confirming) >= 2
    assert events[events.index("diagnosis") - len(confirming) : events.index("diagnosis")] == confirming


def test_the_budget_is_kept() -> None:
    """There are never more runs than allowed, reruns included."""
    seen = run(make_plan(budget=Budget(probes=4)), lambda *_: Outcome.PASS)
    assert len(seen.observations) == 4


def test_a_search_over_clean_releases_leaves_runs_for_the_ported_text() -> None:
    """A build that refuses the text runs its port, however many releases are clean."""

    def truth(cell: Cell, _: int) -> Outcome:
        refused = cell.version == ORDER[0] and cell.variant is Variant.ORIGINAL
        return Outcome.INCOMPATIBLE if refused else Outcome.PASS

    def port(testcase: Testcase, _version: str) -> Port:
        return Port(testcase=testcase, changes=("a → b",))

    plan = make_plan(budget=Budget(probes=len(ORDER)), reported=ORDER[0], first=(ORDER[0], ORDER[-1]))
    seen = run(plan, truth, port=port)
    assert len(seen.observations) <= len(ORDER)
    assert [one.version for one in seen.observations if one.variant is Variant.PORTED] == [ORDER[0]]


def test_where_no_release_runs_the_posted_text_the_oldest_runs_its_port() -> None:
    """A fork may be the oldest build, and unable to run it. A clean port to the newest release alone tells little."""

    def truth(cell: Cell, _: int) -> Outcome:
        if cell.variant is Variant.PORTED:
            return Outcome.MATCH if cell.version == ORDER[1] else Outcome.PASS
        return Outcome.UNAVAILABLE if cell.version == ORDER[0] else Outcome.INCOMPATIBLE

    plan = make_plan(reported=None, first=(ORDER[0], ORDER[1], ORDER[-1]))
    seen = run(plan, truth, port=lambda testcase, _version: Port(testcase=testcase, changes=("a → b",)))
    ported = {one.version: one.outcome for one in seen.observations if one.variant is Variant.PORTED}
    assert ported == {ORDER[1]: Outcome.MATCH, ORDER[-1]: Outcome.PASS}


def test_the_build_after_the_report_runs_before_other_clean_ones() -> None:
    """The report may be about a build between the two. A bad build decides what runs next."""
    plan = make_plan(reported=ORDER[2], first=(ORDER[2], ORDER[-1]), budget=Budget(probes=10))
    clean = run(plan, lambda *_: Outcome.PASS)
    assert ORDER[3] in runs(clean)[2:4]
    bad = run(plan, lambda cell, _: Outcome.MATCH if cell.version == ORDER[2] else Outcome.PASS)
    assert runs(bad)[2] != ORDER[3]


def test_an_infrastructure_failure_is_tried_again_before_it_counts() -> None:
    """A single infrastructure failure is not an observation."""
    tries: list[int] = []

    def hiccup(cell: Cell, attempt: int) -> Observation:
        tries.append(attempt)
        return probed(cell, attempt, Outcome.INFRA if len(tries) == 1 else Outcome.PASS)

    seen = run(make_plan(order=ORDER[:1], first=ORDER[:1], reported=None), lambda *_: Outcome.PASS, run=hiccup)
    assert [observation.outcome for observation in seen.observations] == [Outcome.PASS, Outcome.PASS]


@pytest.mark.parametrize(("crashes_at", "attempts"), [(2, 2), (3, 3), (None, 3)])
def test_an_orderly_error_instead_of_a_crash_is_run_again(crashes_at: int | None, attempts: int) -> None:
    """The newest release ends with an error in its first run. The crash may come back in the next."""

    def observe_crash(cell: Cell, attempt: int) -> Observation:
        newest = cell.version == ORDER[-1]
        if newest and (crashes_at is None or attempt < crashes_at):
            return probed(cell, attempt, Outcome.OTHER_FAILURE)
        return msgspec.structs.replace(probed(cell, attempt, Outcome.MATCH), ended=Signalled(code=11))

    seen = run(make_plan(claim=Claim(kind=ClaimKind.CRASH)), lambda *_: Outcome.MATCH, run=observe_crash)
    assert runs(seen).count(ORDER[-1]) == attempts


def test_another_error_than_the_reported_one_is_not_run_again() -> None:
    """An error does not depend on the content of memory."""
    claim = Claim(kind=ClaimKind.ERROR)
    others = {ORDER[-1]: Outcome.OTHER_FAILURE}
    seen = run(make_plan(claim=claim), lambda cell, _: others.get(cell.version, Outcome.MATCH))
    assert runs(seen).count(ORDER[-1]) == 1


def test_a_testcase_whose_api_moved_is_run_ported_and_marked_so() -> None:
    """The port has an observation of its own, and the original's stays incompatible."""
    ported = msgspec.structs.replace(TESTCASE, files={"a.py": "2"})

    def truth(cell: Cell, _: int) -> Outcome:
        if cell.variant is Variant.PORTED:
            assert cell.testcase == ported
            return Outcome.MATCH
        return Outcome.INCOMPATIBLE if ORDER.index(cell.version) > 5 else Outcome.MATCH

    seen = run(make_plan(), truth, port=lambda testcase, version: Port(testcase=ported, changes=("a → b",)))
    assert [(o.version, o.changes) for o in seen.observations if o.variant is Variant.PORTED] == [
        ("3.11.0", ("a → b",))
    ]


def test_a_port_is_mended_while_the_release_names_what_is_missing() -> None:
    """Each run names the next part. The runs of the ports that were mended are no evidence."""
    parts = ("first", "second")

    def write(count: int) -> Testcase:
        return msgspec.structs.replace(TESTCASE, files={"a.py": f"ported {parts[:count]}"})

    def observe(cell: Cell, attempt: int) -> Observation:
        known = next((n for n in range(3) if cell.testcase == write(n)), None)
        if cell.variant is not Variant.PORTED or known is None:
            return probed(cell, attempt, Outcome.INCOMPATIBLE)
        seen = probed(cell, attempt, Outcome.MATCH if known == 2 else Outcome.INCOMPATIBLE)
        return msgspec.structs.replace(seen, excerpt="" if known == 2 else f"no {parts[known]}")

    def port_again(testcase: Testcase, version: str, said: str) -> Port:
        assert testcase == TESTCASE
        count = sum(part in said for part in parts)
        return Port(testcase=write(count), changes=parts[:count])

    seen = run(
        make_plan(),
        lambda *_: Outcome.MATCH,
        run=observe,
        port=lambda *_: Port(testcase=write(0), changes=()),
        port_again=port_again,
    )
    ported = [one for one in seen.observations if one.variant is Variant.PORTED]
    assert {one.outcome for one in ported} == {Outcome.MATCH}
    assert {one.changes for one in ported} == {parts}


def test_a_port_that_no_run_mends_is_run_once() -> None:
    """The same port again would end in the same way."""
    ported = Port(testcase=msgspec.structs.replace(TESTCASE, files={"a.py": "2"}), changes=())
    seen = run(make_plan(), lambda *_: Outcome.INCOMPATIBLE, port=lambda *_: ported, port_again=lambda *_: ported)
    versions = [one.version for one in seen.observations if one.variant is Variant.PORTED]
    assert versions
    assert len(versions) == len(set(versions))


def test_a_testcase_without_a_moved_name_is_ported_by_what_the_release_says() -> None:
    """An attribute of an object has no name that a table could move."""
    ported = Port(testcase=msgspec.structs.replace(TESTCASE, files={"a.py": "2"}), changes=("a → b",))

    def observe(cell: Cell, attempt: int) -> Observation:
        outcome = Outcome.MATCH if cell.variant is Variant.PORTED else Outcome.INCOMPATIBLE
        return msgspec.structs.replace(probed(cell, attempt, outcome), excerpt="no a")

    seen = run(
        make_plan(),
        lambda *_: Outcome.MATCH,
        run=observe,
        port_again=lambda testcase, version, said: ported if "no a" in said else None,
    )
    assert any(one.variant is Variant.PORTED and one.outcome is Outcome.MATCH for one in seen.observations)


def test_only_a_failure_is_diagnosed() -> None:
    """Clean runs have no cause to look for."""

    def diagnose(failure: Failure) -> Diagnosis:
        return Diagnosis(findings=(Finding(kind=FindingKind.MISSING, summary=failure.seen.version),))

    assert run(make_plan(), lambda *_: Outcome.PASS, diagnose=diagnose).findings == ()
    found = run(make_plan(), lambda *_: Outcome.MATCH, diagnose=diagnose).findings
    assert [finding.summary for finding in found] == ["3.11.0"]


def test_a_text_that_a_release_refuses_is_run_ported_too() -> None:
    """The toolchain tells a refusal from a failure."""
    ported = msgspec.structs.replace(TESTCASE, files={"a.py": "2"})

    def truth(cell: Cell, attempt: int) -> Outcome:
        return Outcome.PASS if cell.variant is Variant.PORTED else Outcome.OTHER_FAILURE

    for refused, expected in ((True, 3), (False, 0)):
        seen = run(
            make_plan(),
            truth,
            port=lambda testcase, version: Port(testcase=ported, changes=("a → b",)),
            is_rejected=lambda seen, refused=refused: refused,
        )
        assert sum(one.variant is Variant.PORTED for one in seen.observations) == expected


SUPPLIED = msgspec.structs.replace(TESTCASE, files={"a.py": "with data"})


@pytest.mark.parametrize("kind", [ClaimKind.CRASH, ClaimKind.WRONG_RESULT])
def test_generated_data_stands_for_missing_data_unless_values_matter(kind: ClaimKind) -> None:
    """The runs are marked. A port of the testcase with data has both changes."""

    def truth(cell: Cell, attempt: int) -> Outcome:
        return Outcome.PASS if cell.testcase == SUPPLIED else Outcome.OTHER_FAILURE

    seen = run(
        make_plan(claim=Claim(kind=kind)),
        truth,
        port=lambda testcase, version: (
            Port(testcase=testcase, changes=("a → b",)) if testcase == SUPPLIED and version == "3.0.0" else None
        ),
        supply_data=lambda testcase: (SUPPLIED, ("w → generated data",)),
    )
    marked = {one.version: one.changes for one in seen.observations if one.variant is Variant.PORTED}
    assert marked == (
        {}
        if kind is ClaimKind.WRONG_RESULT
        else {
            "3.5.0": ("w → generated data",),
            "3.11.0": ("w → generated data",),
            "3.0.0": ("w → generated data", "a → b"),
        }
    )


@pytest.mark.parametrize(("with_data", "runs"), [(Outcome.MATCH, ["3.5.0", "3.11.0"]), (Outcome.PASS, ["3.5.0"])])
def test_missing_data_that_is_the_cause_of_the_failure_is_not_generated(with_data: Outcome, runs: list[str]) -> None:
    """A release that fails as reported without the data must do so with generated data, too."""

    def truth(cell: Cell, attempt: int) -> Outcome:
        if cell.version != "3.11.0":
            return with_data if cell.testcase == SUPPLIED else Outcome.MATCH
        return Outcome.PASS if cell.testcase == SUPPLIED else Outcome.OTHER_FAILURE

    plan = make_plan(claim=Claim(kind=ClaimKind.CRASH), order=(ORDER[5], ORDER[-1]), first=(ORDER[5], ORDER[-1]))
    seen = run(plan, truth, supply_data=lambda testcase: (SUPPLIED, ("w → generated data",)))
    assert [one.version for one in seen.observations if one.variant is Variant.PORTED] == runs


@pytest.mark.parametrize(("program", "runs"), [("iree-compile", 3), ("iree-translate", 0)])
def test_a_program_that_no_build_has_is_run_under_its_new_name(program: str, runs: int) -> None:
    """A port that keeps the program cannot help."""
    posted = msgspec.structs.replace(TESTCASE, steps=(("iree-translate", "a.mlir"),))
    ported = msgspec.structs.replace(TESTCASE, steps=((program, "a.mlir"),))

    def truth(cell: Cell, attempt: int) -> Outcome:
        return Outcome.PASS if cell.variant is Variant.PORTED else Outcome.UNAVAILABLE

    seen = run(
        make_plan(testcase=posted), truth, port=lambda testcase, version: Port(testcase=ported, changes=("a → b",))
    )
    assert sum(one.variant is Variant.PORTED for one in seen.observations) == runs


def test_another_failure_than_the_reported_one_is_diagnosed_where_the_report_is_at_home() -> None:
    """A fault of the testcase may show otherwise each time. A failure of old releases alone is no news."""

    def diagnose(failure: Failure) -> Diagnosis:
        return Diagnosis(findings=(Finding(kind=FindingKind.MISSING, summary=failure.seen.version),))

    def list_diagnosed(bad: set[int]) -> list[str]:
        def truth(cell: Cell, _: int) -> Outcome:
            return Outcome.OTHER_FAILURE if ORDER.index(cell.version) in bad else Outcome.PASS

        return [finding.summary for finding in run(make_plan(), truth, diagnose=diagnose).findings]

    assert list_diagnosed({11}) == [ORDER[11]]
    assert list_diagnosed({0}) == []


@pytest.mark.parametrize("bad", [{3}, {0}, {11}, {4, 5, 6}])
def test_a_failure_on_any_release_is_found_when_the_budget_allows(bad: set[int]) -> None:
    """A failure of few releases between clean ones is found."""
    seen = run(make_plan(), lambda cell, _: Outcome.MATCH if ORDER.index(cell.version) in bad else Outcome.PASS)
    assert any(observation.outcome is Outcome.MATCH for observation in seen.observations)


def test_a_testcase_for_an_absent_device_is_tried_on_a_stand_in() -> None:
    """The runs are marked as retargeted, and bisected only if they show the failure."""

    def truth(cell: Cell, _: int) -> Outcome:
        if cell.variant is Variant.ORIGINAL:
            return Outcome.UNAVAILABLE
        return Outcome.MATCH if 3 <= ORDER.index(cell.version) <= 5 else Outcome.PASS

    seen = run(make_plan(), truth, retarget=lambda testcase, device: testcase, stand_ins=("vmvx",))
    retargeted = {o.version: o.outcome for o in seen.observations if o.variant is Variant.RETARGETED}
    assert {o.device for o in seen.observations if o.variant is Variant.RETARGETED} == {"vmvx"}
    assert retargeted["3.5.0"] is Outcome.MATCH
    assert retargeted["3.6.0"] is Outcome.PASS
    assert retargeted["3.2.0"] is Outcome.PASS


@pytest.mark.parametrize("kind", [ClaimKind.SLOW, ClaimKind.MEMORY])
def test_a_stand_in_shows_nothing_about_the_time_or_memory_of_an_absent_device(kind: ClaimKind) -> None:
    """Stand-ins are slower by orders of magnitude. A device that the user asks for runs all the same."""

    def list_devices(**changes: object) -> set[str]:
        seen = run(
            make_plan(claim=Claim(kind=kind), **changes), lambda *_: Outcome.UNAVAILABLE,
            retarget=lambda testcase, device: testcase, stand_ins=("vmvx",),
        )  # fmt: skip
        return {one.device for one in seen.observations if one.variant is Variant.RETARGETED}

    assert list_devices() == set()
    assert list_devices(devices=("vmvx",)) == {"vmvx"}


def test_a_finding_of_any_shape_is_carried() -> None:
    """A guest wrote the evidence: a field that should be a name may be a list."""
    odd = Finding(kind=FindingKind.INPUT_MUTATED, summary="x", evidence={"name": [["a"], {"b": 1}]})
    seen = run(make_plan(), lambda *_: Outcome.MATCH, diagnose=lambda failure: Diagnosis(findings=(odd, odd)))
    assert seen.findings == (odd,)


def test_a_flaky_build_is_rerun_for_its_failure_rate() -> None:
    """The newest flaky build gets ten runs, and steady builds no more."""
    seen = run(
        make_plan(bisect=False),
        lambda cell, attempt: Outcome.MATCH if cell.version != ORDER[-1] or attempt % 3 == 0 else Outcome.PASS,
    )
    seen_twice = run(
        make_plan(bisect=False),
        lambda cell, attempt: Outcome.MATCH if cell.version != ORDER[-1] or attempt % 2 == 0 else Outcome.PASS,
    )
    assert runs(seen).count(ORDER[-1]) == 2  # two runs that agree: nothing tells that the third would not
    assert runs(seen_twice).count(ORDER[-1]) == 10
    assert runs(seen_twice).count(ORDER[0]) <= 2


@pytest.mark.parametrize(("every", "count"), [(2, 7), (5, 2)])
def test_a_clean_newest_release_is_rerun_until_its_clean_runs_are_no_luck(every: int, count: int) -> None:
    """At a rate of one in two, seven clean runs are no luck. At one in five, 21 would be: then no run is added."""

    def answer(cell: Cell, attempt: int) -> Outcome:
        return Outcome.MATCH if cell.version != ORDER[-1] and attempt % every == 1 else Outcome.PASS

    assert runs(run(make_plan(bisect=False), answer)).count(ORDER[-1]) == count


def test_code_reported_as_working_runs_on_a_failing_release() -> None:
    """The control runs once, on the newest failing build, marked as the reporter's."""
    works = msgspec.structs.replace(TESTCASE, files={"a.py": "2"})
    seen = run(
        make_plan(controls=(works,)),
        lambda cell, _: Outcome.PASS if cell.testcase == works else Outcome.MATCH,
    )
    controls = [one for one in seen.observations if one.variant is Variant.CONTROL]
    assert [(one.version, one.outcome, one.changes) for one in controls] == [
        (ORDER[-1], Outcome.PASS, (SAID_TO_WORK,))
    ]
    clean = run(make_plan(controls=(works,)), lambda *_: Outcome.PASS)
    assert all(one.variant is not Variant.CONTROL for one in clean.observations)


def test_the_clean_run_of_the_newest_release_is_asked_what_it_reaches() -> None:
    """Only if the title names code, and nothing fails as reported."""
    asked: list[str] = []

    def check_reach(version: str, _testcase: Testcase) -> tuple[Finding, ...]:
        asked.append(version)
        return (Finding(kind=FindingKind.REACH, summary="", evidence={"names": ["fuse_ops"]}),)

    accusing = make_plan(claim=Claim(kind=ClaimKind.ERROR, accused=("fuse_ops",)))
    seen = run(accusing, lambda *_: Outcome.PASS, check_reach=check_reach)
    assert [finding.kind for finding in seen.findings] == [FindingKind.REACH]
    run(make_plan(), lambda *_: Outcome.PASS, check_reach=check_reach)
    run(accusing, lambda *_: Outcome.MATCH, check_reach=check_reach)
    run(accusing, lambda *_: Outcome.OTHER_FAILURE, check_reach=check_reach)
    assert asked == [ORDER[-1]]


def test_a_wrong_result_is_compared_with_the_nearest_right_one() -> None:
    """The newest run with the wrong result is compared with the nearest right one, not with the oldest."""
    asked: list[tuple[str, str]] = []

    def compare(bad: ComparedRun, good: ComparedRun) -> tuple[Finding, ...]:
        asked.append((bad.seen.version, good.seen.version))
        return (Finding(kind=FindingKind.GUILTY_PASS, summary="", evidence={"name": "f_dispatch_0"}),)

    def truth(cell: Cell, _: int) -> Outcome:
        return Outcome.MATCH if ORDER.index(cell.version) < 8 else Outcome.PASS

    wrong = make_plan(claim=Claim(kind=ClaimKind.WRONG_RESULT))
    seen = run(wrong, truth, compare=compare)
    assert asked == [("3.7.0", "3.8.0")]
    assert [finding.kind for finding in seen.findings] == [FindingKind.GUILTY_PASS]
    run(make_plan(claim=Claim(kind=ClaimKind.CRASH)), truth, compare=compare)
    run(wrong, lambda *_: Outcome.MATCH, compare=compare)
    assert len(asked) == 1


def conditions(seen: Investigation, version: str) -> list[Varied]:
    return [o.varied for o in seen.observations if o.version == version and o.variant is Variant.ORIGINAL]


def test_reruns_vary_the_conditions() -> None:
    """An error gets another order of sets; a failure that values decide gets other memory and threads as well."""
    error = run(make_plan(claim=Claim(kind=ClaimKind.ERROR)), lambda *_: Outcome.MATCH)
    assert conditions(error, ORDER[-1]) == [Varied(), Varied(hash_seed=1)]
    crash = run(make_plan(claim=Claim(kind=ClaimKind.CRASH)), lambda *_: Outcome.MATCH)
    assert conditions(crash, ORDER[-1]) == [Varied(), Varied(hash_seed=1, fill=0x55, threads=1)]


def test_a_build_that_depends_on_the_hash_seed_is_rerun_for_its_rate() -> None:
    """Each run has a seed of its own, and the diagnosis gets a clean run too."""
    told: list[Observation | None] = []

    def diagnose(failure: Failure) -> Diagnosis:
        told.append(failure.clean)
        return Diagnosis()

    def truth(cell: Cell, _: int) -> Outcome:
        return Outcome.MATCH if cell.varied.hash_seed % 2 else Outcome.PASS

    plan = make_plan(order=ORDER[:1], first=ORDER[:1], reported=None)
    seen = run(plan, truth, diagnose=diagnose)
    assert [one.hash_seed for one in conditions(seen, ORDER[0])] == list(range(10))
    assert [one and one.varied for one in told] == [Varied()]


@pytest.mark.parametrize(
    ("cause", "varied"), [("memory", [1, 2, 3, 4]), ("hashes", [1, 2, 3, 4]), ("randomness", [1, 0, 0, 0])]
)
def test_agreeing_runs_with_different_output_are_repeated(cause: str, varied: list[int]) -> None:
    """There are five runs. If the testcase draws random numbers, no other condition varies, so runs can be forks."""
    found = Finding(kind=FindingKind.NONDETERMINISTIC, summary="s", evidence={"version": ORDER[0], "cause": cause})
    plan = make_plan(order=ORDER[:1], first=ORDER[:1], reported=None)
    seen = run(plan, lambda *_: Outcome.MATCH, diagnose=lambda _: Diagnosis(findings=(found,)))
    assert [one.hash_seed for one in conditions(seen, ORDER[0])[1:]] == varied


@pytest.mark.parametrize(("outcome", "times"), [(Outcome.PASS, 10), (Outcome.MATCH, 5)])
def test_an_intermittent_failure_takes_more_than_two_runs(outcome: Outcome, times: int) -> None:
    """This holds for the reported and the newest release; a clean release gets more runs than a failing one."""
    seen = run(make_plan(claim=Claim(sometimes=True), bisect=False), lambda *_: outcome)
    assert {version: runs(seen).count(version) for version in (ORDER[5], ORDER[-1])} == {
        ORDER[5]: times,
        ORDER[-1]: times,
    }
    assert runs(seen).count(ORDER[0]) <= 2


# ---------------------------------------------------------------------------------------------- before its turn

FEW = ORDER[:5]
STEADY = (Outcome.MATCH, Outcome.PASS, Outcome.UNAVAILABLE)


@pytest.mark.parametrize("newest", STEADY)
def test_every_expected_run_of_a_steady_history_is_asked_for(newest: Outcome) -> None:
    """No run is made for nothing, whatever the releases answer. The runs and their order are the same without it."""
    for answers in itertools.product(STEADY, repeat=len(FEW) - 1):
        truth = dict(zip(FEW, (*answers, newest), strict=True))
        plan = make_plan(order=FEW, first=(FEW[2], FEW[-1], FEW[0]), reported=FEW[2])
        expected: list[tuple[str, int, Varied]] = []
        seen = run(
            plan,
            lambda cell, _, truth=truth: truth[cell.version],  # type: ignore[misc]  # a default binds the loop's value
            expect=lambda cell, attempt, expected=expected: expected.append((cell.version, attempt, cell.varied)),
        )
        asked = [(one.version, one.attempt, one.varied) for one in seen.observations]
        assert set(expected) <= set(asked), truth
        assert len(set(expected)) == len(expected)
        assert seen == run(plan, lambda cell, _, truth=truth: truth[cell.version])  # type: ignore[misc]
        if newest is not Outcome.UNAVAILABLE:
            assert (FEW[-1], 2) in {(version, attempt) for version, attempt, _ in expected}


def test_reruns_of_a_flaky_build_begin_together() -> None:
    """Their number is known before the first of them. Each is made once, under the announced conditions."""
    announced: list[tuple[str, int, Varied]] = []
    asked: list[tuple[str, int, Varied]] = []

    def truth(cell: Cell, attempt: int) -> Outcome:
        asked.append((cell.version, attempt, cell.varied))
        return Outcome.MATCH if attempt % 2 else Outcome.PASS

    run(
        make_plan(bisect=False), truth,
        expect=lambda cell, attempt: announced.append((cell.version, attempt, cell.varied)),
    )  # fmt: skip
    flaky = [attempt for version, attempt, _ in announced if version == ORDER[-1] and attempt > 2]
    assert flaky == list(range(3, 11))
    assert set(announced) <= set(asked)
    assert len(asked) == len(set(asked))


def test_nothing_is_expected_of_a_hang() -> None:
    """Each run of a hang costs the whole time limit."""
    expected: list[Cell] = []
    plan = make_plan(claim=Claim(kind=ClaimKind.HANG))
    run(plan, lambda cell, _: Outcome.MATCH, expect=lambda cell, _: expected.append(cell))
    assert expected == []


def diagnose_beside(truth: Callable[[Cell, int], Outcome], **changes: object) -> tuple[list[Failure], list[str]]:
    """Return the failures that were diagnosed, and the events in their order: diagnoses and reruns."""
    failures: list[Failure] = []
    events: list[str] = []

    def diagnose(failure: Failure) -> Diagnosis:
        failures.append(failure)
        events.append("diagnosis")
        return Diagnosis()

    def observe_truth(cell: Cell, attempt: int) -> Outcome:
        events.append(f"run {attempt}")
        return truth(cell, attempt)

    run(make_plan(**changes), observe_truth, diagnose=diagnose, background=Inline())
    return failures, events


def test_diagnosis_begins_when_the_failing_release_is_known() -> None:
    """The newest release fails: no further answer changes which release is diagnosed, and it is diagnosed once."""
    failures, events = diagnose_beside(lambda cell, _: Outcome.MATCH)
    assert [failure.seen.version for failure in failures] == [ORDER[-1]]
    # the three runs of the matrix, and those that the two threads of `run` may have begun meanwhile
    assert 3 <= events.index("diagnosis") <= 3 + 2
    failures, events = diagnose_beside(
        lambda cell, _: Outcome.MATCH if ORDER.index(cell.version) < 8 else Outcome.PASS
    )
    assert [failure.seen.version for failure in failures] == ["3.7.0"]
    assert events.index("diagnosis") < events.index("run 2")


def test_failure_that_turns_out_flaky_is_diagnosed_as_flaky() -> None:
    """The early diagnosis took the failure for a steady one: it is not used."""
    failures, _ = diagnose_beside(lambda cell, attempt: Outcome.PASS if attempt == 2 else Outcome.MATCH)
    assert [failure.is_flaky for failure in failures] == [False, True]


def test_diagnosis_of_a_hang_waits_for_its_turn() -> None:
    failures, events = diagnose_beside(lambda cell, _: Outcome.MATCH, claim=Claim(kind=ClaimKind.HANG))
    assert len(failures) == 1
    assert events.index("diagnosis") > events.index("run 2")


def test_after_a_new_release_without_a_change_that_release_alone_needs_a_run() -> None:
    """The earlier answer's release has the reruns and the diagnosis of both."""
    diagnosed: list[str] = []

    def diagnose(failure: Failure) -> Diagnosis:
        diagnosed.append(failure.seen.version)
        return Diagnosis()

    first = (ORDER[5], ORDER[10], ORDER[-1], ORDER[0])
    seen = run(make_plan(answered="3.10.0", first=first), lambda *_: Outcome.MATCH, diagnose=diagnose)
    assert runs(seen).count("3.11.0") == 1
    assert runs(seen).count("3.10.0") == 2
    assert diagnosed == ["3.10.0"]


@pytest.mark.parametrize(("failing", "runs_made"), [(1, 1), (2, 2), (4, 4), (None, 10)])
def test_after_a_new_release_a_flaky_failure_needs_no_runs_beyond_the_first_failing_run(
    failing: int | None, runs_made: int
) -> None:
    """A run that fails is one of the ends of the earlier release. A clean run alone may be a fix, and ten may not."""

    def flicker(cell: Cell, attempt: int) -> Outcome:
        fails = attempt == failing if cell.version == ORDER[-1] else attempt % 2
        return Outcome.MATCH if fails else Outcome.PASS

    plan = make_plan(answered=ORDER[10], first=(ORDER[5], ORDER[10], ORDER[-1], ORDER[0]))
    seen = runs(run(plan, flicker))
    assert seen.count(ORDER[-1]) == runs_made
    assert failing is None or seen.count(ORDER[10]) == 10


HANG = Claim(kind=ClaimKind.HANG)


@pytest.mark.parametrize(
    ("places", "limits"),
    [(("fold", "fold"), [10.0]), (("fold", "unroll"), [10.0, 40.0]), ((None, "fold"), [10.0, 40.0])],
)
def test_after_a_new_release_a_hang_in_the_same_place_is_stopped_sooner(
    places: tuple[str | None, str], limits: list[float]
) -> None:
    """A hang elsewhere, or after a release that ended, gets the whole time limit."""
    given: list[float] = []

    def stop(cell: Cell, attempt: int) -> Observation:
        place = places[cell.version == ORDER[-1]] if cell.version in ORDER[10:] else "fold"
        if cell.version == ORDER[-1]:
            given.append(cell.limits.wall_s)
        if place is None:
            return observe(cell.version, Outcome.PASS, attempt=attempt)
        where = f"step 1 (python a.py), after {cell.limits.wall_s:g} s, in {place}"
        return observe(cell.version, Outcome.MATCH, attempt=attempt, ended=TimedOut(where=where))

    plan = make_plan(
        claim=HANG, limits=Limits(wall_s=40.0), answered=ORDER[10],
        first=(ORDER[5], ORDER[10], ORDER[-1], ORDER[0]),
    )  # fmt: skip
    seen = run(plan, lambda *_: Outcome.MATCH, run=stop)
    assert given[: len(limits)] == limits
    assert runs(seen).count(ORDER[-1]) == 1 or places[0] is None


@pytest.mark.parametrize("newest", [Outcome.PASS, Outcome.OTHER_FAILURE])
def test_after_a_new_release_with_a_change_its_runs_are_repeated_as_ever(newest: Outcome) -> None:
    """A fix, or another failure, needs the same evidence as in a first answer."""

    def truth(cell: Cell, _: int) -> Outcome:
        return newest if cell.version == "3.11.0" else Outcome.MATCH

    again = run(make_plan(answered="3.10.0", first=(ORDER[5], ORDER[10], ORDER[-1], ORDER[0])), truth)
    afresh = run(make_plan(), truth)
    assert runs(again).count("3.11.0") == runs(afresh).count("3.11.0")


TARGETS = ("hip", "cuda")
QUOTED = Claim(kind=ClaimKind.ERROR, signature=Signature(type="mlir-error", message="failed to bufferize op"))


def compile_for(testcase: Testcase, device: str) -> Testcase:
    return msgspec.structs.replace(testcase, steps=(("iree-compile", device),))


def run_for_targets(plan: Plan, truth: Callable[[Cell, int], Outcome]) -> list[tuple[str, str, Outcome]]:
    def truth_of_compiling(cell: Cell, attempt: int) -> Outcome:
        outcome = truth(cell, attempt)
        return Outcome.COMPILED if cell.compile_only and outcome is Outcome.PASS else outcome

    seen = run(plan, truth_of_compiling, targets=TARGETS, compile_for=compile_for)
    return [(one.device, one.version, one.outcome) for one in seen.observations if one.device in TARGETS]


def test_a_report_that_names_no_device_is_compiled_for_the_usual_targets() -> None:
    """Also on the release after the build nearest to the report. A clean end says only that it compiles."""
    seen = run_for_targets(make_plan(claim=QUOTED), lambda cell, attempt: Outcome.PASS)
    versions = [ORDER[5], ORDER[6], ORDER[-1], ORDER[0]]
    assert seen == [(device, version, Outcome.COMPILED) for device in TARGETS for version in versions]


def test_a_target_that_fails_as_reported_is_searched() -> None:
    """There, compiling is a clean run. Both sides of each change are confirmed; the next target is not tried."""
    bad = {ORDER[6], ORDER[7]}

    def truth(cell: Cell, attempt: int) -> Outcome:
        return Outcome.MATCH if cell.device == "hip" and cell.version in bad else Outcome.PASS

    seen = run_for_targets(make_plan(claim=QUOTED, budget=Budget(probes=60)), truth)
    assert {device for device, _, _ in seen} == {"hip"}
    ended = {(version, outcome) for _, version, outcome in seen}
    assert not any(outcome is Outcome.COMPILED for _, outcome in ended)
    assert {(ORDER[5], Outcome.PASS), (ORDER[6], Outcome.MATCH)} <= ended
    assert {(ORDER[7], Outcome.MATCH), (ORDER[8], Outcome.PASS)} <= ended


@pytest.mark.parametrize(
    "changes",
    [
        {"claim": msgspec.structs.replace(QUOTED, devices=("vulkan",))},
        {"claim": Claim(kind=ClaimKind.WRONG_RESULT)},
        {"claim": Claim(kind=ClaimKind.HANG)},
        {"bisect": False},
    ],
)
def test_other_targets_are_left_alone(changes: dict[str, object]) -> None:
    """Where the report names a device, where compiling answers nothing, and without a search."""
    assert not run_for_targets(make_plan(**({"claim": QUOTED} | changes)), lambda cell, attempt: Outcome.PASS)


def test_a_failure_on_the_usual_device_needs_no_other_target() -> None:
    assert not run_for_targets(make_plan(claim=QUOTED), lambda cell, attempt: Outcome.MATCH)


@pytest.mark.parametrize("fails", [True, False])
def test_a_clean_testcase_is_run_with_the_packages_of_the_report(fails: bool) -> None:
    """On the reported release, and on the newest one if the reported one stays clean. A finding names the package."""
    younger = {"runtime": ("1.0", "2.0")}

    def answer(cell: Cell, _attempt: int) -> Outcome:
        with_it = cell.variant is Variant.CONTROL and cell.testcase.requirements == ("runtime==2.0",)
        return Outcome.MATCH if with_it and fails else Outcome.PASS

    crash = make_plan(claim=Claim(kind=ClaimKind.CRASH))
    seen = run(crash, answer, find_younger=lambda _version: younger)
    controls = [(one.version, one.changes) for one in seen.observations if one.variant is Variant.CONTROL]
    assert controls[0] == (ORDER[5], ("runtime 1.0 → 2.0",))
    assert len(controls) == (1 if fails else 2)
    assert [one.evidence["younger"] for one in seen.findings] == (["2.0"] if fails else [])


@pytest.mark.parametrize(("kind", "outcome"), [(ClaimKind.CRASH, Outcome.MATCH), (ClaimKind.SLOW, Outcome.PASS)])
def test_a_failing_testcase_needs_no_other_packages(kind: ClaimKind, outcome: Outcome) -> None:
    """And neither does a claim about time, for which other packages are another measurement."""
    younger = {"runtime": ("1.0", "2.0")}
    seen = run(make_plan(claim=Claim(kind=kind)), lambda *_: outcome, find_younger=lambda _version: younger)
    assert all(one.variant is not Variant.CONTROL for one in seen.observations)


def test_references_are_asked_about_the_newest_values_where_those_of_an_older_release_are_wrong() -> None:
    """The diagnosis asked about the failing release. The values of the newest one decide nothing by themselves."""
    asked: list[str] = []

    def ask(failure: Failure) -> Diagnosis:
        asked.append(failure.seen.version)
        return Diagnosis()

    def observe_end(cell: Cell, attempt: int) -> Observation:
        newest = cell.version == ORDER[-1]
        seen = probed(cell, attempt, Outcome.OTHER_FAILURE if newest else Outcome.MATCH)
        return msgspec.structs.replace(seen, ended=Exited(code=0)) if newest else seen

    def investigate(vote: str) -> None:
        evidence = {"name": "NumPy", "vote": vote, "version": ORDER[5]}
        found = Diagnosis(findings=(Finding(kind=FindingKind.REFERENCE, summary="", evidence=evidence),))
        plan = make_plan(claim=Claim(kind=ClaimKind.WRONG_RESULT))
        run(plan, lambda *_: Outcome.MATCH, run=observe_end, ask_references=ask, diagnose=lambda _failure: found)

    investigate("differs")
    assert asked == [ORDER[-1]]
    investigate("agrees")
    assert asked == [ORDER[-1]]


def test_references_are_asked_about_values_that_no_output_shows() -> None:
    """On the newest release and on the reported one, and only for a claim about values that no run answers."""
    asked: list[str] = []

    def ask(failure: Failure) -> Diagnosis:
        asked.append(failure.seen.version)
        vote = {"name": "NumPy", "vote": "differs", "version": failure.seen.version}
        return Diagnosis(findings=(Finding(kind=FindingKind.REFERENCE, summary="", evidence=vote),))

    def investigate(kind: ClaimKind, outcome: Outcome, code: int) -> Investigation:
        def observe_end(cell: Cell, attempt: int) -> Observation:
            return msgspec.structs.replace(probed(cell, attempt, outcome), ended=Exited(code=code))

        plan = make_plan(claim=Claim(kind=kind))
        return run(plan, lambda *_: outcome, run=observe_end, ask_references=ask)

    wrong = ClaimKind.WRONG_RESULT
    assert len(investigate(wrong, Outcome.OTHER_FAILURE, 0).findings) == 2
    assert asked == [ORDER[-1], ORDER[5]]
    investigate(wrong, Outcome.OTHER_FAILURE, 1)
    investigate(wrong, Outcome.PASS, 0)
    investigate(wrong, Outcome.MATCH, 0)
    investigate(ClaimKind.CRASH, Outcome.OTHER_FAILURE, 0)
    assert asked == [ORDER[-1], ORDER[5]]
