"""The contract that every engine keeps, and that the rest of ``runners`` relies on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from runners.protocol import Ended, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host directory or file shown read-only inside at ``guest`` (an absolute path)."""

    host: Path
    guest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """One process to start: nothing it doesn't list is visible to it."""

    argv: tuple[str, ...]
    """Paths as seen inside."""
    mounts: tuple[Mount, ...]
    environment: dict[str, str] = field(default_factory=dict)
    """The whole environment: engines add nothing but PATH and HOME."""
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)
    run_id: str = ""
    """Labels everything the engine creates, so that a sweep can find what a killed run left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """How it ended, from outside the guest's reach; ``stdout`` is the guest's, cut at the limit."""

    ended: Ended
    stdout: bytes
    seconds: float
    peak_bytes: int = 0
    truncated: bool = False


class Engine(Protocol):
    """A way to start one sandboxed process and wait for it."""

    @property
    def name(self) -> str: ...

    @property
    def guarantees(self) -> tuple[str, ...]:
        """What holds, in words, for `reprobot doctor` and SECURITY.md."""

    def unusable(self) -> str | None:
        """None when a self-test on this machine passed; else one sentence: why not, and the mend."""

    def run(self, spec: SandboxSpec) -> EngineReport:
        """Start, wait, kill everything, report.

        Raises:
            InfraError: the engine itself failed (never because of what the guest did).
        """
