"""Provide published builds: releases and nightlies of the catalogue or of a page, in the order of their commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from runners.builds.history import BranchPoint, MainHistory
from runners.builds.source import Build, Point, Unbuildable
from runners.core.errors import UserError
from runners.core.packages.catalogue import Release

_LOCAL = re.compile(r"(?<![0-9a-z])g?([0-9a-f]{7,40})(?![0-9a-z])")

FindTag = Callable[[str], str | None]
"""Version → tag by the project's convention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSource:
    """See ``source.BuildSource``."""

    placed: tuple[tuple[Release, Point], ...]
    """Builds of the main branch, each with its commit."""
    name: str = "published builds"
    seconds: float = 30.0
    """Expected time to download and unpack one build."""

    def list_builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Return the builds from commits of the line, under their own versions. All builds for an empty line."""
        inside = {point.commit for point in line}
        found = [(release, point) for release, point in self.placed if point.commit in inside or not line]
        found.sort(key=lambda pair: (pair[1].ordinal, pair[0].order))
        return tuple(
            Build(name=release.version, point=point, seconds=self.seconds, source=self.name)
            for release, point in found
        )

    def provide_release(self, build: Build) -> Release:
        """Return the release as listed. Only an installation shows whether its wheels can be installed."""
        for release, _ in self.placed:
            if release.version == build.name:
                return release
        raise Unbuildable(f"{build.name} is not among the {self.name}")


def place_releases(releases: Iterable[Release], history: MainHistory, find_tag: FindTag) -> PublishedSource:
    """Return the releases with a known commit on the main branch. Leaves are left out: they are on no line."""
    located = (
        (release, locate_release(release, history, find_tag)) for release in releases if release.source != "bundle"
    )
    return PublishedSource(
        placed=tuple((release, point.at) for release, point in located if point is not None and not point.leaf)
    )


def locate_release(release: Release, history: MainHistory, find_tag: FindTag) -> BranchPoint | None:
    """Return a release's branch point, or None.

    The release's commit is tried first, then the commit in its version, then its tag.
    """
    local = _LOCAL.search(release.version.partition("+")[2])
    for revision in (release.commit, local[1] if local else None, release.tag, find_tag(release.version)):
        if revision:
            try:
                return history.find_branch_point(history.resolve(revision))
            except UserError:
                continue
    return None


def order_by_version(releases: Iterable[Release]) -> PublishedSource:
    """Return the releases ordered by version, for a toolchain without a history."""
    ascending = sorted((r for r in releases if r.source != "bundle"), key=lambda release: release.order)
    return PublishedSource(
        placed=tuple((r, Point(commit=r.commit or r.version, ordinal=n)) for n, r in enumerate(ascending))
    )
