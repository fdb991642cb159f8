"""Limit a step's output, and detect ended processes. Only the supervisor imports this module."""

from __future__ import annotations

import contextlib
import os
import signal


class Capture:
    """The head and the tail of a stream, and the number of bytes dropped between them."""

    def __init__(self, limit_bytes: int) -> None:
        self.head_bytes = limit_bytes // 4
        self.tail_bytes = limit_bytes - self.head_bytes
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = self.head_bytes - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        excess = len(self.tail) - self.tail_bytes
        if excess > 0:
            del self.tail[:excess]
            self.dropped += excess

    def decode_text(self) -> str:
        """Return the stream as valid text, with one replacement character for each byte that is not UTF-8."""
        head = self.head.decode("utf-8", "replace")
        tail = self.tail.decode("utf-8", "replace")
        if not self.dropped:
            return (self.head + self.tail).decode("utf-8", "replace")
        return f"{head}\n[... {self.dropped} bytes left out ...]\n{tail}"


class Wakeups:
    """A pipe that becomes readable when a child changes state (the self-pipe trick)."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self.reader, 512):
                pass
