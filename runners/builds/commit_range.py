"""List the builds between two versions in the order of their commits, with a prior weight for each build.

The range follows the main branch. A version on its own branch (a leaf) is represented by the commit where its branch
leaves main. Commits that the branch contains as cherry-picks have no weight, because the leaf contains them too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from packaging.version import InvalidVersion, Version

from runners.builds.history import BranchPoint, MainHistory
from runners.builds.published import FindTag, locate_release
from runners.builds.source import Build, BuildSource, Point, Unbuildable
from runners.core.bisection.commits import Prior
from runners.core.errors import UserError
from runners.core.packages.catalogue import Catalogue, Release
from runners.core.protocol import BuildRange, RangeBuild


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeEnd:
    """One end of a range, as the user named it."""

    text: str
    release: Release | None
    point: BranchPoint | None
    """None without a history."""

    @property
    def base(self) -> str:
        """A version from which the names of builds are derived."""
        if self.release is not None:
            return self.release.version
        try:
            return str(Version(self.text))
        except InvalidVersion:
            return "0"


@dataclass(slots=True)
class BuildRegistry:
    """Finds the source of a build by the build's name. `RangeFinder` adds the builds. Thread-safe."""

    _builds: dict[str, tuple[BuildSource, Build]] = field(default_factory=dict)
    _ready: dict[str, Release] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, offers: Iterable[tuple[BuildSource, Build]]) -> None:
        with self._lock:
            self._builds |= {build.name: (source, build) for source, build in offers}

    def __contains__(self, name: str) -> bool:
        return name in self._builds

    def provide_release(self, name: str) -> Release:
        """Return the build's release. Each build is provided once.

        Raises:
            Unbuildable: the build is not available, now or at an earlier call.
            InfraError: the build could not be fetched or made this time.
        """
        if name in self._failed:
            raise Unbuildable(self._failed[name])
        if name not in self._ready:
            source, build = self._builds[name]
            try:
                release = source.provide_release(build)
            except Unbuildable as reason:
                self._failed[name] = str(reason)
                raise
            self._ready[name] = replace(release, version=name)
        return self._ready[name]

    def list_expected_s(self) -> dict[str, float]:
        """Return the expected seconds until each build is ready. Builds that are ready or failed are left out."""
        with self._lock:
            known = list(self._builds.items())
        return {
            name: build.seconds for name, (_, build) in known if name not in self._ready and name not in self._failed
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFinder:
    """Finds the builds between two versions of one toolchain."""

    toolchain: str
    catalogue: Catalogue
    history: MainHistory | None
    sources: tuple[BuildSource, ...]
    find_tag: FindTag
    registry: BuildRegistry
    repository: str = ""
    """``owner/name`` for compare links."""
    prior: Prior | None = None
    over: str = ""
    """The part of the builds that their commits do not affect, in words. See ``config.BuildCommand``."""

    def find_end(self, text: str) -> RangeEnd:
        """Return the build or commit that a version, tag or commit means.

        Raises:
            UserError: no build or commit has that name.
        """
        release = self._find_release(text)
        if self.history is None:
            if release is None:
                self.catalogue.find(self.toolchain, text)
            return RangeEnd(text=text, release=release, point=None)
        if release is not None and (point := locate_release(release, self.history, self.find_tag)) is not None:
            return RangeEnd(text=text, release=release, point=point)
        commit = self.history.tags.get(self.find_tag(text) or text) or self.history.resolve(text)
        return RangeEnd(text=text, release=release, point=self.history.find_branch_point(commit))

    def _find_release(self, text: str) -> Release | None:
        try:
            found = self.catalogue.find(self.toolchain, text)
        except UserError:
            return None
        return None if found.source == "machine" else found

    def find_range(self, good: RangeEnd, bad: RangeEnd) -> BuildRange:
        """Return the builds between two ends, with their prior weights.

        Raises:
            UserError: both ends are the same commit, or no builds are between them.
            InfraError: a source or the history cannot be reached.
        """
        first, last = (good, bad) if _order_end(good) <= _order_end(bad) else (bad, good)
        has_history = first.point is not None and last.point is not None
        line, notes = (self._list_line(first, last), _describe_leaves(first, last)) if has_history else ((), ())
        offers = self._list_offers(line, first.base) if line else self._list_offers_by_version(first, last)
        if len(offers) < 2:
            raise UserError(
                f"there are no builds between {first.text} and {last.text}: configure where they are, or how to "
                "build them (docs/bisect.md)"
            )
        self.registry.add(offers)
        direction: Literal["introduced", "fixed"] = "introduced" if first is good else "fixed"
        return BuildRange(
            direction=direction,
            builds=self._weigh_builds(line, [build for _, build in offers], first, direction),
            repository=self.repository,
            notes=notes,
            over=self.over,
        )

    def _list_line(self, first: RangeEnd, last: RangeEnd) -> tuple[Point, ...]:
        """Return the points of main between two ends, inclusive."""
        assert self.history is not None
        assert first.point is not None
        assert last.point is not None
        if first.point.at == last.point.at:
            raise UserError(f"{first.text} and {last.text} have no commit of the main branch between them")
        return self.history.list_points(first.point.at, last.point.at)

    def _list_offers(self, line: Sequence[Point], base: str) -> list[tuple[BuildSource, Build]]:
        """Return, for each commit, the build that is ready first, with its source. The oldest commit is first."""
        best: dict[str, tuple[BuildSource, Build]] = {}
        for source in self.sources:
            for build in source.list_builds(line, base):
                known = best.get(build.point.commit)
                if known is None or build.seconds < known[1].seconds:
                    best[build.point.commit] = (source, build)
        return sorted(best.values(), key=lambda offer: offer[1].point.ordinal)

    def _list_offers_by_version(self, first: RangeEnd, last: RangeEnd) -> list[tuple[BuildSource, Build]]:
        """Return the published builds between two versions, ordered by version, for use without a history.

        None exist between versions of the machine itself, such as those of Python.
        """
        if first.release is None or last.release is None:
            return []
        low, high = first.release.order, last.release.order
        offers = [(source, build) for source in self.sources for build in source.list_builds((), first.base)]
        inside = [(source, build) for source, build in offers if low <= Version(build.name) <= high]
        return sorted(inside, key=lambda offer: Version(offer[1].name))

    def _weigh_builds(
        self,
        line: Sequence[Point],
        builds: Sequence[Build],
        first: RangeEnd,
        direction: Literal["introduced", "fixed"],
    ) -> tuple[RangeBuild, ...]:
        """Return the builds with their distance from the first one, in commits, and their weight.

        The weight is that of all commits since the previous build.
        """
        if not line:
            return tuple(RangeBuild(name=build.name, commits=number) for number, build in enumerate(builds))
        weights = self._weigh_commits(line, first, direction)
        start, found, before = builds[0].point.ordinal, [], builds[0].point.ordinal
        for build in builds:
            reach = range(before + 1, build.point.ordinal + 1)
            found.append(
                RangeBuild(
                    name=build.name,
                    commit=build.point.commit,
                    commits=build.point.ordinal - start,
                    weight=sum(weights.get(ordinal, 0.0) for ordinal in reach),
                )
            )
            before = build.point.ordinal
        return tuple(found)

    def _weigh_commits(
        self, line: Sequence[Point], first: RangeEnd, direction: Literal["introduced", "fixed"]
    ) -> Mapping[int, float]:
        """Return the prior weight of each commit after the first, by ordinal.

        A commit that the older leaf also contains gets 0.
        """
        assert self.history is not None
        assert first.point is not None
        points = line[1:]
        shared = self.history.find_cherry_picks(first.point, line[-1])
        weights = dict.fromkeys((point.commit for point in points), 1.0)
        if self.prior is not None:
            commits = self.history.list_commits(line[0].commit, line[-1].commit)
            weights = dict.fromkeys(weights, 0.0) | dict(self.prior(commits, direction))
        return {point.ordinal: 0.0 if point.commit in shared else weights[point.commit] for point in points}


def _order_end(end: RangeEnd) -> tuple[int, Version]:
    ordinal = end.point.at.ordinal if end.point is not None else 0
    return ordinal, Version(end.base)


def _describe_leaves(*ends: RangeEnd) -> tuple[str, ...]:
    return tuple(
        f"{end.text} is on a branch of its own ({end.point.ahead} commits): the search runs along the main branch, "
        f"from where it left it"
        for end in ends
        if end.point is not None and end.point.leaf
    )
