"""Find builds beyond the package index: in nightly indexes, pages of links and folders of wheels.

Only the names of a source's wheels are read. The store fetches the wheels. Folders are read each time the catalogue
is opened. Network sources are read when the catalogue is refreshed, or when a bisection needs the newest nightlies.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from runners.core.errors import InfraError, UserError
from runners.core.packages.catalogue import Catalogue, Listing, Release, load_catalogue, parse_nightly_date
from runners.environments.config import Config, WheelSource, read_config
from runners.toolchains import TOOLCHAINS, Toolchain, find_toolchain

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""Minor versions that the guest supports."""
MAX_PAGE_BYTES = 64 * 1024**2
"""A nightly page with years of builds has tens of thousands of links."""
PAGE_S = 60.0

FetchPage = Callable[[str], str]
"""Address → the page there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel as its file name describes it."""

    package: str
    version: Version
    tags: frozenset[Tag]
    path: Path | None = None
    """The file, if it is on this machine."""

    def runs_on(self, minor: str) -> bool:
        return not self.tags.isdisjoint(_list_tags(minor))


@cache
def _list_tags(minor: str) -> frozenset[Tag]:
    """Return the tags of wheels that a CPython of that minor version can install on this machine."""
    major, _, least = minor.partition(".")
    python = (int(major), int(least))
    interpreter = f"cp{major}{least}"
    return frozenset([*cpython_tags(python), *compatible_tags(python, interpreter)])


# ------------------------------------------------------------------------------------------- the catalogue


def open_catalogue(
    refreshed: Path | None = None, folders: Sequence[str] = (), config: Config | None = None
) -> Catalogue:
    """Return every known build: from the packaged snapshot, the folder ``refreshed`` and folders of wheels.

    The folders of wheels are the configured ones and ``folders``, which may contain wheels of any toolchain.

    Raises:
        UserError: a folder does not exist or has no wheel of any toolchain, or the configuration is wrong.
    """
    catalogue = load_catalogue(refreshed)
    configured = (read_config() if config is None else config).wheels
    for source in configured:
        if source.folder is not None:
            catalogue = _add_releases(catalogue, _read_folder(source, find_toolchain(source.toolchain)))
    for folder in folders:
        toolchains = _list_wheel_toolchains()
        found = [
            _read_folder(WheelSource(toolchain=name, folder=folder), known) for name, known in toolchains.items()
        ]
        if not any(found):
            names = ", ".join(known.list_distributions("0")[0].partition("=")[0] for known in toolchains.values())
            raise UserError(f"{folder} has no wheel of a toolchain ({names}) for this machine")
        for releases in found:
            catalogue = _add_releases(catalogue, releases)
    return catalogue


def _list_wheel_toolchains() -> Mapping[str, Toolchain]:
    """Return the toolchains that are distributed as wheels."""
    return {name: known for name, known in TOOLCHAINS.items() if known.list_distributions("0")}


def add_network_builds(
    catalogue: Catalogue, toolchain: str, sources: Iterable[WheelSource], fetch: FetchPage | None = None
) -> Catalogue:
    """Return the catalogue with the current builds of a toolchain's indexes and pages, newer than the last refresh.

    Raises:
        InfraError: an index or a page cannot be reached.
    """
    for source in sources:
        if source.toolchain == toolchain and source.folder is None:
            catalogue = _add_releases(catalogue, read_network_source(source, fetch))
    return catalogue


def _add_releases(catalogue: Catalogue, releases: Sequence[Release]) -> Catalogue:
    if not releases:
        return catalogue
    listing = catalogue.get_listing(releases[0].toolchain)
    return Catalogue({**catalogue.listings, listing.toolchain: merge_releases(listing, releases)})


def merge_releases(listing: Listing, releases: Iterable[Release]) -> Listing:
    """Return the listing with further releases. A known version keeps its facts and gets the further links."""
    every = {release.order: release for release in listing.releases}
    for release in releases:
        known = every.get(release.order)
        links = tuple(dict.fromkeys((*known.links, *release.links))) if known is not None else ()
        every[release.order] = release if known is None else replace(known, links=links)
    return replace(listing, releases=tuple(every[order] for order in sorted(every)))


# ------------------------------------------------------------------------------------------- one source


def _read_folder(source: WheelSource, toolchain: Toolchain) -> tuple[Release, ...]:
    assert source.folder is not None
    folder = Path(source.folder).expanduser().absolute()
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".whl")
    except OSError as error:
        raise UserError(f"the directory of wheels {folder} cannot be read: {error.strerror}") from None
    wheels = [replace(wheel, path=path) for path in files if (wheel := parse_wheel(path.name)) is not None]
    return make_releases(source, toolchain, wheels, links=(str(folder),))


