"""The control group that an engine made for its container: read, where none of our own can be put around it.

Docker below systemd takes no group but systemd's, and an ordinary user may make none. With version 2 of control
groups anybody may read the counters of every group, though, and a container's is named after its id. What they say is
the kernel's word, as it is of a group of ours. The engine removes the group as soon as the container has ended, so
they are read while it runs: at each event of its memory, and a few times a second.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runners.sandbox.limits.cgroup import ROOT, counter, number

LOOK_S = 0.25
"""How often the counters are read when nothing happens: the peak and the processor time may be so old at the end."""
_SOON_S = 0.05
"""How often a group is looked for that is not there yet."""


def possible(root: Path = ROOT) -> bool:
    """Whether control groups are of version 2 here, and mounted where we look."""
    return (root / "cgroup.controllers").exists()


def place_of(cidfile: Path, root: Path = ROOT) -> Path | None:
    """The outermost group of the container whose id is in a file; None while it isn't there.

    ``system.slice/docker-ID.scope``, ``docker/ID``, ``user.slice/…/libpod-ID.scope``: engines and systemd differ.
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
class EnginesGroup:
    """``cidfile`` is where the engine writes the container's id. What was read last stays when the group is gone."""

    cidfile: Path
    root: Path = ROOT
    place: Path | None = None
    _cpu_s: float = 0.0
    _peak_bytes: int = 0
    _oom: bool = False

    def found(self) -> bool:
        """Whether the group is there to be read, or was."""
        self.place = self.place or place_of(self.cidfile, self.root)
        return self.place is not None

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

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Within it a thread follows the counters until the group is gone."""
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
        while not self.found():
            if select.select([stop], [], [], _SOON_S)[0]:
                return
        assert self.place is not None
        # The end of the file of events is its removal: ENODEV.
        with contextlib.suppress(OSError), open(self.place / "memory.events", "rb", buffering=0) as events:
            poll = select.poll()
            poll.register(events, select.POLLPRI)  # a change; cgroup-v2.rst, "memory.events"
            poll.register(stop, select.POLLIN)
            while all(descriptor != stop for descriptor, _ in poll.poll(1000 * LOOK_S)):
                # First, and through this descriptor: what happens after it was read is news to it, and nothing else.
                self._oom = number(os.pread(events.fileno(), 4096, 0).decode(), "oom_kill") > 0 or self._oom
                self._read()

    def _read(self) -> None:
        if not self.found():
            return
        assert self.place is not None
        with contextlib.suppress(OSError):
            self._oom = counter(self.place / "memory.events", "oom_kill") > 0 or self._oom
            self._cpu_s = max(self._cpu_s, counter(self.place / "cpu.stat", "usage_usec") / 1e6)
            self._peak_bytes = int((self.place / "memory.peak").read_text())
