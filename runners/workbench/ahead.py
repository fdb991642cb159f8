"""Make runs early, while processors are idle.

An investigation requests one run after another. Some of its next runs are known before the last ones end: the reruns
that confirm an answer, the diagnosis of a failure. `RunsAhead` makes them early. It does not affect which runs an
investigation requests, or their order; only the time differs. An early run that is never requested is not evidence,
and is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import msgspec

from runners.core.errors import InfraError
from runners.core.runs import Execute, RunRequest, RunResult


class Withdrawn(InfraError):
    """No caller waits any more for a run that was to be made early."""


@dataclass(slots=True, eq=False)
class _Turn:
    """A run that waits for a slot. It stops being early when a caller waits for it."""

    early: bool


class Slots:
    """The runs that may be made at the same time. Requested runs go before early ones.

    Early runs leave ``kept`` slots free until `open_all`. A search needs one slot at a time, and would otherwise wait
    for the end of an early run.
    """

    def __init__(self, count: int, *, kept: int = 0) -> None:
        self._free = max(1, count)
        self._for_early = self._free - kept
        """Slots that are open to early runs now."""
        self._kept = kept
        self._waiting: set[_Turn] = set()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """The number of requested runs that wait for a slot."""
        return sum(not turn.early for turn in self._waiting)

    @contextmanager
    def take(self, turn: _Turn) -> Iterator[None]:
        with self._changed:
            self._waiting.add(turn)
            self._changed.wait_for(lambda: self._is_next(turn))
            self._waiting.discard(turn)
            taken = int(turn.early)  # a run that began early continues to count as early
            self._free -= 1
            self._for_early -= taken
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._for_early += taken
                self._changed.notify_all()

    def _is_next(self, turn: _Turn) -> bool:
        return self._free > 0 and not (turn.early and (self._for_early <= 0 or self.waiting))

    def call(self, turn: _Turn) -> None:
        """Mark a run, which may be waiting, as requested."""
        with self._changed:
            turn.early = False
            self._changed.notify_all()

    def open_all(self) -> None:
        """Open every slot to early runs."""
        with self._changed:
            self._for_early += self._kept
            self._kept = 0
            self._changed.notify_all()


class Runs(Protocol):
    """The runs of an investigation, some of which may be made early."""

    def execute(self, request: RunRequest) -> RunResult:
        """Make a requested run, or return the result of the same run if it was made early."""

    def execute_early(self, request: RunRequest) -> RunResult:
        """Do the same for a run that yields to requested runs."""

    def expect(self, request: RunRequest, *, wanted: Callable[[], bool] = lambda: True) -> None:
        """Announce a run that will be requested."""

    def finish_search(self) -> None:
        """Announce that no search needs a processor any more."""

    def wait_for_search(self) -> None:
        """Wait until the search has made its runs, or was given up."""


class NoRunsAhead:
    """Runs of which none is made early."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def execute(self, request: RunRequest) -> RunResult:
        return self._execute(request)

    def execute_early(self, request: RunRequest) -> RunResult:
        return self._execute(request)

    def expect(self, request: RunRequest, *, wanted: Callable[[], bool] = lambda: True) -> None:
        pass

    def finish_search(self) -> None:
        pass

    def wait_for_search(self) -> None:
        pass


class RunsAhead:
    """An `Execute` whose runs may have been made early. Thread-safe."""

    def __init__(self, execute: Execute, slots: Slots, executor: Executor) -> None:
        self._execute = execute
        self._slots = slots
        self._executor = executor
        self._made: dict[bytes, list[tuple[Future[RunResult], _Turn]]] = {}
        self._guard = threading.Lock()
        self._withdrawn = False
        self._searched = threading.Event()

    def expect(self, request: RunRequest, *, wanted: Callable[[], bool] = lambda: True) -> None:
        """Make a run early that will be requested. Each call means one run.

        The run is not made if ``wanted`` is false when it would begin.
        """
        turn = _Turn(early=True)
        future = self._executor.submit(self._make, request, turn, wanted)
        with self._guard:
            self._made.setdefault(make_key(request), []).append((future, turn))

    def execute(self, request: RunRequest) -> RunResult:
        """Make a requested run, or return the result of the same run if it was made early."""
        return self._answer(request, early=False)

    def execute_early(self, request: RunRequest) -> RunResult:
        """Do the same for a run that yields to requested runs.

        Raises:
            Withdrawn: the investigation has ended.
        """
        return self._answer(request, early=True)

    def finish_search(self) -> None:
        """Let early runs use all processors, because no search needs one any more."""
        self._searched.set()
        self._slots.open_all()

    def wait_for_search(self) -> None:
        """Wait until the search has made its runs, or was given up."""
        self._searched.wait()

    def _answer(self, request: RunRequest, *, early: bool) -> RunResult:
        with self._guard:
            made = self._made.get(make_key(request))
            future, turn = made.pop(0) if made else (None, None)
        if future is not None and turn is not None and not future.cancel():
            if not early:
                self._slots.call(turn)
            with suppress(Withdrawn):  # nobody wanted the run when its turn came: it was not made
                return future.result()
        return self._make(request, _Turn(early=early))

    def _make(self, request: RunRequest, turn: _Turn, wanted: Callable[[], bool] = lambda: True) -> RunResult:
        with self._slots.take(turn):
            if turn.early and (self._withdrawn or not wanted()):
                raise Withdrawn("no caller waits for the run")
            return self._execute(request)

    def withdraw(self) -> None:
        """Make no further run early. Runs under way are not stopped."""
        self._withdrawn = True
        self._searched.set()
        self._slots.open_all()


def make_key(request: RunRequest) -> bytes:
    """Return the whole request as a key, limits and sandbox included. Only an equal request may use its result."""
    return msgspec.json.encode(request, order="deterministic")
