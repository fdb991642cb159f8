"""Provide wheels that continuous integration stored for each commit, in one folder or at one address per commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from runners.builds.source import Build, Point, Unbuildable
from runners.core.errors import InfraError
from runners.core.packages.catalogue import Release
from runners.environments.wheel_sources import PYTHONS, Wheel, fetch_page, list_links, parse_wheel


def make_build_name(base: str, first: Point, point: Point) -> str:
    """Return a version that sorts between releases: ``3.10.0.post137+g1a2b3c4d5e6f``, 137 commits after 3.10.0.

    The post or development part of ``base`` is left out, because a version cannot have two.
    """
    version = Version(base)
    stem = version.base_version + "".join(map(str, version.pre or ()))
    return f"{stem}.post{point.ordinal - first.ordinal}+g{point.commit[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSource:
    """See ``source.BuildSource``."""

    location: str
    """A folder or address that contains ``{commit}`` or ``{short}`` instead of the sha."""
    toolchain: str
    packages: tuple[str, ...]
    """Packages that a build must have, all at one version. The first one names the build."""
    fetch: Callable[[str], str] = fetch_page
    seconds: float = 30.0

    @property
    def name(self) -> str:
        return f"the artifacts in {self.location}"

    def list_builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Return one build for each existing folder. For an address, return one build per commit, existing or not."""
        return tuple(
            Build(name=make_build_name(base, line[0], point), point=point, seconds=self.seconds, source=self.name)
            for point in line
            if "://" in self.location or Path(self._locate(point)).is_dir()
        )

    def provide_release(self, build: Build) -> Release:
        """Return the wheels of the build's commit."""
        location = self._locate(build.point)
        try:
            if "://" in location:
                names = list(list_links(self.fetch(location)))
            else:
                names = sorted(path.name for path in Path(location).iterdir())
        except (InfraError, OSError) as reason:
            raise Unbuildable(f"there is nothing for {build.point.commit[:12]}: {reason}") from None
        return make_release(build, names, location, toolchain=self.toolchain, packages=self.packages)

    def _locate(self, point: Point) -> str:
        location = self.location.replace("{commit}", point.commit).replace("{short}", point.commit[:7])
        return location if "://" in location else str(Path(location).expanduser().absolute())


def make_release(
    build: Build, names: Iterable[str], location: str, *, toolchain: str, packages: Sequence[str]
) -> Release:
    """Return the release of a location with these file names. Versions are free, but no package may be missing.

    Raises:
        Unbuildable: a package is missing, or has no wheel for any of our Pythons.
    """
    wheels = [wheel for name in names if (wheel := parse_wheel(name)) is not None]
    newest = {package: _find_newest(wheels, str(canonicalize_name(package))) for package in packages}
    missing = [package for package, wheel in newest.items() if wheel is None]
    if missing:
        raise Unbuildable(f"the build of {build.point.commit[:12]} has no wheel of {', '.join(missing)}")
    every = [wheel for wheel in newest.values() if wheel is not None]
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
        links=(location,),
    )


def _find_newest(wheels: Sequence[Wheel], package: str) -> Wheel | None:
    return max((wheel for wheel in wheels if wheel.package == package), key=lambda wheel: wheel.version, default=None)
