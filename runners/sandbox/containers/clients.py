"""Run commands of the docker and podman clients, and end a container by name."""

from __future__ import annotations

import functools
import subprocess
import time

CLIENT_S = 30.0
"""Time limit for every client command except a probe."""


def _run_client(client: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a client command. If it cannot start or takes too long, it counts as failed with status 1."""
    try:
        return subprocess.run(
            [*client, *words], capture_output=True, encoding="utf-8", errors="replace", timeout=CLIENT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        return subprocess.CompletedProcess(words, returncode=1, stdout="", stderr=str(reason))


def query_client(client: tuple[str, ...], *words: str) -> str:
    """Return the standard output of a client command, stripped. Empty if the command fails."""
    done = _run_client(client, *words)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def read_image_id(client: tuple[str, ...], name: str) -> str:
    """Return the id of an image. Empty if the client does not have the image."""
    return query_client(client, "image", "inspect", "--format", "{{.Id}}", name)


def kill_container(client: tuple[str, ...], name: str) -> bool:
    """Kill a container by name. Return False if there is no container of that name (yet).

    Call this before `remove_container`: ``rm --force`` alone starts with SIGTERM and waits.
    """
    return not is_unknown_container(_run_client(client, "kill", "--signal=KILL", name))


def remove_container(client: tuple[str, ...], name: str) -> bool:
    """Remove a container by name. Return True if the container is gone.

    A refusal is retried: a container's own ``--rm``, the clean-up of its monitor and this command may run at the same
    time. Then each finds something in use.
    """
    deadline = time.monotonic() + CLIENT_S
    while True:
        done = _run_client(client, "rm", "--force", name)
        if done.returncode == 0 or is_unknown_container(done):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)


def is_unknown_container(done: subprocess.CompletedProcess[str]) -> bool:
    """True if a client failed because no container of that name exists. Podman and docker print the same words."""
    return done.returncode != 0 and "no such container" in done.stderr.lower()
