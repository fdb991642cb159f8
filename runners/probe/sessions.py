"""Keep sandboxes that serve several probes, one for each environment.

A probe in a session is a fork of a process that has already imported the compiler. If the testcase cannot be forked,
the probe is a new process in the same sandbox. If the engine has no sessions, or a session is lost, the probe gets
its own sandbox. The outcome is the same in all three cases (tests compare them); only the time differs.

A pool serves one plan, or the plans of several issues (``kept``). A kept session may have run the code of another
issue. A probe that leaves a trace ends its session (``runners/guest/probe/cleaning.py``), and an answer that differs
from the last one is confirmed in new sandboxes.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import InfraError
from runners.core.protocol import Limits, NotRun
from runners.probe.layout import Layout
from runners.probe.run import SESSION_S, ProbeSession, open_probe_session, run_probe
from runners.probe.task import ProbeResult, Task
from runners.sandbox.contract import Engine, SessionEngine
from runners.sandbox.process import Stopped, defer_interrupts

SESSION_BYTES = 512 * 1024**2
"""Memory reserved for one idle session: three times the memory of a session with TVM imported."""
SHARE = 4
"""Idle sessions use at most 1 / `SHARE` of the available memory."""
FEWEST, MOST = 2, 32
"""Bounds on the number of idle sessions."""
LIFE_S = SESSION_S / 2
"""A session accepts no probe after this time, because a probe must end before the session does."""

Key = tuple[str, Layout, int, int, int, int]
"""Engine, layout, inode of the environment's files, and the limits of memory, processes and disk. A session serves
probes with the same key. An environment that was removed and installed again has another inode."""


@dataclass(frozen=True, slots=True)
class _OpenSession:
    session: ProbeSession
    stack: ExitStack
    began: float
    """`time.monotonic` at its start."""

    @property
    def is_usable(self) -> bool:
        return not self.session.spent and time.monotonic() - self.began < LIFE_S

    def close(self) -> None:
        with defer_interrupts():
            self.stack.close()


class SessionPool:
    """The open sessions. Thread-safe: a session runs one probe at a time, and a second probe opens another session.

    With ``kept``, sessions outlive the plan that opened them.
    """

    def __init__(self, most_idle: int | None = None, *, kept: bool = False) -> None:
        self._most_idle = choose_most_idle(read_available_bytes()) if most_idle is None else most_idle
        self._idle: dict[Key, list[_OpenSession]] = {}
        self._guard = threading.Lock()
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="sessions") if kept else None
        """Opens every kept session. The kernel ends a sandbox with the thread that started it, as the sandbox
        requests, and the threads of a plan end with the plan."""

    def run(self, engine: Engine, layout: Layout, task: Task, *, run_id: str) -> ProbeResult:
        """Run one probe, in a session if the engine has sessions.

        Raises:
            InfraError: the engine could not run the probe in its own sandbox either.
        """
        if isinstance(engine, SessionEngine):
            limits = task.limits
            key = (
                engine.name,
                layout,
                _read_inode(layout.site_packages),
                limits.memory_bytes,
                limits.processes,
                limits.disk_bytes,
            )
            try:
                taken = self._take(key, engine, limits, run_id)
                with defer_interrupts():
                    probe = self._run_in_session(key, taken, task)
                # A new sandbox distinguishes a testcase that kills its supervisor from a session that broke.
                if not isinstance(probe.ended, NotRun) or probe.ended.cause == "unavailable":
                    return probe
            except Stopped:
                raise
            except InfraError:
                pass  # a new sandbox shows whether the engine is at fault
        return run_probe(engine, layout, task, run_id=run_id)

    @property
    def is_kept(self) -> bool:
        return self._opener is not None

    @contextlib.contextmanager
    def serve_plan(self) -> Iterator[None]:
        """Serve the runs of one plan. Close every session after it, unless sessions are kept."""
        try:
            yield
        finally:
            if not self.is_kept:
                self.close()

    def close_idle(self) -> None:
        """Close every session that runs no probe."""
        with self._guard:
            sessions = [one for idle in self._idle.values() for one in idle]
            self._idle.clear()
        for one in sessions:
            one.close()

    def close(self) -> None:
        """Close every session. After this, the pool opens no kept session."""
        self.close_idle()
        if self._opener is not None:
            self._opener.shutdown()

    def _take(self, key: Key, engine: Engine, limits: Limits, run_id: str) -> _OpenSession:
        """Return an idle session of this key, or open one."""
        with self._guard:
            idle = self._idle.pop(key, [])
            taken = [one for one in idle if one.is_usable][-1:]
            left = [one for one in idle if one.is_usable and one not in taken]
            if left:
                self._idle[key] = left
        for one in idle:
            if one not in taken and one not in left:
                one.close()
        if taken:
            return taken[0]
        if self._opener is None:
            return self._open(key[1], engine, limits, run_id)
        with defer_interrupts():  # an interrupt here would lose the session
            return self._opener.submit(self._open, key[1], engine, limits, run_id).result()

    def _open(self, layout: Layout, engine: Engine, limits: Limits, run_id: str) -> _OpenSession:
        stack = ExitStack()
        began = time.monotonic()
        with defer_interrupts():
            session = stack.enter_context(
                open_probe_session(engine, layout, limits=limits, run_id=run_id, is_shared=self.is_kept)
            )
        return _OpenSession(session, stack, began)

    def _run_in_session(self, key: Key, taken: _OpenSession, task: Task) -> ProbeResult:
        try:
            return taken.session.run(task)
        finally:
            self._put_back(key, taken)

    def _put_back(self, key: Key, taken: _OpenSession) -> None:
        """Close a spent session. Keep any other, and close the one unused for longest if there are too many."""
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


def _read_inode(path: Path) -> int:
    """Return the inode of a folder. 0 if it is missing; the run then reports that."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def choose_most_idle(available_bytes: int) -> int:
    """Return the number of idle sessions to keep. A plan over ten releases returns to each of them."""
    return max(FEWEST, min(MOST, available_bytes // SHARE // SESSION_BYTES))


def read_available_bytes() -> int:
    """Return the memory that new processes can use without swapping: proc(5), ``MemAvailable``. 0 if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines)
    return next((int(words[1]) * 1024 for words in found if words[:1] == ["MemAvailable:"]), 0)
