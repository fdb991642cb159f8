"""The control group that an engine made for its container: read, where none of our own can be put around it.

Docker below systemd takes no group but systemd's, and an ordinary user may make none. With version 2 of control
groups anybody may read the counters of every group, though, and a container's is named after its id. What they say is
the kernel's word, as it is of a group of ours; only the last moments are missing, since the engine removes the group
when the container has ended.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox.cgroup import ROOT, counter


def possible(root: Path = ROOT) -> bool:
    """Whether control groups are of version 2 here, and mounted where we look."""
    return (root / "cgroup.controllers").exists()


@dataclass(slots=True)
class EnginesGroup:
    """``cidfile`` is where the engine writes the container's id. Each reading is kept until there is a newer one."""

    cidfile: Path
    root: Path = ROOT
    _place: Path | None = None
    _cpu_s: float = 0.0
    _peak_bytes: int = 0
    _oom: bool = False

    def found(self, patience_s: float = 0.0) -> bool:
        """Whether the group is there to be read, or was; waits for it so long."""
        deadline = time.monotonic() + patience_s
        while (self._place or self._look_for_it()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._place is not None

    def cpu_s(self) -> float:
        """See ``cgroup.Cgroup``; 0 before the container has begun."""
        self._read()
        return self._cpu_s

    def peak_bytes(self) -> int:
        """As of the last reading; 0 where the kernel keeps none (before 5.19)."""
        self._read()
        return self._peak_bytes

    def ran_out_of_memory(self) -> bool:
        """True when the kernel said so in a reading; when not, the engine may know more."""
        self._read()
        return self._oom

    def _read(self) -> None:
        if not self.found():
            return
        assert self._place is not None
        with contextlib.suppress(OSError):  # gone: the readings stay
            self._cpu_s = counter(self._place / "cpu.stat", "usage_usec") / 1e6
            self._oom = self._oom or counter(self._place / "memory.events", "oom_kill") > 0
            self._peak_bytes = int((self._place / "memory.peak").read_text())

    def _look_for_it(self) -> Path | None:
        """``system.slice/docker-ID.scope``, ``docker/ID``, ``user.slice/…/libpod-ID.scope``: the outermost."""
        try:
            name = self.cidfile.read_text().strip()
        except OSError:
            return None
        if len(name) != 64:
            return None
        for folder, below, _ in os.walk(self.root):
            for group in below:
                if name in group and "conmon" not in group:
                    self._place = Path(folder, group)
                    return self._place
        return None
