"""Tests of the catalogue: the versions, and the build that stands for a version as written in a report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from runners.core.errors import UserError
from runners.core.packages.catalogue import (
    Catalogue,
    Listing,
    Release,
    decode_listing,
    encode_listing,
    load_catalogue,
    load_committed,
)
from runners.environments.refresh import save_listing
from runners.toolchains import TOOLCHAINS


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def versions(releases: tuple[Release, ...]) -> list[str]:
    return [release.version for release in releases]


# ------------------------------------------------------------------------------------------------- the snapshot


def test_the_snapshot_has_every_toolchain_and_no_addresses() -> None:
    """The committed data names versions, and never addresses to fetch them from."""
    assert {listing.toolchain for listing in load_committed()} == set(TOOLCHAINS)
    for listing in load_committed():
        assert b"://" not in encode_listing(listing)


@pytest.mark.parametrize("listing", load_committed(), ids=lambda listing: listing.toolchain)
def test_the_snapshot_is_consistent(listing: Listing) -> None:
    """Ascending, without repeats, with the distributions and the repository of the toolchain."""
    toolchain = TOOLCHAINS[listing.toolchain]
    assert listing.repository == toolchain.REPOSITORY
    orders = [release.order for release in listing.releases]
    assert orders == sorted(set(orders))
    for release in listing.releases:
        assert release.distributions == toolchain.list_distributions(release.version)
        assert release.prerelease == release.order.is_prerelease
        assert release.pythons
        assert release.commit is None or len(release.commit) == 40


def test_a_snapshot_survives_the_round_trip() -> None:
    """Writing and reading a listing changes nothing."""
    for listing in load_committed():
        assert decode_listing(encode_listing(listing)) == listing


def test_dependencies_are_resolved_as_of_the_release(catalogue: Catalogue) -> None:
    """0.25.0 must not get dependencies published after it: a later FFI breaks its import."""
    release = catalogue.find("tvm", "0.25.0")
    assert release.as_of == datetime(2026, 6, 21, tzinfo=UTC)


def test_history_orders_builds_as_versions_do(catalogue: Catalogue) -> None:
    """On main, a later version is never made from an earlier commit."""
    for toolchain in ("tvm", "iree"):
        ordinals = [
            r.ordinal for r in catalogue.list_releases(toolchain) if r.ordinal is not None and not r.is_off_main
        ]
        assert ordinals == sorted(ordinals)
    assert catalogue.find("iree", "3.7.1").is_off_main
    assert catalogue.find("tvm", "0.25.0").is_off_main
    assert not catalogue.find("iree", "3.7.0").is_off_main


# ------------------------------------------------------------------------------------------------- selecting


@pytest.mark.parametrize(
    ("toolchain", "spec", "chosen"),
    [
        ("tvm", "0.26.0,0.25.0", ["0.25.0", "0.26.0"]),
        ("tvm", "0.25.0.post1..0.27.0", ["0.25.0.post1", "0.26.0", "0.27.0"]),
        ("tvm", "0.27.0rc0..0.27.0", ["0.27.0rc0", "0.27.0"]),
        ("tvm", "v0.26", ["0.26.0"]),
        ("iree", ">=3.4,<3.8", ["3.4.0", "3.5.0", "3.6.0", "3.7.0", "3.7.1"]),
        ("iree", "3.4.0..3.6.0,3.9.0", ["3.4.0", "3.5.0", "3.6.0", "3.9.0"]),
        ("iree", "~=3.7.0", ["3.7.0", "3.7.1"]),
        ("tvm", "==0.25.0rc1", ["0.25.0rc1"]),
        ("python", "all", ["3.10", "3.11", "3.12", "3.13"]),
    ],
)
def test_select_versions(catalogue: Catalogue, toolchain: str, spec: str, chosen: list[str]) -> None:
    """Lists, ranges and specifiers select the named builds, ascending."""
    assert versions(catalogue.select(toolchain, spec)) == chosen


def test_all_leaves_out_prereleases(catalogue: Catalogue) -> None:
    """``all`` means releases; candidates must be asked for by name."""
    assert not any(release.prerelease for release in catalogue.select("tvm", "all"))
    assert any(release.prerelease for release in catalogue.list_releases("tvm", prereleases=True))


@pytest.mark.parametrize(
    ("toolchain", "spec", "says"),
    [
        ("tvm", "0.24.0", "older than every release"),
        ("iree", "3.7.5", "nearest is 3.7.1"),
        ("iree", "3.8.0..3.4.0", "write the older version first"),
        ("iree", ">=99", "no iree version matches"),
        ("iree", ">=x", "is not a version range"),
        ("tvm", "banana", "names no version"),
        ("tvm", "", "no tvm version matches"),
        ("gcc", "14", "unknown toolchain"),
    ],
)
def test_select_unknown_versions(catalogue: Catalogue, toolchain: str, spec: str, says: str) -> None:
    """The message names the value and a valid alternative."""
    with pytest.raises(UserError, match=says):
        catalogue.select(toolchain, spec)


# ------------------------------------------------------------------------------------------------- as people write


@pytest.mark.parametrize(
    ("toolchain", "text", "version"),
    [
        ("tvm", "0.26.0", "0.26.0"),
        ("tvm", "v0.25", "0.25.0"),
        ("tvm", "apache-tvm 0.25.0.post1 (pip)", "0.25.0.post1"),
        ("tvm", "apache_tvm-0.26.0-py3-none-manylinux_2_28_x86_64.whl", "0.26.0"),
        ("tvm", "0.25.0rc1", "0.25.0rc1"),
        ("tvm", "0.26.dev0", "0.26.0"),
        ("tvm", "0.26.dev112+g1234abcde", "0.26.0"),
        ("tvm", "main", "0.27.0.post1"),
        ("tvm", "latest main branch", "0.27.0.post1"),
        ("tvm", "0.99", "0.27.0.post1"),
        ("tvm", "b3e249b7d7", "0.25.0.post1"),
        ("iree", "3.5.0rc20250605", "3.5.0"),
        ("iree", "3.5.0rc20250609", "3.5.0"),
        ("iree", "3.7.0rc20250904 @ b4da7b202cf21e07c418250f697565734f9e5f19", "3.7.0"),
        ("iree", "IREE compiler version 3.9.0rc20251107 @ 0123456789abcdef0123456789abcdef01234567", "3.9.0"),
        ("iree", "iree_base_compiler-3.4.0-cp311-cp311-manylinux_2_28_x86_64.whl", "3.4.0"),
        ("iree", "3.7.9", "3.7.1"),
        ("iree", "nightly of 2025-11-07", "3.9.0"),
        ("iree", "candidate-20251107", "3.9.0"),
        ("iree", "20251107.1234", "3.9.0"),
        ("iree", "20230815.614", "20230815.614"),
        ("iree", "candidate-20230815.614", "20230815.614"),
        ("iree", "iree-compiler 20230820.620", "20230815.614"),
        ("iree", "2.8.0rc20240901", "20240828.999"),
        ("tvm", "main at 2026/08/01", "0.26.0"),
    ],
)
def test_versions_as_reports_write_them(catalogue: Catalogue, toolchain: str, text: str, version: str) -> None:
    """Each version is mapped to the nearest available build, with a reason."""
    match = catalogue.find_nearest(toolchain, text)
    assert match.release is not None
    assert match.release.version == version
    assert match.reason


@pytest.mark.parametrize("text", ["main", "nightly of main"])
def test_a_moving_name_is_named_with_the_release_that_stands_for_it(text: str) -> None:
    """The newest release is not the reporter's build. Of several words the first of the alphabet is named."""
    assert load_catalogue().find_nearest("tvm", text).reason.startswith("main, for which 0.27.0.post1 stands")


