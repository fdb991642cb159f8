"""Builds beyond the package index: nightly indexes, pages of links and directories of wheels, as releases.

A place is read for the names of its wheels alone; what is in them is for the store to fetch. Directories are read
whenever the catalogue is opened, places on the network when it is refreshed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from runners.core.catalogue import Catalogue, Listing, Release, load_catalogue, nightly_date
from runners.core.errors import InfraError, UserError
from runners.environments.config import Config, Place, read_config
from runners.toolchains import TOOLCHAINS, Toolchain, find_toolchain

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""Minors that the guest supports."""
MAX_PAGE_BYTES = 64 * 1024**2
"""A nightly page with years of builds has some tens of thousands of links."""
PAGE_S = 60.0

Get = Callable[[str], str]
"""Address → the page there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of that name, from its file name."""

    package: str
    version: Version
    tags: frozenset[Tag]
    path: Path | None = None
    """Where it lies on this machine."""

    def runs_on(self, minor: str) -> bool:
        return not self.tags.isdisjoint(_tags(minor))


@cache
def _tags(minor: str) -> frozenset[Tag]:
    """What a CPython of that minor can install on this machine."""
    major, _, least = minor.partition(".")
    python = (int(major), int(least))
    interpreter = f"cp{major}{least}"
    return frozenset([*cpython_tags(python), *compatible_tags(python, interpreter)])


# ------------------------------------------------------------------------------------------- the catalogue


def open_catalogue(
    refreshed: Path | None = None, folders: Sequence[str] = (), config: Config | None = None
) -> Catalogue:
    """Every build known here: the committed snapshot, what was refreshed, and the directories of wheels.

    ``folders`` come besides those that are configured, and serve every toolchain that they have wheels of.

    Raises:
        UserError: a directory isn't there, has no wheel of any toolchain, or the configuration is wrong.
    """
    catalogue = load_catalogue(refreshed)
    configured = (read_config() if config is None else config).wheels
    for place in configured:
        if place.folder is not None:
            catalogue = _added(catalogue, _in_folder(place, find_toolchain(place.toolchain)))
    for folder in folders:
        found = [_in_folder(Place(toolchain=name, folder=folder), known) for name, known in _installable().items()]
        if not any(found):
            names = ", ".join(known.distributions("0")[0].partition("=")[0] for known in _installable().values())
            raise UserError(f"{folder} has no wheel of a toolchain ({names}) for this machine")
        for releases in found:
            catalogue = _added(catalogue, releases)
    return catalogue


def _installable() -> Mapping[str, Toolchain]:
    """Toolchains that come as wheels."""
    return {name: known for name, known in TOOLCHAINS.items() if known.distributions("0")}


def with_pages(catalogue: Catalogue, toolchain: str, places: Iterable[Place], get: Get | None = None) -> Catalogue:
    """The catalogue, and what a toolchain's indexes and pages list this minute: nightlies newer than any refresh.

    Raises:
        InfraError: one of them cannot be reached.
    """
    for place in places:
        if place.toolchain == toolchain and place.folder is None:
            catalogue = _added(catalogue, on_the_network(place, get))
    return catalogue


def _added(catalogue: Catalogue, releases: Sequence[Release]) -> Catalogue:
    if not releases:
        return catalogue
    listing = catalogue.listing(releases[0].toolchain)
    return Catalogue({**catalogue.listings, listing.toolchain: with_releases(listing, releases)})


def with_releases(listing: Listing, releases: Iterable[Release]) -> Listing:
    """The listing and these besides. Of a version that both have, what is known stays, and is had from there too."""
    every = {release.order: release for release in listing.releases}
    for release in releases:
        known = every.get(release.order)
        links = tuple(dict.fromkeys((*known.links, *release.links))) if known is not None else ()
        every[release.order] = release if known is None else replace(known, links=links)
    return replace(listing, releases=tuple(every[order] for order in sorted(every)))


# ------------------------------------------------------------------------------------------- one place


def _in_folder(place: Place, toolchain: Toolchain) -> tuple[Release, ...]:
    assert place.folder is not None
    folder = Path(place.folder).expanduser().absolute()
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".whl")
    except OSError as error:
        raise UserError(f"the directory of wheels {folder} cannot be read: {error.strerror}") from None
    wheels = [replace(wheel, path=path) for path in files if (wheel := read_name(path.name)) is not None]
    return releases_of(place, toolchain, wheels, links=(str(folder),))


