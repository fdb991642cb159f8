"""`reprobot watch` as it is started: a process, a forge on loopback, a real compiler in a real sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.flow.test_command_line import EXAMPLES, ROOT
from tests.forge.fake import REPOSITORY, FakeGithub

pytestmark = [pytest.mark.sandbox, pytest.mark.compilers]

KEPT = ("PATH", "HOME", "LANG", "REPROBOT_CACHE", "XDG_CACHE_HOME")


@contextmanager
def watching(github: FakeGithub, state: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | github.environment()
    words = [sys.executable, "-m", "bot", "watch", REPOSITORY, "--state", str(state), "--every", "5"]
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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
    """Progress, a stop while compilers run, a start, and one comment with the verdict and its labels."""
    title, _, body = (EXAMPLES / "f16-row-sums-stuck-at-256.md").read_text().rpartition("---\n")[2].partition("\n")
    with FakeGithub() as github:
        with watching(github, tmp_path):
            wait_for(lambda: github.calls("GET", ".*/issues") != [], 60)
            github.open_issue(7, body, title=title.lstrip("# "))
            wait_for(lambda: any("verdict=running" in comment for comment in github.ours(7)))
        with watching(github, tmp_path):
            wait_for(lambda: all("verdict=running" not in comment for comment in github.ours(7)))
        (answer,) = github.ours(7)
        assert "it came in between 3.10.0 and 3.11.0" in answer
        assert {"regression", "repro: confirmed"} <= {label["name"] for label in github.issues[7]["labels"]}
