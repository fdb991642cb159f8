"""Runs the steps of one probe and says, one JSON line per step, how each ended; in a session, of one after another.

Started by the host as ``python -I -S start.py`` with the interpreter it trusts, normally as process 1 of the
sandbox. Its standard input carries a line per job::

    {"files": {"repro.py": "..."}, "wall_s": 60.0, "cpu_s": 120.0, "environment": {"LANG": "C.UTF-8"},
     "steps": [{"argv": ["/opt/env/bin/python", "repro.py"], "timeout_s": 60.0, "script": true, "preload": null}],
     "limits": {"output_bytes": 65536, "file_bytes": 536870912}, "probe_file": null, "scratch": null}

and then stays open: its end of file means that the host is gone, and everything here dies; a blank line during a job
means that its processor time is up, which the host sees and we don't: the step ends as if it had timed out.

The records leave by the standard output, which no step inherits; a step's own streams are fields in them. The steps
are hostile: this process is made undumpable, so that they can neither trace it nor open its descriptors, and it
believes none of their words.

``script`` (the argv is an interpreter, a file, arguments) runs the file through ``script.py``, which leaves a record
of how it failed and can say where it hangs. With ``preload``, a list of import statements, it runs in a fork of a
process that has executed them already (``forking.py``), if one can be had and they reach none of its ``own``
modules; ``late`` variables, the ``perturb`` byte and the ``seed`` are then set in the fork.

A job with ``scratch``, the places that can be written, is one of a session: a blank line follows its records, and
the next job finds those places empty and no process of the last one alive. Where that can't be made sure of, the
last record's ``spent`` says why, and this process ends.

Standard library only, with its neighbours in this folder; Python 3.10 or newer.
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

TYPE_CHECKING = False  # each import here is a part of every probe: no `typing`, and none of what few probes need
if TYPE_CHECKING:
    from typing import Any

    from runners.guest import cleaning, forking, hanging
    from runners.guest.processes import (
        Ended,
        all_processes,
        apart,
        as_the_steps,
        kill,
        reap_all,
        reap_but,
        reap_dead,
        start,
    )
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out
    import cleaning
    from processes import all_processes, apart, as_the_steps, kill, reap_all, reap_but, reap_dead, start

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
MAX_JOB_BYTES = 64 * 1024 * 1024
MAX_PROBE_FILE_BYTES = 48 * 1024
MAX_CLAIM_BYTES = 48 * 1024
CPU_MARGIN_S = 2
"""By how much one process may go over the whole job's processor time before the kernel kills it: the host, where it
can count, is earlier, and then the step can be asked where it is."""
ABORT_GRACE_S = 2.0
STACK_PAUSE_S = 0.2
STACK_SIGNAL = 64
"""What ``script.py`` prints its stack on."""
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "script.py")
READ_BYTES = 64 * 1024


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


def read_job(descriptor: int, *, may_end: bool) -> dict[str, Any]:
    data = bytearray()
    while not data.endswith(b"\n") or data.isspace():  # blank: a word that came too late for the last job
        piece = os.read(descriptor, 1024 * 1024)
        if not piece and not data and may_end:
            raise HostGone
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


# ------------------------------------------------------------------------------------------- one step


class Step:
    """One child, its streams and its deadline."""

    def __init__(self, step: dict[str, Any], job: dict[str, Any], deadline: float, post: Post) -> None:
        self.argv: list[str] = step["argv"]
        self.script: bool = step.get("script", False)
        self.preload: list[str] | None = step.get("preload")
        self.own: list[str] = step.get("own", [])
        self.timeout_s: float = step["timeout_s"]
        self.environment: dict[str, str] = job["environment"]
        self.late: dict[str, str] = job.get("late") or {}
        self.perturb: int | None = job.get("perturb")
        self.seed: int | None = job.get("seed")
        self.limits: dict[str, int] = job["limits"]
        self.cpu_s: float = job["cpu_s"]
        self.told_to_end = False
        self.wall_left_s = deadline - time.monotonic()
        self.post = post
        self.selector = selectors.DefaultSelector()
        self.streams: dict[int, Capture] = {}
        self.forked = False
        self.not_forked = ""
        self.last = Capture(0)
        self.threads: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        called = time.monotonic()
        self.pid = self.launch()
        began = time.monotonic()
        self.preload_s = began - called if self.forked else 0.0
        ended = self.watch(began + min(self.timeout_s, self.wall_left_s))
        timed_out = ended is None
        if timed_out:
            ended = self.last_words()
        ended = self.post.end_all(self.pid, ended)
        seconds = time.monotonic() - began
        self.drain()
        return self.record(ended, timed_out, seconds)

    # ---------------------------------------------------------------------------------------- starting

    def launch(self) -> int:
        limit = self.limits["output_bytes"]
        with as_the_steps():  # whoever made a pipe may open it again, as /dev/stdout
            self.out, out_w = self.pipe(limit)
            self.err, err_w = self.pipe(limit)
        self.errors = self.streams[self.err]
        self.claims, claims_w = self.pipe(MAX_CLAIM_BYTES)
        self.stacks, stacks_w = self.pipe(MAX_CLAIM_BYTES)
        self.selector.register(self.post.wakeups.reader, selectors.EVENT_READ)
        self.selector.register(self.post.host, selectors.EVENT_READ)
        ends = (out_w, err_w, claims_w, stacks_w)
        try:
            return self.forked_from_zygote(ends) or self.started(ends)
        finally:
            for writer in ends:
                os.close(writer)

    def pipe(self, limit: int) -> tuple[int, int]:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self.streams[reader] = Capture(limit)
        self.selector.register(reader, selectors.EVENT_READ)
        return reader, writer

    def forked_from_zygote(self, ends: tuple[int, ...]) -> int | None:
        """The process id; None, with the reason in ``not_forked``, where it needs a process of its own."""
        zygotes = self.post.zygotes
        if not self.script or self.preload is None or zygotes is None:
            return None
        found = zygotes.find(self.argv[0], self.environment, self.limits, (self.preload, self.own))
        if isinstance(found, str):
            self.not_forked = found
            return None
        pid = zygotes.fork(found, self.argv[1:], ends, (self.late, self.perturb, self.seed, self.process_cpu_s))
        if isinstance(pid, str):
            self.not_forked = pid
            return None
        self.forked = True
        return pid

    def started(self, ends: tuple[int, ...]) -> int:
        out, err, claims, stacks = ends
        environment = {**self.environment, **self.late}
        if self.perturb is not None:
            environment["MALLOC_PERTURB_"] = str(self.perturb)
        if not self.script:
            return start(self.argv, environment, self.limits, (out, err), cpu_s=self.process_cpu_s)
        argv = [self.argv[0], SCRIPT, f"{claims},{stacks},{'' if self.seed is None else self.seed}", *self.argv[1:]]
        return start(argv, environment, self.limits, (out, err), (claims, stacks), self.process_cpu_s)

    @property
    def process_cpu_s(self) -> int:
        """For one process: whole seconds, as the kernel wants them."""
        return int(self.cpu_s) + CPU_MARGIN_S

    # ---------------------------------------------------------------------------------------- watching

    def watch(self, deadline: float) -> Ended | None:
        """Read the streams until the child ends (its status and usage), or its time does (None)."""
        ended = None
        while ended is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.told_to_end:
                self.told_to_end = False
                return None
            for key, _ in self.selector.select(left):
                self.serve(key.fd)
            ended = reap_dead(self.pid)
        return ended

    def serve(self, descriptor: int) -> None:
        if descriptor == self.post.wakeups.reader:
            self.post.wakeups.clear()
        elif descriptor == self.post.host:
            if not os.read(self.post.host, 1):
                raise HostGone
            self.told_to_end = True
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

    def last_words(self) -> Ended | None:
        """The time is up: where is it? Python, and LLVM's tools, print their stack when they are made to crash.

        A script does so before that, too, without ending; what it prints from now on is no output of the testcase.
        """
        if not self.explains_itself():
            return None
        self.last = self.streams[self.err] = Capture(MAX_CLAIM_BYTES)
        if self.script:
            kill(self.pid, STACK_SIGNAL)
        self.threads = look_at(self.living())
        if self.script:
            kill(self.pid, STACK_SIGNAL)
            ended = self.watch(time.monotonic() + STACK_PAUSE_S)
            if ended is not None:
                return ended  # by itself, meanwhile: it is collected, and its number may be another's by now
        kill(self.pid, signal.SIGSEGV if self.script else signal.SIGABRT)
        return self.watch(time.monotonic() + ABORT_GRACE_S)

    def living(self) -> set[int]:
        spared = {os.getpid()} | (self.post.zygotes.pids if self.post.zygotes is not None else set())
        return all_processes() - spared if os.getpid() == 1 else {self.pid}

    def explains_itself(self) -> bool:
        """Python prints its stack on a fatal signal when its fault handler is on; LLVM's programs do, always."""
        program = os.path.basename(self.argv[0])
        return program.startswith("iree-") or (
            program.startswith("python") and bool(self.environment.get("PYTHONFAULTHANDLER"))
        )

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
        out, err = self.streams[self.out], self.errors
        return {
            "argv": self.argv,
            "status": status,
            "timed_out": timed_out,
            "used_up": not timed_out and self.used_up(status, usage),
            "seconds": round(seconds, 6),
            "maxrss_bytes": usage.ru_maxrss * 1024,
            "stdout": out.text(),
            "stderr": err.text(),
            "truncated": bool(out.dropped or err.dropped),
            "forked": self.forked,
            "not_forked": self.not_forked,
            "claims": self.streams[self.claims].text(),
            "stacks": self.streams[self.stacks].text(),
            "last_words": self.last.text(),
            "threads": self.threads,
        }

    def used_up(self, status: int, usage: resource.struct_rusage) -> bool:
        """Whether the kernel killed it for its processor time: by the signal, and by the kernel's own account."""
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return bool(killed and usage.ru_utime + usage.ru_stime >= self.cpu_s)


