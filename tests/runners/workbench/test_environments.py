"""The environment of a release is compared with its record once, and again when its copy is another one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.core.progress import Silent
from runners.core.protocol import NotRun, Testcase, TestcaseKind
from runners.environments.store import Environment, Store
from runners.probe.canary import Canaries
from runners.sandbox.contract import Engine
from runners.workbench import Workbench, environments
from runners.workbench.environments import find_environment
from tests.runners.workbench.test_confirmation import make_environment

TESTCASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="python", files={"r.py": "1"}, steps=(("python", "r.py"),))


class CountingStore:
    """A store with one environment, whose copy is in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.environment = make_environment(folder)
        self.asked = 0
        (folder / "record.json").write_text("{}")

    def get_environment(self, release: object, requirements: tuple[str, ...]) -> Environment:
        self.asked += 1
        return self.environment


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path)


@pytest.fixture
def bench(store: CountingStore, tmp_path: Path) -> Workbench:
    return Workbench(
        engine=cast("Engine", None),
        store=cast("Store", store),
        catalogue=load_catalogue(),
        progress=Silent(),
        run_id="environments",
        canaries=Canaries(tmp_path),
    )


def test_files_are_compared_once_for_all_runs(
    bench: Workbench, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "make_canary_key", lambda *_: "a~1")
    monkeypatch.setattr(environments, "run_canary", lambda *_: None)
    found = [find_environment(bench, "3.11", TESTCASE) for _ in range(3)]
    assert found == [store.environment] * 3
    assert store.asked == 1
    (store.environment.folder / "record.json").unlink()
    (store.environment.folder / "record.json").write_text("another copy")
    find_environment(bench, "3.11", TESTCASE)
    assert store.asked == 2


def test_release_whose_canary_fails_is_asked_for_again(
    bench: Workbench, store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "make_canary_key", lambda *_: "a~1")
    monkeypatch.setattr(environments, "run_canary", lambda *_: NotRun(why="no disk", cause="infra"))
    for _ in range(2):
        assert isinstance(find_environment(bench, "3.11", TESTCASE), NotRun)
    assert store.asked == 2
