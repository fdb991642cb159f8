"""Define the messages between the process that holds the token and a server of cells."""

from __future__ import annotations

import resource

import msgspec


class Request(msgspec.Struct, frozen=True):
    """The arguments of a cell's command line, its log, and its working folder."""

    words: tuple[str, ...]
    log: str
    folder: str
    cluster: bool = False


class Answer(msgspec.Struct, frozen=True):
    """The exit status of a cell, and the processor seconds of the server and its sandboxes so far."""

    status: int
    cpu_s: float


def read_usage(who: int) -> float:
    """Return the processor seconds that getrusage(2) reports."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
