"""Builds that are published between releases, and releases themselves: what the catalogue or a page lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from packaging.version import Version

from runners.builds.history import History, Joined
from runners.builds.source import Build, Point, Unbuildable
from runners.core.catalogue import Release
from runners.core.errors import UserError

_LOCAL = re.compile(r"(?<![0-9a-z])g?([0-9a-f]{7,40})(?![0-9a-z])")

Tag = Callable[[str], str | None]
"""Version → tag by the project's custom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """See ``sources.Source``."""

    placed: tuple[tuple[Release, Point], ...]
    """Builds of the main branch, each with its commit."""
    name: str = "published builds"
    seconds: float = 30.0
    """Downloading and unpacking one."""

    def builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Those made from a commit of the line, under their own versions; all of them for an empty line."""
        inside = {point.commit for point in line}
        found = [(release, point) for release, point in self.placed if point.commit in inside or not line]
        found.sort(key=lambda pair: (pair[1].ordinal, pair[0].order))
        return tuple(
            Build(name=release.version, point=point, seconds=self.seconds, source=self.name)
            for release, point in found
        )

    def provide(self, build: Build) -> Release:
        """As listed: whether its wheels install is found out by installing them."""
        for release, _ in self.placed:
            if release.version == build.name:
                return release
        raise Unbuildable(f"{build.name} is not among the {self.name}")


def place(releases: Iterable[Release], history: History, tag: Tag) -> Listed:
    """The releases whose commit is known and lies on the main branch. Leaves are no points between others."""
    joined = ((release, join(release, history, tag)) for release in releases if release.source != "bundle")
    return Listed(placed=tuple((release, at.at) for release, at in joined if at is not None and not at.leaf))


def join(release: Release, history: History, tag: Tag) -> Joined | None:
    """Where a build's history joins main, told by its commit, one in its version, or its tag; None if none tells."""
    local = _LOCAL.search(release.version.partition("+")[2])
    for revision in (release.commit, local[1] if local else None, release.tag, tag(release.version)):
        if revision:
            try:
                return history.join(history.resolve(revision))
            except UserError:
                continue
    return None


def ordered(releases: Iterable[Release]) -> Listed:
    """Without a history: versions in their own order, with no commits."""
    ascending = sorted((r for r in releases if r.source != "bundle"), key=lambda release: Version(release.version))
    return Listed(placed=tuple((r, Point(commit=r.commit or r.version, ordinal=n)) for n, r in enumerate(ascending)))
