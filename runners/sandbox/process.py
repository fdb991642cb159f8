"""Exchange data with one child process under a deadline and an output limit. A signal handler can stop it."""

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
from runners.core.protocol import Ended, Exited, OutOfMemory, Signalled, TimedOut
from runners.sandbox.contract import EngineReport
from runners.sandbox.limits import cpu_time
from runners.sandbox.limits.cpu_time import Meter

READ_BYTES = 64 * 1024
STDERR_BYTES = 16 * 1024
FOREVER_S = float("inf")
DRAIN_S = 2.0
"""Time for which the pipes may remain open after the process has ended."""


class Stopped(InfraError):
    """The run was stopped from outside. Everything that the run had started is gone."""


# ------------------------------------------------------------------------------------------- stopping


class _StopSwitch:
    """A pipe that every exchange watches. A signal handler only has to write one byte."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)

    def pull(self) -> None:
        os.write(self._writer, b"x")

    def reset(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.reader, READ_BYTES)


_switch = _StopSwitch()


def stop_all_runs() -> None:
    """Make every run in progress, in any thread, clean up and raise `Stopped`. Later runs raise at once."""
    _switch.pull()


class _Deferred(threading.local):
    """State of the main thread: nesting of `defer_interrupts`, and True if a signal arrived meanwhile."""

    depth = 0
    pending = False


_deferred = _Deferred()


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Delay KeyboardInterrupt until the block ends, so that a signal never interrupts a clean-up.

    The signal still stops the run inside the block.
    """
    _deferred.depth += 1
    try:
        yield
    finally:
        _deferred.depth -= 1
        if _deferred.depth == 0 and _deferred.pending:
            _deferred.pending = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def handle_stop_signals() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP stop every run and then raise KeyboardInterrupt in the main thread.

    Without these handlers, a thread pool would wait for its probes to end, and SIGTERM would leave the probes
    running.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        stop_all_runs()
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


