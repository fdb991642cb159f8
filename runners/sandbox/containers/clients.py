"""Asking the clients of docker and podman, and ending a container by name: no library of either."""

from __future__ import annotations

import functools
import subprocess
import time

CLIENT_S = 30.0
"""How long a client may take for anything but a probe."""


def _done(client: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    """What a client says; one that cannot be run, or takes too long, failed."""
    try:
        return subprocess.run(
            [*client, *words], capture_output=True, encoding="utf-8", errors="replace", timeout=CLIENT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        return subprocess.CompletedProcess(words, returncode=1, stdout="", stderr=str(reason))


def client_says(client: tuple[str, ...], *words: str) -> str:
    """Standard output of a client command, stripped; empty when it fails."""
    done = _done(client, *words)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def image_id(client: tuple[str, ...], name: str) -> str:
    return client_says(client, "image", "inspect", "--format", "{{.Id}}", name)


def kill(client: tuple[str, ...], name: str) -> bool:
    """Kill a container by name; False when there is none of that name (yet).

    Before removing, because ``rm --force`` alone begins with a polite signal and waits.
    """
    return not is_unknown(_done(client, "kill", "--signal=KILL", name))


def remove(client: tuple[str, ...], name: str) -> bool:
    """Remove a container by name; whether it is gone, as it may have been before.

    Asked again while it refuses: a container's own ``--rm``, its monitor's clean-up and this one can meet, and then
    each finds something in use.
    """
    deadline = time.monotonic() + CLIENT_S
    while True:
        done = _done(client, "rm", "--force", name)
        if done.returncode == 0 or is_unknown(done):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)


def is_unknown(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a client failed because there is no container of that name; podman and docker say it in these words."""
    return done.returncode != 0 and "no such container" in done.stderr.lower()
