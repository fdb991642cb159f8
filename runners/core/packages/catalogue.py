"""List all available builds: versions, dates, commits. The snapshots are committed with the code.

This module never uses the network. `runners.environments.refresh` writes newer snapshots into the user's cache
directory.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from runners.core.errors import UserError
from runners.core.packages.versions import is_dated, order_version, parse_version
from runners.core.protocol import CommitRange

AS_OF_MARGIN = timedelta(days=2)
"""Time after a release within which its dependencies are published: about a day, with a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One build that can be installed. `ordinal` and `ahead` come from the history of the toolchain's repository."""

    toolchain: str
    version: str
    released: date
    """Day on which the last of its distributions was published."""
    distributions: tuple[str, ...]
    """Pinned, as ``name==version``."""
    pythons: tuple[str, ...]
    """CPython minor versions for which the build and its dependencies have wheels, as of its date."""
    prerelease: bool = False
    commit: str | None = None
    """Full sha of the build's source."""
    tag: str | None = None
    """Git ref of that commit, where one exists."""
    built: str | None = None
    """The version the wheel was first published under, such as a nightly promoted to a release."""
    ordinal: int | None = None
    """Number of first-parent commits on main up to the commit at which this build's history joins main."""
    ahead: int = 0
    """Number of commits on the build's own branch after that commit."""
    pins: tuple[str, ...] = ()
    """Requirements for which resolution by date gives a wrong version."""
    source: Literal["index", "dated", "bundle", "wheels", "machine"] = "index"
    """Origin: the package index, the same with a date for a version, a wheel of another project on the index, the
    operator's own wheels (``links``), or the machine itself (CPython)."""
    fork: str | None = None
    """Abbreviated commit of the fork that a bundle carries."""
    near: str | None = None
    """Full sha of the commit of the toolchain's own history that is nearest to the fork."""
    links: tuple[str, ...] = ()
    """Pages and folders that list the wheels; they precede the package index (uv's ``--find-links``)."""

    @property
    def is_off_main(self) -> bool:
        """True if the build is on its own branch: no later build descends from it."""
        return self.ahead > 0

    @property
    def is_ordinary(self) -> bool:
        """True for a release that runs for every report. False for a candidate and for an `is_early` build."""
        return not self.prerelease and not self.is_early

    @property
    def is_early(self) -> bool:
        """True for a build that precedes the ordinary releases, so that only reports of that time need it.

        These are the forks of a toolchain, and its releases from a time with other names, flags and dialects.
        """
        return self.source in {"bundle", "dated"}

    @property
    def label(self) -> str:
        """The version. For a fork, with its commit and its wheel: a reader must not mistake it for a release."""
        if self.source != "bundle":
            return self.version
        return f"{self.version} (a fork at {self.fork}, carried by {self.distributions[0].replace('==', ' ')})"

    @property
    def order(self) -> Version:
        return order_version(self.version)

    @property
    def as_of(self) -> datetime | None:
        """The time (UTC) as of which dependencies are resolved. Newer dependencies break older releases.

        None for CPython of this machine, which gets today's packages.
        """
        if self.source == "machine":
            return None
        return datetime.combine(self.released + AS_OF_MARGIN, time(), tzinfo=UTC)

    @property
    def built_on(self) -> date:
        """The day of the sources. For a promoted nightly, the nightly's day, else the day of publication."""
        return parse_nightly_date(self.built or self.version) or self.released


