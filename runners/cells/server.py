"""Serve cells, one at a time, in one process.

The imports of a run take 0.8 s of processor time, half of it for ports. The self-test of a sandbox and the import of
a compiler inside take the same time again. A process for each cell would need this time for each issue. A server
needs it once, and keeps sandboxes open for later cells (``runners/probe/sessions.py``).

A request is one line of JSON on standard input (`Request`), the answer one line on standard output (`Answer`). When
standard input ends, or on SIGTERM, the server stops the cell that runs, closes its sandboxes and ends.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

import msgspec

from runners.cells.messages import Answer, Request, read_usage
from runners.core.errors import ReprobotError
from runners.sandbox.limits import cpu_time
from runners.sandbox.select import remove_leftovers, select_engine
from runners.workbench import LIFE_S, SessionPool

CELL, CLUSTER = "runners.cells.cell", "runners.cells.cluster"
READ_BYTES = 65_536


def main(arguments: list[str]) -> int:
    """Serve until standard input ends, or until SIGTERM."""
    requests, answers = _take_streams()
    signal.signal(signal.SIGTERM, _end)
    try:
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read_lines, args=(requests, lines), daemon=True).start()
        importlib.import_module(CELL)  # before the first request, because the server may have been started early
        clean = not _prepare()
        with closing(SessionPool(kept=True)) as sessions:
            while line := _wait_for_line(lines, sessions):
                status = _run_cell(msgspec.json.decode(line, type=Request), sessions, clean=clean)
                clean = status != 0  # a failed cell may have left sandboxes
                with contextlib.suppress(BrokenPipeError):  # the parent has ended, and so has standard input
                    os.write(answers, msgspec.json.encode(Answer(status=status, cpu_s=measure_cpu())) + b"\n")
    except KeyboardInterrupt:
        pass
    return 0


def _prepare() -> bool:
    """Remove the leftovers of killed runs, and let a sandbox pass its self-test. A process keeps the result.

    Return False if the first cell must do this, and report the reason if it fails.
    """
    try:
        remove_leftovers()
        select_engine("auto")
    except (ReprobotError, OSError, MemoryError):
        return False
    return True


def measure_cpu() -> float:
    """Return the processor seconds of this process and of its sandboxes.

    Without control groups, count the ended children instead of the sandboxes.
    """
    return read_usage(resource.RUSAGE_SELF) + (cpu_time.SANDBOXES.read() or read_usage(resource.RUSAGE_CHILDREN))


def _take_streams() -> tuple[int, int]:
    """Return standard input and output as separate descriptors. The cells get an empty input, and a log."""
    requests, answers = os.dup(0), os.dup(1)
    with Path(os.devnull).open("r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    return requests, answers


def _end(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM while no sandbox runs. During a plan, `handle_stop_signals` replaces it."""
    raise KeyboardInterrupt


def _read_lines(requests: int, lines: queue.SimpleQueue[bytes]) -> None:
    """Pass on each request. Stop the running cell at the end of the requests: the parent may have been killed."""
    rest = b""
    while data := os.read(requests, READ_BYTES):
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines.put(line)
    lines.put(b"")
    os.kill(os.getpid(), signal.SIGTERM)


def _wait_for_line(lines: queue.SimpleQueue[bytes], sessions: SessionPool) -> bytes:
    """Return the next request. Close the sandboxes if none comes within their lifetime."""
    while True:
        try:
            return lines.get(timeout=LIFE_S)
        except queue.Empty:
            sessions.close_idle()


def _run_cell(request: Request, sessions: SessionPool, *, clean: bool) -> int:
    """Run a cell with its own log and folder. Return its exit status."""
    cell = importlib.import_module(CLUSTER if request.cluster else CELL)
    with _direct_output(request.log):
        os.chdir(request.folder)
        try:
            if request.cluster:
                return int(cell.main(list(request.words)))
            return int(cell.main(list(request.words), sessions=sessions, clean=clean))
        except Exception:
            sys.stdout.flush()  # the last line of the log is the reason of a failure
            traceback.print_exc()
            return 1
        finally:
            os.chdir("/")  # the parent removes the folder


@contextlib.contextmanager
def _direct_output(log: str) -> Iterator[None]:
    """Send standard output and error to a file."""
    errors = os.dup(2)
    try:
        with Path(log).open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with Path(os.devnull).open("wb") as null:
            os.dup2(null.fileno(), 1)
        os.dup2(errors, 2)
        os.close(errors)
