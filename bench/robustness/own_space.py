"""Run a function in PID and mount namespaces of its own, with its own container store.

Nothing in there can signal a process outside, and every process in there is ours. Other runs on the machine, and
their clean-ups of leftovers, see names from another PID namespace and leave them alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

HIDDEN = ("/run", "/dev/shm", "/var/lib/containers")
"""Folders with state of container engines. Each gets an empty file system: podman takes a new ``/run`` for a reboot,
and would reset containers of the machine's own store."""
_MARK = "--inside"


def is_inside(words: Sequence[str]) -> bool:
    """True in the process that `enter` started."""
    return _MARK in words


def enter(module: str, words: Sequence[str]) -> int:
    """Start a module again in namespaces of its own, wait for it, and return its exit status.

    Every process in there is killed if this process is killed.
    """
    mounts = "".join(f"[ ! -d {path} ] || mount -t tmpfs tmpfs {path}; " for path in HIDDEN)
    unshare = ["unshare", "--fork", "--pid", "--mount-proc", "--kill-child=KILL", "--propagation", "private"]
    inside = [*unshare, "sh", "-c", f'set -e; {mounts}exec "$@"', "sh", sys.executable, "-m", module, _MARK, *words]
    with subprocess.Popen(inside) as process:

        def end(_number: int, _frame: object) -> None:
            process.kill()  # and so, by --kill-child, everything inside

        signal.signal(signal.SIGTERM, end)
        while True:
            with suppress(KeyboardInterrupt):  # the process inside is interrupted too, and ends with its summary
                return process.wait()


def collect_orphans() -> None:
    """Go on in a child; this process, the first of its PID namespace, collects orphans and ends with the child."""
    child = os.fork()
    if child == 0:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child is interrupted too, and ends with its summary
    status = 0
    with suppress(ChildProcessError):
        while (found := os.wait())[0] != child:
            pass
        status = os.waitstatus_to_exitcode(found[1])
    os._exit(status if status >= 0 else 128 - status)
