"""Open sandboxes that serve several probes of one issue, one for each environment.

A probe in a session is a fork of a process that has imported the compiler already. If the testcase cannot be forked,
the probe is a new process in the same sandbox. If the engine has no sessions, or a session is lost, the probe gets a
sandbox of its own. The outcome is the same in all three cases (tests compare them); only the time differs.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.protocol import Limits, NotRun
from runners.probe.layout import Layout
from runners.probe.run import ProbeSession, open_probe_session, run_probe
from runners.probe.task import ProbeResult, Task
from runners.sandbox.contract import Engine, SessionEngine
from runners.sandbox.process import Stopped, defer_interrupts

SESSION_BYTES = 512 * 1024**2
"""Memory set aside for one idle session: three times the memory of a session with TVM imported."""
SHARE = 4
"""Idle sessions hold at most this part of the memory that is available: one fourth."""
FEWEST, MOST = 2, 32
"""Bounds on the number of idle sessions."""

Key = tuple[str, Layout, int, int, int]
"""Engine, layout, and the limits of memory, processes and disk: a session serves probes with the same key."""


@dataclass(frozen=True, slots=True)
class _OpenSession:
    session: ProbeSession
    stack: ExitStack

    def close(self) -> None:
        with defer_interrupts():
            self.stack.close()


class SessionPool:
    """The open sessions. Thread-safe: a session runs one probe at a time; a second probe opens another session."""

    def __init__(self, most_idle: int | None = None) -> None:
        self._most_idle = choose_most_idle(read_available_bytes()) if most_idle is None else most_idle
        self._idle: dict[Key, list[_OpenSession]] = {}
        self._guard = threading.Lock()

    def run(self, engine: Engine, layout: Layout, task: Task, *, run_id: str) -> ProbeResult:
        """Run one probe, in a session if the engine has sessions.

        Raises:
            InfraError: the engine could not run the probe in a sandbox of its own either.
        """
        if isinstance(engine, SessionEngine):
            limits = task.limits
            key = (engine.name, layout, limits.memory_bytes, limits.processes, limits.disk_bytes)
            try:
                taken = self._take(key, engine, limits, run_id)
                with defer_interrupts():
                    probe = self._run_in_session(key, taken, task)
                # Only a sandbox of its own tells a testcase that kills its supervisor from a session that broke.
                if not isinstance(probe.ended, NotRun) or probe.ended.cause == "unavailable":
                    return probe
            except Stopped:
                raise
            except InfraError:
                pass  # a sandbox of its own shows whether the engine is at fault
        return run_probe(engine, layout, task, run_id=run_id)

    def close(self) -> None:
        """Close every session, so that the next issue finds no trace of this one."""
        with self._guard:
            sessions = [one for idle in self._idle.values() for one in idle]
            self._idle.clear()
        for one in sessions:
            one.close()

    def _take(self, key: Key, engine: Engine, limits: Limits, run_id: str) -> _OpenSession:
        """Return an idle session of this key, or open one."""
        with self._guard:
            idle = self._idle.pop(key, [])
            if idle:
                one = idle.pop()
                if idle:
                    self._idle[key] = idle
                return one
        stack = ExitStack()
        with defer_interrupts():
            session = stack.enter_context(open_probe_session(engine, key[1], limits=limits, run_id=run_id))
        return _OpenSession(session, stack)

    def _run_in_session(self, key: Key, taken: _OpenSession, task: Task) -> ProbeResult:
        try:
            return taken.session.run(task)
        finally:
            self._put_back(key, taken)

    def _put_back(self, key: Key, taken: _OpenSession) -> None:
        """Close a spent session; keep any other, and close the one unused for longest if there are too many."""
        if taken.session.spent:
            taken.close()
            return
        superfluous: _OpenSession | None = None
        with self._guard:
            self._idle[key] = [*self._idle.pop(key, []), taken]
            if sum(map(len, self._idle.values())) > self._most_idle:
                oldest = next(iter(self._idle))
                superfluous = self._idle[oldest].pop(0)
                if not self._idle[oldest]:
                    del self._idle[oldest]
        if superfluous is not None:
            superfluous.close()


def choose_most_idle(available_bytes: int) -> int:
    """Return the number of idle sessions to keep. A plan over ten releases comes back to each of them."""
    return max(FEWEST, min(MOST, available_bytes // SHARE // SESSION_BYTES))


def read_available_bytes() -> int:
    """Return the memory that new processes can have without swapping: proc(5), ``MemAvailable``; 0 if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines)
    return next((int(words[1]) * 1024 for words in found if words[:1] == ["MemAvailable:"]), 0)
