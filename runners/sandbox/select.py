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
    """Return every engine that confines, the preferred one first.

    gVisor comes last: it adds a kernel of its own, but costs seconds for each run, and its limits are coarser.
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
    """Return the engine of that name; for ``auto``, a sandbox that passes its self-test. Never ``none``.

    ``auto`` takes bubblewrap where it lacks no guarantee: all sandboxes have equal guarantees then, and bubblewrap
    costs the least for each run. Where bubblewrap lacks one, ``auto`` takes the first of `list_sandboxes`.

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

    The name goes through ``REPROBOT_IMAGE``, as an operator would set it: processes that run jobs get that variable
    and no other argument.
    """
    if name:
        os.environ["REPROBOT_IMAGE"] = name


def remove_skeleton() -> bool:
    """Remove the engines' own cache. Return False if a probe is running in it."""
    return podman_store.remove_skeleton()


def remove_leftovers() -> Sequence[str]:
    """Remove containers, processes, control groups and directories of runs that were killed before they cleaned up.

    Return one description per removed item.
    """
    removed = [f"container {name}" for name in containers.remove_leftover_containers()]
    # bwrap that is killed between its fork and its message to the child leaves a child that waits for ever, in no
    # control group.
    for pid in owner.find_leftover_processes("bwrap"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        removed.append(f"process {pid}")
    removed += [f"control group {name}" for name in cgroup.find_leftover_groups() if cgroup.remove_group(name)]
    for path in owner.find_leftover_directories():
        try_remove_folder(path)
        if not path.exists():  # a directory of another user stays
            removed.append(f"directory {path}")
    return removed