if TYPE_CHECKING:
    look_at, zygotes_for = hanging.look_at, forking.Zygotes
else:

    def look_at(processes):
        import hanging

        return hanging.look_at(processes)

    def zygotes_for(places):
        import forking

        return forking.Zygotes(places)


class Post:
    """What outlives a step: the way to hear of children and of the host, and in a session the zygotes.

    ``scratch`` are the places that can be written. Only process 1 can spare a zygote and yet be sure that nothing
    else lives, so that elsewhere there are none; nor where being undumpable protects nobody (``apart``).
    """

    def __init__(self, host: int, scratch: list[str] | None) -> None:
        self.host = host
        self.wakeups = Wakeups()
        self.scratch = [] if scratch is None else scratch
        spares = scratch is not None and os.getpid() == 1 and not apart()
        self.zygotes = zygotes_for(self.scratch) if spares else None
        self.state = cleaning.state_of([os.getpid()], self.scratch)

    def end_all(self, child: int | None, ended: Ended | None) -> Ended | None:
        """Kill and collect everything but the zygotes; returns how ``child`` ended."""
        if self.zygotes is None or not self.zygotes.alive:
            return reap_all(child, ended)
        return reap_but(self.zygotes.pids, child, ended)

    def spent(self) -> str:
        """Make ready for another job; why that can't be done, or empty."""
        if self.zygotes is None:
            return "this is not process 1, or the steps have a user of their own"
        self.zygotes.forget_dead()
        try:
            cleaning.empty(self.scratch)
            state = cleaning.state_of([os.getpid()], self.scratch)
            zygotes = {cleaning.state_of([pid], self.scratch) for pid in self.zygotes.pids}
        except (cleaning.Unclean, OSError) as error:
            return str(error)[:500]
        if zygotes | {state} != {self.state}:
            return "priority, processors or scheduling were changed from inside"
        return f"left behind: {found[0][:200]}" if (found := cleaning.queues()) else ""

    def close(self) -> None:
        if self.zygotes is not None:
            self.zygotes.close()


