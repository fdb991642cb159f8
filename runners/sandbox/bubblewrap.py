"""Run bubblewrap, hardened, as an engine without a daemon or an image.

Two weaknesses of plain ``bwrap`` were measured: as real root it keeps uid 0, so the process limit has no effect, and
its own environment is readable inside. So bwrap gets an empty environment, and each probe gets its own control group.
As root, bwrap does the mounts (the store may be below a private home). Then the process permanently becomes its own
user, without groups and capabilities. For an ordinary user, a user namespace has the same effect, and is closed
behind the process.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from runners.core.errors import InfraError
from runners.core.protocol import Limits
from runners.sandbox import owner, selftest
from runners.sandbox.bubblewrap_command import build_command_line
from runners.sandbox.containers import skeleton
from runners.sandbox.contract import (
    ANSWER_END,
    COUNTED,
    FILES,
    FILTERED,
    IDENTITY,
    LIMITED,
    NO_NETWORK,
    PROCESSES,
    EngineReport,
    SandboxSpec,
)
from runners.sandbox.limits import cgroup, cpu_time, seccomp, users
from runners.sandbox.process import build_report, close_streams, exchange_data

_START_S = 20.0
"""Time limit for bwrap's mounts."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """See ``contract.Engine``."""

    name: str = "bubblewrap"
    remaps_paths: bool = True
    image: str = ""
    own_system: bool = False

    @property
    def guarantees(self) -> tuple[str, ...]:
        return (
            NO_NETWORK,
            FILES,
            PROCESSES,
            IDENTITY,
            *(() if seccomp.find_problem() else (FILTERED,)),
            *(() if _find_cgroup_problem() else (COUNTED,)),
            LIMITED,
            "all its processes are killed with it, also if Reprobot is killed",
        )

    @property
    def limitations(self) -> tuple[str, ...]:
        losses = []
        if (problem := seccomp.find_problem()) is not None:
            losses.append(f"system calls are not filtered: {problem}")
        if (problem := _find_cgroup_problem()) is not None:
            losses.append(f"memory is limited per process only, and running out of it isn't recognised: {problem}")
            losses.append("processor time is limited per process only")
        return tuple(losses)

    def find_problem(self) -> str | None:
        if image := os.environ.get("REPROBOT_IMAGE"):
            return f"it shows the host's system and cannot run {image[:100]}: unset REPROBOT_IMAGE or use podman"
        return _find_problem()

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start the process, wait for its end, kill what remains, and report.

        Raises:
            InfraError: bwrap could not start the process.
        """
        with self.open_session(spec) as session:
            return session.send_request(spec.stdin, spec.limits, closing=b"")

    @contextlib.contextmanager
    def open_session(self, spec: SandboxSpec) -> Iterator[_BubblewrapSession]:
        """See ``contract.SessionEngine``."""
        group = None if _find_cgroup_problem() else cgroup.create_group(owner.make_name(), spec.limits)
        try:
            began = time.monotonic()
            with _start_bwrap(spec, group) as running:
                yield _BubblewrapSession(running, group, spec.limits.memory_bytes, began)
        finally:
            if group is not None:
                group.close()


@functools.cache
def _find_cgroup_problem() -> str | None:
    return cgroup.find_problem()


@functools.cache
def _find_problem() -> str | None:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: install the package bubblewrap"
    return selftest.find_problem(Bubblewrap())


class _RunningBwrap:
    """A running bwrap, and process 1 inside after its mounts are complete."""

    def __init__(self, process: subprocess.Popen[bytes], status: BinaryIO) -> None:
        self.process = process
        self.status = status
        self.inside: int | None = None
        """Descriptor of process 1 inside. Killing process 1 ends the whole namespace."""

    def join_group(self, group: cgroup.Cgroup | None) -> None:
        """Wait until bwrap has made process 1, and put process 1 into the group.

        Raises:
            InfraError: bwrap gave up, or process 1 was killed, before that.
        """
        ready, _, _ = select.select([self.status], [], [], _START_S)
        line = self.status.readline() if ready else b""
        if not line:
            raise InfraError(f"bwrap could not start: {self._read_last_words()}")
        pid = int(json.loads(line)["child-pid"])
        try:
            self.inside = os.pidfd_open(pid)
            if group is not None:
                group.add(pid)
        except ProcessLookupError:
            raise InfraError("bwrap could not start: its first process was killed") from None

    def has_executed(self) -> bool:
        """True if the process itself ran, and not only bwrap. Only then does bwrap report an exit code."""
        return b"exit-code" in self.status.read()

    def kill(self) -> None:
        if self.inside is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.inside, signal.SIGKILL)
            os.close(self.inside)
            self.inside = None
        self.process.kill()
        self.process.wait()
        close_streams(self.process)

    def _read_last_words(self) -> str:
        self.process.kill()
        assert self.process.stderr is not None
        return self.process.stderr.read().decode("utf-8", "replace").strip()[-500:]


_KERNEL_COMMAND = "/proc/cmdline"
"""The command line of the host's kernel: settings of the machine, and no business of a testcase."""


