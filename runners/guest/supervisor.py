"""Runs the steps of one probe and says, one JSON line per step, how each ended.

Started by the host as ``python -I -S supervisor.py`` with the interpreter it trusts, normally as process 1 of the
sandbox. Its standard input carries one line, the job::

    {"files": {"repro.py": "..."}, "steps": [{"argv": ["/opt/env/bin/python", "repro.py"], "timeout_s": 60.0}],
     "wall_s": 60.0, "environment": {"LANG": "C.UTF-8"}, "limits": {"output_bytes": 65536, "file_bytes": 536870912},
     "probe_file": null}

and then stays open: its end of file means that the host is gone, and everything here dies. The records leave by the
standard output, which no step inherits; a step's own streams are fields in them. The steps are hostile: this process
is made undumpable, so that they can neither trace it nor open its descriptors, and it believes none of their words.

Standard library only, one file, Python 3.10 or newer.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import stat
import sys
import time
from typing import Any

Ended = tuple[int, "resource.struct_rusage"]
"""A wait status and what the child used."""

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
MAX_JOB_BYTES = 64 * 1024 * 1024
MAX_PROBE_FILE_BYTES = 48 * 1024
MAX_OPEN_FILES = 4096
ABORT_GRACE_S = 2.0
READ_BYTES = 64 * 1024
EXIT_CANNOT_START = 127
"""What a shell says, too, when the program of a step can't be executed."""


class JobRefused(Exception):
    """The job itself is wrong: reported as an ``error`` record, never blamed on the testcase."""


class Capture:
    """Keeps the head and the tail of a stream and counts what fell between."""

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

    def text(self) -> str:
        """The stream as valid text; one replacement character per byte that isn't UTF-8."""
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


class HostGone(Exception):
    """The host closed our standard input."""


# ------------------------------------------------------------------------------------------- this process


def become_untouchable() -> None:
    """Nobody of our uid may trace us or read our memory and descriptors; orphans become our children."""
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_DUMPABLE, 0), (PR_SET_CHILD_SUBREAPER, 1)):
        if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    # Process 1 is immune only to signals that it has no handler for; Python installs one for SIGINT.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def take_streams() -> tuple[int, int]:
    """Our streams on descriptors that no child inherits; 0 and 1 become the null device."""
    job, records = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.close(null)
    return job, records


def read_job(descriptor: int) -> dict[str, Any]:
    data = bytearray()
    while not data.endswith(b"\n"):
        piece = os.read(descriptor, 1024 * 1024)
        if not piece:
            raise JobRefused("the job ended before its newline")
        data += piece
        if len(data) > MAX_JOB_BYTES:
            raise JobRefused(f"the job is larger than {MAX_JOB_BYTES} bytes")
    job = json.loads(data)
    if not isinstance(job, dict):
        raise JobRefused("the job isn't an object")
    return job


def send(descriptor: int, record: dict[str, Any]) -> None:
    """One record, whole (a pipe may take less than it is given)."""
    data = memoryview(json.dumps(record).encode("ascii") + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]


# ------------------------------------------------------------------------------------------- files


def write_files(root: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        parts = name.split("/")
        if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise JobRefused(f"{name!r} is not a relative path below the working directory")
        path = os.path.join(root, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))


def read_probe_file(path: str) -> str | None:
    """What a hook left, cut at the limit; None when there is no regular file. Whatever it says is a claim."""
    try:
        # Neither a symbolic link nor a named pipe may lead us elsewhere or make us wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, MAX_PROBE_FILE_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------------------------------- processes


def lower_limit(kind: int, value: int) -> None:
    """As low as asked, or as low as it is already."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def start(argv: list[str], environment: dict[str, str], limits: dict[str, int], outputs: tuple[int, int]) -> int:
    """Fork and execute in a new session; ``outputs`` are the write ends for descriptors 1 and 2."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # Python ignores the first two, and that would be inherited
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        lower_limit(resource.RLIMIT_CORE, 0)
        lower_limit(resource.RLIMIT_FSIZE, limits["file_bytes"])
        lower_limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
        os.execvpe(argv[0], argv, environment)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"cannot start {argv[0]}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(EXIT_CANNOT_START)


def descendants() -> set[int]:
    """Process ids below us, for when we are not process 1 and ``kill(-1)`` would mean the whole machine."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                parents[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
    below, found = {os.getpid()}, set[int]()
    while True:
        layer = {pid for pid, parent in parents.items() if parent in below} - found
        if not layer:
            return found
        found |= layer
        below |= layer


def kill_others() -> None:
    """Everything but this process. Process 1 does it in one system call that no fork can outrun."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    for pid in descendants():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap_all(child: int | None, ended: Ended | None) -> Ended | None:
    """Kill and collect until no child is left; returns ``(status, usage)`` of ``child``."""
    while True:
        kill_others()
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return ended
        if pid == child:
            ended = (status, usage)


