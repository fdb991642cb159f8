"""The ledger of runs: each run once, for threads, processes and machines; and what a full disk or kill -9 leaves."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from runners.core.database import open_database
from runners.core.errors import InfraError, UserError
from runners.core.protocol import Exited, Limits, NotRun, StepResult, Testcase, TestcaseKind, TimedOut, digest_of
from runners.core.runs import Recording, RunRequest, RunResult
from runners.core.toolchain.guest import make_launch_step
from runners.workbench import run_ledger
from runners.workbench.recorded_runs import RecordedRuns
from runners.workbench.run_ledger import (
    MIGRATIONS,
    RunLedger,
    Surroundings,
    digest_guest,
    list_guest_digests,
    open_run_ledger,
)

ROOT = Path(__file__).parents[3]
HERE = Surroundings(environment="sha256:e", engine="bubblewrap", image="", driver="", guest="g")
CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
ASKED = RunRequest(version="0.27.0", device="llvm", testcase=CASE)


def result(code: int = 0, **changes: object) -> RunResult:
    step = StepResult(argv=("python", "a.py"), ended=Exited(code=code), stdout="out\n")
    made = RunResult(steps=(step,), ended=Exited(code=code), environment=HERE.environment, engine=HERE.engine)
    return msgspec.structs.replace(made, **changes)


class Machine:
    """Makes runs, and counts them."""

    def __init__(self, answer: Callable[[RunRequest], RunResult] = lambda _: result()) -> None:
        self.made: list[RunRequest] = []
        self._answer = answer

    def __call__(self, request: RunRequest) -> RunResult:
        self.made.append(request)
        return self._answer(request)


def investigate(ledger: RunLedger, machine: Machine, around: Surroundings = HERE) -> RecordedRuns:
    return RecordedRuns(ledger, machine, lambda _: around)


@pytest.fixture
def ledger(tmp_path: Path) -> RunLedger:
    return open_run_ledger(tmp_path / "runs.sqlite")


def test_an_identical_run_is_made_once(ledger: RunLedger) -> None:
    machine = Machine()
    first = investigate(ledger, machine)(ASKED)
    runs = investigate(ledger, machine)
    assert runs(ASKED) == first
    assert len(machine.made) == 1
    assert (runs.cost.made, runs.cost.reused) == (0, 1)


def test_equal_requests_of_one_investigation_are_runs_of_their_own(ledger: RunLedger) -> None:
    """They are made to tell a flaky testcase; a second investigation gets both, in order."""
    codes = iter((0, 1))
    machine = Machine(lambda _: result(next(codes)))
    first = investigate(ledger, machine)
    again = investigate(ledger, machine)
    assert [first(ASKED), first(ASKED)] == [again(ASKED), again(ASKED)] == [result(0), result(1)]


@pytest.mark.parametrize("part", ["environment", "engine", "image", "driver", "guest"])
def test_another_surrounding_is_another_run(ledger: RunLedger, part: str) -> None:
    machine = Machine()
    investigate(ledger, machine)(ASKED)
    investigate(ledger, machine, Surroundings(**{**vars_of(HERE), part: "other"}))(ASKED)
    assert len(machine.made) == 2


def vars_of(one: Surroundings) -> dict[str, str]:
    return {name: getattr(one, name) for name in Surroundings.__slots__}


@pytest.mark.parametrize(
    "changed",
    [
        msgspec.structs.replace(ASKED, version="0.26.0"),
        msgspec.structs.replace(ASKED, device="cuda"),
        msgspec.structs.replace(ASKED, attempt=2),
        msgspec.structs.replace(ASKED, seed=1),
        msgspec.structs.replace(ASKED, fresh=True),
        msgspec.structs.replace(ASKED, testcase=msgspec.structs.replace(CASE, files={"a.py": "2"})),
    ],
    ids=["version", "device", "attempt", "seed", "fresh", "testcase"],
)
def test_another_request_is_another_run(ledger: RunLedger, changed: RunRequest) -> None:
    """A run that confirms a statement needs a sandbox of its own: a run from a shared one does not answer it."""
    machine = Machine()
    investigate(ledger, machine)(ASKED)
    investigate(ledger, machine)(changed)
    assert len(machine.made) == 2


def test_a_run_of_its_own_sandbox_answers_any_request(ledger: RunLedger) -> None:
    machine = Machine()
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, fresh=True))
    investigate(ledger, machine)(ASKED)
    assert len(machine.made) == 1


def test_a_limit_that_was_reached_answers_for_no_longer_one(ledger: RunLedger) -> None:
    """A run that did not end in 120 s did not end in 40 s. A run that was stopped after 40 s may end in 120 s."""
    machine = Machine(lambda _: result(ended=TimedOut(where="python a.py")))
    short, long = (msgspec.structs.replace(ASKED, limits=Limits(wall_s=s)) for s in (40, 120))
    investigate(ledger, machine)(short)
    investigate(ledger, machine)(short)
    assert len(machine.made) == 1
    investigate(ledger, machine)(long)
    assert len(machine.made) == 2
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, limits=Limits(wall_s=80)))
    assert len(machine.made) == 2
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, limits=Limits(wall_s=80, memory_bytes=2**30)))
    assert len(machine.made) == 3


def test_a_run_beyond_the_limit_does_not_answer(ledger: RunLedger) -> None:
    machine = Machine(lambda _: result(seconds=50.0))
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, limits=Limits(wall_s=120)))
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, limits=Limits(wall_s=40)))
    assert len(machine.made) == 2


def test_order_of_equal_requests_does_not_matter(ledger: RunLedger) -> None:
    """Runs side by side may ask in another order the next time: one that confirms finds the run that it needs."""
    machine = Machine()
    confirming = msgspec.structs.replace(ASKED, fresh=True)
    first = investigate(ledger, machine)
    first(ASKED)
    first(confirming)
    again = investigate(ledger, machine)
    again(confirming)
    again(ASKED)
    assert len(machine.made) == 2


def test_a_record_names_the_guest_programs_of_its_own_run(ledger: RunLedger) -> None:
    """A run of the testcase as posted comes first. A diagnosis on the same build has the compiler's programs too."""
    diagnosed = msgspec.structs.replace(CASE, steps=(make_launch_step("tvm.diagnose", "bounds", "a.py"),))
    runs = RecordedRuns(ledger, Machine(), lambda asked: replace(HERE, guest=digest_guest(asked.testcase)))
    for case in (CASE, diagnosed, CASE):
        runs(msgspec.structs.replace(ASKED, testcase=case))
    recorded = [msgspec.json.decode(line, type=Recording) for line in ledger.export_lines()]
    assert {(one.testcase, one.guest) for one in recorded} == {
        (digest_of(case), digest_guest(case)) for case in (CASE, diagnosed)
    }


