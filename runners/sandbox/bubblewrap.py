"""The engine without a daemon or an image: bubblewrap, hardened.

What plain ``bwrap`` gets wrong was measured: as real root it keeps uid 0 (so the process limit doesn't hold), and
its own environment is readable inside. So: nothing of ours in its environment; a control group of the probe's own;
and, as root, bwrap does the mounts (the store may lie below a private home) and the process then drops to "nobody"
with no groups and no capabilities, for good. As an ordinary user the same is had from a user namespace, which is
closed behind.
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
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from runners.core.errors import InfraError
from runners.core.protocol import Limits, OutOfMemory
from runners.sandbox import owner, selftest
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
    SCRATCH,
    WORK,
    EngineReport,
    Mount,
    SandboxSpec,
)
from runners.sandbox.limits import cgroup, cpu_time, seccomp
from runners.sandbox.process import close_streams, communicate, ended_by

NOBODY = "65534"
MAX_OPEN_FILES = 4096
MAX_PROCESSES_OF_NOBODY = 16384
"""A ceiling over all sandboxes of this machine, as for containers; a probe's own limit is its group's."""
_PROCESSORS = "/sys/devices/system/cpu"
"""Tells libraries how many processors there are (containers show all of /sys, read-only)."""
_START_S = 20.0
"""How long bwrap may take until its mounts are done."""


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
            *(() if seccomp.unavailable() else (FILTERED,)),
            *(() if _no_cgroup() else (COUNTED,)),
            LIMITED,
            "everything killed with it, also when we are killed",
        )

    @property
    def gives_up(self) -> tuple[str, ...]:
        losses = []
        if (why := seccomp.unavailable()) is not None:
            losses.append(f"system calls are not filtered: {why}")
        if (why := _no_cgroup()) is not None:
            losses.append(f"memory is limited per process only, and running out of it isn't recognised: {why}")
            losses.append("processor time is limited per process only")
        return tuple(losses)

    def unusable(self) -> str | None:
        if image := os.environ.get("REPROBOT_IMAGE"):
            return f"it shows the host's system and cannot run {image[:100]}: unset REPROBOT_IMAGE or use podman"
        return _unusable()

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start, wait, kill everything, report.

        Raises:
            InfraError: bwrap could not start the process.
        """
        with self.session(spec) as session:
            return session.ask(spec.stdin, spec.limits, closing=b"")

    @contextlib.contextmanager
    def session(self, spec: SandboxSpec) -> Iterator[_Session]:
        """See ``contract.Resident``."""
        group = None if _no_cgroup() else cgroup.create(owner.new_name(), spec.limits)
        try:
            began = time.monotonic()
            with _started(spec, group) as started:
                yield _Session(started, group, spec.limits.memory_bytes, began)
        finally:
            if group is not None:
                group.close()


@functools.cache
def _no_cgroup() -> str | None:
    return cgroup.unavailable()


@functools.cache
def _unusable() -> str | None:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: install the package bubblewrap"
    return selftest.failure(Bubblewrap())


# ------------------------------------------------------------------------------------------- command line


@functools.cache
def _options_of_bwrap() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout


def identity_options(*, root: bool, help_text: str) -> list[str]:
    """How it stops being us. ``--unshare-all`` isn't used: it adds a user namespace in which uid 0 stays outside."""
    if root:
        # What setpriv needs in order to drop the rest; gone once it has.
        return ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"]
    nested = ["--disable-userns"] if "--disable-userns" in help_text else []  # 0.8.0; seccomp refuses it as well
    return ["--unshare-user", "--uid", NOBODY, "--gid", NOBODY, *nested]


def mount_options(
    mounts: tuple[Mount, ...], files: dict[str, int], scratch_bytes: int, devices: tuple[str, ...] = ()
) -> list[str]:
    """The file system, in order: system, scratch, mounts; then everything but scratch is made read-only."""
    options: list[str] = []
    for path in skeleton.host_mounts():
        options += [*_parents(path), "--ro-bind", path, path]
    if Path(_PROCESSORS).exists():
        options += [*_parents(_PROCESSORS), "--ro-bind", _PROCESSORS, _PROCESSORS]
    for path, target in skeleton.host_links().items():
        options += ["--symlink", target, path]
    # POSIX queues exist with or without the mount, but only there can a session see that one was left behind.
    options += ["--proc", "/proc", "--dev", "/dev", "--mqueue", "/dev/mqueue"]
    for node in devices:
        options += ["--dev-bind-try", node, node]
    for path, descriptor in files.items():
        options += [*_parents(path), "--perms", "0444", "--ro-bind-data", str(descriptor), path]
    for path in SCRATCH:
        options += ["--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", path]
    for mount in mounts:
        bind = "--bind" if mount.writable else "--ro-bind"
        options += [*_parents(mount.guest), bind, str(mount.host), mount.guest]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"]


def _parents(path: str) -> list[str]:
    """Directories above a mount point, which bwrap would otherwise make accessible to root alone."""
    above = [str(parent) for parent in reversed(PurePosixPath(path).parents) if str(parent) != "/"]
    return [word for parent in above for word in ("--perms", "0755", "--dir", parent)]


def inner_argv(spec: SandboxSpec, *, root: bool, grouped: bool) -> list[str]:
    """The command inside: limits, then (as root) the drop to nobody, then the process."""
    limits = ["--core=0", f"--fsize={spec.limits.disk_bytes}", f"--nofile={MAX_OPEN_FILES}"]
    if grouped:
        limits += [f"--nproc={MAX_PROCESSES_OF_NOBODY}"]
    else:
        # The best there is without a control group: each process by itself, and processes counted per namespace.
        limits += [f"--data={spec.limits.memory_bytes}", f"--nproc={spec.limits.processes}"]
    drop = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    # Changing the user id clears the parent-death signal, hence "keep".
    become = ["/usr/bin/setpriv", *drop, "--no-new-privs", "--pdeathsig", "keep", "--"] if root else []
    return ["/usr/bin/prlimit", *limits, "--", *become, *spec.argv]


