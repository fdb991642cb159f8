"""Choose the engine for this machine, and remove the leftovers of killed runs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Literal, get_args

from runners.core.errors import UserError
from runners.core.hostile.folders import try_remove_folder
from runners.sandbox import owner
from runners.sandbox.bubblewrap import Bubblewrap
from runners.sandbox.containers import engine as containers, podman_store
from runners.sandbox.containers.engine import ContainerEngine
from runners.sandbox.contract import Engine
from runners.sandbox.limits import cgroup
from runners.sandbox.unprotected import Unprotected

EngineName = Literal["auto", "docker", "podman", "bubblewrap", "gvisor", "none"]


def list_sandboxes() -> tuple[Engine, ...]:
    """Return every engine that isolates, the preferred one first.

    gVisor is last: it adds its own kernel, but each run takes seconds longer, and its limits are coarser.
    """
    return (
        ContainerEngine(name="docker"),
        ContainerEngine(name="podman"),
        Bubblewrap(),
        ContainerEngine(name="gvisor"),
    )


def list_engines() -> tuple[Engine, ...]:
    """Return every engine, for ``reprobot doctor``."""
    return (*list_sandboxes(), Unprotected())


def check_engine_name(name: str) -> None:
    """Refuse an unknown engine name before any work is done.

    Raises:
        UserError: no engine has this name; the message lists the names.
    """
    if name not in get_args(EngineName):
        raise UserError(f"no sandbox is named {name!r}: choose one of {', '.join(get_args(EngineName))}")


def select_engine(name: str) -> Engine:
    """Return the engine of that name. For ``auto``, return a sandbox that passes its self-test, never ``none``.

    ``auto`` chooses bubblewrap if it lacks no guarantee: then all sandboxes have the same guarantees, and bubblewrap
    is the fastest. Otherwise ``auto`` chooses the first of `list_sandboxes`.

    Raises:
        UserError: no engine has this name, or none of the candidates works here. The message has the reason and the
            remedy of each.
    """
    check_engine_name(name)
    candidates = [engine for engine in list_engines() if engine.name == name] or _list_by_cost()
    reasons = []
    for engine in candidates:
        problem = engine.find_problem()
        if problem is None:
            return engine
        reasons.append(f"{engine.name}: {problem}")
    tried = "; ".join(reason.rstrip(".?") for reason in reasons)
    raise UserError(
        f"no sandbox works here ({tried}): repair one of them, and see `reprobot doctor`. `--sandbox none` would run "
        "the testcase without any protection, with all your rights: use it only for code that you have read"
    )


def _list_by_cost() -> list[Engine]:
    sandboxes = list_sandboxes()
    cheapest = [one for one in sandboxes if one.name == Bubblewrap().name and not one.limitations]
    return [*cheapest, *(one for one in sandboxes if one not in cheapest)]


def use_image(name: str) -> None:
    """Make the engines of this process and its children run in the image ``name``. An empty name has no effect.

    The name is stored in ``REPROBOT_IMAGE``, as an operator would set it, because processes that run jobs get only
    that variable.
    """
    if name:
        os.environ["REPROBOT_IMAGE"] = name


def remove_skeleton() -> bool:
    """Remove the engines' own cache. Return False while a probe uses it."""
    return podman_store.remove_skeleton()


def remove_leftovers() -> Sequence[str]:
    """Remove the containers, processes, control groups and directories that killed runs left behind.

    Return one description per removed item.
    """
    removed = [f"container {name}" for name in containers.remove_leftover_containers()]
    # If bwrap is killed between its fork and its message to the child, the child waits forever, in no control group.
    for pid in owner.find_leftover_processes("bwrap"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        removed.append(f"process {pid}")
    removed += [f"control group {name}" for name in cgroup.find_leftover_groups() if cgroup.remove_group(name)]
    for path in owner.find_leftover_directories():
        try_remove_folder(path)
        if not path.exists():  # another user's directory remains
            removed.append(f"directory {path}")
    return removed
