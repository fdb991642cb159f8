"""Run one container: start its client and control group, send requests, and ensure that the container is gone."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from runners.core.errors import InfraError
from runners.core.protocol import Limits
from runners.sandbox import owner
from runners.sandbox.containers import engine_cgroup, skeleton
from runners.sandbox.containers.clients import kill_container, query_client, remove_container
from runners.sandbox.containers.command_line import (
    MAX_SENTRY_PROCESSES,
    SENTRY_PROCESSES,
    Invocation,
    build_command_line,
)
from runners.sandbox.containers.podman_store import hold_store, import_skeleton, is_container_left, unpack_skeleton
from runners.sandbox.contract import ANSWER_END, EngineReport, Mount, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time, seccomp, users
from runners.sandbox.process import DRAIN_S, build_report, close_streams, exchange_data, has_ended

ENGINE_FAILED = (125, 126, 127)
"""Exit codes of ``run`` for three failures: of the engine, of the execution, and of the look-up of the program."""
_GROUP_S = 20.0
"""Time limit for the engine to make the container's control group."""
ID_FILE = "id"
"""The file to which the client writes the container's id, in the directory of its run."""


def _find_system(invocation: Invocation, image_name: str) -> tuple[str, ...]:
    """Return the arguments that name the container's file system. Make the skeleton if it is needed and absent.

    Raises:
        InfraError: the engine refused the image.
    """
    if image_name or not invocation.own_store:
        return (image_name or import_skeleton(invocation.client),)
    return ("--rootfs", str(unpack_skeleton()))


@contextlib.contextmanager
def _write_profile(invocation: Invocation) -> Iterator[Path]:
    with owner.open_private_directory() as directory:
        path = directory / "seccomp.json"
        path.write_text(seccomp.render_profile(own_kernel=invocation.own_kernel))
        yield path


@contextlib.contextmanager
def _open_group(invocation: Invocation, name: str, spec: SandboxSpec) -> Iterator[cgroup.Cgroup | None]:
    if not invocation.grouped:
        yield None
        return
    group = cgroup.create_group(name, spec.limits)
    try:
        yield group
    finally:
        group.close()


@contextlib.contextmanager
def _start_client(
    invocation: Invocation, name: str, words: list[str], directory: Path, group: cgroup.Cgroup | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the client. On exit the container is gone, even if the client was killed.

    A removal needs two more clients, about half of the whole overhead. So a client that was started with ``--rm`` and
    ended normally is trusted, unless podman's folder shows that the container remains.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # the terminal sends Ctrl-C only to us
        env=invocation.variables,
        cwd=directory,  # if memory is used up, conmon writes a file named "oom" into its working directory
    )
    try:
        yield process
    finally:
        removes = "--rm" in words
        if not removes or _has_client_failed(process.poll()):
            if invocation.own_kernel and group is not None:
                group.kill()  # gVisor is killed by a message, which it answers late or never when it is busy
            if kill_container(invocation.client, name) and removes and not invocation.own_kernel:
                # A client that is killed during a removal leaves a half-removed container. (gVisor's client would
                # wait for a monitor that was killed with the group.)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(DRAIN_S)
            process.kill()
            process.wait()
            remove_container(invocation.client, name)
        elif invocation.own_store and is_container_left(directory / ID_FILE):
            remove_container(invocation.client, name)
        close_streams(process)


