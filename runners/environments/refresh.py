"""Ask the package index, through uv, for builds that the catalogue does not know yet."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from packaging.version import Version

from runners.core.errors import InfraError
from runners.core.packages.catalogue import Listing, Release, encode_listing, load_catalogue
from runners.core.progress import Sink
from runners.environments.config import read_config
from runners.environments.interpreters import Interpreter, choose_interpreter
from runners.environments.store import open_store
from runners.environments.uv import NoSolution, Pin
from runners.environments.wheel_sources import PYTHONS, merge_releases, read_network_source
from runners.toolchains import TOOLCHAINS, Toolchain

Say = Callable[[str], None]


class PackageIndex(Protocol):
    """The part of `runners.environments.uv.Uv` that answers questions about versions."""

    def resolve(
        self,
        requirements: Sequence[str],
        *,
        python: Path,
        minor: str,
        newest: datetime | None = None,
        deps: bool = True,
        prereleases: bool = False,
    ) -> tuple[Pin, ...]: ...


def refresh_catalogue(progress: Sink, root: Path | None = None) -> Iterator[tuple[str, int]]:
    """Update every toolchain's listing in the user's cache; yield each toolchain's name and number of builds.

    The package index and the configured indexes and pages are asked.

    Raises:
        InfraError: an index cannot be reached. Listings that were updated before are kept.
    """
    store = open_store(root, say=progress.say)
    folder = store.root / "catalogue"
    known = load_catalogue(folder)
    configured = read_config().wheels
    for name, toolchain in TOOLCHAINS.items():
        if not toolchain.list_distributions("0"):
            continue  # not distributed as wheels
        with progress.stage(f"asking the package index for {toolchain.TITLE}"):
            listing = refresh_listing(
                _remove_wheel_sources(known.get_listing(name)),
                toolchain,
                store.uv,
                choose_interpreter(PYTHONS),
                say=progress.say,
            )
        for source in configured:
            if source.toolchain == name and source.folder is None:
                with progress.stage(f"reading {source.index or source.page}"):
                    listing = merge_releases(listing, read_network_source(source))
        save_listing(listing, folder)
        yield name, len(listing.releases)


def _remove_wheel_sources(listing: Listing) -> Listing:
    """Remove builds of configured sources.

    A source may have lost wheels or its configuration, so it is read again.
    """
    return replace(listing, releases=tuple(r for r in listing.releases if r.source != "wheels"))


def refresh_listing(
    known: Listing, toolchain: Toolchain, index: PackageIndex, python: Interpreter, *, say: Say
) -> Listing:
    """Return ``known`` with every further build of the toolchain on the index. Their commits are unknown.

    Raises:
        InfraError: the index cannot be reached.
    """
    have = {Version(r.version) for r in known.releases}
    fresh = []
    for version in _find_versions(toolchain.list_distributions("0")[0].partition("==")[0], have, index, python):
        release = describe_version(toolchain, version, index, python)
        if release is not None:
            say(f"{toolchain.NAME} {version}, released {release.released}")
            fresh.append(release)
    every = sorted([*known.releases, *fresh], key=lambda r: r.order)
    return replace(known, taken=datetime.now(UTC).date(), releases=tuple(every))


def _find_versions(package: str, have: set[Version], index: PackageIndex, python: Interpreter) -> Iterator[str]:
    """Yield the versions that are not in ``have``.

    uv does not list versions, so each query asks for the newest version that was not seen yet.
    """
    seen = set(have)
    while True:
        wanted = package + ",".join(f"!={v}" for v in sorted(seen))
        try:
            (pin,) = index.resolve(
                [wanted], python=python.executable, minor=python.version, deps=False, prereleases=True
            )
        except NoSolution:
            return
        seen.add(Version(pin.version))
        yield pin.version


def describe_version(toolchain: Toolchain, version: str, index: PackageIndex, python: Interpreter) -> Release | None:
    """Return one version with its date and the Python minors on which it can be installed.

    None if no minor version has all its distributions.
    """
    distributions = toolchain.list_distributions(version)
    published = [_find_publication(distributions, index, python, minor) for minor in PYTHONS]
    days = [day for day in published if day is not None]
    if not days:
        return None
    released = max(days)
    draft = Release(
        toolchain=toolchain.NAME,
        version=version,
        released=released.date(),
        prerelease=Version(version).is_prerelease,
        distributions=distributions,
        pythons=(),
        tag=toolchain.find_tag(version),
    )
    return replace(draft, pythons=tuple(m for m in PYTHONS if _is_installable(draft, index, python, m)))


def _find_publication(
    distributions: tuple[str, ...], index: PackageIndex, python: Interpreter, minor: str
) -> datetime | None:
    with contextlib.suppress(NoSolution):
        pins = index.resolve(distributions, python=python.executable, minor=minor, deps=False, prereleases=True)
        return max(_read_upload_time(pin) for pin in pins)
    return None


def _read_upload_time(pin: Pin) -> datetime:
    if pin.uploaded is None:
        raise InfraError(f"the package index gives no date for {pin.name} {pin.version}: use one that does")
    return pin.uploaded


def _is_installable(release: Release, index: PackageIndex, python: Interpreter, minor: str) -> bool:
    try:
        index.resolve(
            [*release.distributions, *release.pins], python=python.executable, minor=minor, newest=release.as_of
        )
    except NoSolution:
        return False
    return True


def save_listing(listing: Listing, folder: Path) -> Path:
    """Write a listing for `load_catalogue`: completely or not at all. Return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{listing.toolchain}.json"
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
        file.write(encode_listing(listing))
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
    return path
