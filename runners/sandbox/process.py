"""Talk to one child process under a deadline and an output limit, and be stoppable from a signal handler."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

from runners.core.errors import InfraError
from runners.core.protocol import Ended, Exited, Signalled, TimedOut
from runners.sandbox.limits import cpu_time
from runners.sandbox.limits.cpu_time import Meter

READ_BYTES = 64 * 1024
STDERR_BYTES = 16 * 1024
FOREVER_S = float("inf")
DRAIN_S = 2.0
"""How long the pipes may stay open after the process ended, before we stop listening."""


class Stopped(InfraError):
    """The run was stopped from outside; what it had started is gone."""


class _StopSwitch:
    """A pipe that every ``communicate`` watches. Writing a byte is all a signal handler has to do."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)

    def pull(self) -> None:
        os.write(self._writer, b"x")

    def reset(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reader, READ_BYTES)


_switch = _StopSwitch()


def stop_all() -> None:
    """Make every run in progress, in any thread, clean up and raise ``Stopped``; runs that follow do so at once."""
    _switch.pull()


class _Deferred(threading.local):
    """Of the main thread: whether it is inside a run, and whether a signal has come since."""

    depth = 0
    pending = False


_deferred = _Deferred()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Around what a run makes and removes: a signal ends the run, but no clean-up half-way."""
    _deferred.depth += 1
    try:
        yield
    finally:
        _deferred.depth -= 1
        if _deferred.depth == 0 and _deferred.pending:
            _deferred.pending = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within it, SIGINT, SIGTERM and SIGHUP stop every run and then raise KeyboardInterrupt in the main thread.

    Without it a thread pool would wait for its probes to end by themselves, and SIGTERM would leave them running.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        stop_all()
        if _deferred.depth:
            _deferred.pending = True
            return
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        _switch.reset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What the host saw. ``status`` is None when the process was still running at the deadline or over the limit."""

    status: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    answered: bool = False
    """It said the closing words that were waited for, and runs on."""
    used_up: bool = False
    """Its processor time was up before it ended, or answered."""


class _Reader:
    """One output stream: the first ``limit`` bytes of it (or the last, for the words an engine dies with)."""

    def __init__(self, limit: int, *, keep_last: bool = False) -> None:
        self.limit = limit
        self.keep_last = keep_last
        self.data = bytearray()
        self.over = False

    def add(self, piece: bytes) -> None:
        self.data += piece
        if len(self.data) > self.limit:
            self.over = not self.keep_last
            del self.data[slice(0, -self.limit) if self.keep_last else slice(self.limit, None)]


