"""Where long work says how far it is. ``bot.cli.terminal`` shows it to people; a test may collect it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from runners.core.protocol import Cell, Observation


class Sink(Protocol):
    """Takes events from any thread. What is said may hold strangers' words: the sink escapes them."""

    def say(self, message: str) -> None:
        """One line about something that happened."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Something that takes a while, from entry to exit: ``building tvm 0.26.0``, ``waiting for another run``."""

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        """A cell began (``None``) or ended; a repeated cell begins and ends once per attempt."""


class Silent:
    """A sink that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def stage(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def cell(self, cell: Cell, observation: Observation | None) -> None:
        pass
