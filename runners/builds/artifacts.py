"""Wheels that continuous integration stored for each commit: a folder or bucket with one place per commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from runners.builds.source import Build, Point, Unbuildable
from runners.core.catalogue import Release
from runners.core.errors import InfraError
from runners.environments.wheel_sources import PYTHONS, Wheel, fetch_page, links_in, read_name


def build_name(base: str, first: Point, point: Point) -> str:
    """``3.10.0.post137+g1a2b3c4d5e6f``: 137 commits after 3.10.0, as a version that sorts between releases.

    That ``base`` is itself a post- or development release is left out: no second one may follow in a version.
    """
    version = Version(base)
    stem = version.base_version + "".join(map(str, version.pre or ()))
    return f"{stem}.post{point.ordinal - first.ordinal}+g{point.commit[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """See ``sources.Source``. ``place`` holds ``{commit}`` or ``{short}`` where the sha goes."""

    place: str
    toolchain: str
    packages: tuple[str, ...]
    """What a build must have, all at one version; the first names it."""
    get: Callable[[str], str] = fetch_page
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
            names = (
                list(links_in(self.get(place))) if "://" in place else sorted(p.name for p in Path(place).iterdir())
            )
        except (InfraError, OSError) as reason:
            raise Unbuildable(f"there is nothing for {build.point.commit[:12]}: {reason}") from None
        return release_of(build, names, place, toolchain=self.toolchain, packages=self.packages)

    def _at(self, point: Point) -> str:
        place = self.place.replace("{commit}", point.commit).replace("{short}", point.commit[:7])
        return place if "://" in place else str(Path(place).expanduser().absolute())


def release_of(build: Build, names: Iterable[str], place: str, *, toolchain: str, packages: Sequence[str]) -> Release:
    """The release that a place with these files gives: any version, as long as all packages are there.

    Raises:
        Unbuildable: one is missing, or is there for no Python of ours.
    """
    wheels = [wheel for name in names if (wheel := read_name(name)) is not None]
    found = {package: _newest(wheels, str(canonicalize_name(package))) for package in packages}
    missing = [package for package, wheel in found.items() if wheel is None]
    if missing:
        raise Unbuildable(f"the build of {build.point.commit[:12]} has no wheel of {', '.join(missing)}")
    every = [wheel for wheel in found.values() if wheel is not None]
    pythons = tuple(minor for minor in PYTHONS if all(wheel.runs_on(minor) for wheel in every))
    if not pythons:
        raise Unbuildable(f"the wheels of {build.point.commit[:12]} run on no CPython of {', '.join(PYTHONS)} here")
    return Release(
        toolchain=toolchain,
        version=build.name,
        released=build.day or datetime.now(UTC).date(),
        distributions=tuple(f"{package}=={wheel.version}" for package, wheel in zip(packages, every, strict=True)),
        pythons=pythons,
        prerelease=True,
        commit=build.point.commit,
        source="wheels",
        links=(place,),
    )


def _newest(wheels: Sequence[Wheel], package: str) -> Wheel | None:
    return max((wheel for wheel in wheels if wheel.package == package), key=lambda wheel: wheel.version, default=None)