class _Talk:
    """The selector loop: feeds stdin, reads stdout and stderr, notices the end, the deadline and the stop switch."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, stdout_limit: int, closing: bytes, watch: Meter | None
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.pending = memoryview(stdin)
        self.closing = closing
        self.answered = False
        self.watch = watch
        self.look_at = 0.0 if watch is None else time.monotonic() + watch.pause_s()
        self.used_up = False
        self._stop_at = FOREVER_S
        self.stdin = process.stdin.fileno()
        self.stdout = process.stdout.fileno()
        self.stderr = process.stderr.fileno()
        self.readers = {self.stdout: _Reader(stdout_limit), self.stderr: _Reader(STDERR_BYTES, keep_last=True)}
        self.pidfd = os.pidfd_open(process.pid)
        self.selector = selectors.DefaultSelector()
        for descriptor in (*self.readers, self.pidfd, _switch.reader):
            self.selector.register(descriptor, selectors.EVENT_READ)
        os.set_blocking(self.stdin, False)
        if stdin:
            self.selector.register(self.stdin, selectors.EVENT_WRITE)

    def close(self) -> None:
        self.selector.close()
        os.close(self.pidfd)

    def until(self, deadline: float) -> bool:
        """True when the process ended, or answered; False when time ran out or it said too much.

        Raises:
            Stopped: the stop switch was pulled.
        """
        while (left := min(deadline, self._stop_at) - time.monotonic()) > 0:
            for key, _ in self.selector.select(min(left, self._until_a_look())):
                if key.fd == _switch.reader:
                    raise Stopped("stopped: nothing was left running; run the command again")
                if key.fd == self.pidfd:
                    return True
                self._serve(key.fd)
            if self.readers[self.stdout].over:
                return False
            if self.closing and self.readers[self.stdout].data.endswith(self.closing):
                self.answered = True
                return True
        return False

    def _until_a_look(self) -> float:
        """Seconds until the processor time has to be looked at; looks at it when that is now."""
        if self.watch is None or self.used_up:
            return FOREVER_S
        now = time.monotonic()
        if now < self.look_at:
            return self.look_at - now
        pause = self.watch.pause_s()
        self.look_at = now + pause
        if pause == 0:
            self._say_that_time_is_up(now)
        return pause

    def _say_that_time_is_up(self, now: float) -> None:
        self.used_up = True
        self._stop_at = now + cpu_time.GRACE_S
        if not self.pending:
            with contextlib.suppress(OSError):
                os.write(self.stdin, b"\n")

    def drain(self) -> None:
        """What was still in the pipes when the process ended."""
        if self.stdin in self.selector.get_map():
            self.selector.unregister(self.stdin)
        self.selector.unregister(self.pidfd)
        deadline = time.monotonic() + DRAIN_S
        while self.readers.keys() & self.selector.get_map().keys() and (left := deadline - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                if key.fd != _switch.reader:
                    self._serve(key.fd)

    def _serve(self, descriptor: int) -> None:
        if descriptor == self.stdin:
            self._write()
            return
        piece = os.read(descriptor, READ_BYTES)
        self.readers[descriptor].add(piece)
        if not piece:
            self.selector.unregister(descriptor)

    def _write(self) -> None:
        try:
            self.pending = self.pending[os.write(self.stdin, self.pending[:READ_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(self.stdin)  # but kept open: see SandboxSpec.stdin


def communicate(
    process: subprocess.Popen[bytes],
    *,
    stdin: bytes,
    stdout_limit: int,
    wall_s: float,
    closing: bytes = b"",
    watch: Meter | None = None,
) -> Conversation:
    """Feed ``stdin`` and listen until the process ends, the time is over, or stdout exceeds the limit.

    With a ``watch`` also until the processor time is up: the process is told so by a blank line on its input, and
    listened to for a moment longer. With ``closing`` also until stdout ends so: the process then runs on, and may be
    talked to again. Kills nothing: that is the caller's, in its ``finally``. All three streams must be pipes.

    Raises:
        Stopped: the stop switch was pulled.
    """
    talk = _Talk(process, stdin, stdout_limit, closing, watch)
    try:
        heard = talk.until(time.monotonic() + wall_s)
        ended = heard and not talk.answered
        if ended:
            talk.drain()
        out, err = talk.readers[talk.stdout], talk.readers[talk.stderr]
        return Conversation(
            status=process.wait() if ended else None,
            stdout=bytes(out.data),
            stderr=bytes(err.data),
            timed_out=not heard and not out.over,
            truncated=out.over,
            answered=talk.answered,
            used_up=talk.used_up,
        )
    finally:
        talk.close()


def ended_by(talk: Conversation) -> Ended:
    """How the process ended, from its status. Both bwrap and container clients say 128 + n for signal n."""
    if talk.used_up:
        return TimedOut(where="the whole probe", clock="processor")
    if talk.answered:
        return Exited(code=0)
    if talk.timed_out:
        return TimedOut(where="the whole probe")
    if talk.status is None:
        return Signalled(code=signal.SIGKILL)  # by us, for saying too much
    if talk.status < 0:
        return Signalled(code=-talk.status)
    return Signalled(code=talk.status - 128) if talk.status > 128 else Exited(code=talk.status)


def close_streams(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
