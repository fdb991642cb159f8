"""The processes that run cells: without the parent's secrets, one child for each cell, ended with the parent."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from runners.cells.fork_server import Answer, Request, measure_cpu
from runners.cells.processes import PASSES, CellProcesses, filter_environment
from runners.core.errors import InfraError
from runners.core.protocol import Claim, JobCell, Plan, Testcase, TestcaseKind, digest_of
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
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


CASE = Testcase(kind=TestcaseKind.PYTHON, toolchain="tvm", files={"a.py": "1"}, steps=(("python", "a.py"),))
PLAN = Plan(testcase=CASE, claim=Claim(), device="llvm", order=("0.27.0",), first=("0.27.0",))
CELL = JobCell(id="any", plan=PLAN, testcase_sha256=digest_of(CASE))


@pytest.fixture(scope="module")
def processes() -> Iterator[CellProcesses]:
    with closing(CellProcesses({**os.environ, **SECRETS})) as opened:
        yield opened


@pytest.mark.parametrize("is_relative", [False, True], ids=["absolute", "relative"])
def test_last_line_of_a_failed_child_is_reported(
    processes: CellProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    """The child is real and refuses a plan with another digest. Its working folder is another than ours."""
    monkeypatch.chdir(tmp_path.parent)
    folder = Path(tmp_path.name) if is_relative else tmp_path
    (tmp_path / "plan.json").write_bytes(b"{}")
    for _ in range(2):  # a server goes on after a child that failed
        with pytest.raises(InfraError, match="status 2: the plan's sha256 is"):
            processes.run(folder / "plan.json", "0" * 64, CELL, folder / "results")


def test_processor_time_of_a_child_counts_while_its_server_lives(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"{}")
    with closing(CellProcesses(os.environ)) as opened:
        before = measure_cpu()
        with pytest.raises(InfraError):
            opened.run(tmp_path / "plan.json", "0" * 64, CELL, tmp_path / "results")
        assert opened.measure_cpu() > before + 0.1  # the imports of the server alone take more


def test_cells_at_the_same_time_have_processes_of_their_own(processes: CellProcesses, tmp_path: Path) -> None:
    def run(number: int) -> str:
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "plan.json").write_bytes(b"{}")
        with pytest.raises(InfraError) as failed:
            processes.run(folder / "plan.json", str(number) * 64, CELL, folder / "results")
        return str(failed.value)

    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(run, range(6)))
    assert [f"not '{number}" in text for number, text in enumerate(said)] == [True] * 6, said


def wait_for_pid(file: Path) -> int:
    assert wait_until(lambda: file.is_file() and file.read_text().endswith("\n"))
    return int(file.read_text())


def start_server(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server without secrets whose child writes its environment and its process id, and then waits."""
    script = (
        "import os, pathlib, signal, time\n"
        "from runners.cells import child, fork_server\n"
        "def main(words, *, clean):\n"
        "    child.end_with_parent(int(words[-1]))\n"
        "    pathlib.Path('environment').write_bytes(pathlib.Path('/proc/self/environ').read_bytes())\n"
        "    pathlib.Path('pid').write_text(f'{os.getpid()}\\n')\n"
        "    time.sleep(60)\n"
        "child.main = main\n"
        "raise SystemExit(fork_server.main([]))\n"
    )
    environment = filter_environment({**os.environ, **SECRETS})
    server = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    request = Request(words=(), more=(), log=str(folder / "log"), folder=str(folder))
    assert server.stdin is not None
    server.stdin.write(msgspec.json.encode(request) + b"\n")
    server.stdin.flush()
    return server, wait_for_pid(folder / "pid")


@pytest.mark.parametrize("how", ["parent ends", "SIGTERM", "SIGKILL"])
def test_child_ends_with_its_server(tmp_path: Path, how: str) -> None:
    """Otherwise two children would run the same cell after a restart. The parent's end closes standard input."""
    server, child = start_server(tmp_path)
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdout, server.stdin:
        if how == "parent ends":
            server.stdin.close()
        else:
            server.send_signal(signal.Signals[how])
        assert server.wait(timeout=30) == (-signal.SIGKILL if how == "SIGKILL" else 0)
    assert wait_until(lambda: not _alive(child))
    inherited = (tmp_path / "environment").read_bytes().decode().split("\0")
    assert not {line.partition("=")[0] for line in inherited} & SECRETS.keys()


def test_answer_is_the_status_of_the_child(tmp_path: Path) -> None:
    server, child = start_server(tmp_path)
    assert server.stdin is not None
    assert server.stdout is not None
    with server.stdout, server.stdin:
        os.kill(child, signal.SIGKILL)
        assert msgspec.json.decode(server.stdout.readline(), type=Answer).status == -signal.SIGKILL
        server.stdin.close()
        assert server.wait(timeout=30) == 0


def test_no_cell_begins_after_the_end(tmp_path: Path) -> None:
    ended = CellProcesses({})
    ended.close()
    with pytest.raises(InfraError, match="have been stopped"):
        ended.run(tmp_path / "plan.json", "0" * 64, CELL, tmp_path / "results")


def _alive(pid: int) -> bool:
    """Not a zombie that nobody waits for here."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
