"""Read the control group that an engine made for its container, if we cannot make one around the container.

Docker below systemd accepts only systemd's groups, and an ordinary user may not create one. But with version 2 of
control groups, every user may read the counters of every group, and a container's group is named after the
container's id. The counters are the kernel's, as in our own groups. The engine removes the group as soon as the
container ends. So a thread reads the counters while the container runs: at each memory event, and a few times a
second.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox.limits.cgroup import ROOT, parse_counter, read_counter

LOOK_S = 0.25
"""Longest interval between readings. At the end, peak and processor time may be this old."""
_SOON_S = 0.05
"""Interval between searches for a group that does not exist yet."""


def can_read_groups(root: Path = ROOT) -> bool:
    """True if control groups of version 2 are mounted at ``root``."""
    return (root / "cgroup.controllers").exists()


def find_group(cidfile: Path, root: Path = ROOT) -> Path | None:
    """Return the outermost group of the container whose id is in ``cidfile``. None while it does not exist.

    Engines and systemd name the group differently: ``system.slice/docker-ID.scope``, ``docker/ID``,
    ``user.slice/…/libpod-ID.scope``.
    """
    try:
        name = cidfile.read_text().strip()
    except OSError:
        return None
    if len(name) != 64:
        return None
    for folder, below, _ in os.walk(root):
        for group in below:
            if name in group and "conmon" not in group:
                return Path(folder, group)
    return None


@dataclass(slots=True)
class EngineCgroup:
    """The group of one container, with the last readings. The readings remain valid after the group is gone.

    ``cidfile`` is the file to which the engine writes the container's id.
    """

    cidfile: Path
    root: Path = ROOT
    path: Path | None = None
    _cpu_s: float = 0.0
    _peak_bytes: int = 0
    _oom: bool = False

    def is_found(self) -> bool:
        """True if the group exists or existed, and could be read."""
        self.path = self.path or find_group(self.cidfile, self.root)
        return self.path is not None

    def read_cpu_s(self) -> float:
        """See ``cgroup.Cgroup``. 0 before the container has started."""
        self._read()
        return self._cpu_s

    def read_peak_bytes(self) -> int:
        """Return the peak of the last reading. 0 on kernels without a peak (before 5.19)."""
        self._read()
        return self._peak_bytes

    def ran_out_of_memory(self) -> bool:
        """True if a reading showed an out-of-memory kill. False is not final, because the engine may know more."""
        self._read()
        return self._oom

    @contextlib.contextmanager
    def follow_counters(self) -> Iterator[None]:
        """Read the counters in a thread until the block ends or the group is gone."""
        reader, writer = os.pipe()
        thread = threading.Thread(target=self._follow, args=(reader,), name="counters", daemon=True)
        thread.start()
        try:
            yield
        finally:
            os.close(writer)
            thread.join()
            os.close(reader)

    def _follow(self, stop: int) -> None:
        while not self.is_found():
            if select.select([stop], [], [], _SOON_S)[0]:
                return
        assert self.path is not None
        # When the group is removed, reading the events fails with ENODEV.
        with contextlib.suppress(OSError), open(self.path / "memory.events", "rb", buffering=0) as events:
            poll = select.poll()
            poll.register(events, select.POLLPRI)  # a change; cgroup-v2.rst, "memory.events"
            poll.register(stop, select.POLLIN)
            while all(descriptor != stop for descriptor, _ in poll.poll(1000 * LOOK_S)):
                # Read first, and through this descriptor. Then the kernel reports every later change, and only these.
                oom_kills = parse_counter(os.pread(events.fileno(), 4096, 0).decode(), "oom_kill")
                self._oom = oom_kills > 0 or self._oom
                self._read()

    def _read(self) -> None:
        if not self.is_found():
            return
        assert self.path is not None
        with contextlib.suppress(OSError):
            self._oom = read_counter(self.path / "memory.events", "oom_kill") > 0 or self._oom
            self._cpu_s = max(self._cpu_s, read_counter(self.path / "cpu.stat", "usage_usec") / 1e6)
            self._peak_bytes = int((self.path / "memory.peak").read_text())
