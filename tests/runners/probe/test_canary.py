"""A canary runs once for each environment and machine; only a pass is cached on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runners.core.protocol import Exited, NotRun, Signalled, Testcase, TimedOut
from runners.environments.store import Environment, Store
from runners.probe.canary import Canaries, explain_failed_canary, make_canary_key
from runners.sandbox.unprotected import Unprotected
from runners.toolchains import find_toolchain, make_canary_testcase
from tests.runners.environments.test_store import RELEASE, build_wheel, make_store

PROGRAM = make_canary_testcase(find_toolchain("python"), "3.11")


@dataclass(slots=True)
class Asked:
    """A canary that gives these answers and counts its runs."""

    answers: list[NotRun | None]
    times: int = 0

    def __call__(self) -> NotRun | None:
        self.times += 1
        return self.answers.pop(0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    build_wheel(wheels, "tiny", "1.0", {"tiny/__init__.py": "VALUE = 1\n"})
    return make_store(tmp_path / "store", wheels)


def name_of(environment: Environment, program: Testcase = PROGRAM) -> str:
    return make_canary_key(environment, Unprotected(), program, {})


def test_a_passed_canary_does_not_run_again(tmp_path: Path) -> None:
    """Neither this process nor the next one runs it again."""
    run = Asked([None])
    for canaries in (Canaries(tmp_path), Canaries(tmp_path)):
        assert canaries.check_once("a~1", run) is None
        assert canaries.check_once("a~1", run) is None
    assert run.times == 1


def test_the_next_process_runs_a_failed_canary_again(tmp_path: Path) -> None:
    """This process keeps the result. The next one runs the canary: the environment may have been repaired."""
    dead = NotRun(why="it fails", cause="unavailable")
    run = Asked([dead, None])
    first = Canaries(tmp_path)
    assert first.check_once("a~1", run) == dead
    assert first.check_once("a~1", run) == dead
    assert Canaries(tmp_path).check_once("a~1", run) is None
    assert run.times == 2


def test_an_infrastructure_failure_is_not_cached(tmp_path: Path) -> None:
    """The failure is returned, and the next call runs the canary again."""
    run = Asked([NotRun(why="no disk", cause="infra"), None])
    canaries = Canaries(tmp_path)
    assert canaries.check_once("a~1", run) is not None
    assert canaries.check_once("a~1", run) is None


def test_a_result_belongs_to_one_copy_of_an_environment(store: Store) -> None:
    """A damaged environment is built again under the same digest, and its canary runs again."""
    before = store.get_environment(RELEASE)
    (before.site_packages / "tiny/__init__.py").unlink()
    after = store.get_environment(RELEASE)
    assert before.digest == after.digest
    os.utime(after.folder / "record.json", ns=(1, 1))  # an inode may be given out again within the clock's tick
    assert name_of(after) != name_of(replace(after, folder=after.folder.parent))
    assert name_of(after) == name_of(store.get_environment(RELEASE))


def test_a_result_belongs_to_one_program_and_engine(store: Store) -> None:
    """Another canary, other variables, another engine or another image of it need a run of their own."""
    environment = store.get_environment(RELEASE)
    other = make_canary_testcase(find_toolchain("tvm"), "0.27.0")
    names = {
        name_of(environment),
        name_of(environment, other),
        make_canary_key(environment, Unprotected(), PROGRAM, {"A": "1"}),
        make_canary_key(environment, Unprotected(name="other"), PROGRAM, {}),
        make_canary_key(environment, Unprotected(image="sha256:1"), PROGRAM, {}),
    }
    assert len(names) == 5


def test_results_are_removed_with_their_environment(store: Store) -> None:
    """Removing an environment removes its cached pass."""
    environment = store.get_environment(RELEASE)
    Canaries(store.root).check_once(name_of(environment), Asked([None]))
    assert list((store.root / "canaries").iterdir())
    os.utime(environment.folder, (1, 1))
    store.trim(0)
    assert not list((store.root / "canaries").iterdir())


def test_a_store_that_cannot_be_written_costs_a_canary_only(tmp_path: Path) -> None:
    """The result is returned although it cannot be cached."""
    (tmp_path / "canaries").write_text("in the way")
    assert Canaries(tmp_path).check_once("a~1", Asked([None])) is None


def test_a_slow_canary_is_an_infrastructure_failure() -> None:
    """A timeout is our failure and can be retried. A canary that dies makes the build unavailable."""
    slow = explain_failed_canary("Apache TVM 0.27.0", TimedOut(where="step 1"), "canary ok 0.27.0")
    assert slow.cause == "infra"
    assert slow.why == (
        "Apache TVM 0.27.0 fails its canary here: it ran out of time, having printed: canary ok 0.27.0"
    )
    for ended, how in ((Exited(code=1), "exits with 1"), (Signalled(code=11), "is killed by signal 11")):
        died = explain_failed_canary("Apache TVM 0.27.0", ended, "")
        assert (died.cause, died.why) == ("unavailable", f"Apache TVM 0.27.0 fails its canary here: it {how}")
