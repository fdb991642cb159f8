"""A process that has imported the parts of a run, and forks a child for each cell. It runs one cell at a time.

The imports take 0.8 s of processor time, half of it for ports. A sweep would spend that time again for each issue.
``multiprocessing`` has a fork server too, but gives it the whole environment of its parent, which holds a token.

A request is one line of JSON on standard input (`Request`), the answer one line on standard output (`Answer`). When
standard input ends, or on SIGTERM, the server asks its child to end (SIGTERM), waits for it, and ends too.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import selectors
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

CHILD, CLUSTER = "runners.cells.child", "runners.cells.cluster"
PRELOADED = (
    *(CHILD, "runners.investigation.investigate", "runners.toolchains.tvm", "runners.toolchains.iree"),
    *("runners.rewrite.python", "runners.rewrite.testcase"),  # with libcst, which takes half a second
)
STOP_S = 15.0
"""Time that a child has to remove its sandboxes before it is killed."""


class Request(msgspec.Struct, frozen=True):
    """The words of a child's command line without the parent's process id, its log, and its working folder."""

    words: tuple[str, ...]
    more: tuple[str, ...]
    log: str
    folder: str
    cluster: bool = False


class Answer(msgspec.Struct, frozen=True):
    """The exit status of a child, negative for a signal, and the processor seconds of the server and its children."""

    status: int
    cpu_s: float


def main(arguments: list[str]) -> int:
    """Serve until standard input ends. In a child, return the exit status of the child."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # children share these objects' memory as long as no collection writes to it
    return _serve(sys.stdin.fileno(), sys.stdout.fileno())


def _serve(requests: int, answers: int) -> int:
    wakes = _watch_signals()
    clean, rest = True, b""
    while True:
        while b"\n" not in rest:
            came = _wait(requests, wakes)
            if signal.SIGTERM in came:
                return 0
            if came:
                continue  # a late SIGCHLD: a read could wait without an end
            if not (data := os.read(requests, 65_536)):
                return 0
            rest += data
        line, _, rest = rest.partition(b"\n")
        request = msgspec.json.decode(line, type=Request)
        pid = os.fork()
        if pid == 0:
            return _run_child(request, clean=clean)
        status = _wait_for_child(pid, requests, wakes)
        if status is None:
            return 0
        clean = status != 0  # a child that failed may have left sandboxes
        with contextlib.suppress(BrokenPipeError):  # the parent has ended; so will standard input
            os.write(answers, msgspec.json.encode(Answer(status=status, cpu_s=measure_cpu())) + b"\n")


def measure_cpu() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _watch_signals() -> int:
    """Have the kernel's SIGCHLD and SIGTERM written to a pipe. Return its end to read from."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    return reader


def _wait(requests: int, wakes: int) -> bytes:
    """Wait for a request, the end of the requests, or a signal. Return the signals that came."""
    with selectors.DefaultSelector() as ready:
        ready.register(wakes, selectors.EVENT_READ)
        ready.register(requests, selectors.EVENT_READ)
        ready.select()
    with contextlib.suppress(BlockingIOError):
        return os.read(wakes, 4096)
    return b""


def _wait_for_child(pid: int, requests: int, wakes: int) -> int | None:
    """Wait for the child. Return its exit status; None if the server must end, and the child has been stopped."""
    while True:
        came = _wait(requests, wakes)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if signal.SIGTERM in came or not came:
            # A parent sends no request before the answer to the last one: standard input has ended.
            _stop_child(pid)
            return None


def _stop_child(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    signal.signal(signal.SIGALRM, lambda _number, _frame: os.kill(pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, STOP_S)
    os.waitpid(pid, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _run_child(request: Request, *, clean: bool) -> int:
    """Become the child: signals, streams and folder as those of a new process. Return its exit status."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    with Path(request.log).open("wb") as log, Path(os.devnull).open("rb") as empty:
        os.dup2(empty.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir(request.folder)
    words = [*request.words, str(os.getppid()), *request.more]
    try:
        run: Callable[..., int] = importlib.import_module(CLUSTER if request.cluster else CHILD).main
        return run(words) if request.cluster else run(words, clean=clean)
    except Exception:
        traceback.print_exc()
        return 1
