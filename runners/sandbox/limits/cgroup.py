"""A control group of our own for one probe: limits on memory and processes, the truth about running out, and the
account of processor time.

Version 1 (one hierarchy per controller) and version 2 (one for all). The counters are the kernel's: a testcase that
prints "Killed" changes nothing here, and one that was killed for its memory can't hide it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Protocol

from runners.core.protocol import Limits
from runners.sandbox import owner

ROOT = Path("/sys/fs/cgroup")
_REMOVE_S = 2.0
"""How long a dead process may keep its group busy before we leave the group to the next sweep."""


class Cgroup(Protocol):
    """One probe's group. ``parent_path`` is what ``--cgroup-parent`` takes."""

    @property
    def parent_path(self) -> str: ...

    def add(self, pid: int) -> None: ...

    def ran_out_of_memory(self) -> bool: ...

    def peak_bytes(self) -> int: ...

    def cpu_s(self) -> float:
        """Processor time that everything in it has had, the dead and the groups below included."""

    def kill(self) -> None:
        """Kill everything inside; the group stays."""

    def close(self) -> None:
        """Kill what is left inside and remove the group."""


def unavailable(root: Path = ROOT) -> str | None:
    """None when a group with both controllers can be made here; else why not, and the mend."""
    try:
        group = create(owner.new_name(), Limits(), root=root)
    except OSError as error:
        return f"no control group of our own ({error}): run as root, or rely on the other engines' limits"
    group.close()
    return None


def create(name: str, limits: Limits, *, root: Path = ROOT) -> Cgroup:
    """A group named ``name`` with the memory and process limits set.

    Raises:
        OSError: control groups can't be written here.
    """
    return _V2(name, limits, root) if (root / "cgroup.controllers").exists() else _V1(name, limits, root)


class _V1:
    """``ROOT/memory/NAME``, ``ROOT/pids/NAME`` and ``ROOT/cpuacct/NAME``.

    At the root of each hierarchy rather than below our own group, because a container engine takes one path for all
    controllers. Running out is learnt from an eventfd: the ``oom_kill`` counter of a parent doesn't count what
    happened to its children, and an engine's own child group is gone, counters and all, before we can read it.
    """

    CONTROLLERS = ("memory", "pids", "cpuacct")

    def __init__(self, name: str, limits: Limits, root: Path) -> None:
        self._root = root
        self._name = name
        self._memory = root / "memory" / name
        self._event = -1
        try:
            for controller in self.CONTROLLERS:
                (root / controller / name).mkdir()
            _write(root / "pids" / name / "pids.max", limits.processes)
            _write(self._memory / "memory.limit_in_bytes", limits.memory_bytes)
            with contextlib.suppress(OSError):  # absent where swap isn't accounted
                _write(self._memory / "memory.memsw.limit_in_bytes", limits.memory_bytes)
            self._event = self._listen()
        except OSError:
            self.close()
            raise

    def _listen(self) -> int:
        """Documentation/admin-guide/cgroup-v1/memory.rst, "OOM Control"."""
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        with open(self._memory / "memory.oom_control") as control:
            _write(self._memory / "cgroup.event_control", f"{event} {control.fileno()}")
        return event

    @property
    def parent_path(self) -> str:
        return f"/{self._name}"

    def add(self, pid: int) -> None:
        for controller in self.CONTROLLERS:
            _write(self._root / controller / self._name / "cgroup.procs", pid)

    def ran_out_of_memory(self) -> bool:
        try:
            return os.eventfd_read(self._event) > 0
        except BlockingIOError:
            return counter(self._memory / "memory.oom_control", "oom_kill") > 0

    def peak_bytes(self) -> int:
        return int((self._memory / "memory.max_usage_in_bytes").read_text())

    def cpu_s(self) -> float:
        return int((self._root / "cpuacct" / self._name / "cpuacct.usage").read_text()) / 1e9

    def kill(self) -> None:
        kill(self._name, self._root)

    def close(self) -> None:
        if self._event >= 0:
            os.close(self._event)
            self._event = -1
        remove(self._name, self._root)


