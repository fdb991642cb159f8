"""An ordinary user gets the same protection, or a statement of its limitations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox

SOMEBODY = "54321"
ROOT = Path(__file__).parents[3]
KIT = "tests/runners/sandbox/kit/test_conformance.py"
SELECTION = (
    *("who-am-i", "new-namespaces", "interfaces", "fork-bomb", "thread-bomb", "fill-the-disk", "table-of-mounts"),
    *("read-the-supervisor", "environment", "namespaces-of-its-own", "exit-3", "signal-9", "stop-itself"),
)
SAYS = """
from runners.sandbox.bubblewrap import Bubblewrap
from runners.sandbox.select import select_engine
print(select_engine("auto").name, Bubblewrap().find_problem(), Bubblewrap().limitations, sep="|")
"""

Python = Callable[..., subprocess.CompletedProcess[str]]


def interpreter() -> str:
    """Return an interpreter that every user can execute."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return shutil.which(name, path="/usr/bin:/usr/local/bin") or sys.executable


@pytest.fixture
def python() -> Iterator[Python]:
    """Run Python as another user, with our packages and a home directory."""
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user's run as a whole")
    home = Path(tempfile.mkdtemp(prefix="somebody-"))
    os.chown(home, int(SOMEBODY), int(SOMEBODY))
    path = f"{ROOT}:{sysconfig.get_path('purelib')}"
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    become = ["setpriv", "--reuid", SOMEBODY, "--regid", SOMEBODY, "--clear-groups", "--", interpreter()]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*become, *words], cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=200
        )

    try:
        first = run("-c", "import msgspec, pytest, runners")
        if first.returncode != 0:
            pytest.skip(f"other users cannot read this checkout or its packages: {first.stderr.strip()[-100:]}")
        yield run
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_ordinary_user_has_bubblewrap_with_stated_limitations(python: Python) -> None:
    """Control groups count all processes together, and only root can make them on this machine."""
    done = python("-c", SAYS)
    assert done.returncode == 0, done.stderr
    auto, unusable, losses = done.stdout.strip().split("|")
    assert auto != "none"
    if unusable != "None":
        pytest.skip(unusable)
    assert "memory is limited per process only" in losses
    assert "processor time" in losses


def test_bubblewrap_contains_the_same_attacks_for_an_ordinary_user(python: Python) -> None:
    """A user namespace replaces root's rights."""
    test = f"{ROOT}/{KIT}::test_attack_is_contained_and_its_end_is_reported_truthfully"
    ids = [f"{test}[bubblewrap-{name}]" for name in SELECTION]
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *ids)
    if f"{len(SELECTION)} skipped" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-2])
    assert f"{len(SELECTION)} passed" in done.stdout, (done.stdout[-3000:], done.stderr[-500:])
