"""Ask the package index for builds the catalogue doesn't know yet, through uv."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from packaging.version import Version

from runners.core.catalogue import Listing, Release, encode_listing, load_catalogue
from runners.core.errors import InfraError
from runners.core.progress import Sink
from runners.environments import interpreters
from runners.environments.config import read_config
from runners.environments.interpreters import Interpreter
from runners.environments.store import open_store
from runners.environments.uv import NoSolution, Pin
from runners.environments.wheel_sources import PYTHONS, on_the_network, with_releases
from runners.toolchains import TOOLCHAINS, Toolchain

Say = Callable[[str], None]


class Index(Protocol):
    """What answers questions about versions: `runners.environments.uv.Uv`."""

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
    """Bring every toolchain's listing in the user's cache up to date; gives its name and how many builds it has.

    Asked are the package index and the indexes and pages that are configured.

    Raises:
        InfraError: the index cannot be reached; what was refreshed before is kept.
    """
    store = open_store(root, say=progress.say)
    folder = store.root / "catalogue"
    known = load_catalogue(folder)
    configured = read_config().wheels
    for name, toolchain in TOOLCHAINS.items():
        if not toolchain.distributions("0"):
            continue  # comes with the machine
        with progress.stage(f"asking the package index for {toolchain.TITLE}"):
            listing = refresh(
                _without_places(known.listing(name)),
                toolchain,
                store.uv,
                interpreters.choose(PYTHONS),
                say=progress.say,
            )
        for place in configured:
            if place.toolchain == name and place.folder is None:
                with progress.stage(f"reading {place.index or place.page}"):
                    listing = with_releases(listing, on_the_network(place))
        save(listing, folder)
        yield name, len(listing.releases)


def _without_places(listing: Listing) -> Listing:
    """A place may have lost its wheels, or its line in the configuration: it is read anew."""
    return replace(listing, releases=tuple(r for r in listing.releases if r.source != "wheels"))


def refresh(known: Listing, toolchain: Toolchain, index: Index, python: Interpreter, *, say: Say) -> Listing:
    """``known`` and every build of the toolchain on the index that it lacks; ``commit`` is unknown for those.

    Raises:
        InfraError: the index cannot be reached.
    """
    have = {Version(r.version) for r in known.releases}
    fresh = []
    for version in _versions(toolchain.distributions("0")[0].partition("==")[0], have, index, python):
        release = describe(toolchain, version, index, python)
        if release is not None:
            say(f"{toolchain.NAME} {version}, released {release.released}")
            fresh.append(release)
    every = sorted([*known.releases, *fresh], key=lambda r: r.order)
    return replace(known, taken=datetime.now(UTC).date(), releases=tuple(every))


def _versions(package: str, have: set[Version], index: Index, python: Interpreter) -> Iterator[str]:
    """uv lists no versions: ask for the newest that is none of those seen, until none is left."""
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


def describe(toolchain: Toolchain, version: str, index: Index, python: Interpreter) -> Release | None:
    """What the index knows of one version: its date and the Python minors it can be installed on.

    None when no minor has all its distributions.
    """
    distributions = toolchain.distributions(version)
    published = [_publication(distributions, index, python, minor) for minor in PYTHONS]
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
        tag=toolchain.tag(version),
    )
    return replace(draft, pythons=tuple(m for m in PYTHONS if _installable(draft, index, python, m)))


def _publication(distributions: tuple[str, ...], index: Index, python: Interpreter, minor: str) -> datetime | None:
    with contextlib.suppress(NoSolution):
        pins = index.resolve(distributions, python=python.executable, minor=minor, deps=False, prereleases=True)
        return max(_uploaded(pin) for pin in pins)
    return None


def _uploaded(pin: Pin) -> datetime:
    if pin.uploaded is None:
        raise InfraError(f"the package index gives no date for {pin.name} {pin.version}: use one that does")
    return pin.uploaded


def _installable(release: Release, index: Index, python: Interpreter, minor: str) -> bool:
    try:
        index.resolve(
            [*release.distributions, *release.pins], python=python.executable, minor=minor, newest=release.as_of
        )
    except NoSolution:
        return False
    return True


def save(listing: Listing, folder: Path) -> Path:
    """Write a listing for `load_catalogue`, atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{listing.toolchain}.json"
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".", delete=False) as file:
        file.write(encode_listing(listing))
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
    return path