@pytest.mark.parametrize(
    ("toolchain", "text", "says"),
    [
        ("tvm", "0.18.dev0", "older than every release"),
        ("tvm", "0.9", "older than every release"),
        ("iree", "2.8", "older than every release"),
        ("iree", "snapshot-20210301.128", "a build of 2021-03-01 is older than every release"),
        ("tvm", "commit 0a1b2c3d4e", "not one that a build here was made from"),
        ("tvm", "the one from conda", "names no version"),
        ("tvm", "", "names no version"),
    ],
)
def test_versions_without_a_near_build(catalogue: Catalogue, toolchain: str, text: str, says: str) -> None:
    """Without a near build, no build is invented."""
    match = catalogue.find_nearest(toolchain, text)
    assert match.release is None
    assert says in match.reason


@pytest.mark.parametrize("text", ["0.17.dev0", "TVM 0.17.dev0 (built from source)", "0.17.0"])
def test_a_fork_stands_for_an_older_version(catalogue: Catalogue, text: str) -> None:
    """A bundle of the same development cycle is offered, and named as a fork."""
    match = catalogue.find_nearest("tvm", text)
    assert match.release is not None
    assert match.release.source == "bundle"
    assert "fork at a077796b" in match.reason
    assert "bitblas 0.0.1.dev13" in match.reason


