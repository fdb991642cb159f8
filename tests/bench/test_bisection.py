"""The bench compares with git's own search only as long as it searches as git does."""

from __future__ import annotations

import random
import subprocess

import pytest

from bench.bisection.trials import History, git
from runners.core.bisection.noisy import Rates
from tests.flow.planted import GOOD, Planted, plant

pytestmark = pytest.mark.thorough

SIZE = 96


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """A clone with a work tree: git bisect checks commits out."""
    bare = plant(tmp_path_factory.mktemp("git"), SIZE + 1, body=lambda number: GOOD)
    clone = bare.path.parent / "clone"
    subprocess.run(["git", "clone", "--quiet", str(bare.path), str(clone)], check=True)
    return Planted(path=clone, main=bare.main)


@pytest.mark.parametrize(
    ("change", "skipped"), [(1, ()), (96, ()), (40, ()), (61, range(30, 50)), (23, range(46, 51))]
)
def test_it_finds_what_git_finds_in_about_as_many_runs(planted: Planted, change: int, skipped: range) -> None:
    """The same range as a real ``git bisect run`` over real commits; ties between midpoints may fall otherwise."""
    history = History(SIZE, change, Rates(bad=1.0, good=0.0), frozenset(skipped), random.Random(0))
    found = git(history)
    log = bisect_run(planted, change, skipped)
    runs = log.count("git bisect good ") + log.count("git bisect bad ") + log.count("git bisect skip ")
    assert f"first bad commit: [{planted.main[change]}]" in log
    assert (found.older, found.newer) == (change - 1, change)
    assert abs(history.runs - runs) <= 1 + len(skipped) // 4


def bisect_run(planted: Planted, change: int, skipped: range | tuple[()]) -> str:
    """The log of git's own search; the number of a commit is the last part of its VERSION."""
    script = planted.path.parent / "script.sh"
    names = " ".join(str(number) for number in skipped)
    script.write_text(
        f'n=$(cut -d. -f3 VERSION)\nfor s in {names}; do [ "$n" = "$s" ] && exit 125; done\n[ "$n" -lt {change} ]\n'
    )
    git = ["git", "-C", str(planted.path)]
    subprocess.run([*git, "bisect", "start", planted.main[-1], planted.main[0]], capture_output=True, check=True)
    try:
        subprocess.run([*git, "bisect", "run", "sh", str(script)], capture_output=True, check=True)
        return subprocess.run([*git, "bisect", "log"], capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run([*git, "bisect", "reset"], capture_output=True, check=True)