class NearestBuild(NamedTuple):
    """The build that represents a version as written in a report, and the reason for this choice."""

    release: Release | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The builds of one toolchain, ascending. ``taken`` is the day of the snapshot."""

    toolchain: str
    repository: str | None
    """``owner/name`` of the toolchain's history, for compare links."""
    taken: date
    releases: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The listings of all toolchains, by name of the toolchain."""

    listings: Mapping[str, Listing]

    def get_listing(self, toolchain: str) -> Listing:
        """Return the builds of one toolchain.

        Raises:
            UserError: the toolchain is unknown.
        """
        try:
            return self.listings[toolchain]
        except KeyError:
            known = ", ".join(sorted(self.listings))
            raise UserError(f"unknown toolchain {toolchain!r}: choose one of {known}") from None

    def list_releases(self, toolchain: str, *, prereleases: bool = False) -> tuple[Release, ...]:
        """List the releases, ascending. ``prereleases`` adds candidates, nightlies and forks."""
        every = self.get_listing(toolchain).releases
        return tuple(r for r in every if prereleases or r.is_ordinary)

    def find(self, toolchain: str, version: str) -> Release:
        """Return the build of exactly this version. A ``v`` prefix and trailing zeros are ignored.

        Raises:
            UserError: the build does not exist. The message names the nearest build.
        """
        release = self._find_exact(toolchain, version)
        if release is not None:
            return release
        near = self.find_nearest(toolchain, version)
        hint = f"nearest is {near.release.label} ({near.reason})" if near.release else near.reason
        raise UserError(f"there is no {toolchain} {version}: {hint}")

    def _find_exact(self, toolchain: str, version: str) -> Release | None:
        wanted = parse_version(version)
        return next(
            (r for r in self.get_listing(toolchain).releases if wanted is not None and r.order == wanted), None
        )

    def find_nearest(self, toolchain: str, text: str, day: date | None = None) -> NearestBuild:
        """Return the build nearest to a version as reports write it: a wheel, a nightly, a commit, ``main``.

        ``day`` is the day of the report, because ``main`` was another build then.
        """
        return _find_nearest(self.get_listing(toolchain), text, day)

    def find_dated(self, toolchain: str, day: date) -> NearestBuild:
        """Return the build that represents the sources of a day."""
        return _match_report_day(self.get_listing(toolchain), "", day)

    def find_early_before(self, toolchain: str, text: str) -> Release | None:
        """Return the newest early build older than a version that precedes the first release. None for other texts.

        Together with the next build, this build encloses the sources of that version.
        """
        listing = self.get_listing(toolchain)
        found = _VERSION.search(text.strip().lower())
        version = parse_version(found["version"]) if found else None
        own = next(r for r in listing.releases if not r.is_early)
        if version is None or version >= own.order:
            return None
        return max(
            (r for r in listing.releases if r.is_early and r.order <= version),
            key=lambda release: release.order,
            default=None,
        )

    def find_oldest_early(self, toolchain: str, text: str) -> Release | None:
        """Return the oldest early build for a version that is older than all early builds. None for other texts.

        Of all available builds, this one has the most of that version's API.
        """
        listing = self.get_listing(toolchain)
        found = _VERSION.search(text.strip().lower())
        version = parse_version(found["version"]) if found else None
        oldest = min((r for r in listing.releases if r.is_early), key=lambda release: release.order, default=None)
        return oldest if oldest is not None and version is not None and version < oldest.order else None

    def find_early_before_day(self, toolchain: str, day: date) -> Release | None:
        """Return the newest early build of a day before the first release. None for other days.

        The next build after such a day may already contain the fix.
        """
        releases = self.get_listing(toolchain).releases
        if day >= min((r.released for r in releases if r.source == "index"), default=day):
            return None
        early = (r for r in releases if r.is_early and r.released <= day)
        return max(early, key=lambda release: release.order, default=None)

    def select(self, toolchain: str, spec: str) -> tuple[Release, ...]:
        """Return the builds of ``0.25.0,0.26.0``, ``3.4.0..3.8.0``, ``>=3.4,<3.8``, ``latest`` or ``all``, ascending.

        Raises:
            UserError: no build matches, or a named version does not exist.
        """
        text = spec.strip()
        if text[:1] in {"<", ">", "=", "!", "~"}:
            chosen = set(self._select_specifier(toolchain, text))
        else:
            words = filter(None, map(str.strip, text.split(",")))
            chosen = {release for word in words for release in self._select_word(toolchain, word)}
        if not chosen:
            raise UserError(f"no {toolchain} version matches {spec!r}: there are {self._describe_span(toolchain)}")
        return tuple(sorted(chosen, key=lambda r: r.order))

    def _select_word(self, toolchain: str, word: str) -> tuple[Release, ...]:
        if word == "all":
            return self.list_releases(toolchain)
        if word in {"latest", "newest"}:
            return self.list_releases(toolchain)[-1:]
        first, dots, last = word.partition("..")
        if not dots:
            return (self.find(toolchain, word),)
        if not first or not last:
            raise UserError(
                f"the range {word} lacks an end: write A..B, with two of {self._describe_span(toolchain)}"
            )
        oldest, newest = self.find(toolchain, first), self.find(toolchain, last)
        low, high = oldest.order, newest.order
        if low > high:
            raise UserError(f"the range {word} is empty: write the older version first, {last}..{first}")
        inside = self.list_releases(toolchain, prereleases=True)
        # A range of two nightlies includes nightlies. A range from a candidate to its release does not.
        nightlies = all(end.prerelease and end.source == "wheels" for end in (oldest, newest))
        return tuple(
            r
            for r in inside
            if r.order in {low, high}
            or (low < r.order < high and (r.is_ordinary or (nightlies and r.source == "wheels")))
        )

    def _select_specifier(self, toolchain: str, text: str) -> Iterator[Release]:
        try:
            wanted = SpecifierSet(text)
        except InvalidSpecifier:
            raise UserError(f"{text!r} is not a version range: write >=3.4,<3.8 or 3.4.0..3.8.0") from None
        every = self.list_releases(toolchain, prereleases=bool(wanted.prereleases))
        return (r for r in every if wanted.contains(r.order, prereleases=True))

    def _describe_span(self, toolchain: str) -> str:
        stable = self.list_releases(toolchain)
        return f"{stable[0].version} … {stable[-1].version}" if stable else "none"

    def get_commit_range(self, old: Release, new: Release) -> CommitRange:
        """Return the commits between two builds, with a compare link if the toolchain's repository is public."""
        repository = self.get_listing(new.toolchain).repository
        start, end = old.tag or old.commit or old.near, new.tag or new.commit or new.near
        link = f"https://github.com/{repository}/compare/{start}...{end}" if repository and start and end else ""
        return CommitRange(
            start=old.commit or old.near or old.tag or old.version,
            end=new.commit or new.near or new.tag or new.version,
            count=_count_commits(old, new),
            compare_url=link,
        )