def test_our_own_failure_is_not_recorded(ledger: RunLedger) -> None:
    answers = iter((result(ended=NotRun(why="no space")), result()))
    machine = Machine(lambda _: next(answers))
    runs = investigate(ledger, machine)
    assert isinstance(runs(ASKED).ended, NotRun)
    assert runs(ASKED) == result()
    assert investigate(ledger, machine)(ASKED) == result()
    assert (runs.cost.made, ledger.count_runs()) == (1, 1)


def test_threads_that_want_the_same_run_wait_for_it(ledger: RunLedger) -> None:
    started = threading.Barrier(4)

    def answer(_: RunRequest) -> RunResult:
        time.sleep(0.05)
        return result()

    machine = Machine(answer)

    def investigate_at_once(_: int) -> RunResult:
        runs = investigate(ledger, machine)
        started.wait()
        return runs(ASKED)

    with ThreadPoolExecutor(4) as pool:
        assert set(map(msgspec.json.encode, pool.map(investigate_at_once, range(4)))) == {
            msgspec.json.encode(result())
        }
    assert len(machine.made) == 1


WRITER = """
import sys, time
from tests.runners.workbench.test_run_ledger import ASKED, Machine, investigate, result
from runners.workbench.run_ledger import open_run_ledger
import msgspec
from pathlib import Path
path, count, hold = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
def answer(request):
    with path.with_name("made").open("a") as file:
        file.write(f"{request.version}\\n")
    time.sleep(hold)
    return result()
runs = investigate(open_run_ledger(path), Machine(answer))
for number in range(count):
    runs(msgspec.structs.replace(ASKED, version=f"0.{number}"))
    print(number, flush=True)
"""


def start_writer(path: Path, count: int, hold: float = 0, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(path), str(count), str(hold)]
    return subprocess.Popen(words, cwd=ROOT, stdout=stdout, text=True)


