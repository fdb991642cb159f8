"""Create a control group for one probe: limits on memory and processes, out-of-memory events, processor time.

Supports version 1 (one hierarchy per controller) and version 2 (one hierarchy for all). The counters are the
kernel's. A testcase that prints "Killed" does not change them, and a testcase that was killed because of its memory
cannot hide it.
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
TCP_BYTES = 16 * 1024**2
"""Limit on the buffers of a probe's sockets. Version 1 counts them separately; version 2 counts them as memory."""
_KERNEL_BYTES = 32 * 1024**2
"""Kernel memory, such as cached names of absent files, that may remain after a probe."""
_REMOVE_S = 2.0
"""Time for which a dead process may keep its group busy. Then the next `remove_leftovers` removes the group."""


_TCP_LIMIT = "memory.kmem.tcp.limit_in_bytes"


class Cgroup(Protocol):
    """The control group of one probe. ``parent_path`` is a value for ``--cgroup-parent``."""

    @property
    def parent_path(self) -> str: ...

    def add(self, pid: int) -> None: ...

    def ran_out_of_memory(self) -> bool: ...

    def read_peak_bytes(self) -> int: ...

    def read_cpu_s(self) -> float:
        """Return the processor time, in seconds, of all members, including dead ones and the groups below."""

    def limit_sockets(self) -> bool:
        """Limit the socket buffers of the groups below, such as a container's. Return True once all are limited.

        Version 1 counts the sockets of a group only if the group itself has a limit.
        """

    def kill(self) -> None:
        """Kill every member. The group remains."""

    def close(self) -> None:
        """Kill the remaining members and remove the group."""


def find_problem(root: Path = ROOT) -> str | None:
    """Return None if a group with both controllers can be made here, else the reason and the remedy."""
    try:
        group = create_group(owner.make_name(), Limits(), root=root)
    except OSError as error:
        return f"no control group of our own ({error}): run as root, or rely on the other engines' limits"
    group.close()
    return None


def create_group(name: str, limits: Limits, *, root: Path = ROOT) -> Cgroup:
    """Return a new group ``name`` with the memory and process limits set.

    Raises:
        OSError: control groups cannot be written here.
    """
    return _V2(name, limits, root) if (root / "cgroup.controllers").exists() else _V1(name, limits, root)


class _V1:
    """``ROOT/memory/NAME``, ``ROOT/pids/NAME`` and ``ROOT/cpuacct/NAME``.

    The groups are at the root of each hierarchy instead of below our own group, because a container engine accepts
    one path for all controllers. An eventfd reports that memory ran out: the ``oom_kill`` counter of a parent does
    not include its children, and an engine removes its own child group before we can read that group's counters.
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
            with contextlib.suppress(OSError):  # absent if swap is not counted
                _write(self._memory / "memory.memsw.limit_in_bytes", limits.memory_bytes)
            _write(self._memory / _TCP_LIMIT, TCP_BYTES)
            self._event = self._open_oom_event()
        except OSError:
            self.close()
            raise

    def _open_oom_event(self) -> int:
        """Return an eventfd that counts out-of-memory events.

        See Documentation/admin-guide/cgroup-v1/memory.rst, "OOM Control".
        """
        event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        with open(self._memory / "memory.oom_control") as control:
            _write(self._memory / "cgroup.event_control", f"{event} {control.fileno()}")
        return event

    def _release_kernel_memory(self) -> None:
        """Make the kernel drop its caches for the group if a probe filled them. They would outlive the group."""
        with contextlib.suppress(OSError):
            if int((self._memory / "memory.kmem.usage_in_bytes").read_text()) > _KERNEL_BYTES:
                self.kill()
                _write(self._memory / "memory.force_empty", 0)

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
            return read_counter(self._memory / "memory.oom_control", "oom_kill") > 0

    def read_peak_bytes(self) -> int:
        return int((self._memory / "memory.max_usage_in_bytes").read_text())

    def read_cpu_s(self) -> float:
        return int((self._root / "cpuacct" / self._name / "cpuacct.usage").read_text()) / 1e9

    def limit_sockets(self) -> bool:
        below = _list_groups(self._memory)[:-1]
        for group in below:
            with contextlib.suppress(FileNotFoundError):
                _write(group / _TCP_LIMIT, TCP_BYTES)
        return any(_read_members(group) for group in below if "conmon" not in group.name)  # not podman's own

    def kill(self) -> None:
        kill_members(self._name, self._root)

    def close(self) -> None:
        if self._event >= 0:
            os.close(self._event)
            self._event = -1
            self._release_kernel_memory()
        remove_group(self._name, self._root)


class _V2:
    """``ROOT/NAME``. The counters include the groups below, such as a container's group."""

    def __init__(self, name: str, limits: Limits, root: Path) -> None:
        self._root = root
        self._name = name
        self._group = root / name
        # A group can give its children only the controllers that its parent enables.
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
        return read_counter(self._group / "memory.events", "oom_kill") > 0

    def read_peak_bytes(self) -> int:
        peak = self._group / "memory.peak"  # Linux 5.19
        return int(peak.read_text()) if peak.exists() else 0

    def read_cpu_s(self) -> float:
        return read_counter(self._group / "cpu.stat", "usage_usec") / 1e6  # also present without the cpu controller

    def limit_sockets(self) -> bool:
        return True

    def kill(self) -> None:
        kill_members(self._name, self._root)

    def close(self) -> None:
        self._release_kernel_memory()
        remove_group(self._name, self._root)

    def _release_kernel_memory(self) -> None:
        """See `_V1`. ``memory.reclaim`` exists since Linux 5.19 and fails if less could be freed."""
        with contextlib.suppress(OSError):
            cached = read_counter(self._group / "memory.stat", "slab_reclaimable")
            if cached > _KERNEL_BYTES:
                self.kill()
                _write(self._group / "memory.reclaim", cached)


