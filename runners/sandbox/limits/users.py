"""Give each sandbox of this machine its own user.

The kernel counts inotify instances, pipe buffers, queued signals, message queues and descriptors in flight for each
user, over all sandboxes. Two sandboxes of one user could exhaust each other's limits.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

NOBODY = 65534
USERS = range(60706, 61184)
"""Ids that neither distributions nor systemd assign (https://systemd.io/UIDS-GIDS). All are below 65536, so they also
exist in a container's user namespace."""


def render_passwd() -> str:
    """Return a table of users in which each of `USERS` has the name of the unprivileged user."""
    lines = [f"nobody:x:{user}:{NOBODY}::/tmp:/bin/sh" for user in (NOBODY, *USERS)]
    return "\n".join(["root:x:0:0::/:/bin/sh", *lines, ""])


@contextlib.contextmanager
def reserve_user() -> Iterator[int]:
    """Reserve one of `USERS` until the end of the context, or `NOBODY` if this process is not root or all are taken.

    The reservation is an abstract socket. The kernel releases it when this process dies, and leaves no file.
    """
    with socket.socket(socket.AF_UNIX) as reservation:
        yield _bind_first_free(reservation) if _can_become_any() else NOBODY


def _bind_first_free(reservation: socket.socket) -> int:
    for user in random.sample(USERS, len(USERS)):
        with contextlib.suppress(OSError):
            reservation.bind(f"\0reprobot-user-{user}")
            return user
    return NOBODY


def _can_become_any() -> bool:
    """True if we are root and `USERS` exist in our user namespace."""
    if os.geteuid() != 0:
        return False
    rows = [tuple(map(int, row.split())) for row in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= USERS.start and USERS.stop <= first + count for first, _, count in rows)
