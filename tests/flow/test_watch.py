"""`reprobot watch` and `sweep` as they are started: a process, a forge on loopback, a real compiler and sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runners.cells.processes import filter_environment
from tests.bot.forge.fake import REPOSITORY, FakeGithub
from tests.flow.test_command_line import EXAMPLES, ROOT

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

F16 = EXAMPLES / "f16-row-sums-stuck-at-256.md"


def environment(github: FakeGithub) -> dict[str, str]:
    """The variables of a service, with those that reach the package index."""
    return filter_environment(os.environ) | github.environment()


def opened(path: Path) -> tuple[str, str]:
    """Title and body of an example."""
    title, _, body = path.read_text().rpartition("---\n")[2].partition("\n")
    return title.lstrip("# "), body


@contextmanager
def watching(github: FakeGithub, state: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "bot", "watch", REPOSITORY, "--state", str(state), "--every", "5"]
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment(github), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said


def wait_for(met: Callable[[], bool], seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < until
        time.sleep(0.5)


def test_an_issue_is_answered_though_the_watcher_was_stopped_in_between(tmp_path: Path) -> None:
    """A reaction, a stop while compilers run, a start, and one comment with the verdict and its labels."""
    title, body = opened(F16)
    with FakeGithub() as github:
        with watching(github, tmp_path):
            wait_for(lambda: github.calls("GET", ".*/issues") != [], 60)
            github.now = datetime.now(tz=UTC)  # what is older than the watcher's start is not its business
            github.open_issue(7, body, title=title)
            wait_for(lambda: github.calls("POST", ".*/issues/7/reactions") != [])
        with watching(github, tmp_path):
            wait_for(lambda: github.ours(7) != [] and github.issues[7]["labels"] != [])
        (answer,) = github.ours(7)
        assert "10.0 runs cleanly; 3.11.0 to 3.13.0" in answer
        assert {"regression", "repro: confirmed"} <= {label["name"] for label in github.issues[7]["labels"]}


def swept(github: FakeGithub, out: Path, *options: str) -> str:
    """What a sweep says; it ends by itself."""
    words = [sys.executable, "-m", "bot", "sweep", REPOSITORY, "--out", str(out), *options]
    done = subprocess.run(words, cwd=ROOT, env=environment(github), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_sweep_runs_every_issue_of_a_tracker_and_writes_nothing_on_it(tmp_path: Path) -> None:
    """Reports and an index in a folder, nothing on the forge; again, nothing is run twice. `--post` posts them."""
    title, body = opened(F16)
    with FakeGithub() as github:
        github.open_issue(7, body, title=title)
        github.open_issue(8, "It is slow since last week, what can I do?", title="How to make it faster?")
        said = swept(github, tmp_path / "read")
        assert "1 regression" in said
        assert {path.name for path in (tmp_path / "read/issues").glob("*-[78].json")} == {
            f"{REPOSITORY.replace('/', '-')}-{number}.json" for number in (7, 8)
        }
        index = (tmp_path / "read/index.md").read_text()
        assert "#7" in index
        assert "**regression**" in index
        assert github.ours(7) == github.ours(8) == []
        assert [call for kind in ("POST", "PATCH", "PUT", "DELETE") for call in github.calls(kind, ".*")] == []

        asked = len(github.calls("GET", r".*/issues/\d+"))
        assert "2 unchanged" in swept(github, tmp_path / "read")
        assert (tmp_path / "read/index.md").read_text() == index
        assert len(github.calls("GET", r".*/issues/\d+")) == asked  # the list alone was read

        swept(github, tmp_path / "read", "--post", "--limit", "10")
        (answer,) = github.ours(7)
        assert "10.0 runs cleanly; 3.11.0 to 3.13.0" in answer
