"""Define the interface of every source of builds between two releases: nightlies, stored artifacts, a build command.

A source returns a `Release` like the catalogue's, so every function for a release (environment, canary, probe) works
for a build. The operator configures sources (`runners.environments.config`); an issue never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from runners.core.errors import ReprobotError
from runners.core.packages.catalogue import Release

__all__ = ["Build", "BuildSource", "Point", "Unbuildable"]


class Unbuildable(ReprobotError):
    """The build is not available: it does not compile, takes too long, or its wheels are gone.

    This is not evidence about a bug.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A commit of the main branch (first parents), with the number of the branch's commits before it."""

    commit: str
    """Full sha."""
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One build that a source can provide. ``name`` is unique in a range: a version, or an abbreviated commit."""

    name: str
    point: Point
    seconds: float
    """Expected time until the build is ready. 0 if it is."""
    source: str
    """Name of the source, in words."""
    day: date | None = None
    """Day of the commit. Dependencies are resolved as of this day. None: as of today."""


class BuildSource(Protocol):
    """A source of builds."""

    @property
    def name(self) -> str:
        """Name in words, for progress and the comment: ``the nightlies at …``."""

    def list_builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Return the builds for commits of ``line`` (oldest first), in that order.

        ``base`` is the version of the first commit. A build without its own version is named after it. If a listed
        build turns out not to exist, `provide_release` raises.

        Raises:
            InfraError: the source cannot be reached.
        """

    def provide_release(self, build: Build) -> Release:
        """Return one of the source's builds, ready to be installed. Thread-safe, and may be called again.

        Raises:
            Unbuildable: this build is not available; every other build may still exist.
            InfraError: the source cannot be reached, or the disk is full.
        """
