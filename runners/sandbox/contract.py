"""The contract that every engine keeps, and that the rest of ``runners`` relies on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from runners.core.errors import InfraError
from runners.core.protocol import Ended, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host directory or file shown inside at ``guest`` (an absolute path), read-only.

    ``writable`` is for builds of the toolchain alone, never for a testcase: what is written there stays, and only
    the length of each file is limited.
    """

    host: Path
    guest: str
    writable: bool = False


SCRATCH = ("/work", "/tmp", "/dev/shm")
"""The only places that can be written inside: private, empty at the start, each capped at ``Limits.disk_bytes``."""

WORK = "/work"
"""Where the process starts. An engine that has no file system of its own uses a private temporary directory."""


MAX_ENVIRONMENT_BYTES = 64 * 1024
"""Names and values together: engines pass them on as arguments, which the kernel limits (128 KiB each, execve(2))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """One process to start: nothing it doesn't list is visible to it."""

    argv: tuple[str, ...]
    """Paths as seen inside."""
    mounts: tuple[Mount, ...]
    environment: dict[str, str] = field(default_factory=dict)
    """The whole environment: engines add nothing but PATH and HOME (``none`` also TMPDIR, container programs also
    HOSTNAME and TERM)."""
    stdin: bytes = b""
    """Written whole; the stream then stays open until the process ends, so that its end means the host is gone.
    A blank line on it later means that the processor time is up: the process has ``meter.GRACE_S`` to say where it is
    before it is killed."""
    limits: Limits = field(default_factory=Limits)
    """Without ``cpu_s`` an engine limits no processor time (builds of a compiler keep every processor busy)."""
    devices: tuple[str, ...] = ()
    """Device files of one accelerator (``/dev/nvidia0`` …), usable inside; none by default."""
    run_id: str = ""
    """Labels everything the engine creates, so that a sweep can find what a killed run left."""

    def __post_init__(self) -> None:
        """
        Raises:
            InfraError: the environment is longer than any that we would make.
        """
        size = sum(len(name) + len(value) for name, value in self.environment.items())
        if size > MAX_ENVIRONMENT_BYTES:
            raise InfraError(f"the environment has {size} characters: a sandbox takes {MAX_ENVIRONMENT_BYTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """How it ended, from outside the guest's reach; ``stdout`` is the guest's, cut at the limit."""

    ended: Ended
    stdout: bytes
    seconds: float
    peak_bytes: int = 0
    """Highest memory use that the engine's own counter saw (page cache included); 0 where it has none."""
    truncated: bool = False
    """Output went over ``Limits.output_bytes``: the process was killed then."""
    stderr: bytes = b""
    """The last words of the engine and of the process itself: for our own error messages."""


NO_NETWORK = "no network, not even the host's loopback"
FILES = "read-only system; /work, /tmp and /dev/shm private, empty and capped"
PROCESSES = "its own processes only; nothing of the host's environment"
IDENTITY = "not root, no capabilities, no new privileges, no new user namespaces"
FILTERED = "dangerous system calls refused (seccomp)"
COUNTED = "memory, process and processor-time limits by control group; running out is not the testcase's word"
LIMITED = "time and output are limited"
"""What more than one engine guarantees, in the same words."""


class Engine(Protocol):
    """A way to start one sandboxed process and wait for it."""

    @property
    def name(self) -> str: ...

    @property
    def guarantees(self) -> tuple[str, ...]:
        """What holds, in words, for `reprobot doctor` and SECURITY.md."""

    @property
    def gives_up(self) -> tuple[str, ...]:
        """What does *not* hold here, in words: shown whenever it isn't empty."""

    @property
    def remaps_paths(self) -> bool:
        """Whether mounts appear at their ``guest`` paths. False: there are none, and argv names host paths."""

    @property
    def image(self) -> str:
        """Digest of the file system the process starts from; empty where that is the host's."""

    @property
    def own_system(self) -> bool:
        """Whether that is an image with a system of its own, rather than the host's ``/usr``."""

    def unusable(self) -> str | None:
        """None when a self-test on this machine passed; else one sentence: why not, and the mend."""

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start, wait, kill everything, report.

        Raises:
            InfraError: the engine itself failed (never because of what the guest did).
        """


ANSWER_END = b"\n\n"
"""What the process in a session ends each answer with: a blank line."""


class Session(Protocol):
    """One sandboxed process that answers one request after another."""

    def ask(self, request: bytes, limits: Limits) -> EngineReport:
        """Write the request and read until `ANSWER_END`; of the limits, times and output are this request's own.

        ``ended`` is ``Exited(0)`` when it answered; anything else ends the session, also running out of memory.

        Raises:
            InfraError: the engine itself failed.
        """


@runtime_checkable
class Resident(Protocol):
    """An engine that can also keep a sandbox open. The others start one per probe."""

    def session(self, spec: SandboxSpec) -> AbstractContextManager[Session]:
        """Start; kill everything on the way out. ``stdin`` of the spec is not written, ``wall_s`` bounds it all.

        Raises:
            InfraError: the engine could not start the process.
        """
