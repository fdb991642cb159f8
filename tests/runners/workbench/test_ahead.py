"""Runs that are made before their turn: made once, never instead of another run, and never in the way of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import cast

import msgspec
import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import Exited, Limits, Outcome, Signature, Testcase, TestcaseKind
from runners.core.runs import RunRequest, RunResult
from runners.core.toolchain.diagnosis import Failure
from runners.environments.store import Store
from runners.environments.uv import Uv
from runners.probe.canary import Canaries
from runners.sandbox.contract import Engine
from runners.workbench import Workbench
from runners.workbench.ahead import RunsAhead, Slots, Withdrawn
from runners.workbench.tools import make_tools
from tests.support.observed import PLAN, observe
from tests.support.waiting import wait_until

TESTCASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="python", files={"r.py": "1"}, steps=(("python", "r.py"),))
REQUEST = RunRequest(version="3.11", device="cpu", testcase=TESTCASE)
WAIT_S = 30.0


class Machine:
    """An `Execute` that numbers its runs, in the order of their start. ``hold`` delays runs of a version."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.at_once = self.most_at_once = 0
        self.hold: dict[str, threading.Event] = {}
        self.under_way = threading.Semaphore(0)
        self._guard = threading.Lock()

    def __call__(self, request: RunRequest) -> RunResult:
        with self._guard:
            self.started.append(request.version)
            number = len(self.started)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.under_way.release()
        if request.version in self.hold:
            assert self.hold[request.version].wait(WAIT_S)
        with self._guard:
            self.at_once -= 1
        return RunResult(ended=Exited(code=0), seconds=number)


def ask(version: str) -> RunRequest:
    return msgspec.structs.replace(REQUEST, version=version)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def test_expected_run_is_made_once_and_answers_one_request(machine: Machine, pool: ThreadPoolExecutor) -> None:
    """A second equal request asks whether the testcase fails again: it has a run of its own."""
    ahead = RunsAhead(machine, Slots(1), pool)
    ahead.expect(REQUEST)
    assert machine.under_way.acquire(timeout=WAIT_S)
    assert ahead.execute(REQUEST).seconds == 1
    assert ahead.execute(REQUEST).seconds == 2
    assert len(machine.started) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"fresh": True},
        {"attempt": 2},
        {"limits": Limits(wall_s=1)},
        {"may_fork": False},
        {"testcase": msgspec.structs.replace(TESTCASE, files={"r.py": "2"})},
    ],
    ids=lambda change: next(iter(change)),
)
def test_expected_run_answers_no_other_request(
    machine: Machine, pool: ThreadPoolExecutor, change: dict[str, object]
) -> None:
    """A run in a shared sandbox cannot stand for a run in a sandbox of its own."""
    ahead = RunsAhead(machine, Slots(1), pool)
    ahead.expect(REQUEST)
    assert machine.under_way.acquire(timeout=WAIT_S)
    assert ahead.execute(msgspec.structs.replace(REQUEST, **change)).seconds == 2


def test_run_whose_turn_it_is_goes_before_early_ones(machine: Machine, pool: ThreadPoolExecutor) -> None:
    slots = Slots(1)
    ahead = RunsAhead(machine, slots, pool)
    machine.hold["first"] = threading.Event()
    first = pool.submit(ahead.execute, ask("first"))
    assert machine.under_way.acquire(timeout=WAIT_S)
    for number in range(3):
        ahead.expect(ask(f"early {number}"))
    urgent = pool.submit(ahead.execute, ask("urgent"))
    assert wait_until(lambda: slots.waiting == 1)
    machine.hold["first"].set()
    urgent.result(WAIT_S)
    first.result(WAIT_S)
    for number in range(3):
        ahead.execute(ask(f"early {number}"))
    assert machine.started[:2] == ["first", "urgent"]
    assert len(machine.started) == 5


def test_no_more_runs_at_once_than_there_are_slots(machine: Machine, pool: ThreadPoolExecutor) -> None:
    ahead = RunsAhead(machine, Slots(2), pool)
    for number in range(12):
        ahead.expect(ask(str(number % 4)))
    for number in range(12):
        ahead.execute(ask(str(number % 4)))
    assert len(machine.started) == 12
    assert machine.most_at_once <= 2