def reap_dead(child: int) -> Ended | None:
    """Collect what has died so far; ``(status, usage)`` when ``child`` is among it."""
    ended: Ended | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = (status, usage)
    return ended


# ------------------------------------------------------------------------------------------- one step


class Step:
    """One child, its two streams and its deadline."""

    def __init__(
        self, step: dict[str, Any], job: dict[str, Any], deadline: float, wakeups: Wakeups, host: int
    ) -> None:
        self.argv: list[str] = step["argv"]
        self.environment: dict[str, str] = job["environment"]
        self.limits: dict[str, int] = job["limits"]
        self.deadline = min(deadline, time.monotonic() + step["timeout_s"])
        self.wakeups = wakeups
        self.host = host
        self.selector = selectors.DefaultSelector()
        self.streams: dict[int, Capture] = {}

    def run(self) -> dict[str, Any]:
        began = time.monotonic()
        self.pid = self.launch()
        ended = self.watch(self.deadline)
        timed_out = ended is None
        if timed_out and self.explains_itself():
            os.kill(self.pid, signal.SIGABRT)
            ended = self.watch(time.monotonic() + ABORT_GRACE_S)
        ended = reap_all(self.pid, ended)
        seconds = time.monotonic() - began
        self.drain()
        return self.record(ended, timed_out, seconds)

    def launch(self) -> int:
        (out_r, out_w), (err_r, err_w) = os.pipe(), os.pipe()
        for reader in (out_r, err_r):
            os.set_blocking(reader, False)
            self.streams[reader] = Capture(self.limits["output_bytes"])
            self.selector.register(reader, selectors.EVENT_READ)
        self.selector.register(self.wakeups.reader, selectors.EVENT_READ)
        self.selector.register(self.host, selectors.EVENT_READ)
        try:
            return start(self.argv, self.environment, self.limits, (out_w, err_w))
        finally:
            for writer in (out_w, err_w):
                os.close(writer)

    def explains_itself(self) -> bool:
        """Python prints its stack on SIGABRT when its fault handler is on."""
        program = os.path.basename(self.argv[0])
        return program.startswith("python") and bool(self.environment.get("PYTHONFAULTHANDLER"))

    def watch(self, deadline: float) -> Ended | None:
        """Read both streams until the child ends (its status and usage) or the time does (None)."""
        ended = None
        while ended is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in self.selector.select(left):
                self.serve(key.fd)
            ended = reap_dead(self.pid)
        return ended

    def serve(self, descriptor: int) -> None:
        if descriptor == self.wakeups.reader:
            self.wakeups.clear()
        elif descriptor == self.host:
            if not os.read(self.host, 1):
                raise HostGone
        elif not self.read(descriptor):
            self.selector.unregister(descriptor)

    def read(self, descriptor: int) -> bool:
        """False at the end of the stream."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        self.streams[descriptor].add(data)
        return bool(data)

    def drain(self) -> None:
        """What is left in the pipes: finite, since no writer lives any more."""
        for descriptor, capture in self.streams.items():
            with contextlib.suppress(BlockingIOError):
                while data := os.read(descriptor, READ_BYTES):
                    capture.add(data)
            os.close(descriptor)
        self.selector.close()

    def record(self, ended: Ended | None, timed_out: bool, seconds: float) -> dict[str, Any]:
        # The child can't be lost: only we collect children.
        assert ended is not None
        status, usage = ended
        out, err = self.streams.values()
        return {
            "argv": self.argv,
            "status": status,
            "timed_out": timed_out,
            "seconds": round(seconds, 6),
            "maxrss_bytes": usage.ru_maxrss * 1024,
            "stdout": out.text(),
            "stderr": err.text(),
            "truncated": bool(out.dropped or err.dropped),
        }


def run_job(job: dict[str, Any], records: int, host: int) -> None:
    # HOME, PATH and TMPDIR are the engine's; the rest of our own environment stays with us.
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    job["environment"] = {**inherited, **job["environment"]}
    write_files(os.getcwd(), job["files"])
    wakeups = Wakeups()
    deadline = time.monotonic() + job["wall_s"]
    for step in job["steps"]:
        record = Step(step, job, deadline, wakeups, host).run()
        send(records, {"step": record})
        if record["status"] != 0 or record["timed_out"]:
            break
    probe_file = job.get("probe_file")
    send(records, {"end": {"probe_file": read_probe_file(probe_file) if probe_file else None}})


def main() -> int:
    become_untouchable()
    host, records = take_streams()
    try:
        job = read_job(host)
        send(records, {"started": {"pid": os.getpid(), "python": sys.version.split()[0]}})
        run_job(job, records, host)
    except HostGone:
        reap_all(None, None)
        return 1
    except (JobRefused, OSError, ValueError, KeyError) as error:
        reap_all(None, None)
        send(records, {"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
