"""The search of a build range: the runs that count, the prepared builds, the end; and its start after releases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from runners.core.bisection.commits import list_candidates, narrow_range
from runners.core.progress import Silent
from runners.core.protocol import (
    Answer,
    Bisection,
    BuildRange,
    Cell,
    Exited,
    Investigation,
    Observation,
    Outcome,
    Plan,
    RangeBuild,
)
from runners.core.toolchain.diagnosis import Diagnosis, Failure
from runners.investigation.bisect_builds import MOST_HICCUPS, BuildSupply, search_builds
from runners.investigation.investigate import investigate_plan
from runners.investigation.state import BuildSearch, Tools
from tests.runners.investigation.test_investigate import ORDER, make_plan, probed
from tests.support.observed import observe

SIZE = 60


def make_range(size: int = SIZE, *, direction: str = "introduced", step: int = 1, **more: object) -> BuildRange:
    """Builds ``n0`` … of the commits ``00…``, ``step`` commits apart."""
    builds = tuple(
        RangeBuild(name=f"n{number}", commit=f"{number:040x}", commits=number * step) for number in range(size)
    )
    return BuildRange(direction=direction, builds=builds, **more)  # type: ignore[arg-type]  # merged for brevity


def seen(name: str, attempt: int, outcome: Outcome) -> Observation:
    return observe(name, outcome, attempt=attempt, ended=Exited(code=0))


def go(
    build_range: BuildRange,
    truth: Callable[[int, int], Outcome],
    *,
    seconds: Callable[[], dict[str, float]] = dict,
    prepare: Callable[[str], None] = lambda name: None,
    known: tuple[Observation, ...] = (),
    expired: Callable[[], bool] = lambda: False,
    workers: int = 1,
) -> tuple[Observation, ...]:
    with ThreadPoolExecutor(2) as executor, ThreadPoolExecutor(1) as helper:
        return search_builds(
            build_range,
            device="llvm",
            known=known,
            attempt=lambda name, attempt: seen(name, attempt, truth(int(name[1:]), attempt)),
            supply=BuildSupply(seconds=seconds, prepare=prepare, helper=helper),
            executor=executor,
            workers=workers,
            expired=expired,
        )


def bad_from(first: int) -> Callable[[int, int], Outcome]:
    return lambda number, attempt: Outcome.MATCH if number >= first else Outcome.PASS


def test_the_result_follows_from_the_record_alone() -> None:
    """Commit, confidence and counts follow from range and observations alone."""
    build_range = make_range()
    found = narrow_range(build_range, go(build_range, bad_from(41)), "llvm")
    assert isinstance(found, Bisection)
    assert (found.last_good, found.first_bad) == ("n40", "n41")
    assert found.culprit == f"{41:040x}"
    assert found.commits is not None
    assert (found.commits.start, found.commits.count) == (f"{40:040x}", 1)
    assert found.confidence >= 0.99


def test_builds_some_commits_apart_give_a_range() -> None:
    """No single commit is named if the range has no builds of the commits between."""
    build_range = make_range(step=7)
    found = narrow_range(build_range, go(build_range, bad_from(41)), "llvm")
    assert isinstance(found, Bisection)
    assert found.culprit is None
    assert found.commits is not None
    assert found.commits.count == 7


def test_a_fix_has_the_other_pair_of_ends() -> None:
    """The last bad build comes before the first good one."""
    build_range = make_range(direction="fixed")
    found = narrow_range(build_range, go(build_range, lambda n, _: Outcome.PASS if n >= 9 else Outcome.MATCH), "llvm")
    assert isinstance(found, Bisection)
    assert (found.last_bad, found.first_good, found.last_good) == ("n8", "n9", None)


def test_another_failure_is_neither_good_nor_bad() -> None:
    """Such builds stay in the range."""

    def truth(number: int, attempt: int) -> Outcome:
        if 30 <= number < 45:
            return Outcome.OTHER_FAILURE
        return Outcome.MATCH if number >= 41 else Outcome.PASS

    build_range = make_range()
    found = narrow_range(build_range, go(build_range, truth), "llvm")
    assert isinstance(found, Bisection)
    assert (found.last_good, found.first_bad, found.culprit) == ("n29", "n45", None)
    assert set(found.skipped) <= {f"n{number}" for number in range(30, 45)}


def test_known_observations_are_not_run_again() -> None:
    """The bisection of releases has run the ends, and these runs count."""
    build_range = make_range()
    known = (*(seen("n0", n, Outcome.PASS) for n in range(10)), *(seen("n59", n, Outcome.MATCH) for n in range(10)))
    new = go(build_range, bad_from(41), known=known)
    assert {"n0", "n59"}.isdisjoint(one.version for one in new)


def test_the_probes_and_the_time_are_kept() -> None:
    """There are never more runs than allowed, and none after the deadline. The observations so far are returned."""
    build_range = make_range(probes=25)
    some = go(build_range, bad_from(41), workers=4)
    assert len(some) == 25
    found = narrow_range(build_range, some, "llvm")
    assert isinstance(found, Bisection)
    assert found.culprit is None
    assert go(build_range, bad_from(41), expired=lambda: True) == ()


def test_infrastructure_failures_end_the_tries_of_a_build() -> None:
    """Such a build is tried a few times and given up."""
    build_range = make_range()
    runs = go(build_range, lambda n, a: Outcome.INFRA if n == 29 else bad_from(41)(n, a))
    assert sum(one.version == "n29" for one in runs) <= MOST_HICCUPS
    found = narrow_range(build_range, runs, "llvm")
    assert isinstance(found, Bisection)
    assert found.culprit == f"{41:040x}"


def test_builds_are_prepared_once_and_on_another_thread() -> None:
    """The chosen builds are prepared, and those that either result would choose next."""
    build_range, threads = make_range(), set()
    made: list[str] = []

    def prepare(name: str) -> None:
        made.append(name)
        threads.add(threading.current_thread())

    def seconds() -> dict[str, float]:
        return {build.name: 600.0 for build in build_range.builds if build.name not in made}

    runs = go(build_range, bad_from(41), seconds=seconds, prepare=prepare)
    assert {one.version for one in runs} <= set(made)
    assert len(made) == len(set(made))
    assert len(threads) == 1
    ends = [(0, Answer.GOOD)] * 10 + [(59, Answer.BAD)] * 10
    coming = list_candidates(build_range, ends, {}, [build_range.builds[30]])
    assert len(coming) == 2
    assert build_range.builds[30] not in coming


# ------------------------------------------------------------------------------------------- from releases on


def investigated(
    plan: Plan,
    list_builds: Callable[[str, str], BuildRange | str],
    first_bad: int,
    *,
    diagnose: Callable[[Failure], Diagnosis] = lambda failure: Diagnosis(),
    background: ThreadPoolExecutor | None = None,
) -> Investigation:
    """Releases up to 3.6.0 are good; between them the builds from ``first_bad`` on fail."""

    def run(cell: Cell, attempt: int) -> Observation:
        if cell.version in ORDER:
            bad = ORDER.index(cell.version) > 6
        else:
            bad = int(cell.version[1:]) >= first_bad
        return probed(cell, attempt, Outcome.MATCH if bad else Outcome.PASS)

    with ThreadPoolExecutor(2) as executor, ThreadPoolExecutor(1) as helper:
        supply = BuildSupply(seconds=dict, prepare=lambda name: None, helper=helper)
        tools = Tools(
            run=run,
            port=lambda testcase, version: None,
            retarget=lambda testcase, device: None,
            diagnose=diagnose,
            executor=executor,
            background=background,
            progress=Silent(),
            between_releases=BuildSearch(list_builds=list_builds, supply=supply),
        )
        return investigate_plan(plan, tools)


def test_after_releases_the_search_goes_on_between_them() -> None:
    """The search covers the builds between the last good and the first bad release, and no others."""
    asked: list[tuple[str, str]] = []

    def list_builds(good: str, bad: str) -> BuildRange:
        asked.append((good, bad))
        return make_range()

    plan = make_plan(deepen=True)
    found = investigated(plan, list_builds, 23)
    assert asked == [("3.6.0", "3.7.0")]
    assert found.trail is not None
    deep = narrow_range(found.trail, found.observations, plan.device)
    assert isinstance(deep, Bisection)
    assert deep.culprit == f"{23:040x}"


def test_the_builds_are_listed_beside_the_diagnosis() -> None:
    """The listing reads a history and two package indexes, and needs no run."""
    listed = threading.Event()

    def list_builds(good: str, bad: str) -> BuildRange:
        listed.set()
        return make_range()

    def diagnose(failure: Failure) -> Diagnosis:
        assert listed.wait(timeout=30)
        return Diagnosis()

    with ThreadPoolExecutor(2) as background:
        plan = make_plan(deepen=True, diagnose=True)
        found = investigated(plan, list_builds, 23, diagnose=diagnose, background=background)
    assert found.trail == make_range()


def test_without_builds_between_them_releases_are_the_answer() -> None:
    """A message says that there are none, and the result stays."""
    found = investigated(make_plan(deepen=True), lambda good, bad: "there are none", 23)
    assert found.trail is None
    assert {seen.version for seen in found.observations} <= set(ORDER)


def test_only_a_plan_that_deepens_searches_between_releases() -> None:
    """A plan without `deepen` ends with releases."""
    found = investigated(make_plan(), lambda good, bad: make_range(), 23)
    assert found.trail is None


def test_a_plan_with_a_build_range_runs_its_builds_only() -> None:
    """The plan runs the ends of its range, and the builds between them."""
    plan = make_plan(trail=make_range(), order=("n0", "n59"), first=(), reported=None)
    found = investigated(plan, lambda good, bad: "not asked", 5)
    assert {seen.version for seen in found.observations}.isdisjoint(ORDER)
    deep = narrow_range(make_range(), found.observations, plan.device)
    assert isinstance(deep, Bisection)
    assert deep.first_bad == "n5"
