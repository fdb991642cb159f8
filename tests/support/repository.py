"""A real git repository for tests: commits with dates, tags and branches, made by git itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository in ``path``. Every command runs without the machine's own git configuration."""

    path: Path

    def git(self, *arguments: str, day: str = "2026-01-01") -> str:
        stamp = f"{day}T12:00:00Z"
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_NAME": "C",
            "GIT_COMMITTER_EMAIL": "c@example.org",
            "GIT_COMMITTER_DATE": stamp,
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str, *paths: str, day: str = "2026-01-01") -> str:
        """One commit that changes ``paths``, and its sha."""
        for path in paths:
            file = self.path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text((file.read_text() if file.exists() else "") + message + "\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message, day=day)
        return self.git("rev-parse", "HEAD")


def make_repository(path: Path) -> Repository:
    """An empty one, on branch ``main``."""
    path.mkdir(parents=True, exist_ok=True)
    made = Repository(path)
    made.git("init", "--quiet", "--initial-branch=main")
    return made


@contextmanager
def serve_repository(path: Path) -> Iterator[str]:
    """The address at which git's own server on the loopback interface has the repository in ``path``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base = str(path.parent)
    server = subprocess.Popen(
        ["git", "daemon", "--export-all", "--listen=127.0.0.1", f"--port={port}", f"--base-path={base}", base],
        env={**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"},
        process_group=0,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not _listens(port):
            assert time.monotonic() < deadline, "git's server does not listen"
            time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/{path.name}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
