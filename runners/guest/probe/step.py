"""Run one step of a probe: start or fork the process, watch it until it ends or its time is over, build its record.

Only the supervisor imports this module.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import selectors
import signal
import time

from runners.guest import LAUNCHER
from runners.guest.probe.processes import act_as_step_user, list_processes, reap_dead, send_signal, start_process
from runners.guest.probe.streams import Capture

TYPE_CHECKING = False  # every probe pays for each import here
if TYPE_CHECKING:
    from typing import Any

    from runners.guest.probe.filters import Filtered
    from runners.guest.probe.processes import WaitResult
    from runners.guest.probe.session import SupervisorSession

MAX_CLAIM_BYTES = 48 * 1024
CPU_MARGIN_S = 2
"""Processor time of one process beyond the limit of the whole job, before the kernel kills it. A host that counts the
time ends the step earlier. Then the step can still be asked for its stack."""
ABORT_GRACE_S = 2.0
STACK_PAUSE_S = 0.2
STACK_SIGNAL = 64
"""``script/run.py`` prints its stack on this signal."""
READ_BYTES = 64 * 1024


class HostGone(Exception):
    """The host closed the supervisor's standard input."""


class ProbeStep:
    """One child process, its streams and its deadline."""

    def __init__(
        self, step: dict[str, Any], job: dict[str, Any], deadline: float, session: SupervisorSession
    ) -> None:
        self.argv: list[str] = step["argv"]
        self.script: bool = step.get("script", False)
        self.preload: list[str] | None = step.get("preload")
        self.own: list[str] = step.get("own", [])
        self.prints_stack: bool = step.get("prints_stack", False)
        self.timeout_s: float = step["timeout_s"]
        self.pipe: dict[str, Any] | None = step.get("pipe")
        self.filtered: Filtered | None = None
        self.piped: tuple[int, ...] = ()
        self.environment: dict[str, str] = job["environment"]
        self.late: dict[str, str] = job.get("late") or {}
        self.perturb: int | None = job.get("perturb")
        self.seed: int | None = job.get("seed")
        self.compile_functions: list[str] = job.get("compile_functions", [])
        self.reports_at_exit: list[str] = job.get("reports_at_exit", [])
        self.limits: dict[str, int] = job["limits"]
        self.cpu_s: float = job["cpu_s"]
        self.end_requested = False
        self.wall_left_s = deadline - time.monotonic()
        self.session = session
        self.selector = selectors.DefaultSelector()
        self.streams: dict[int, Capture] = {}
        self.forked = False
        self.not_forked = ""
        self.stack_output = Capture(0)
        self.threads: list[dict[str, Any]] = []

    def run(self) -> dict[str, Any]:
        called = time.monotonic()
        self.pid = self.start_child()
        began = time.monotonic()
        self.preload_s = began - called if self.forked else 0.0
        ended = self.watch_until(began + min(self.timeout_s, self.wall_left_s))
        timed_out = ended is None
        if timed_out:
            ended = self.capture_stacks()
        ended = self.session.end_processes(self.pid, ended)
        seconds = time.monotonic() - began
        self.drain_streams()
        return self.build_record(ended, timed_out, seconds)

    # ---------------------------------------------------------------------------------------- starting

    def start_child(self) -> int:
        limit = self.limits["output_bytes"]
        with act_as_step_user():  # the owner of a pipe may open it again, as /dev/stdout
            self.out, out_w = self.open_pipe(limit)
            self.err, err_w = self.open_pipe(limit)
        if self.pipe is not None:
            self.piped = (self.out, self.err) if self.pipe["merges"] else (self.out,)
            from runners.guest.probe import filters  # lazy: few probes need it

            with contextlib.suppress(re.error):  # a pattern that only the host's Python reads: unknown
                self.filtered = filters.Filtered(self.pipe, limit)
        self.errors = self.streams[self.err]
        self.claims, claims_w = self.open_pipe(MAX_CLAIM_BYTES)
        self.stacks, stacks_w = self.open_pipe(MAX_CLAIM_BYTES)
        self.selector.register(self.session.wakeups.reader, selectors.EVENT_READ)
        self.selector.register(self.session.host, selectors.EVENT_READ)
        ends = (out_w, err_w, claims_w, stacks_w)
        try:
            return self.fork_from_zygote(ends) or self.start_process(ends)
        finally:
            for writer in ends:
                os.close(writer)

    def open_pipe(self, limit: int) -> tuple[int, int]:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self.streams[reader] = Capture(limit)
        self.selector.register(reader, selectors.EVENT_READ)
        return reader, writer

    def fork_from_zygote(self, ends: tuple[int, ...]) -> int | None:
        """Return the process id. None if the step needs its own process; ``not_forked`` is the reason."""
        zygotes = self.session.zygotes
        if not self.script or self.preload is None or zygotes is None:
            return None
        preload = {
            "statements": self.preload,
            "own": self.own,
            "compile_functions": self.compile_functions,
            "reports_at_exit": self.reports_at_exit,
        }
        zygote = zygotes.get_zygote(self.argv[0], self.environment, self.limits, preload)
        if isinstance(zygote, str):
            self.not_forked = zygote
            return None
        conditions = self.late, self.perturb, self.seed, self.process_cpu_s
        pid = zygotes.fork_script(zygote, self.argv[1:], ends, conditions)
        if isinstance(pid, str):
            self.not_forked = pid
            return None
        self.forked = True
        return pid

    def start_process(self, ends: tuple[int, ...]) -> int:
        out, err, claims, stacks = ends
        environment = {**self.environment, **self.late}
        if self.perturb is not None:
            environment["MALLOC_PERTURB_"] = str(self.perturb)
        if not self.script:
            return start_process(self.argv, environment, self.limits, (out, err), cpu_s=self.process_cpu_s)
        numbers = f"{claims},{stacks},{'' if self.seed is None else self.seed}"
        functions = ",".join(self.compile_functions)
        argv = [self.argv[0], LAUNCHER, "script.run", numbers, functions, *self.argv[1:]]
        return start_process(argv, environment, self.limits, (out, err), (claims, stacks), self.process_cpu_s)

    @property
    def process_cpu_s(self) -> int:
        """Limit of one process in whole seconds, as the kernel requires."""
        return int(self.cpu_s) + CPU_MARGIN_S

    # ---------------------------------------------------------------------------------------- watching

    def watch_until(self, deadline: float) -> WaitResult | None:
        """Read the streams until the child ends. Return how it ended. None if its time is over."""
        ended = None
        while ended is None:
            left = deadline - time.monotonic()
            if left <= 0 or self.end_requested:
                self.end_requested = False
                return None
            for key, _ in self.selector.select(left):
                self.handle_input(key.fd)
            ended = reap_dead(self.pid)
        return ended

    def handle_input(self, descriptor: int) -> None:
        if descriptor == self.session.wakeups.reader:
            self.session.wakeups.clear()
        elif descriptor == self.session.host:
            if not os.read(self.session.host, 1):
                raise HostGone
            self.end_requested = True
        elif not self.read_stream(descriptor):
            self.selector.unregister(descriptor)

    def read_stream(self, descriptor: int) -> bool:
        """Read the available bytes. Return False at the end of the stream."""
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return True
        self.add_data(descriptor, data)
        return bool(data)

    def add_data(self, descriptor: int, data: bytes) -> None:
        self.streams[descriptor].add(data)
        if self.filtered is not None and descriptor in self.piped:
            self.filtered.add(descriptor, data)

    def capture_stacks(self) -> WaitResult | None:
        """Make a step whose time is over print its stacks. Return how it ended. None if it still runs.

        Some programs print their stack when they are made to crash. A script can print its stack without ending.
        Output from now on is not the testcase's.
        """
        if not self.prints_stack:
            return None
        self.stack_output = self.streams[self.err] = Capture(MAX_CLAIM_BYTES)
        if self.script:
            send_signal(self.pid, STACK_SIGNAL)
        from runners.guest.probe import hanging  # lazy: few probes need it

        self.threads = hanging.sample_threads(self.list_living())
        if self.script:
            send_signal(self.pid, STACK_SIGNAL)
            ended = self.watch_until(time.monotonic() + STACK_PAUSE_S)
            if ended is not None:
                return ended  # a collected process has lost its id, which may belong to another one now
        send_signal(self.pid, signal.SIGSEGV if self.script else signal.SIGABRT)
        return self.watch_until(time.monotonic() + ABORT_GRACE_S)

    def list_living(self) -> set[int]:
        spared = {os.getpid()} | (self.session.zygotes.pids if self.session.zygotes is not None else set())
        return list_processes() - spared if os.getpid() == 1 else {self.pid}

    def drain_streams(self) -> None:
        """Read the rest of the pipes. It is finite, because no writer is alive."""
        for descriptor in self.streams:
            with contextlib.suppress(BlockingIOError):
                while data := os.read(descriptor, READ_BYTES):
                    self.add_data(descriptor, data)
            os.close(descriptor)
        self.selector.close()

    def build_record(self, ended: WaitResult | None, timed_out: bool, seconds: float) -> dict[str, Any]:
        # Only the supervisor collects children, so the child cannot be lost.
        assert ended is not None
        status, usage = ended
        out, err = self.streams[self.out], self.errors
        used_up = not timed_out and self.used_up_cpu(status, usage)
        # Rows that a limit cut off are not counted: what the filters would leave of them is unknown.
        filtered = None if self.filtered is None or timed_out or used_up else self.filtered.finish()
        return {
            "argv": self.argv,
            "status": status,
            "timed_out": timed_out,
            "used_up": used_up,
            "seconds": round(seconds, 6),
            "maxrss_bytes": usage.ru_maxrss * 1024,
            "stdout": out.decode_text(),
            "stderr": err.decode_text(),
            "truncated": bool(out.dropped or err.dropped),
            "filtered": filtered,
            "forked": self.forked,
            "not_forked": self.not_forked,
            "claims": self.streams[self.claims].decode_text(),
            "stacks": self.streams[self.stacks].decode_text(),
            "last_words": self.stack_output.decode_text(),
            "threads": self.threads,
        }

    def used_up_cpu(self, status: int, usage: resource.struct_rusage) -> bool:
        """True if the kernel killed the child because of its processor time, by the signal and the kernel's count."""
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        return bool(killed and usage.ru_utime + usage.ru_stime >= self.cpu_s)
