"""Wheels that a page or a folder lists: an index of nightlies, a find-links page, a directory of wheels.

A page is data of the operator's choosing: bounded, parsed as HTML, only links to wheels taken.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from runners.catalogue import Release, nightly_date
from runners.errors import InfraError
from runners.sources import Build, Point, Unbuildable
from runners.toolchains import Toolchain

MOST_BYTES = 32 * 1024**2
"""IREE's page of nightlies was under 2 MB."""
PAGE_S = 60.0
_COMMIT = re.compile(r"(?<![0-9a-z])g?([0-9a-f]{7,40})(?![0-9a-z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel that a place lists."""

    distribution: str
    """In canonical spelling."""
    version: Version
    place: str
    """Address or path of the wheel itself."""


def read_place(place: str) -> tuple[Wheel, ...]:
    """The wheels at an address (``https://…``) or in a folder, in the order of the listing.

    Raises:
        InfraError: it cannot be read.
    """
    names = _read_page(place) if "://" in place else _read_folder(Path(place).expanduser())
    return tuple(wheel for name in names if (wheel := _wheel(name)) is not None)


def _read_folder(folder: Path) -> Iterator[str]:
    try:
        yield from (str(path) for path in sorted(folder.iterdir()) if path.suffix == ".whl")
    except OSError as error:
        raise InfraError(f"the folder {folder} cannot be read ({error.strerror}): is it there?") from None


def _read_page(address: str) -> Iterator[str]:
    if urlsplit(address).scheme not in {"http", "https"}:
        raise InfraError(f"{address} is no page of wheels: give an http(s) address or a folder")
    try:
        with urllib.request.urlopen(address, timeout=PAGE_S) as answer:
            text, base = answer.read(MOST_BYTES + 1), answer.geturl()
    except (OSError, ValueError) as error:
        raise InfraError(f"{address} cannot be read ({error}): connect, or correct the address") from None
    if len(text) > MOST_BYTES:
        raise InfraError(f"{address} is longer than {MOST_BYTES >> 20} MiB: give the page of one distribution")
    return (urljoin(base, link) for link in _links(text.decode("utf-8", "replace")))


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


def _links(text: str) -> list[str]:
    parser = _Anchors()
    parser.feed(text)
    return parser.links


def _wheel(place: str) -> Wheel | None:
    name = unquote(urlsplit(place).path if "://" in place else place).rpartition("/")[2]
    try:
        distribution, version, _, _ = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return None
    return Wheel(distribution=distribution, version=version, place=place)


def releases(
    wheels: Iterable[Wheel], toolchain: Toolchain, links: Sequence[str], *, pythons: Sequence[str], pinned: str = ""
) -> tuple[Release, ...]:
    """One release for each listed version of the toolchain's first distribution (or of ``pinned``), ascending.

    Its day is the one in its version, else today: then its dependencies are today's too.
    """
    first = canonicalize_name(pinned or toolchain.distributions("0")[0].partition("==")[0])
    versions = sorted({wheel.version for wheel in wheels if wheel.distribution == first})
    return tuple(_release(str(v), toolchain, links, pythons, pinned) for v in versions)


def _release(
    version: str, toolchain: Toolchain, links: Sequence[str], pythons: Sequence[str], pinned: str
) -> Release:
    return Release(
        toolchain=toolchain.NAME,
        version=version,
        released=nightly_date(version) or today(),
        distributions=(f"{pinned}=={version}",) if pinned else toolchain.distributions(version),
        pythons=tuple(pythons),
        prerelease=Version(version).is_prerelease,
        commit=commit_in(version),
        tag=toolchain.tag(version),
        links=tuple(links),
    )


def commit_in(version: str) -> str | None:
    """The commit in a local version: ``0.28.dev12+g1a2b3c4d5`` → ``1a2b3c4d5``. Abbreviated as it stands there."""
    found = _COMMIT.search(version.partition("+")[2])
    return found[1] if found else None


def today() -> date:
    return datetime.now(tz=UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightlies:
    """Releases that lie between releases, each with its place in history. See ``sources.Source``."""

    name: str
    placed: Mapping[str, tuple[Release, Point]]
    """Version → build."""
    seconds: float = 30.0
    """Downloading and unpacking one."""

    def builds(self, line: Sequence[Point], base: str) -> tuple[Build, ...]:
        """Those made from a commit of the line, under their own versions."""
        inside = {point.commit for point in line}
        found = (
            Build(name=version, point=point, seconds=self.seconds, source=self.name)
            for version, (_, point) in self.placed.items()
            if point.commit in inside
        )
        return tuple(sorted(found, key=lambda build: (build.point.ordinal, Version(build.name))))

    def provide(self, build: Build) -> Release:
        """As listed: whether its wheels install is found out by installing them."""
        try:
            return self.placed[build.name][0]
        except KeyError:
            raise Unbuildable(f"{build.name} is not among {self.name}") from None