def environment_options(environment: dict[str, str]) -> list[str]:
    """The whole environment inside; PATH and HOME unless given."""
    whole = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", **environment}
    return ["--clearenv", *(word for name, value in whole.items() for word in ("--setenv", name, value))]


def command_line(
    spec: SandboxSpec, *, root: bool, grouped: bool, files: dict[str, int], descriptors: list[str]
) -> list[str]:
    """The whole command. ``files``: path inside → descriptor of its content; ``descriptors``: options that name
    other inherited descriptors."""
    return [
        "bwrap",
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--hostname", "sandbox", "--as-pid-1", "--die-with-parent", "--new-session"),
        *identity_options(root=root, help_text=_options_of_bwrap()),
        *environment_options(spec.environment),
        *mount_options(spec.mounts, files, spec.limits.disk_bytes, spec.devices),
        *("--chdir", WORK),
        *descriptors,
        "--",
        *inner_argv(spec, root=root, grouped=grouped),
    ]


# ------------------------------------------------------------------------------------------- running


def _data_file(stack: contextlib.ExitStack, data: bytes) -> int:
    """Data as the descriptor of an open file, from which bwrap reads."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  (the stack closes it)
    file.write(data)
    file.seek(0)
    return file.fileno()


class _Started:
    """A running bwrap, and process 1 inside it once its mounts are done."""

    def __init__(self, process: subprocess.Popen[bytes], status: BinaryIO) -> None:
        self.process = process
        self.status = status
        self.inside: int | None = None
        """Descriptor of process 1 inside: killing it ends the whole namespace."""

    def enter(self, group: cgroup.Cgroup | None) -> None:
        """Wait until bwrap has made process 1, and put that into its group.

        Raises:
            InfraError: bwrap gave up first.
        """
        ready, _, _ = select.select([self.status], [], [], _START_S)
        line = self.status.readline() if ready else b""
        if not line:
            raise InfraError(f"bwrap could not start: {self._last_words()}")
        pid = int(json.loads(line)["child-pid"])
        self.inside = os.pidfd_open(pid)
        if group is not None:
            group.add(pid)

    def executed(self) -> bool:
        """Whether the process itself ran (and not only bwrap): only then does bwrap report an exit code."""
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

    def _last_words(self) -> str:
        self.process.kill()
        assert self.process.stderr is not None
        return self.process.stderr.read().decode("utf-8", "replace").strip()[-500:]


@contextlib.contextmanager
def _started(spec: SandboxSpec, group: cgroup.Cgroup | None) -> Iterator[_Started]:
    """bwrap up to the point where its mounts are done and process 1 is in its group; killed on the way out.

    The group is joined while process 1 waits for a byte: from then on all it does is counted, and bwrap itself,
    which has to tell us how it ended, stays outside the limits.
    """
    with contextlib.ExitStack() as stack:
        status, status_w = _pipe(stack)
        gate_r, gate = _pipe(stack)
        files = {f"/{name}": _data_file(stack, text.encode()) for name, text in skeleton.ETC.items()}
        options = {"--json-status-fd": status_w.fileno(), "--block-fd": gate_r.fileno()}
        if seccomp.unavailable() is None:
            options["--seccomp"] = _data_file(stack, seccomp.program())
        words = [word for option, fd in options.items() for word in (option, str(fd))]
        process = subprocess.Popen(
            command_line(spec, root=os.geteuid() == 0, grouped=group is not None, files=files, descriptors=words),
            executable=shutil.which("bwrap"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            pass_fds=(*options.values(), *files.values()),
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        started = _Started(process, status)
        stack.callback(started.kill)
        status_w.close()
        started.enter(group)
        gate.write(b"x")
        yield started


def _pipe(stack: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reader, writer = os.pipe()
    return (
        stack.enter_context(open(reader, "rb", buffering=0)),
        stack.enter_context(open(writer, "wb", buffering=0)),
    )


@dataclass(slots=True)
class _Session:
    """A running bwrap. ``began`` is when it was started: the first request's time includes that."""

    started: _Started
    group: cgroup.Cgroup | None
    memory_bytes: int
    began: float | None

    def ask(self, request: bytes, limits: Limits, *, closing: bytes = ANSWER_END) -> EngineReport:
        """See ``contract.Session``; without ``closing`` it is the only request."""
        began, self.began = self.began or time.monotonic(), None
        talk = communicate(
            self.started.process,
            stdin=request,
            stdout_limit=limits.output_bytes,
            wall_s=limits.wall_s,
            closing=closing,
            watch=cpu_time.watch(None if self.group is None else self.group.cpu_s, limits.cpu_s),
        )
        oom = self.group is not None and self.group.ran_out_of_memory()
        if talk.status is not None and not oom and (talk.status < 0 or not self.started.executed()):
            words = talk.stderr.decode("utf-8", "replace").strip()[-500:]
            raise InfraError(f"bwrap failed ({talk.status}): {words or 'it said nothing'}")
        return EngineReport(
            ended=OutOfMemory(limit_bytes=self.memory_bytes) if oom else ended_by(talk),
            stdout=talk.stdout,
            stderr=talk.stderr,
            seconds=time.monotonic() - began,
            peak_bytes=self.group.peak_bytes() if self.group is not None else 0,
            truncated=talk.truncated,
        )
