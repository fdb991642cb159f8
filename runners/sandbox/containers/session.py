"""One container while it runs: its client, its control group, what it is asked, and that it is gone afterwards."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from runners.core.errors import InfraError
from runners.core.protocol import Limits, OutOfMemory
from runners.sandbox import owner
from runners.sandbox.containers import engine_cgroup, skeleton
from runners.sandbox.containers.clients import client_says, kill, remove
from runners.sandbox.containers.command_line import SENTRY_PROCESSES, Way, command_line
from runners.sandbox.containers.podman_store import import_once, is_in_our_store, unpacked
from runners.sandbox.contract import ANSWER_END, EngineReport, Mount, SandboxSpec
from runners.sandbox.limits import cgroup, cpu_time, seccomp
from runners.sandbox.process import DRAIN_S, Conversation, close_streams, communicate, ended_by

ENGINE_FAILED = (125, 126, 127)
"""Exit codes of ``run`` for: the engine failed; the program can't be executed; there is no such program."""
ID_FILE = "id"
"""Where the client writes the container's id, in the directory of its run."""


def _system(way: Way, image_name: str) -> tuple[str, ...]:
    """The words that name what a container starts from; the skeleton is put there if it isn't yet.

    Raises:
        InfraError: the engine refused the image.
    """
    if image_name or not way.own_store:
        return (image_name or import_once(way.client),)
    return ("--rootfs", str(unpacked()))


@contextlib.contextmanager
def _profile(way: Way) -> Iterator[Path]:
    with owner.private_directory() as directory:
        path = directory / "seccomp.json"
        path.write_text(seccomp.profile_json(own_kernel=way.own_kernel))
        yield path


@contextlib.contextmanager
def _group(way: Way, name: str, spec: SandboxSpec) -> Iterator[cgroup.Cgroup | None]:
    if not way.grouped:
        yield None
        return
    group = cgroup.create(name, spec.limits)
    try:
        yield group
    finally:
        group.close()


@contextlib.contextmanager
def _client(
    way: Way, name: str, words: list[str], place: Path, group: cgroup.Cgroup | None
) -> Iterator[subprocess.Popen[bytes]]:
    """The running client; on the way out the container is gone, whatever became of the client.

    Removing costs two more clients, about half of the whole overhead; a client that was asked to remove (``--rm``)
    and came to its own end has done it, or left a folder that says otherwise.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours to handle
        env=way.variables,
        cwd=place,  # conmon writes a file named "oom" where it was started when the memory is used up
    )
    try:
        yield process
    finally:
        removes = "--rm" in words
        if not removes or _failed(process.poll()):
            if way.own_kernel and group is not None:
                group.kill()  # gVisor is asked to kill by a message, which it answers late or never when it is busy
            if kill(way.client, name) and removes and not way.own_kernel:
                # Killed while it removes, it would leave a container half removed. (gVisor's waits for a monitor
                # that was killed with the group.)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(DRAIN_S)
            process.kill()
            process.wait()
            remove(way.client, name)
        elif way.own_store and is_in_our_store(place / ID_FILE):
            remove(way.client, name)
        close_streams(process)


def _let_end(process: subprocess.Popen[bytes]) -> None:
    """The end of its input ends a supervisor that waits for a job, and with it the client: that saves the two clients
    which kill and remove. One that does not go is killed as any other."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(DRAIN_S)


def _failed(status: int | None) -> bool:
    """Whether a client's status is about itself: still running, killed, or the engine could not do it."""
    return status is None or status < 0 or status in ENGINE_FAILED


@dataclass(slots=True)
class ContainerSession:
    """A running client. ``began`` is when it was started: the first request's time includes that."""

    way: Way
    name: str
    process: subprocess.Popen[bytes]
    group: cgroup.Cgroup | None
    theirs: engine_cgroup.EnginesGroup | None
    memory_bytes: int
    began: float | None
    waits: bool = False
    """It answered, and waits for a further request."""

    def ask(self, request: bytes, limits: Limits, *, closing: bytes = ANSWER_END) -> EngineReport:
        """See ``contract.Session``; without ``closing`` it is the only request."""
        began, self.began = self.began or time.monotonic(), None
        counters = self.group or self.theirs
        talk = communicate(
            self.process,
            stdin=request,
            stdout_limit=limits.output_bytes,
            wall_s=limits.wall_s,
            closing=closing,
            watch=cpu_time.watch(None if counters is None else counters.cpu_s, limits.cpu_s),
        )
        self.waits = talk.answered
        oom = self._ran_out_of_memory(ended=not talk.answered)
        if talk.status is not None and _failed(talk.status) and not oom:
            raise InfraError(f"{self.way.client[0]} run failed ({talk.status}): {_last_words(talk)}")
        return EngineReport(
            ended=OutOfMemory(limit_bytes=self.memory_bytes) if oom else ended_by(talk),
            stdout=talk.stdout,
            stderr=talk.stderr,
            seconds=time.monotonic() - began,
            peak_bytes=0 if counters is None else counters.peak_bytes(),
            truncated=talk.truncated,
        )

    def _ran_out_of_memory(self, *, ended: bool) -> bool:
        """The kernel's word, where it was heard; else, of one that ended, the engine's (podman 4.3 says "false" where
        the kernel killed, on version 2 too)."""
        if self.group is not None:
            return self.group.ran_out_of_memory()
        if self.theirs is not None and self.theirs.ran_out_of_memory():
            return True
        return (
            ended and client_says(self.way.client, "inspect", "--format", "{{.State.OOMKilled}}", self.name) == "true"
        )


def _with_room_for_gvisor(spec: SandboxSpec) -> SandboxSpec:
    """It runs each process in another of its own, and has a thread for it, which the limit counts."""
    processes = 3 * spec.limits.processes + SENTRY_PROCESSES
    return replace(spec, limits=msgspec.structs.replace(spec.limits, processes=processes))


@contextlib.contextmanager
def open_session(way: Way, image_name: str, spec: SandboxSpec) -> Iterator[ContainerSession]:
    name = owner.new_name()
    if way.own_kernel and any(mount.writable for mount in spec.mounts):
        # What is built is process 1 itself, which is root there, and gVisor writes as the host's root.
        raise InfraError("gVisor builds no compilers: take another engine for that (--sandbox podman)")
    spec = _with_room_for_gvisor(spec) if way.own_kernel else spec
    system = _system(way, image_name)
    shown = () if image_name else tuple(Mount(host=Path(path), guest=path) for path in skeleton.host_mounts())
    began = time.monotonic()
    with _profile(way) as profile, _group(way, name, spec) as group:
        parent = None if group is None else group.parent_path
        with owner.private_directory() as place:
            theirs = engine_cgroup.EnginesGroup(place / ID_FILE) if way.counted and group is None else None
            words = command_line(
                way,
                spec,
                name=name,
                system=system,
                mounts=(*shown, *spec.mounts),
                profile=profile,
                parent=parent,
                cidfile=place / ID_FILE if way.own_store or theirs is not None else None,
            )
            following = contextlib.nullcontext() if theirs is None else theirs.watched()
            with _client(way, name, words, place, group) as process, following:
                session = ContainerSession(way, name, process, group, theirs, spec.limits.memory_bytes, began)
                yield session
                if session.waits:
                    _let_end(process)


def _last_words(talk: Conversation) -> str:
    return talk.stderr.decode("utf-8", "replace").strip()[-500:] or "it said nothing"