# ------------------------------------------------------------------------------------------- exchanging data


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The result of an exchange. ``status`` is None if the process was still running at its end."""

    status: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    answered: bool = False
    """True if the process wrote the expected end of an answer and continues to run."""
    used_up: bool = False
    """True if the processor time was used up before the process ended or answered."""

    @property
    def last_words(self) -> str:
        """The end of standard error, for messages."""
        return self.stderr.decode("utf-8", "replace").strip()[-500:] or "it printed no message"


class _Stream:
    """One output stream: its first ``limit`` bytes, or its last ones with ``keep_last``."""

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


class _Loop:
    """The selector loop: writes stdin, reads stdout and stderr, detects the end, the deadline and the stop switch."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, stdout_limit: int, closing: bytes, meter: Meter | None
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.pending = memoryview(stdin)
        self.closing = closing
        self.answered = False
        self.meter = meter
        self.next_reading = 0.0 if meter is None else time.monotonic() + meter.compute_pause_s()
        self.used_up = False
        self._stop_at = FOREVER_S
        self.stdin = process.stdin.fileno()
        self.stdout = _Stream(stdout_limit)
        self.stderr = _Stream(STDERR_BYTES, keep_last=True)
        self.streams = {process.stdout.fileno(): self.stdout, process.stderr.fileno(): self.stderr}
        self.pidfd = os.pidfd_open(process.pid)
        self.selector = selectors.DefaultSelector()
        for descriptor in (*self.streams, self.pidfd, _switch.reader):
            self.selector.register(descriptor, selectors.EVENT_READ)
        os.set_blocking(self.stdin, False)
        if stdin:
            self.selector.register(self.stdin, selectors.EVENT_WRITE)

    def close(self) -> None:
        self.selector.close()
        os.close(self.pidfd)

    def run_until(self, deadline: float) -> bool:
        """Return True if the process ended or answered. Return False at the deadline or above the output limit.

        Raises:
            Stopped: the stop switch was pulled.
        """
        while (left := min(deadline, self._stop_at) - time.monotonic()) > 0:
            for key, _ in self.selector.select(min(left, self._check_meter())):
                if key.fd == _switch.reader:
                    raise Stopped("stopped: nothing was left running; run the command again")
                if key.fd == self.pidfd:
                    return True
                self._serve(key.fd)
            if self.stdout.over:
                return False
            if self.closing and self.stdout.data.endswith(self.closing):
                self.answered = True
                return True
        return False

    def _check_meter(self) -> float:
        """Return the seconds until the next reading of the processor time. Read it now if it is due."""
        if self.meter is None or self.used_up:
            return FOREVER_S
        now = time.monotonic()
        if now < self.next_reading:
            return self.next_reading - now
        pause = self.meter.compute_pause_s()
        self.next_reading = now + pause
        if pause == 0:
            self._announce_time_is_up(now)
        return pause

    def _announce_time_is_up(self, now: float) -> None:
        self.used_up = True
        self._stop_at = now + cpu_time.GRACE_S
        if not self.pending:
            with contextlib.suppress(OSError):
                os.write(self.stdin, b"\n")

    def drain_pipes(self) -> None:
        """Read the rest of the output after the end of the process."""
        if self.stdin in self.selector.get_map():
            self.selector.unregister(self.stdin)
        self.selector.unregister(self.pidfd)
        deadline = time.monotonic() + DRAIN_S
        while self.streams.keys() & self.selector.get_map().keys() and (left := deadline - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                if key.fd != _switch.reader:
                    self._serve(key.fd)

    def _serve(self, descriptor: int) -> None:
        if descriptor == self.stdin:
            self._write_stdin()
            return
        piece = os.read(descriptor, READ_BYTES)
        self.streams[descriptor].add(piece)
        if not piece:
            self.selector.unregister(descriptor)

    def _write_stdin(self) -> None:
        try:
            self.pending = self.pending[os.write(self.stdin, self.pending[:READ_BYTES]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = self.pending[:0]
        if not self.pending:
            self.selector.unregister(self.stdin)  # but kept open: see SandboxSpec.stdin


def exchange_data(
    process: subprocess.Popen[bytes],
    *,
    stdin: bytes,
    stdout_limit: int,
    wall_s: float,
    closing: bytes = b"",
    meter: Meter | None = None,
) -> Exchange:
    """Write ``stdin`` and read the output until the process ends, ``wall_s`` is over or stdout exceeds the limit.

    With a ``meter``, also stop when the processor time is used up: a blank line on stdin informs the process, and
    reading continues for `cpu_time.GRACE_S` seconds. With ``closing``, also stop when stdout ends with these bytes:
    the process continues to run, and a further exchange may follow. All three streams must be pipes. The caller must
    kill the process in its ``finally``, because this function kills no process.

    Raises:
        Stopped: the stop switch was pulled.
    """
    loop = _Loop(process, stdin, stdout_limit, closing, meter)
    try:
        in_time = loop.run_until(time.monotonic() + wall_s)
        ended = in_time and not loop.answered
        if ended:
            loop.drain_pipes()
        return Exchange(
            status=process.wait() if ended else None,
            stdout=bytes(loop.stdout.data),
            stderr=bytes(loop.stderr.data),
            timed_out=not in_time and not loop.stdout.over,
            truncated=loop.stdout.over,
            answered=loop.answered,
            used_up=loop.used_up,
        )
    finally:
        loop.close()


def classify_end(exchange: Exchange) -> Ended:
    """Return how the process ended. bwrap and container clients both report signal n as status 128 + n."""
    if exchange.used_up:
        return TimedOut(where="the whole probe", clock="processor")
    if exchange.answered:
        return Exited(code=0)
    if exchange.timed_out:
        return TimedOut(where="the whole probe")
    if exchange.status is None:
        return Signalled(code=signal.SIGKILL)  # we kill a process that exceeds the output limit
    if exchange.status < 0:
        return Signalled(code=-exchange.status)
    return Signalled(code=exchange.status - 128) if exchange.status > 128 else Exited(code=exchange.status)


def build_report(exchange: Exchange, *, began: float, oom_limit: int | None, peak_bytes: int) -> EngineReport:
    """Return the engine's report on an exchange that started at ``began`` (`time.monotonic`).

    ``oom_limit`` is the memory limit in bytes if the process ran out of memory, else None.
    """
    return EngineReport(
        ended=classify_end(exchange) if oom_limit is None else OutOfMemory(limit_bytes=oom_limit),
        stdout=exchange.stdout,
        stderr=exchange.stderr,
        seconds=time.monotonic() - began,
        peak_bytes=peak_bytes,
        truncated=exchange.truncated,
    )


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """True if a process has ended. Unlike ``poll``, keep its id in use, because `exchange_data` waits for that id."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def close_streams(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