@pytest.mark.thorough
def test_processes_share_the_ledger_and_make_each_run_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    writers = [start_writer(path, 20) for _ in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    made = (tmp_path / "made").read_text().split()
    assert sorted(made) == sorted(f"0.{number}" for number in range(20))
    assert open_run_ledger(path).count_runs() == 20


@pytest.mark.thorough
def test_a_killed_process_loses_no_recorded_run_and_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    killed = start_writer(path, 1_000, hold=0.02, stdout=subprocess.PIPE)
    assert killed.stdout is not None
    for _ in range(5):
        killed.stdout.readline()
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert open_run_ledger(path).count_runs() >= 5
    assert start_writer(path, 8).wait(timeout=30) == 0


def test_the_export_of_a_ledger_is_the_ledger(ledger: RunLedger, tmp_path: Path) -> None:
    machine = Machine()
    runs = investigate(ledger, machine)
    runs(ASKED)
    runs(msgspec.structs.replace(ASKED, version="0.26.0", fresh=True))
    lines = list(ledger.export_lines())
    copy = open_run_ledger(tmp_path / "copy.sqlite")
    assert copy.import_lines(lines) == 2
    assert copy.import_lines(lines) == 0
    assert list(copy.export_lines()) == lines
    investigate(copy, machine)(ASKED)
    assert len(machine.made) == 2


@pytest.mark.parametrize("line", [b"no JSON", b"{}", b'{"key": 1}', b"\xff\xfe"])
def test_a_faulty_line_imports_nothing(ledger: RunLedger, tmp_path: Path, line: bytes) -> None:
    investigate(ledger, Machine())(ASKED)
    copy = open_run_ledger(tmp_path / "copy.sqlite")
    with pytest.raises(UserError, match="line 2 is no recorded run"):
        copy.import_lines([*ledger.export_lines(), line])
    assert copy.count_runs() == 0


def test_a_full_disk_costs_the_record_and_not_the_run(tmp_path: Path) -> None:
    """The file's size is limited as a full disk limits it. Recorded runs stay; later ones are recorded again."""
    data = open_database(tmp_path / "runs.sqlite", MIGRATIONS)
    ledger = RunLedger(data)
    said: list[str] = []
    noise = os.urandom(30_000).hex()
    machine = Machine(lambda asked: result(hook_file=noise + asked.version))
    runs = RecordedRuns(ledger, machine, lambda _: HERE, said.append)
    runs(ASKED)
    (pages,) = data.select("PRAGMA page_count")[0]
    data.select(f"PRAGMA max_page_count = {pages}")
    assert runs(msgspec.structs.replace(ASKED, version="0.1")).hook_file == noise + "0.1"
    assert "full" in said[0]
    data.select(f"PRAGMA max_page_count = {2**30}")
    investigate(ledger, machine)(ASKED)
    investigate(ledger, machine)(msgspec.structs.replace(ASKED, version="0.1"))
    assert (len(machine.made), ledger.count_runs()) == (3, 2)


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "runs.sqlite") as sql:
        sql.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="newer version"):
        open_run_ledger(tmp_path / "runs.sqlite")


def test_a_migration_keeps_the_recorded_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.sqlite"
    investigate(open_run_ledger(path), Machine())(ASKED)
    monkeypatch.setattr(run_ledger, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE more (name TEXT) STRICT;"))
    assert open_run_ledger(path).count_runs() == 1


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite").write_text("# not a database\n" * 100)
    with pytest.raises(UserError, match="cannot be opened"):
        open_run_ledger(tmp_path / "runs.sqlite")


def test_a_ledger_that_cannot_be_locked_says_so(ledger: RunLedger, tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite-runs").mkdir()
    with pytest.raises(InfraError, match="cannot be locked"):
        investigate(ledger, Machine())(ASKED)


def test_only_the_guest_programs_of_a_run_decide_whether_its_record_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new diagnoser for one compiler makes no run of another compiler again, and none of a testcase as posted."""
    diagnosed = msgspec.structs.replace(CASE, steps=(make_launch_step("tvm.diagnose", "bounds", "a.py"),))
    traced = msgspec.structs.replace(CASE, steps=(make_launch_step("iree.trace"),))

    def digest_all(changed: str = "") -> list[str]:
        folder = tmp_path / (changed.replace("/", "-") or "usual")
        for name in ("launch.py", "probe/step.py", "script/run.py", "tvm/diagnose.py", "iree/trace.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("changed" if name == changed else "usual")
        monkeypatch.setattr(run_ledger, "GUEST", folder)
        run_ledger._digest_folders.cache_clear()
        found = [digest_guest(case) for case in (CASE, diagnosed, traced)]
        assert set(found) == list_guest_digests()
        return found

    usual = digest_all()
    try:
        for name, expected in {
            "tvm/diagnose.py": [True, False, True],
            "iree/trace.py": [True, True, False],
            "script/run.py": [False, False, False],
            "launch.py": [False, False, False],
        }.items():
            assert [a == b for a, b in zip(usual, digest_all(name), strict=True)] == expected, name
    finally:
        run_ledger._digest_folders.cache_clear()