def test_early_runs_leave_a_slot_to_the_search(machine: Machine, pool: ThreadPoolExecutor) -> None:
    """A run whose turn it is begins at once beside waiting early runs, which get every slot after the search."""
    ahead = RunsAhead(machine, Slots(2, kept=1), pool)
    for name in ("long", "also long"):
        machine.hold[name] = threading.Event()
        ahead.expect(ask(name))
    assert machine.under_way.acquire(timeout=WAIT_S)
    ahead.execute(ask("urgent"))
    assert machine.under_way.acquire(timeout=WAIT_S)
    assert sorted(machine.started) == ["long", "urgent"] or sorted(machine.started) == ["also long", "urgent"]
    ahead.finish_search()
    assert machine.under_way.acquire(timeout=WAIT_S)
    for name in ("long", "also long"):
        machine.hold[name].set()
    assert len(machine.started) == 3


def test_an_early_run_that_is_asked_for_waits_no_longer_than_others(
    machine: Machine, pool: ThreadPoolExecutor
) -> None:
    """Its turn has come: the slot that is kept from early runs is for it."""
    ahead = RunsAhead(machine, Slots(2, kept=1), pool)
    machine.hold["long"] = threading.Event()
    ahead.expect(ask("long"))
    assert machine.under_way.acquire(timeout=WAIT_S)
    ahead.expect(ask("next"))
    pool.submit(ahead.execute, ask("next")).result(WAIT_S)
    assert machine.started == ["long", "next"]
    machine.hold["long"].set()


def test_one_processor_makes_early_runs_after_the_search(machine: Machine, pool: ThreadPoolExecutor) -> None:
    ahead = RunsAhead(machine, Slots(1, kept=1), pool)
    ahead.expect(ask("early"))
    ahead.execute(ask("first"))
    assert machine.started == ["first"]
    ahead.withdraw()  # else the pool would wait for the early run for ever


@pytest.mark.parametrize("early", [False, True], ids=["in its turn", "early"])
def test_a_run_that_nobody_wanted_is_made_if_it_is_asked_for(
    machine: Machine, pool: ThreadPoolExecutor, early: bool
) -> None:
    """The early diagnosis was given up, and the one in its place makes an equal request."""
    ahead = RunsAhead(machine, Slots(1), pool)
    asked = threading.Event()

    def refuse() -> bool:
        asked.set()
        return False

    ahead.expect(REQUEST, wanted=refuse)
    assert asked.wait(WAIT_S)
    assert (ahead.execute_early if early else ahead.execute)(REQUEST).seconds == 1
    assert len(machine.started) == 1


def test_nothing_is_made_early_after_the_end(machine: Machine, pool: ThreadPoolExecutor) -> None:
    ahead = RunsAhead(machine, Slots(1), pool)
    ahead.withdraw()
    with pytest.raises(Withdrawn):
        ahead.execute_early(REQUEST)
    assert machine.started == []
    assert ahead.execute(REQUEST).seconds == 1


def test_diagnosis_that_another_replaces_makes_no_further_run(machine: Machine, pool: ThreadPoolExecutor) -> None:
    """The early diagnosis took a flaky failure for a steady one."""
    plan = msgspec.structs.replace(PLAN, testcase=TESTCASE, device="cpu")
    tools = make_tools(plan, RunsAhead(machine, Slots(2), pool), pool, Silent(), background=pool)
    tools.finish_search()
    signature = Signature(type="AssertionError", message="x")
    steady = Failure(testcase=TESTCASE, seen=observe("early", Outcome.MATCH, signature=signature))
    flaky = Failure(testcase=TESTCASE, seen=observe("later", Outcome.MATCH, signature=signature))
    machine.hold["early"] = threading.Event()
    early = pool.submit(tools.diagnose, steady)
    assert machine.under_way.acquire(timeout=WAIT_S)
    later = pool.submit(tools.diagnose, flaky)
    assert machine.under_way.acquire(timeout=WAIT_S)
    machine.hold["early"].set()
    later.result(WAIT_S)
    with pytest.raises(Withdrawn):
        early.result(WAIT_S)
    assert machine.started.count("early") == 1


def test_every_run_of_a_plan_knows_the_day_of_the_report(tmp_path: Path) -> None:
    """Runs in their turn and runs before it: the day chooses the versions of large packages."""
    days: list[date | None] = []

    class Dated(Workbench):
        def execute(self, request: RunRequest) -> RunResult:
            days.append(self.day)
            return RunResult(ended=Exited(code=0))

    bench = Dated(
        engine=cast("Engine", None),
        store=Store(root=tmp_path / "store", uv=Uv(cache=tmp_path / "uv")),
        catalogue=load_catalogue(),
        progress=Silent(),
        run_id="days",
        canaries=Canaries(tmp_path),
    )
    day = date(2024, 5, 1)
    seen = bench.run(msgspec.structs.replace(PLAN, testcase=TESTCASE, device="cpu", day=day))
    assert {one.attempt for one in seen.observations} == {1, 2}
    assert set(days) == {day}