class _V2:
    """``ROOT/NAME``. Its counters include those of the groups below it, such as a container's."""

    def __init__(self, name: str, limits: Limits, root: Path) -> None:
        self._root = root
        self._name = name
        self._group = root / name
        # A group hands on only the controllers that its parent hands to it.
        _write(root / "cgroup.subtree_control", "+memory +pids")
        self._group.mkdir()
        try:
            _write(self._group / "pids.max", limits.processes)
            _write(self._group / "memory.max", limits.memory_bytes)
            with contextlib.suppress(OSError):  # absent on kernels without swap
                _write(self._group / "memory.swap.max", 0)
        except OSError:
            self.close()
            raise

    @property
    def parent_path(self) -> str:
        return f"/{self._name}"

    def add(self, pid: int) -> None:
        _write(self._group / "cgroup.procs", pid)

    def ran_out_of_memory(self) -> bool:
        return counter(self._group / "memory.events", "oom_kill") > 0

    def peak_bytes(self) -> int:
        peak = self._group / "memory.peak"  # Linux 5.19
        return int(peak.read_text()) if peak.exists() else 0

    def cpu_s(self) -> float:
        return counter(self._group / "cpu.stat", "usage_usec") / 1e6  # there without the cpu controller, too

    def kill(self) -> None:
        kill(self._name, self._root)

    def close(self) -> None:
        remove(self._name, self._root)


def leftovers(root: Path = ROOT) -> list[str]:
    """Names of groups whose makers are dead."""
    places = [root, *root.iterdir()] if root.is_dir() else []
    found = {path.name for place in places for path in place.glob(f"{owner.PREFIX}-*")}
    return sorted(name for name in found if owner.is_leftover(name))


def remove(name: str, root: Path = ROOT) -> bool:
    """Kill what is inside ``name`` and remove it, from every hierarchy that has it; False when some of it is
    left, such as another user's."""
    tops = [path for path in (root / name, *root.glob(f"*/{name}")) if path.is_dir()]
    deadline = time.monotonic() + _REMOVE_S
    for top in tops:
        while top.is_dir() and not _remove_tree(top) and time.monotonic() < deadline:
            time.sleep(0.01)
    return not any(top.is_dir() for top in tops)


def kill(name: str, root: Path = ROOT) -> None:
    """Kill what is inside ``name`` until nobody lives there, forking as they may."""
    deadline = time.monotonic() + _REMOVE_S
    while time.monotonic() < deadline:
        groups = [group for top in (root / name, *root.glob(f"*/{name}")) for group in _groups(top)]
        if not sum(_kill_members(group) for group in groups):
            return
        time.sleep(0.01)


def _groups(top: Path) -> list[Path]:
    """It and those below it, the lowest first."""
    return [Path(path) for path, _, _ in os.walk(top, topdown=False)]


def _kill_members(group: Path) -> int:
    """How many there were."""
    found = _members(group)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def _remove_tree(top: Path) -> bool:
    """True when the group and those below it are gone. Only directories are removed: the files are the kernel's."""
    for group in _groups(top):
        _kill_members(group)
        with contextlib.suppress(OSError):
            group.rmdir()
    return not top.exists()


def _members(group: Path) -> list[int]:
    """Process ids inside. 0 stands for one outside our own process namespace, which we can't name."""
    try:
        return [int(word) for word in (group / "cgroup.procs").read_text().split() if word != "0"]
    except OSError:
        return []


def counter(path: Path, key: str) -> int:
    """The number beside ``key`` in a file of such lines; 0 where it has none.

    Raises:
        OSError: no such file, or its group is gone.
    """
    return number(path.read_text(), key)


def number(text: str, key: str) -> int:
    """The number beside ``key`` in lines of a name and a number each; 0 where there is none."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _write(path: Path, value: object) -> None:
    path.write_text(str(value))
