"""Where builds between two releases come from: one interface over nightlies, stored artifacts and a build command.

What a source gives is a `Release` of the catalogue's own kind, so everything that can be done with a release
(environment, canary, probe) can be done with a build. Configured by the operator (`runners.environments.config`),
never by an issue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from runners.core.catalogue import Release
from runners.core.errors import ReprobotError

__all__ = ["Build", "Point", "Source", "Unbuildable"]


class Unbuildable(ReprobotError):
    """There is no such build: it does not compile, took too long, its wheels are gone. Says nothing about a bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A commit of the main branch (first parents), and how many commits of it lie before this one."""

    commit: str
    """Full sha."""
    ordinal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One build that a source can provide. ``name`` is unique along a trail: a version, or an abbreviated commit."""

    name: str
    point: Point
    seconds: float
    """What having it ready is expected to take; 0 where it is at hand."""
    source: str
    """Name of the source, in words."""
    day: date | None = None
    """When its commit was made: its dependencies are resolved as of then. None: as of today."""


class Source(Protocol):
    """A kind of place that builds come from."""

    @property
    def name(self) -> str:
        """In words, for progress and the comment: ``the nightlies at …``."""

    def builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """What it can provide for commits of ``line`` (oldest first), in that order.

        ``base`` is the version of the first: builds that have none of their own are named after it. A build is listed
        although it may turn out not to exist: `provide` says so.

        Raises:
            InfraError: the place cannot be reached.
        """

    def provide(self, build: Build) -> Release:
        """One of its builds, ready to be installed. Safe to call from several threads, and again.

        Raises:
            Unbuildable: there is none; every other build may still exist.
            InfraError: the place cannot be reached, the disk is full.
        """