def _let_client_end(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a supervisor that waits for a job. Then the supervisor and the client end.

    This saves the two clients that kill and remove. A client that does not end is killed like any other.
    """
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(DRAIN_S)


def _has_client_failed(status: int | None) -> bool:
    """True if a status is about the client itself: still running, killed, or a failure of the engine."""
    return status is None or status < 0 or status in ENGINE_FAILED


@dataclass(slots=True)
class ContainerSession:
    """A running client. ``began`` is the time of its start, so the first request's time includes the start."""

    invocation: Invocation
    name: str
    process: subprocess.Popen[bytes]
    group: cgroup.Cgroup | None
    """Our own group around the container."""
    engine_group: engine_cgroup.EngineCgroup | None
    """The engine's group. It is read if we have no own group."""
    memory_bytes: int
    began: float | None
    cpu_s: float = 0.0
    """Processor time that was counted already."""
    waits: bool = False
    """True if the process has answered and waits for a further request."""

    def send_request(self, request: bytes, limits: Limits, *, closing: bytes = ANSWER_END) -> EngineReport:
        """See ``contract.SandboxSession``. With an empty ``closing`` this is the only request."""
        if self.began is not None:
            self._limit_sockets()
        began, self.began = self.began or time.monotonic(), None
        counters = self.group or self.engine_group
        exchange = exchange_data(
            self.process,
            stdin=request,
            stdout_limit=limits.output_bytes,
            wall_s=limits.wall_s,
            closing=closing,
            meter=cpu_time.start_meter(None if counters is None else counters.read_cpu_s, limits.cpu_s),
        )
        if counters is not None:
            self.cpu_s = cpu_time.count_time(counters.read_cpu_s, self.cpu_s)
        self.waits = exchange.answered
        oom = self._ran_out_of_memory(ended=not exchange.answered)
        if exchange.status is not None and _has_client_failed(exchange.status) and not oom:
            raise InfraError(f"{self.invocation.client[0]} run failed ({exchange.status}): {exchange.last_words}")
        return build_report(
            exchange,
            began=began,
            oom_limit=self.memory_bytes if oom else None,
            peak_bytes=0 if counters is None else counters.read_peak_bytes(),
        )

    def _limit_sockets(self) -> None:
        """Wait for the container's own group, and limit its socket buffers before the first request is sent."""
        deadline = time.monotonic() + _GROUP_S
        while self.group is not None and not has_ended(self.process) and time.monotonic() < deadline:
            if self.group.limit_sockets():
                return
            time.sleep(0.01)

    def _ran_out_of_memory(self, *, ended: bool) -> bool:
        """Ask the kernel's counter if there is one, and the engine for a container that has ended.

        podman 4.3 answers "false" although the kernel killed, even with version 2 of control groups.
        """
        if self.group is not None:
            return self.group.ran_out_of_memory()
        if self.engine_group is not None and self.engine_group.ran_out_of_memory():
            return True
        words = ("inspect", "--format", "{{.State.OOMKilled}}", self.name)
        return ended and query_client(self.invocation.client, *words) == "true"


def _add_room_for_gvisor(spec: SandboxSpec) -> SandboxSpec:
    """Raise the process limit for gVisor, because the limit includes gVisor's own threads.

    Under ptrace, gVisor keeps one thread for each pair of a guest process and a thread of gVisor's kernel that has
    run it. Twelve processes needed 217 to 240 threads. gVisor's kernel ends if the limit refuses a thread.
    """
    processes = min(spec.limits.processes**2, MAX_SENTRY_PROCESSES) + SENTRY_PROCESSES
    return replace(spec, limits=msgspec.structs.replace(spec.limits, processes=processes))


@contextlib.contextmanager
def start_container(invocation: Invocation, image_name: str, spec: SandboxSpec) -> Iterator[ContainerSession]:
    """Start a container and return its session. On exit, the container is gone.

    Raises:
        InfraError: the engine could not start the container, or the spec asks gVisor for a writable mount.
    """
    name = owner.make_name()
    if invocation.own_kernel and any(mount.writable for mount in spec.mounts):
        # A build is process 1 itself. Process 1 is root there, and gVisor writes as the host's root.
        raise InfraError("gVisor builds no compilers: take another engine for that (--sandbox podman)")
    spec = _add_room_for_gvisor(spec) if invocation.own_kernel else spec
    held = hold_store() if invocation.own_store else contextlib.nullcontext()
    with held, _start_held(invocation, image_name, spec, name) as session:
        yield session


@contextlib.contextmanager
def _start_held(invocation: Invocation, image_name: str, spec: SandboxSpec, name: str) -> Iterator[ContainerSession]:
    """Start a container in a store that no other process can remove meanwhile."""
    system = _find_system(invocation, image_name)
    host_paths = () if image_name else skeleton.list_host_mounts()
    began = time.monotonic()
    own_user = users.reserve_user() if invocation.own_store else contextlib.nullcontext(users.NOBODY)
    with _write_profile(invocation) as profile, _open_group(invocation, name, spec) as group, own_user as user:
        parent = None if group is None else group.parent_path
        with owner.open_private_directory() as directory:
            id_file = directory / ID_FILE
            engine_group = engine_cgroup.EngineCgroup(id_file) if invocation.counted and group is None else None
            words = build_command_line(
                invocation,
                spec,
                name=name,
                system=system,
                mounts=(*(Mount(host=Path(path), guest=path) for path in host_paths), *spec.mounts),
                profile=profile,
                parent=parent,
                user=user,
                cidfile=id_file if invocation.own_store or engine_group is not None else None,
            )
            following = contextlib.nullcontext() if engine_group is None else engine_group.follow_counters()
            with _start_client(invocation, name, words, directory, group) as process, following:
                session = ContainerSession(
                    invocation, name, process, group, engine_group, spec.limits.memory_bytes, began
                )
                yield session
                if session.waits:
                    _let_client_end(process)
