"""The builds between two versions, laid out as a trail: history, sources and prior put together.

A trail follows the main branch. A version from a branch of its own (a leaf) stands for the commit where its branch
leaves main; commits that the branch took over as cherry-picks are no suspects, because the leaf has them too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from packaging.version import InvalidVersion, Version

from runners.builds.history import History, Joined
from runners.builds.listed import Tag, join
from runners.builds.source import Build, Point, Source, Unbuildable
from runners.core.bisection.commits import Prior
from runners.core.catalogue import Catalogue, Release
from runners.core.errors import UserError
from runners.core.protocol import BuildRange, RangeBuild


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a search, as it was named."""

    text: str
    release: Release | None
    joined: Joined | None
    """None where no history is at hand."""

    @property
    def base(self) -> str:
        """A version to name builds after."""
        if self.release is not None:
            return self.release.version
        try:
            return str(Version(self.text))
        except InvalidVersion:
            return "0"


@dataclass(slots=True)
class Registry:
    """Which source provides a build, by its name. Filled when a trail is laid; safe for threads."""

    _builds: dict[str, tuple[Source, Build]] = field(default_factory=dict)
    _ready: dict[str, Release] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, offers: Iterable[tuple[Source, Build]]) -> None:
        with self._lock:
            self._builds |= {build.name: (source, build) for source, build in offers}

    def __contains__(self, name: str) -> bool:
        return name in self._builds

    def release(self, name: str) -> Release:
        """The build, provided once.

        Raises:
            Unbuildable: there is no such build, and there was none when it was last asked for.
            InfraError: it could not be fetched or built just now.
        """
        if name in self._failed:
            raise Unbuildable(self._failed[name])
        if name not in self._ready:
            source, build = self._builds[name]
            try:
                release = source.provide(build)
            except Unbuildable as reason:
                self._failed[name] = str(reason)
                raise
            self._ready[name] = replace(release, version=name)
        return self._ready[name]

    def seconds(self) -> dict[str, float]:
        """What each build that isn't ready is expected to take."""
        with self._lock:
            known = list(self._builds.items())
        return {
            name: build.seconds for name, (_, build) in known if name not in self._ready and name not in self._failed
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Lays trails for one toolchain."""

    toolchain: str
    catalogue: Catalogue
    history: History | None
    sources: tuple[Source, ...]
    tag: Tag
    registry: Registry
    repository: str = ""
    """``owner/name`` for compare links."""
    prior: Prior | None = None
    over: str = ""
    """What the commits of the builds did not make, in words; see ``config.BuildCommand``."""

    def end(self, text: str) -> End:
        """What a version, tag or commit stands for.

        Raises:
            UserError: there is neither a build nor a commit of that name.
        """
        release = self._release(text)
        if self.history is None:
            if release is None:
                self.catalogue.find(self.toolchain, text)
            return End(text=text, release=release, joined=None)
        if release is not None and (joined := join(release, self.history, self.tag)) is not None:
            return End(text=text, release=release, joined=joined)
        revision = self.tag(text) or text
        known = self.history.tags.get(revision)
        return End(text=text, release=release, joined=self.history.join(known or self.history.resolve(text)))

    def _release(self, text: str) -> Release | None:
        try:
            found = self.catalogue.find(self.toolchain, text)
        except UserError:
            return None
        return None if found.source == "machine" else found

    def lay(self, good: End, bad: End) -> BuildRange:
        """The builds between two ends, and what they are expected to tell.

        Raises:
            UserError: both are the same commit, or there are no builds between them.
            InfraError: a source or the history cannot be reached.
        """
        first, last = (good, bad) if _place(good) <= _place(bad) else (bad, good)
        line, notes = (self._line(first, last), _leaves(first, last)) if first.joined and last.joined else ((), ())
        offers = self._offers(line, first.base) if line else self._unplaced(first, last)
        if len(offers) < 2:
            what = f"there are no builds between {first.text} and {last.text}"
            raise UserError(f"{what}: configure where they are, or how to build them (docs/bisect.md)")
        self.registry.add(offers)
        direction: Literal["introduced", "fixed"] = "introduced" if first is good else "fixed"
        return BuildRange(
            direction=direction,
            builds=self._trail_builds(line, [build for _, build in offers], first, direction),
            repository=self.repository,
            notes=notes,
            over=self.over,
        )

    def _line(self, first: End, last: End) -> tuple[Point, ...]:
        assert self.history is not None
        assert first.joined is not None
        assert last.joined is not None
        if first.joined.at == last.joined.at:
            raise UserError(f"{first.text} and {last.text} have no commit of the main branch between them")
        return self.history.between(first.joined.at, last.joined.at)

    def _offers(self, line: Sequence[Point], base: str) -> list[tuple[Source, Build]]:
        """For each commit the build that is had soonest, oldest first."""
        best: dict[str, tuple[Source, Build]] = {}
        for source in self.sources:
            for build in source.builds(line, base):
                known = best.get(build.point.commit)
                if known is None or build.seconds < known[1].seconds:
                    best[build.point.commit] = (source, build)
        return sorted(best.values(), key=lambda offer: offer[1].point.ordinal)

    def _unplaced(self, first: End, last: End) -> list[tuple[Source, Build]]:
        """Without a history: the listed builds between two versions, in the order of versions."""
        assert first.release is not None
        assert last.release is not None
        low, high = first.release.order, last.release.order
        offers = [(source, build) for source in self.sources for build in source.builds((), first.base)]
        inside = [(source, build) for source, build in offers if low <= Version(build.name) <= high]
        return sorted(inside, key=lambda offer: Version(offer[1].name))

    def _trail_builds(
        self, line: Sequence[Point], builds: Sequence[Build], first: End, direction: Literal["introduced", "fixed"]
    ) -> tuple[RangeBuild, ...]:
        if not line:
            return tuple(RangeBuild(name=build.name, commits=number) for number, build in enumerate(builds))
        weights = self._weights(line, first, direction)
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

    def _weights(
        self, line: Sequence[Point], first: End, direction: Literal["introduced", "fixed"]
    ) -> Mapping[int, float]:
        """The prior of each commit after the first; nothing for one that the older leaf has as well."""
        assert self.history is not None
        assert first.joined is not None
        points = line[1:]
        shared = self.history.picked(first.joined, line[-1])
        weights = dict.fromkeys((point.commit for point in points), 1.0)
        if self.prior is not None:
            commits = self.history.commits(line[0].commit, line[-1].commit)
            weights = dict.fromkeys(weights, 0.0) | dict(self.prior(commits, direction))
        return {point.ordinal: 0.0 if point.commit in shared else weights[point.commit] for point in points}


def _place(end: End) -> tuple[int, Version]:
    ordinal = end.joined.at.ordinal if end.joined is not None else 0
    return ordinal, Version(end.base)


def _leaves(*ends: End) -> tuple[str, ...]:
    return tuple(
        f"{end.text} is on a branch of its own ({end.joined.ahead} commits): the search runs along the main branch, "
        f"from where it left it"
        for end in ends
        if end.joined is not None and end.joined.leaf
    )
