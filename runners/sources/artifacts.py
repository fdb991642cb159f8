"""Wheels that continuous integration stored for each commit: a folder or bucket with one place per commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.catalogue import Release
from runners.errors import InfraError
from runners.sources import Build, Point, Unbuildable
from runners.sources.links import Wheel, read_place


def build_name(base: str, first: Point, point: Point) -> str:
    """``3.10.0.post137+g1a2b3c4d5e6f``: 137 commits after 3.10.0, as a version that sorts between releases."""
    return f"{base.partition('+')[0]}.post{point.ordinal - first.ordinal}+g{point.commit[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """See ``sources.Source``. ``place`` holds ``{commit}`` or ``{short}`` where the sha goes."""

    place: str
    describe: Callable[[Build, Sequence[Wheel], str], Release]
    """A build, its wheels and their place → the release to install."""
    seconds: float = 30.0

    @property
    def name(self) -> str:
        return f"the artifacts in {self.place}"

    def builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Of a folder, those that are there; of an address, one for each commit until it is looked for."""
        return tuple(
            Build(name=build_name(base, line[0], point), point=point, seconds=self.seconds, source=self.name)
            for point in line
            if "://" in self.place or Path(self._at(point)).is_dir()
        )

    def provide(self, build: Build) -> Release:
        """The wheels of its commit."""
        place = self._at(build.point)
        try:
            wheels = read_place(place)
        except InfraError as reason:
            raise Unbuildable(f"there is nothing for {build.point.commit[:12]}: {reason}") from None
        return self.describe(build, wheels, place)

    def _at(self, point: Point) -> str:
        place = self.place.replace("{commit}", point.commit).replace("{short}", point.commit[:7])
        return place if "://" in place else str(Path(place).expanduser())