def on_the_network(place: Place, get: Get | None = None) -> tuple[Release, ...]:
    """The builds that an index or a page lists.

    Raises:
        InfraError: it cannot be reached.
    """
    toolchain = find_toolchain(place.toolchain)
    pages = (place.page,) if place.page else tuple(f"{(place.index or '').rstrip('/')}/{p}/" for p in _names(place))
    wheels = [wheel for page in pages for name in links_in((get or fetch_page)(page)) if (wheel := read_name(name))]
    return releases_of(place, toolchain, wheels, links=pages)


def releases_of(
    place: Place, toolchain: Toolchain, wheels: Sequence[Wheel], *, links: tuple[str, ...]
) -> tuple[Release, ...]:
    """The versions of which all the toolchain's packages are there, for at least one Python minor."""
    versions = sorted({wheel.version for wheel in wheels if wheel.package == _names(place)[0]})
    found = (_release(place, toolchain, wheels, version, links) for version in versions)
    return tuple(release for release in found if release is not None)


def _release(
    place: Place, toolchain: Toolchain, wheels: Sequence[Wheel], version: Version, links: tuple[str, ...]
) -> Release | None:
    mine = [wheel for wheel in wheels if wheel.version == version]
    pythons = tuple(m for m in PYTHONS if all(_has(mine, package, m) for package in _names(place)))
    if not pythons:
        return None
    built, commit = _built_from(toolchain, mine)
    return Release(
        toolchain=toolchain.NAME,
        version=str(version),
        released=nightly_date(str(version)) or _written(mine) or datetime.now(UTC).date(),
        distributions=tuple(f"{package}=={version}" for package in _names(place)),
        pythons=pythons,
        prerelease=version.is_prerelease,
        commit=commit,
        built=built,
        tag=None if version.is_devrelease or version.local else toolchain.tag(str(version)),
        source="wheels",
        links=links,
    )


def _names(place: Place) -> tuple[str, ...]:
    own = (pin.partition("==")[0] for pin in find_toolchain(place.toolchain).distributions("0"))
    return tuple(str(canonicalize_name(name)) for name in place.packages or own)


def _has(wheels: Iterable[Wheel], package: str, minor: str) -> bool:
    return any(wheel.package == package and wheel.runs_on(minor) for wheel in wheels)


def _written(wheels: Iterable[Wheel]) -> date | None:
    """When the newest of the files was written."""
    times = [wheel.path.stat().st_mtime for wheel in wheels if wheel.path is not None]
    return datetime.fromtimestamp(max(times), UTC).date() if times else None


def _built_from(toolchain: Toolchain, wheels: Iterable[Wheel]) -> tuple[str | None, str | None]:
    """Version and commit that a wheel on this machine says it was built from; read as text out of the archive."""
    for wheel in wheels:
        if wheel.path is not None and zipfile.is_zipfile(wheel.path):
            with zipfile.ZipFile(wheel.path) as archive:
                built, commit = toolchain.built_from(zipfile.Path(archive))
            if commit is not None:
                return built, commit
    return None, None


# ------------------------------------------------------------------------------------------- pages and names


def read_name(name: str) -> Wheel | None:
    """A wheel's file name; None for anything else."""
    try:
        package, version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return None
    return Wheel(package=str(package), version=version, tags=tags)


def links_in(page: str) -> Iterator[str]:
    """The file names that a page links to, those withdrawn left out."""
    reader = _Links()
    reader.feed(page)
    for address in reader.found:
        yield unquote(urlsplit(address).path).rpartition("/")[2]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        address = known.get("href")
        if tag == "a" and address and "data-yanked" not in known:
            self.found.append(address)


def fetch_page(address: str) -> str:
    """A page of at most `MAX_PAGE_BYTES`.

    Raises:
        InfraError: it cannot be had.
    """
    request = Request(address, headers={"Accept": "text/html"})
    try:
        with urlopen(request, timeout=PAGE_S) as answer:
            data: bytes = answer.read(MAX_PAGE_BYTES + 1)
    except (URLError, OSError, ValueError) as error:
        raise InfraError(f"{address} cannot be read ({error}): check the configuration, or try again") from None
    if len(data) > MAX_PAGE_BYTES:
        raise InfraError(f"{address} is larger than {MAX_PAGE_BYTES // 1024**2} MiB: configure a smaller page")
    return data.decode("utf-8", "replace")
