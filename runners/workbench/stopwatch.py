"""Note when the stages and the runs of one investigation begin and end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import get_args

from runners.core.progress import Sink
from runners.core.protocol import Cell, NotRun, Observation, StageName, TimedRun, TimedStage, Times
from runners.core.runs import Execute, RunRequest, RunResult

STAGES: Mapping[str, StageName] = {name: name for name in get_args(StageName)}
"""Stages that are recorded. Stages inside them, such as the search for builds, are not."""
MOST = 2000
"""Maximum number of recorded runs, as in `Times`."""


class Stopwatch:
    """Measures one investigation, from the creation of this object. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._stages: list[TimedStage] = []
        self._runs: list[TimedRun] = []
        self._lock = threading.Lock()

    @property
    def times(self) -> Times:
        """Return the completed stages and runs, in the order of their beginnings."""
        with self._lock:
            return Times(
                stages=tuple(sorted(self._stages, key=lambda one: one.begin)),
                runs=tuple(sorted(self._runs, key=lambda one: one.begin)),
            )

    def time_runs(self, execute: Execute) -> Execute:
        """Return ``execute`` with a record of each run that it makes."""

        def execute_timed(request: RunRequest) -> RunResult:
            begin = self._read()
            result = execute(request)
            end = self._read()
            if not isinstance(result.ended, NotRun):
                self._note_run(request, begin, end, min(result.seconds, end - begin))
            return result

        return execute_timed

    def time_stages(self, sink: Sink) -> Sink:
        """Return ``sink`` with a record of each stage that is reported to it."""
        return _TimedSink(sink, self)

    @contextmanager
    def note_stage(self, name: str) -> Iterator[None]:
        begin = self._read()
        try:
            yield
        finally:
            if (known := STAGES.get(name)) is not None:
                with self._lock:
                    self._stages.append(TimedStage(name=known, begin=begin, end=self._read()))

    def _note_run(self, request: RunRequest, begin: float, end: float, seconds: float) -> None:
        run = TimedRun(
            version=request.version, device=request.device, begin=begin, end=end, seconds=round(max(0.0, seconds), 3)
        )
        with self._lock:
            if len(self._runs) < MOST:
                self._runs.append(run)

    def _read(self) -> float:
        return round(self._clock() - self._start, 3)


@dataclass(frozen=True, slots=True)
class _TimedSink:
    inner: Sink
    watch: Stopwatch

    def say(self, message: str) -> None:
        self.inner.say(message)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        with self.watch.note_stage(name), self.inner.stage(name):
            yield

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        self.inner.cell(cell, observation)
