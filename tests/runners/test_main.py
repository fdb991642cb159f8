"""The watcher's child process: without the watcher's secrets, and ended with the watcher."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners.__main__ import PASSES, filter_environment, run_in_child
from runners.core.errors import InfraError
from runners.core.protocol import Claim, JobCell, Plan, Testcase, TestcaseKind, digest_of

ROOT = Path(__file__).parents[2]
SECRETS = {
    "GITHUB_TOKEN": "t",
    "GH_TOKEN": "t",
    "REPROBOT_APP_KEY": "/key.pem",
    "REPROBOT_WEBHOOK_SECRET": "s",
    "ACTIONS_RUNTIME_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "k",
    "SOMETHING_NOBODY_KNOWS": "s",
}


def test_child_gets_only_the_listed_variables() -> None:
    """Variables that are not on the list are dropped, known or not."""
    assert filter_environment({**SECRETS, "PATH": "/bin", "HOME": "/h"}) == {"PATH": "/bin", "HOME": "/h"}


def test_list_is_that_of_the_actions_jobs() -> None:
    """Except for variables that tell a job that it runs on GitHub."""
    script = (ROOT / "tools/bare-env.sh").read_text(encoding="utf-8")
    listed = re.search(r"passes=\((.*?)\n\)", script, re.DOTALL)
    assert listed is not None
    names = set(re.sub(r"#.*", "", listed[1]).split())
    assert names - PASSES <= {"GITHUB_ACTIONS", "RUNNER_ENVIRONMENT", "RUNNER_TEMP", "RUNNER_TOOL_CACHE"} | {
        "REPROBOT_EPHEMERAL"
    }
    assert PASSES - names <= {"CONTAINERS_CONF"}


@pytest.mark.parametrize("is_relative", [False, True], ids=["absolute", "relative"])
def test_last_line_of_a_failed_child_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    """The child is real and refuses a plan with another digest. Its working folder is another than ours."""
    monkeypatch.chdir(tmp_path.parent)
    folder = Path(tmp_path.name) if is_relative else tmp_path
    case = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
    plan = Plan(testcase=case, claim=Claim(), device="llvm", order=("0.27.0",), first=("0.27.0",))
    cell = JobCell(id="any", plan=plan, testcase_sha256=digest_of(case))
    (tmp_path / "plan.json").write_bytes(b"{}")
    with pytest.raises(InfraError, match="status 2: the plan's sha256 is"):
        run_in_child(folder / "plan.json", "0" * 64, cell, folder / "results", os.environ)


@pytest.mark.thorough
def test_child_ends_with_the_watcher(tmp_path: Path) -> None:
    """Even if the watcher is killed: otherwise two children would run the same cell after its restart."""
    child = "import sys, time, runners.__main__ as main; main.end_with_parent(int(sys.argv[1])); time.sleep(60)"
    parent = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}, str(os.getpid())])\n"
        "time.sleep(1); print(child.pid, flush=True); time.sleep(60)"
    )
    watcher = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, cwd=ROOT)
    assert watcher.stdout is not None
    with watcher.stdout:
        pid = int(watcher.stdout.readline())
        watcher.send_signal(signal.SIGKILL)
        watcher.wait()
    for _ in range(100):
        if not _alive(pid):
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("the child lives on")


def _alive(pid: int) -> bool:
    """Not a zombie that nobody waits for here."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