def test_a_fork_of_a_releases_own_name_is_not_that_release(catalogue: Catalogue) -> None:
    """A wheel's TVM calls itself 0.22.0, like the release; the reason says that it is not."""
    for text in ("0.22.0", "v0.22.0", "apache-tvm 0.22.0", "0.22.dev0"):
        match = catalogue.find_nearest("tvm", text)
        assert match.release is not None
        assert not match.release.is_ordinary
        assert "fork at 3a32b763, carried by tilelang 0.1.7" in match.reason
        assert "is that build" not in match.reason


def test_dated_releases_precede_numbered_ones_and_run_only_where_they_are_needed(catalogue: Catalogue) -> None:
    """As a number, a date is greater than every version since."""
    every = [release.version for release in catalogue.list_releases("iree", prereleases=True)]
    assert every.index("20241104.1068") + 1 == every.index("2.9.0")
    assert catalogue.list_releases("iree")[0].version == "2.9.0"
    assert catalogue.select("iree", "20241104.1068..3.0.0")[0].version == "20241104.1068"
    between = catalogue.get_commit_range(catalogue.find("iree", "20240828.999"), catalogue.find("iree", "2.9.0"))
    assert (between.count, between.compare_url.rpartition("/")[2].partition("...")[0]) == (
        404,
        "candidate-20240828.999",
    )


def test_a_report_from_before_the_first_numbered_release_has_a_dated_one(catalogue: Catalogue) -> None:
    assert catalogue.find_dated("iree", date(2023, 7, 1)).release == catalogue.find("iree", "20230524.529")
    before = catalogue.find_early_before_day("iree", date(2023, 8, 10))
    assert before is not None
    assert before.version == "20230524.529"
    assert catalogue.find_early_before_day("iree", date(2025, 1, 1)) is None


def test_the_fork_before_a_version_older_than_the_releases_is_found(catalogue: Catalogue) -> None:
    """Texts that name a release, a day or a commit have none."""
    expected = {
        "0.24.dev0": "0.22.0",
        "v0.20": "0.17.dev0",
        "0.12": None,
        "0.25.0": None,
        "main": None,
        "262c6d2": None,
    }
    found = {text: catalogue.find_early_before("tvm", text) for text in expected}
    assert {text: fork.version if fork else None for text, fork in found.items()} == expected


def test_the_oldest_fork_stands_for_a_version_older_than_all_forks(catalogue: Catalogue) -> None:
    """It has more of that version's API than any later build."""
    expected = {"0.9.0": "0.16.dev0", "v0.14.dev273": "0.16.dev0", "0.17.0": None, "0.25.0": None, "main": None}
    found = {text: catalogue.find_oldest_early("tvm", text) for text in expected}
    assert {text: fork.version if fork else None for text, fork in found.items()} == expected


def test_the_fork_before_a_day_older_than_the_releases_is_found(catalogue: Catalogue) -> None:
    """The first release after that day may hold the fix already."""
    expected = {date(2026, 4, 19): "0.22.0", date(2025, 1, 1): "0.17.dev0", date(2020, 1, 1): None}
    found = {day: catalogue.find_early_before_day("tvm", day) for day in (*expected, date(2026, 8, 1))}
    assert {day: fork.version if fork else None for day, fork in found.items()} == {
        **expected,
        date(2026, 8, 1): None,
    }
    assert catalogue.find_early_before_day("iree", date(2023, 1, 1)) is None


def test_forks_are_chosen_only_by_name(catalogue: Catalogue) -> None:
    """They are no releases, and no part of ``all`` or of a range around them."""
    assert all(release.source == "index" for release in catalogue.select("tvm", "all"))
    assert versions(catalogue.select("tvm", "0.17.dev0..0.25.0")) == ["0.17.dev0", "0.25.0"]
    assert versions(catalogue.select("tvm", "0.22.0")) == ["0.22.0"]
    assert catalogue.list_releases("tvm")[0].version == "0.25.0"


def test_a_range_from_a_fork_starts_at_the_nearest_commit_upstream(catalogue: Catalogue) -> None:
    """The fork's own commit is unknown upstream; the number of commits is not claimed."""
    found = catalogue.get_commit_range(catalogue.find("tvm", "0.17.dev0"), catalogue.find("tvm", "0.25.0"))
    assert found.start.startswith("2d7663ceeb")
    assert found.count is None


def test_a_nightly_stands_nearest_in_time(catalogue: Catalogue) -> None:
    """A nightly a day after 3.5.0 was built is nearer to 3.5.0 than to 3.6.0, six weeks later."""
    assert catalogue.find_nearest("iree", "3.6.0rc20250610").release == catalogue.find("iree", "3.5.0")
    assert catalogue.find_nearest("iree", "3.6.0rc20250715").release == catalogue.find("iree", "3.6.0")