def run_job(job: dict[str, Any], records: int, post: Post) -> None:
    # HOME, PATH and TMPDIR are the engine's; the rest of our own environment stays with us.
    inherited = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    job["environment"] = {**inherited, **job["environment"]}
    with as_the_steps():
        write_files(os.getcwd(), job["files"])
    deadline = time.monotonic() + job["wall_s"]
    for step in job["steps"]:
        one = Step(step, job, deadline, post)
        record = one.run()
        deadline += one.preload_s  # imports that are done once are on no probe's clock
        send(records, {"step": record})
        if record["status"] != 0 or record["timed_out"]:
            break
    probe_file = job.get("probe_file")
    with as_the_steps():
        found = read_probe_file(probe_file) if probe_file else None
    send(records, {"end": {"probe_file": found}})


def serve(host: int, records: int) -> None:
    """One job, or those of a session until the host ends it or this sandbox is spent."""
    post: Post | None = None
    while True:
        job = read_job(host, may_end=post is not None)
        send(records, {"started": {"pid": os.getpid(), "python": sys.version.split()[0]}})
        scratch = job.get("scratch")
        post = post or Post(host, scratch)
        run_job(job, records, post)
        if scratch is None:
            return
        spent = post.spent()
        send(records, {"session": {"spent": spent}})
        os.write(records, b"\n")
        if spent:
            post.close()
            return


def main() -> int:
    become_untouchable()
    host, records = take_streams()
    try:
        serve(host, records)
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
