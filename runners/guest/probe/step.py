"""One step of a probe: started or forked, watched until it ends or its time does, and told of.

For the supervisor alone.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import time

from runners.guest import LAUNCHER
from runners.guest.probe.processes import all_processes, as_the_steps, kill, reap_dead, start
from runners.guest.probe.streams import Capture

TYPE_CHECKING = False  # as in the supervisor: each import here is a part of every probe
if TYPE_CHECKING:
    from typing import Any

    from runners.guest.probe.processes import Ended
    from runners.guest.probe.session import Session

MAX_CLAIM_BYTES = 48 * 1024
CPU_MARGIN_S = 2
"""By how much one process may go over the whole job's processor time before the kernel kills it: the host, where it
can count, is earlier, and then the step can be asked where it is."""
ABORT_GRACE_S = 2.0
STACK_PAUSE_S = 0.2
STACK_SIGNAL = 64
"""What ``script.py`` prints its stack on."""
READ_BYTES = 64 * 1024


class HostGone(Exception):
    """The host closed our standard input."""


class Step:
    """One child, its streams and its deadline."""

    def __init__(self, step: dict[str, Any], job: dict[str, Any], deadline: float, session: Session) -> None:
        self.argv: list[str] = step["argv"]
        self.script: bool = step.get("script", False)
        self.preload: list[str] | None = step.get("preload")
        self.own: list[str] = step.get("own", [])
        self.prints_stack: bool = step.get("prints_stack", False)
        self.timeout_s: float = step["timeout_s"]
        self.environment: dict[str, str] = job["environment"]
        self.late: dict[str, str] = job.get("late") or {}
        self.perturb: int | None = job.get("perturb")
        self.seed: int | None = job.get("seed")
        self.compile_functions: list[str] = job.get("compile_functions", [])
        self.reports_at_exit: list[str] = job.get("reports_at_exit", [])
        self.limits: dict[str, int] = job["limits"]
        self.cpu_s: float = job["cpu_s"]
        self.told_to_end = False
        self.wall_left_s = deadline - time.monotonic()
        self.session = session
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
        ended = self.session.end_all(self.pid, ended)
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
        self.selector.register(self.session.wakeups.reader, selectors.EVENT_READ)
        self.selector.register(self.session.host, selectors.EVENT_READ)
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
        zygotes = self.session.zygotes
        if not self.script or self.preload is None or zygotes is None:
            return None
        preload = {
            "statements": self.preload,
            "own": self.own,
            "compile_functions": self.compile_functions,
            "reports_at_exit": self.reports_at_exit,
        }
        found = zygotes.find(self.argv[0], self.environment, self.limits, preload)
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
        numbers = f"{claims},{stacks},{'' if self.seed is None else self.seed}"
        functions = ",".join(self.compile_functions)
        argv = [self.argv[0], LAUNCHER, "script.run", numbers, functions, *self.argv[1:]]
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
        if descriptor == self.session.wakeups.reader:
            self.session.wakeups.clear()
        elif descriptor == self.session.host:
            if not os.read(self.session.host, 1):
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
        """The time is up: where is it? Some programs print their stack when they are made to crash.

        A script does so before that, too, without ending; what it prints from now on is no output of the testcase.
        """
        if not self.prints_stack:
            return None
        self.last = self.streams[self.err] = Capture(MAX_CLAIM_BYTES)
        if self.script:
            kill(self.pid, STACK_SIGNAL)
        from runners.guest.probe import hanging  # few probes need it

        self.threads = hanging.look_at(self.living())
        if self.script:
            kill(self.pid, STACK_SIGNAL)
            ended = self.watch(time.monotonic() + STACK_PAUSE_S)
            if ended is not None:
                return ended  # by itself, meanwhile: it is collected, and its number may be another's by now
        kill(self.pid, signal.SIGSEGV if self.script else signal.SIGABRT)
        return self.watch(time.monotonic() + ABORT_GRACE_S)

    def living(self) -> set[int]:
        spared = {os.getpid()} | (self.session.zygotes.pids if self.session.zygotes is not None else set())
        return all_processes() - spared if os.getpid() == 1 else {self.pid}

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