def find_leftover_groups(root: Path = ROOT) -> list[str]:
    """Return names of groups whose makers are dead."""
    places = [root, *root.iterdir()] if root.is_dir() else []
    found = {path.name for place in places for path in place.glob(f"{owner.PREFIX}-*")}
    return sorted(name for name in found if owner.is_leftover(name))


def remove_group(name: str, root: Path = ROOT) -> bool:
    """Kill the members of ``name`` and remove the group from every hierarchy.

    Return False if a part remains, such as a group of another user.
    """
    tops = [path for path in (root / name, *root.glob(f"*/{name}")) if path.is_dir()]
    deadline = time.monotonic() + _REMOVE_S
    for top in tops:
        while top.is_dir() and not _remove_tree(top) and time.monotonic() < deadline:
            time.sleep(0.01)
    return not any(top.is_dir() for top in tops)


def kill_members(name: str, root: Path = ROOT) -> None:
    """Kill the members of ``name`` until none is alive, because members may fork meanwhile."""
    deadline = time.monotonic() + _REMOVE_S
    while time.monotonic() < deadline:
        groups = [group for top in (root / name, *root.glob(f"*/{name}")) for group in _list_groups(top)]
        if not sum(_kill_direct_members(group) for group in groups):
            return
        time.sleep(0.01)


def _list_groups(top: Path) -> list[Path]:
    """Return ``top`` and the groups below, the lowest first."""
    return [Path(path) for path, _, _ in os.walk(top, topdown=False)]


def _kill_direct_members(group: Path) -> int:
    """Kill the members of one group and return their number."""
    found = _read_members(group)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def _remove_tree(top: Path) -> bool:
    """Remove a group and those below. Return True if all are gone. The files in the directories are the kernel's."""
    for group in _list_groups(top):
        _kill_direct_members(group)
        with contextlib.suppress(OSError):
            group.rmdir()
    return not top.exists()


def _read_members(group: Path) -> list[int]:
    """Return process ids.

    The kernel writes 0 for a process outside our process namespace; such a process has no id here.
    """
    try:
        return [int(word) for word in (group / "cgroup.procs").read_text().split() if word != "0"]
    except OSError:
        return []


def read_counter(path: Path, key: str) -> int:
    """Return the number after ``key`` in a file with one name and number per line. 0 if the key is absent.

    Raises:
        OSError: the file does not exist, or its group is gone.
    """
    return parse_counter(path.read_text(), key)


def parse_counter(text: str, key: str) -> int:
    """Return the number after ``key`` in lines of a name and a number. 0 if the key is absent."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


def _write(path: Path, value: object) -> None:
    path.write_text(str(value))