@contextlib.contextmanager
def _start_bwrap(spec: SandboxSpec, group: cgroup.Cgroup | None) -> Iterator[_RunningBwrap]:
    """Start bwrap, wait until its mounts are done and process 1 is in the group; kill everything on exit.

    Process 1 joins the group while it waits for a byte. From then on, the group counts everything that it does. bwrap
    itself must report the end of the process, so it is not limited.
    """
    with contextlib.ExitStack() as stack:
        status, status_w = _open_pipe(stack)
        gate_r, gate = _open_pipe(stack)
        texts = {**{f"/{name}": text for name, text in skeleton.ETC.items()}, _KERNEL_COMMAND: ""}
        files = {path: _write_data_file(stack, text.encode()) for path, text in texts.items()}
        options = {"--json-status-fd": status_w.fileno(), "--block-fd": gate_r.fileno()}
        if seccomp.find_problem() is None:
            options["--seccomp"] = _write_data_file(stack, seccomp.compile_program())
        words = [word for option, fd in options.items() for word in (option, str(fd))]
        process = subprocess.Popen(
            build_command_line(
                spec,
                user=stack.enter_context(users.reserve_user()),
                root=os.geteuid() == 0,
                grouped=group is not None,
                files=files,
                descriptors=words,
            ),
            executable=shutil.which("bwrap"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            pass_fds=(*options.values(), *files.values()),
            start_new_session=True,  # the terminal sends Ctrl-C only to us
        )
        running = _RunningBwrap(process, status)
        stack.callback(running.kill)
        status_w.close()
        running.join_group(group)
        gate.write(b"x")
        yield running


def _write_data_file(stack: contextlib.ExitStack, data: bytes) -> int:
    """Write data to a temporary file and return its descriptor, from which bwrap reads."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (the stack closes it)
    file.write(data)
    file.seek(0)
    return file.fileno()


def _open_pipe(stack: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reader, writer = os.pipe()
    return (
        stack.enter_context(open(reader, "rb", buffering=0)),
        stack.enter_context(open(writer, "wb", buffering=0)),
    )


@dataclass(slots=True)
class _BubblewrapSession:
    """A running bwrap. ``began`` is the time of its start, so the first request's time includes the start."""

    running: _RunningBwrap
    group: cgroup.Cgroup | None
    memory_bytes: int
    began: float | None
    cpu_s: float = 0.0
    """Processor time that was counted already."""

    def send_request(self, request: bytes, limits: Limits, *, closing: bytes = ANSWER_END) -> EngineReport:
        """See ``contract.SandboxSession``. With an empty ``closing`` this is the only request."""
        began, self.began = self.began or time.monotonic(), None
        exchange = exchange_data(
            self.running.process,
            stdin=request,
            stdout_limit=limits.output_bytes,
            wall_s=limits.wall_s,
            closing=closing,
            meter=cpu_time.start_meter(None if self.group is None else self.group.read_cpu_s, limits.cpu_s),
        )
        if self.group is not None:
            self.cpu_s = cpu_time.count_time(self.group.read_cpu_s, self.cpu_s)
        oom = self.group is not None and self.group.ran_out_of_memory()
        status = exchange.status
        if status is not None and not oom and (status < 0 or not self.running.has_executed()):
            raise InfraError(f"bwrap failed ({status}): {exchange.last_words}")
        return build_report(
            exchange,
            began=began,
            oom_limit=self.memory_bytes if oom else None,
            peak_bytes=self.group.read_peak_bytes() if self.group is not None else 0,
        )
