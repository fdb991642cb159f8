"""The processes that run cells: without the parent's secrets, one cell at a time, ended with the parent."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import pytest

from runners.cells import server
from runners.cells.messages import Answer, Request
from runners.cells.processes import PASSES, CellProcesses, filter_environment
from runners.core.errors import InfraError
from runners.core.protocol import Claim, JobCell, Plan, Testcase, TestcaseKind, digest_of
from runners.probe.sessions import SessionPool
from tests.support.waiting import wait_until

pytestmark = pytest.mark.thorough  # processes of our own, each of which imports what runs cells

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
        before = opened.measure_cpu()
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


@contextmanager
def start_server(folder: Path, cell: str) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO, BinaryIO]]:
    """Start a server without secrets, whose cells run the body ``cell``. Yield it, its requests and its answers."""
    script = (
        "import os, pathlib, subprocess\n"
        "from runners.cells import cell, server\n"
        "from runners.sandbox.process import exchange_data, handle_stop_signals\n"
        f"def main(words, *, sessions, clean):\n{textwrap.indent(cell, '    ')}"
        "cell.main = main\n"
        "raise SystemExit(server.main([]))\n"
    )
    environment = filter_environment({**os.environ, **SECRETS})
    started = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    requests, answers = cast("BinaryIO", started.stdin), cast("BinaryIO", started.stdout)
    with answers, requests:
        yield started, requests, answers
    assert started.wait(timeout=30) in (0, -signal.SIGKILL)


def send_request(requests: BinaryIO, folder: Path, *words: str) -> None:
    request = Request(words=words, log=str(folder / "log"), folder=str(folder))
    requests.write(msgspec.json.encode(request) + b"\n")
    requests.flush()


RUN = """\
pathlib.Path("environment").write_bytes(pathlib.Path("/proc/self/environ").read_bytes())
streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
with handle_stop_signals(), subprocess.Popen(["sleep", "60"], **streams) as run:
    pathlib.Path("pid").write_text(f"{run.pid}\\n")
    try:
        exchange_data(run, stdin=b"", stdout_limit=9, wall_s=60)
    finally:
        run.kill()
"""


@pytest.mark.parametrize("how", ["parent ends", "SIGTERM"])
def test_a_server_stops_its_run_and_ends(tmp_path: Path, how: str) -> None:
    """Otherwise two servers would run the same cell after a restart. The parent's end closes standard input."""
    pid = tmp_path / "pid"
    with start_server(tmp_path, RUN) as (started, requests, _):
        send_request(requests, tmp_path)
        assert wait_until(lambda: pid.is_file() and pid.read_text().endswith("\n"))
        if how == "parent ends":
            requests.close()
        else:
            started.send_signal(signal.Signals[how])
        assert started.wait(timeout=30) == 0
    assert not Path(f"/proc/{int(pid.read_text())}").exists()
    inherited = (tmp_path / "environment").read_bytes().decode().split("\0")
    assert not {line.partition("=")[0] for line in inherited} & SECRETS.keys()


def test_a_server_goes_on_after_a_cell_with_a_bug(tmp_path: Path) -> None:
    """The log has the traceback and all that was printed. A server cleans up as it starts, and after such a cell."""
    with start_server(tmp_path, "print('a line', clean)\nreturn 0 if words[0] == 'good' else 1 / 0\n") as opened:
        _, requests, answers = opened
        seen = []
        for word in ("good", "bad", "good"):
            send_request(requests, tmp_path, word)
            status = msgspec.json.decode(answers.readline(), type=Answer).status
            lines = (tmp_path / "log").read_text().splitlines()
            seen.append((status, lines[0], lines[-1].partition(":")[0]))
    assert seen == [
        (0, "a line False", "a line False"),
        (1, "a line False", "ZeroDivisionError"),
        (0, "a line True", "a line True"),
    ]


def test_a_server_without_requests_gives_back_its_sandboxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LIFE_S", 0.01)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    class Pool(SessionPool):
        def close_idle(self) -> None:
            super().close_idle()
            lines.put(b"a request")

    assert server._wait_for_line(lines, Pool()) == b"a request"


def test_a_killed_server_is_reported(tmp_path: Path) -> None:
    with start_server(tmp_path, "os.kill(os.getpid(), 9)\n") as (_, requests, answers):
        send_request(requests, tmp_path)
        assert answers.readline() == b""


def test_no_cell_begins_after_the_end(tmp_path: Path) -> None:
    ended = CellProcesses({})
    ended.close()
    with pytest.raises(InfraError, match="have been stopped"):
        ended.run(tmp_path / "plan.json", "0" * 64, CELL, tmp_path / "results")


def list_children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_the_first_cell_runs_in_the_server_that_was_started_ahead(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"{}")
    others = list_children()
    with closing(CellProcesses(os.environ)) as opened:
        opened.start_ahead()
        opened.start_ahead()
        ahead = list_children() - others
        assert len(ahead) == 1
        with pytest.raises(InfraError, match="status 2: the plan's sha256 is"):
            opened.run(tmp_path / "plan.json", "0" * 64, CELL, tmp_path / "results")
        assert list_children() - others == ahead


def test_a_server_that_ran_no_cell_is_not_waited_for() -> None:
    """Its imports take longer than a sweep that finds no change."""
    others = list_children()
    opened = CellProcesses(os.environ)
    opened.start_ahead()
    (pid,) = list_children() - others
    os.kill(pid, signal.SIGSTOP)  # a server that would never read the end of its input
    opened.close()
    assert list_children() <= others
