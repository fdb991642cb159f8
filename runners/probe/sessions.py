"""The sandboxes of one issue that stay open between its probes, one per environment, as many as pay.

A probe in a room is a fork of a process that has the compiler imported already; where that can't be had it is a
process of its own in the same room; and where rooms can't be had, or one is lost, a sandbox of its own. The outcome
is the same in all three (tests compare them), only the time is not.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass

from runners.core.errors import InfraError
from runners.core.protocol import Limits, NotRun
from runners.probe.layout import Layout
from runners.probe.run import Room, open_room, run_probe
from runners.probe.task import Probe, Task
from runners.sandbox.contract import Engine, SessionEngine
from runners.sandbox.process import Stopped, defer_interrupts

MAX_IDLE = 4
"""Rooms kept for another probe: with TVM in it each holds some 150 MiB."""

Key = tuple[str, Layout, int, int, int]


@dataclass(frozen=True, slots=True)
class _Open:
    room: Room
    stack: ExitStack

    def close(self) -> None:
        with defer_interrupts():
            self.stack.close()


class Rooms:
    """Used by several threads: a room has one probe at a time, and a second one opens another."""

    def __init__(self) -> None:
        self._idle: dict[Key, list[_Open]] = {}
        self._guard = threading.Lock()

    def probe(self, engine: Engine, layout: Layout, task: Task, *, run_id: str) -> Probe:
        """One probe, in a room where the engine has any.

        Raises:
            InfraError: the engine could not run it in a sandbox of its own either.
        """
        if isinstance(engine, SessionEngine):
            limits = task.limits
            key = (engine.name, layout, limits.memory_bytes, limits.processes, limits.disk_bytes)
            try:
                entered = self._enter(key, engine, limits, run_id)
                with defer_interrupts():
                    probe = self._in_room(key, entered, task)
                # One that brings its supervisor down is told apart from a room that was spent without our knowledge.
                if not isinstance(probe.ended, NotRun) or probe.ended.cause == "unavailable":
                    return probe
            except Stopped:
                raise
            except InfraError:
                pass  # what is wrong with the engine, its own sandbox will tell
        return run_probe(engine, layout, task, run_id=run_id)

    def close(self) -> None:
        """End every room: the next issue shall not meet what this one left."""
        with self._guard:
            rooms = [one for found in self._idle.values() for one in found]
            self._idle.clear()
        for one in rooms:
            one.close()

    def _enter(self, key: Key, engine: Engine, limits: Limits, run_id: str) -> _Open:
        with self._guard:
            found = self._idle.pop(key, [])
            if found:
                one = found.pop()
                if found:
                    self._idle[key] = found
                return one
        stack = ExitStack()
        with defer_interrupts():
            room = stack.enter_context(open_room(engine, key[1], limits=limits, run_id=run_id))
        return _Open(room, stack)

    def _in_room(self, key: Key, entered: _Open, task: Task) -> Probe:
        try:
            return entered.room.probe(task)
        finally:
            self._leave(key, entered)

    def _leave(self, key: Key, entered: _Open) -> None:
        """Keep the room for the next probe, the longest unused one making way; or end it when it is over."""
        if entered.room.over:
            entered.close()
            return
        superfluous: _Open | None = None
        with self._guard:
            self._idle[key] = [*self._idle.pop(key, []), entered]
            if sum(map(len, self._idle.values())) > MAX_IDLE:
                oldest = next(iter(self._idle))
                superfluous = self._idle[oldest].pop(0)
                if not self._idle[oldest]:
                    del self._idle[oldest]
        if superfluous is not None:
            superfluous.close()
