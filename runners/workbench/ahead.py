"""Make runs before their turn, while processors are idle.

An investigation asks for one run after another, and some of its next runs are known before the last ones end: the
reruns that confirm an answer, the diagnosis of a failure. `RunsAhead` makes them early. Which runs an investigation
asks for, and in which order, is decided without it: only the time differs. A run that was made early and is never
asked for is no evidence, and is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import msgspec

from runners.core.errors import InfraError
from runners.core.runs import Execute, RunRequest, RunResult


class Withdrawn(InfraError):
    """No caller waits any more for a run that was to be made early."""


class Slots:
    """The runs that may be made at the same time. A run whose turn it is goes before the others."""

    def __init__(self, count: int) -> None:
        self._free = max(1, count)
        self.waiting = 0
        """Runs whose turn it is, and that wait for a slot."""
        self._changed = threading.Condition()

    @contextmanager
    def take(self, *, early: bool) -> Iterator[None]:
        with self._changed:
            self.waiting += not early
            self._changed.wait_for(lambda: self._free > 0 and not (early and self.waiting))
            self.waiting -= not early
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()


class RunsAhead:
    """An `Execute` whose runs may have been made early. Thread-safe."""

    def __init__(self, execute: Execute, slots: Slots, executor: Executor) -> None:
        self._execute = execute
        self._slots = slots
        self._executor = executor
        self._made: dict[bytes, list[Future[RunResult]]] = {}
        self._guard = threading.Lock()
        self._withdrawn = False

    def expect(self, request: RunRequest, *, wanted: Callable[[], bool] = lambda: True) -> None:
        """Make a run early that will be asked for. Each call stands for one run.

        The run is not made if ``wanted`` is false when its turn comes.
        """
        future = self._executor.submit(self._make, request, early=True, wanted=wanted)
        with self._guard:
            self._made.setdefault(_make_key(request), []).append(future)

    def execute(self, request: RunRequest) -> RunResult:
        """Make a run whose turn it is, or return the result of the same run that was made early."""
        return self._answer(request, early=False)

    def execute_early(self, request: RunRequest) -> RunResult:
        """Do the same for a run that lets the runs pass whose turn it is.

        Raises:
            Withdrawn: the investigation has ended.
        """
        return self._answer(request, early=True)

    def _answer(self, request: RunRequest, *, early: bool) -> RunResult:
        with self._guard:
            made = self._made.get(_make_key(request))
            future = made.pop(0) if made else None
        if future is not None and not future.cancel():
            return future.result()
        return self._make(request, early=early)

    def _make(self, request: RunRequest, *, early: bool, wanted: Callable[[], bool] = lambda: True) -> RunResult:
        with self._slots.take(early=early):
            if early and (self._withdrawn or not wanted()):
                raise Withdrawn("no caller waits for the run")
            return self._execute(request)

    def withdraw(self) -> None:
        """Make no further run early. Runs under way end by themselves."""
        self._withdrawn = True


def _make_key(request: RunRequest) -> bytes:
    """The whole request, with its limits and its sandbox: an equal request alone may take its result."""
    return msgspec.json.encode(request, order="deterministic")
