"""Which engine runs the probes, and what dead runs left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from typing import Literal, get_args

from runners.core.errors import UserError
from runners.sandbox import owner
from runners.sandbox.bubblewrap import Bubblewrap
from runners.sandbox.containers import engine as containers, podman_store
from runners.sandbox.containers.engine import Containers
from runners.sandbox.contract import Engine
from runners.sandbox.limits import cgroup
from runners.sandbox.unprotected import Unprotected

EngineName = Literal["auto", "docker", "podman", "bubblewrap", "gvisor", "none"]


def sandboxes() -> tuple[Engine, ...]:
    """Every engine that confines, the preferred one first.

    gVisor comes last: it adds a kernel of its own, but seconds to each run, and its limits are coarser.
    """
    return (Containers(name="docker"), Containers(name="podman"), Bubblewrap(), Containers(name="gvisor"))


def engines() -> tuple[Engine, ...]:
    """Every engine, for ``reprobot doctor``."""
    return (*sandboxes(), Unprotected())


def check_name(name: str) -> None:
    """Refuse a name that no engine has, before any work is done.

    Raises:
        UserError: names those there are.
    """
    if name not in get_args(EngineName):
        raise UserError(f"no sandbox is named {name!r}: choose one of {', '.join(get_args(EngineName))}")


def select_engine(name: str) -> Engine:
    """The engine of that name, or with ``auto`` the first sandbox that passes its self-test here; never ``none``.

    Raises:
        UserError: no such engine, or it doesn't work here: with each one's reason and mend.
    """
    check_name(name)
    candidates = [engine for engine in engines() if engine.name == name] or list(sandboxes())
    reasons = []
    for engine in candidates:
        why = engine.unusable()
        if why is None:
            return engine
        reasons.append(f"{engine.name}: {why}")
    raise UserError(f"no sandbox works here. {'; '.join(reasons)}. (`--sandbox none` runs without one.)")


def use_image(name: str) -> str:
    """Let the engines of this process, and of those it starts, run in the image of that name; empty: as before.

    By the environment, as an operator names it: the processes that run jobs are handed that and no more.
    """
    if name:
        os.environ["REPROBOT_IMAGE"] = name
    return name


def drop_skeleton() -> bool:
    """Remove what the engines themselves have cached; False where a probe is running in it."""
    return podman_store.drop_skeleton()


def sweep() -> Sequence[str]:
    """Remove what runs left that were killed before they could clean up; returns what it was, in words."""
    removed = [f"container {name}" for name in containers.sweep()]
    # Killed between its fork and its word to the child, bwrap leaves one that waits for ever, in no control group.
    for pid in owner.leftover_processes("bwrap"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        removed.append(f"process {pid}")
    removed += [f"control group {name}" for name in cgroup.leftovers() if cgroup.remove(name)]
    for path in owner.leftover_directories():
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():  # another user's stays
            removed.append(f"directory {path}")
    return removed
