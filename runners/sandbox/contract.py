"""Define the contract of every sandbox engine. The rest of ``runners`` relies only on this contract."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from runners.core.errors import InfraError
from runners.core.protocol import Ended, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host directory or file that the sandbox shows at ``guest`` (an absolute path), read-only by default.

    ``writable`` is only for builds of a toolchain, never for a testcase. Files written there remain on the host, and
    only the length of each file is limited.
    """

    host: Path
    guest: str
    writable: bool = False


SCRATCH = ("/work", "/tmp", "/dev/shm")
"""The only writable directories inside: private, empty at the start, each capped at ``Limits.disk_bytes``."""

WORK = "/work"
"""The initial working directory. An engine without its own file system uses a private temporary directory."""


MAX_ENVIRONMENT_BYTES = 64 * 1024
"""Limit on all names and values together. They are passed as arguments of at most 128 KiB each (execve(2))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """One process to start. The specification lists everything that the process sees."""

    argv: tuple[str, ...]
    """Program and arguments, with paths as seen inside."""
    mounts: tuple[Mount, ...]
    environment: dict[str, str] = field(default_factory=dict)
    """The whole environment. Engines add only PATH and HOME (``none`` also TMPDIR, container programs also HOSTNAME
    and TERM)."""
    stdin: bytes = b""
    """Written completely. The stream then remains open until the process ends, so its end means that the host is
    gone. A later blank line means that the processor time is used up. Then the process has ``cpu_time.GRACE_S``
    seconds to report its position before it is killed."""
    limits: Limits = field(default_factory=Limits)
    """Without ``cpu_s``, an engine does not limit processor time: builds of a compiler keep every processor busy."""
    devices: tuple[str, ...] = ()
    """Device files of one accelerator (``/dev/nvidia0`` …) that the process may use."""
    run_id: str = ""
    """Label of everything that the engine creates. It identifies the leftovers of a killed run."""

    def __post_init__(self) -> None:
        """
        Raises:
            InfraError: the environment is longer than `MAX_ENVIRONMENT_BYTES`.
        """
        size = sum(len(name) + len(value) for name, value in self.environment.items())
        if size > MAX_ENVIRONMENT_BYTES:
            raise InfraError(f"the environment has {size} characters: a sandbox takes {MAX_ENVIRONMENT_BYTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """How the process ended, seen from outside the guest's reach. ``stdout`` is the guest's, up to the limit."""

    ended: Ended
    stdout: bytes
    seconds: float
    peak_bytes: int = 0
    """Highest memory use by the engine's own counter, page cache included. 0 if the engine has no counter."""
    truncated: bool = False
    """True if the output exceeded ``Limits.output_bytes``. The process was killed at that point."""
    stderr: bytes = b""
    """The last bytes that the engine and the process wrote to standard error, for our own error messages."""


NO_NETWORK = "no network, not even the host's loopback"
FILES = "read-only system; /work, /tmp and /dev/shm private, empty and capped"
PROCESSES = "only its own processes are visible; no variable of the host's environment"
IDENTITY = "not root, no capabilities, no new privileges, no new user namespaces"
FILTERED = "dangerous system calls refused (seccomp)"
COUNTED = "memory, process and processor-time limits by control group; the kernel reports a reached limit"
LIMITED = "time and output are limited"
"""Guarantees of more than one engine, with the words of SECURITY.md."""


class Engine(Protocol):
    """A way to start one sandboxed process and wait for its end."""

    @property
    def name(self) -> str: ...

    @property
    def guarantees(self) -> tuple[str, ...]:
        """The engine's guarantees in words, for ``reprobot doctor`` and SECURITY.md."""

    @property
    def limitations(self) -> tuple[str, ...]:
        """The guarantees that this engine lacks on this machine, in words. Shown whenever not empty."""

    @property
    def remaps_paths(self) -> bool:
        """True if mounts appear at their ``guest`` paths. False if argv contains host paths instead."""

    @property
    def image(self) -> str:
        """Digest of the initial file system. Empty if it is the host's."""

    @property
    def own_system(self) -> bool:
        """True if the file system is an image with its own system instead of the host's ``/usr``."""

    def find_problem(self) -> str | None:
        """Return None if a self-test passed on this machine, else one sentence with the reason and the remedy."""

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start the process, wait for its end, kill what remains, and report.

        Raises:
            InfraError: the engine itself failed. Actions of the guest never cause this error.
        """


ANSWER_END = b"\n\n"
"""A blank line. It ends each answer of the process in a session."""


class SandboxSession(Protocol):
    """One sandboxed process that answers requests in sequence."""

    def send_request(self, request: bytes, limits: Limits) -> EngineReport:
        """Write the request and read the answer up to `ANSWER_END`.

        The time and output limits apply only to this request. ``ended`` is ``Exited(0)`` if an answer came. Any other
        value ends the session, ``OutOfMemory`` included.

        Raises:
            InfraError: the engine itself failed.
        """


@runtime_checkable
class SessionEngine(Protocol):
    """An engine that can also keep a sandbox open. Other engines start one sandbox for each probe."""

    def open_session(self, spec: SandboxSpec) -> AbstractContextManager[SandboxSession]:
        """Start the process; kill everything on exit.

        ``stdin`` of the spec is not written. ``wall_s`` limits the life of the whole session.

        Raises:
            InfraError: the engine could not start the process.
        """