def read_network_source(source: WheelSource, fetch: FetchPage | None = None) -> tuple[Release, ...]:
    """Return the builds that an index or a page lists.

    Raises:
        InfraError: the index or page cannot be reached.
    """
    toolchain = find_toolchain(source.toolchain)
    index = (source.index or "").rstrip("/")
    pages = (source.page,) if source.page else tuple(f"{index}/{name}/" for name in _list_packages(source))
    names = (name for page in pages for name in list_links((fetch or fetch_page)(page)))
    wheels = [wheel for name in names if (wheel := parse_wheel(name)) is not None]
    return make_releases(source, toolchain, wheels, links=pages)


def make_releases(
    source: WheelSource, toolchain: Toolchain, wheels: Sequence[Wheel], *, links: tuple[str, ...]
) -> tuple[Release, ...]:
    """Return the versions that have all the toolchain's packages for at least one Python minor version."""
    versions = sorted({wheel.version for wheel in wheels if wheel.package == _list_packages(source)[0]})
    found = (_make_release(source, toolchain, wheels, version, links) for version in versions)
    return tuple(release for release in found if release is not None)


def _make_release(
    source: WheelSource, toolchain: Toolchain, wheels: Sequence[Wheel], version: Version, links: tuple[str, ...]
) -> Release | None:
    packages = _list_packages(source)
    mine = [wheel for wheel in wheels if wheel.version == version]
    pythons = tuple(m for m in PYTHONS if all(_has_wheel(mine, package, m) for package in packages))
    if not pythons:
        return None
    built, commit = _read_origin(toolchain, mine)
    return Release(
        toolchain=toolchain.NAME,
        version=str(version),
        released=parse_nightly_date(str(version)) or _read_file_day(mine) or datetime.now(UTC).date(),
        distributions=tuple(f"{package}=={version}" for package in packages),
        pythons=pythons,
        prerelease=version.is_prerelease,
        commit=commit,
        built=built,
        tag=None if version.is_devrelease or version.local else toolchain.find_tag(str(version)),
        source="wheels",
        links=links,
    )


def _list_packages(source: WheelSource) -> tuple[str, ...]:
    own = (pin.partition("==")[0] for pin in find_toolchain(source.toolchain).list_distributions("0"))
    return tuple(str(canonicalize_name(name)) for name in source.packages or own)


def _has_wheel(wheels: Iterable[Wheel], package: str, minor: str) -> bool:
    return any(wheel.package == package and wheel.runs_on(minor) for wheel in wheels)


def _read_file_day(wheels: Iterable[Wheel]) -> date | None:
    """Return the day on which the newest of the files was written."""
    times = [wheel.path.stat().st_mtime for wheel in wheels if wheel.path is not None]
    return datetime.fromtimestamp(max(times), UTC).date() if times else None


def _read_origin(toolchain: Toolchain, wheels: Iterable[Wheel]) -> tuple[str | None, str | None]:
    """Return the version and commit that a local wheel states as its origin. The archive is read as text."""
    for wheel in wheels:
        if wheel.path is not None and zipfile.is_zipfile(wheel.path):
            with zipfile.ZipFile(wheel.path) as archive:
                built, commit = toolchain.read_build_info(zipfile.Path(archive))
            if commit is not None:
                return built, commit
    return None, None


# ------------------------------------------------------------------------------------------- pages and names


def parse_wheel(name: str) -> Wheel | None:
    """Return the wheel of a file name. None for any other file."""
    try:
        package, version, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return None
    return Wheel(package=str(package), version=version, tags=tags)


def list_links(page: str) -> Iterator[str]:
    """Yield the file names that a page links to, without yanked files."""
    # pypi-simple was tried here. It saves ten lines, but it adds five packages to the lock (beautifulsoup4, attrs, …)
    # and reads a page of 40,000 links in 6.6 s and 172 MB instead of 1.8 s and 53 MB.
    reader = _LinkReader()
    reader.feed(page)
    for address in reader.addresses:
        yield unquote(urlsplit(address).path).rpartition("/")[2]


class _LinkReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        address = known.get("href")
        if tag == "a" and address and "data-yanked" not in known:
            self.addresses.append(address)


def fetch_page(address: str) -> str:
    """Return the page at an address, of at most `MAX_PAGE_BYTES`.

    Raises:
        InfraError: the page cannot be fetched, or is too large.
    """
    from urllib.error import URLError
    from urllib.request import Request, urlopen  # TLS takes 0.03 s, which a start from the store need not spend

    request = Request(address, headers={"Accept": "text/html"})
    try:
        with urlopen(request, timeout=PAGE_S) as answer:
            data: bytes = answer.read(MAX_PAGE_BYTES + 1)
    except (URLError, OSError, ValueError) as error:
        raise InfraError(f"{address} cannot be read ({error}): check the configuration, or try again") from None
    if len(data) > MAX_PAGE_BYTES:
        raise InfraError(f"{address} is larger than {MAX_PAGE_BYTES // 1024**2} MiB: configure a smaller page")
    return data.decode("utf-8", "replace")
