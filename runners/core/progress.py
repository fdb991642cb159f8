"""Define the sink for progress messages of long work. ``bot.cli.terminal`` shows them; a test may collect them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from runners.core.protocol import Cell, Observation


class Sink(Protocol):
    """Receives events from any thread. Messages may contain strangers' text, so the sink escapes them."""

    def say(self, message: str) -> None:
        """Report an event in one line."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Report a stage of work from entry to exit: ``building tvm 0.26.0``, ``waiting for another run``."""

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        """Report that a cell began (``None``) or ended. A rerun cell begins and ends once for each attempt."""


class Silent:
    """A sink that drops all messages."""

    def say(self, message: str) -> None:
        pass

    def stage(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        pass


class Held(Silent):
    """A sink that keeps its lines until `release`: messages of early work wait until its result is needed."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def say(self, message: str) -> None:
        self._lines.append(message)

    def release(self, sink: Sink) -> None:
        """Report the lines to ``sink``."""
        for line in self._lines:
            sink.say(line)