# ------------------------------------------------------------------------------------------------- commit ranges


def test_a_range_between_nightlies_is_counted(catalogue: Catalogue) -> None:
    """Both ends on main: the commits between them are known without a network."""
    found = catalogue.get_commit_range(catalogue.find("iree", "3.5.0"), catalogue.find("iree", "3.6.0"))
    assert found.count == 236
    assert found.start == "2e8738e81cb205197eb636440038d0c4e37b6f4d"
    assert found.compare_url == "https://github.com/iree-org/iree/compare/v3.5.0...v3.6.0"


def test_a_range_from_a_release_branch_is_counted_as_git_counts(catalogue: Catalogue) -> None:
    """``git log v0.25.0..v0.26.0`` has 272 commits; cherry-picks of the older branch are among them."""
    found = catalogue.get_commit_range(catalogue.find("tvm", "0.25.0"), catalogue.find("tvm", "0.26.0"))
    assert found.count == 272
    assert found.compare_url == "https://github.com/apache/tvm/compare/v0.25.0...v0.26.0"
    assert found.start == "c7ba0735a4f346c67b761e1fde38a68a60be8adb"


def test_a_range_on_one_release_branch_is_not_counted(catalogue: Catalogue) -> None:
    """The index does not know where on its branch the older build is."""
    found = catalogue.get_commit_range(catalogue.find("tvm", "0.25.0"), catalogue.find("tvm", "0.25.0.post1"))
    assert found.count is None


def test_a_range_to_a_release_branch_includes_the_branch(catalogue: Catalogue) -> None:
    """3.7.1 is one commit on top of 3.7.0, and off main."""
    found = catalogue.get_commit_range(catalogue.find("iree", "3.7.0"), catalogue.find("iree", "3.7.1"))
    assert found.count == 1


# ------------------------------------------------------------------------------------------------- refreshed

BAD_VERSION = b"""{"toolchain": "tvm", "repository": null, "taken": "2027-01-01", "releases": [
    {"toolchain": "tvm", "version": "x", "released": "2027-01-01", "distributions": [], "pythons": []}]}"""


def test_a_refreshed_listing_adds_to_the_committed_one(tmp_path: Path) -> None:
    """New builds of the index are added, for each toolchain."""
    known = load_catalogue().get_listing("tvm")
    extra = replace(known.releases[-1], version="9.0.0", commit=None)
    save_listing(replace(known, taken=date(2027, 1, 1), releases=(*known.releases, extra)), tmp_path)
    merged = load_catalogue(tmp_path)
    assert versions(merged.select("tvm", "latest")) == ["9.0.0"]
    assert merged.get_listing("iree") == load_catalogue().get_listing("iree")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"toolchain": "zzz", "repository": null}',
        b"\xff",
        BAD_VERSION,
    ],
)
def test_an_unreadable_refreshed_listing_is_ignored(tmp_path: Path, content: bytes) -> None:
    """The committed snapshot always works."""
    (tmp_path / "tvm.json").write_bytes(content)
    assert load_catalogue(tmp_path) == load_catalogue()


def test_the_committed_entry_wins(tmp_path: Path) -> None:
    """A version in both listings keeps the committed commit: a refresh cannot know the commit."""
    known = load_catalogue().get_listing("iree")
    vague = tuple(replace(r, commit=None, ordinal=None) for r in known.releases)
    save_listing(replace(known, taken=date(2020, 1, 1), releases=vague), tmp_path)
    assert load_catalogue(tmp_path) == load_catalogue()


@pytest.mark.parametrize(
    ("toolchain", "day", "version"),
    [
        ("iree", date(2025, 3, 31), "3.3.0"),
        ("iree", date(2026, 3, 10), "3.11.0"),
        ("tvm", date(2024, 8, 1), "0.17.dev0"),
        ("tvm", date(2021, 1, 1), "0.16.dev0"),
        ("tvm", date(2030, 1, 1), "0.27.0.post1"),
    ],
)
def test_the_day_of_a_report_says_which_build_main_was(
    catalogue: Catalogue, toolchain: str, day: date, version: str
) -> None:
    """The nearest release; before the first release the nearest fork. The note names the day or the stand-in."""
    for match in (catalogue.find_dated(toolchain, day), catalogue.find_nearest(toolchain, "main", day)):
        assert match.release is not None
        assert match.release.version == version
        assert str(day) in match.reason or version in match.reason
    exact = catalogue.find_nearest("iree", "3.5.0", day)
    assert exact.release is not None
    assert exact.release.version == "3.5.0"