def _count_commits(old: Release, new: Release) -> int | None:
    """Count the commits of ``new`` that ``old`` does not have, as ``git log OLD..NEW`` and a compare link do.

    Those that the branch of ``old`` has as cherry-picks count too. None if both may be on one branch.
    """
    if old.ordinal is None or new.ordinal is None or (old.is_off_main and new.ordinal <= old.ordinal):
        return None
    return new.ordinal - old.ordinal + new.ahead


# ------------------------------------------------------------------------------------------- versions as written

_WHEEL = re.compile(r"^[A-Za-z0-9_.]+-(?P<version>\d[^-]*)-.*\.whl$")
_VERSION = re.compile(
    r"(?<![\w.])v?(?P<version>\d+\.\d+(?:\.\d+)*(?:[.-]?(?:dev|rc|a|b|post)\.?\d*)*)(?:\+(?P<local>[\w.]+))?(?![\w])",
    re.IGNORECASE,
)
_SHA = re.compile(r"(?<![0-9a-z])g?(?P<sha>(?=[0-9a-f]*[0-9])[0-9a-f]{7,40})(?![0-9a-z])", re.IGNORECASE)
_NIGHTLY = re.compile(r"(?:rc|dev|^)\.?(?P<day>20\d{6})")
_DAY = re.compile(r"(?<!\d)(?P<y>20[12]\d)(?P<sep>[-./]?)(?P<m>[01]\d)(?P=sep)(?P<d>[0-3]\d)(?!\d)")
"""A day as such: ``nightly 2025-11-07``, ``candidate-20251107``, or as a version, ``20230815.614``."""
_FARTHEST = timedelta(days=45)
"""Longest time before the first release in which that release may represent a build. Releases appear every four to
eight weeks."""
_MOVING = frozenset({"main", "master", "head", "trunk", "tot", "nightly", "latest", "newest", "top of tree"})


def parse_nightly_date(version: str) -> date | None:
    """Return the day in the version of a nightly or a dated release: ``3.7.0rc20250904`` → 2025-09-04."""
    found = _NIGHTLY.search(version)
    if found is None:
        return None
    try:
        return datetime.strptime(found["day"], "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        return None


def _find_nearest(listing: Listing, text: str, reported: date | None) -> NearestBuild:
    words = text.strip().lower()
    wheel = _WHEEL.match(words)
    by_commit = _match_commit(listing, words)
    if by_commit is not None:
        return by_commit
    found = _VERSION.search(wheel["version"] if wheel else words)
    version = parse_version(found["version"]) if found else None
    day = _find_day(words)
    exact = next((r for r in listing.releases if r.order == version and r.source == "dated"), None)
    if exact is not None:
        return NearestBuild(exact, f"{exact.label} is that build")
    if version is not None and not (day and (version.major >= day.year or is_dated(str(found and found["version"])))):
        return _match_version(listing, version)
    if day is not None:
        return _match_day(_list_own(listing), f"a build of {day}", day)
    moving = next((word for word in sorted(_MOVING) if re.search(rf"\b{word}\b", words)), None)
    if moving is not None:
        newest = _list_stable(listing)[-1]
        if reported is not None and reported < newest.built_on:
            return _match_report_day(listing, f"{moving} of ", reported)
        return NearestBuild(newest, f"{moving}, for which {newest.version} stands, the newest release here")
    sha = _SHA.search(words)
    what = (
        f"commit {sha['sha'][:12]} is not one that a build here was made from"
        if sha
        else f"{text!r} names no version"
    )
    return NearestBuild(None, what)


def _match_commit(listing: Listing, words: str) -> NearestBuild | None:
    shas = [m["sha"].lower() for m in _SHA.finditer(words)]
    for release in listing.releases:
        if release.commit and any(release.commit.startswith(sha) for sha in shas):
            return NearestBuild(release, f"{release.version} was built from commit {release.commit[:12]}")
    return None


def _match_version(listing: Listing, version: Version) -> NearestBuild:
    exact = next((r for r in listing.releases if r.order == version or r.built == str(version)), None)
    if exact is not None:
        return NearestBuild(exact, _explain_match(exact, version))
    stable = _list_stable(listing)
    own = [r for r in listing.releases if not r.is_early]
    day = parse_nightly_date(str(version))
    if version < own[0].order and (day is None or not any(r.source == "dated" for r in listing.releases)):
        return _match_fork(listing, version, f"{own[0].version} … {own[-1].version}")
    if version > listing.releases[-1].order:
        return NearestBuild(
            stable[-1], f"{version} is newer than every build here; {stable[-1].version} is the newest"
        )
    if day is not None:
        return _match_day(_list_own(listing), f"nightly {version}", day)
    return _match_neighbour(stable, version)


def _explain_match(release: Release, version: Version) -> str:
    if release.source == "bundle":
        return f"{version} itself is not at hand; {release.label} calls itself so"
    return f"{release.label} is that build"


def _match_fork(listing: Listing, version: Version, span: str) -> NearestBuild:
    """Match a version before the first release. A fork of the same development cycle may represent it."""
    older = f"{version} is older than every release here ({span})"
    cycle = version.release[:2]
    fork = next((r for r in listing.releases if r.source == "bundle" and r.order.release[:2] == cycle), None)
    return NearestBuild(fork, f"{older}; {fork.label} is of its development cycle" if fork else older)


def _match_day(stable: tuple[Release, ...], what: str, day: date) -> NearestBuild:
    if day < stable[0].built_on - _FARTHEST:
        return NearestBuild(
            None, f"{what} is older than every release here ({stable[0].version} is of {stable[0].built_on})"
        )
    near = min(stable, key=lambda r: abs((r.built_on - day).days))
    gap = (near.built_on - day).days
    when = "the same day" if gap == 0 else f"{abs(gap)} days {'later' if gap > 0 else 'earlier'}"
    return NearestBuild(near, f"{what} is not at hand; {near.version} was built {when}")


def _match_report_day(listing: Listing, what: str, day: date) -> NearestBuild:
    """Match the sources of a day with the nearest release. Before the first release, consider early builds too.

    An early build of another year still is the nearest build. The note states the distance.
    """
    stable = _list_stable(listing)
    near = stable
    if day < stable[0].built_on:
        near = (*(r for r in listing.releases if r.is_early), stable[0])
    nearest = min(near, key=lambda r: abs((r.built_on - day).days))
    gap = (nearest.built_on - day).days
    when = "that day" if gap == 0 else f"{abs(gap)} days {'after' if gap > 0 else 'before'} it"
    return NearestBuild(nearest, f"{what}{day} is not at hand; {nearest.label} was built {when}")


def _find_day(words: str) -> date | None:
    """Return the first day that a text names."""
    for found in _DAY.finditer(words):
        with contextlib.suppress(ValueError):  # the 31st of February
            return date(int(found["y"]), int(found["m"]), int(found["d"]))
    return None


def _match_neighbour(stable: tuple[Release, ...], version: Version) -> NearestBuild:
    """Match a development version with the next release, and a missing patch release with the previous release."""
    above = next((r for r in stable if r.order > version), stable[-1])
    below = next((r for r in reversed(stable) if r.order < version), stable[0])
    if version.is_prerelease:
        return NearestBuild(above, f"{version} is not at hand; {above.version} is the first release after it")
    return NearestBuild(below, f"{version} is not at hand; {below.version} is the last release before it")


def _list_stable(listing: Listing) -> tuple[Release, ...]:
    return tuple(r for r in listing.releases if r.is_ordinary) or listing.releases


def _list_own(listing: Listing) -> tuple[Release, ...]:
    """List the toolchain's own releases, including dated ones, ascending."""
    return tuple(r for r in listing.releases if r.is_ordinary or r.source == "dated") or listing.releases


# ------------------------------------------------------------------------------------------- reading snapshots


def load_catalogue(refreshed: Path | None = None) -> Catalogue:
    """Load the committed snapshots, and add the builds of the snapshots in the folder ``refreshed``.

    A refreshed file that cannot be read is ignored.
    """
    listings = {listing.toolchain: listing for listing in load_committed()}
    for path in sorted(refreshed.glob("*.json")) if refreshed else ():
        listing = _read_refreshed(path)
        if listing is not None and listing.toolchain in listings:
            listings[listing.toolchain] = _merge_listings(listings[listing.toolchain], listing)
    return Catalogue(listings)


def _merge_listings(ours: Listing, refreshed: Listing) -> Listing:
    """Unite two listings. For a version in both, the committed entry wins: it has the commit and the ordinal."""
    releases = {r.order: r for r in (*refreshed.releases, *ours.releases)}
    ascending = tuple(releases[order] for order in sorted(releases))
    return replace(ours, taken=max(ours.taken, refreshed.taken), releases=ascending)


def load_committed() -> tuple[Listing, ...]:
    """Load the listings that are committed with the code."""
    folders = (resources.files("runners") / "toolchains").iterdir()
    files = (folder / "releases.json" for folder in folders)
    return tuple(decode_listing(file.read_bytes()) for file in files if file.is_file())


def _read_refreshed(path: Path) -> Listing | None:
    try:
        return decode_listing(path.read_bytes())
    except (OSError, msgspec.MsgspecError, InvalidVersion):
        return None


def decode_listing(data: bytes) -> Listing:
    """Decode a snapshot file.

    Raises:
        msgspec.MsgspecError: the file is not a listing.
        InvalidVersion: a version in the file is invalid.
    """
    listing = msgspec.json.decode(data, type=Listing)
    return replace(listing, releases=tuple(sorted(listing.releases, key=lambda r: r.order)))


def encode_listing(listing: Listing) -> bytes:
    """Encode a listing as stable, diffable JSON. Defaults are left out."""
    return msgspec.json.format(msgspec.json.encode(_flatten_listing(listing)), indent=1) + b"\n"


def _flatten_listing(listing: Listing) -> dict[str, object]:
    return {
        "toolchain": listing.toolchain,
        "repository": listing.repository,
        "taken": listing.taken,
        "releases": [_flatten_release(r) for r in listing.releases],
    }


def _flatten_release(release: Release) -> dict[str, object]:
    """Return the fields of a release that differ from their defaults."""
    assumed = {f.name: msgspec.to_builtins(f.default) for f in fields(release) if f.default is not MISSING}
    plain = msgspec.to_builtins(release)
    return {name: value for name, value in plain.items() if name not in assumed or value != assumed[name]}
