"""Builds that exist and are not offered."""

from __future__ import annotations

from datetime import date

import pytest

from runners.core.packages.catalogue import load_catalogue
from runners.toolchains.earlier import find_earlier_build, find_last_day, list_earlier_builds


@pytest.mark.parametrize("toolchain", ["tvm", "iree"])
def test_the_listed_builds_are_in_order_and_not_offered(toolchain: str) -> None:
    """Forks of the catalogue may have a version of the list."""
    builds = list_earlier_builds(toolchain)
    assert [build.day for build in builds] == sorted(build.day for build in builds)
    offered = {r.version for r in load_catalogue().list_releases(toolchain) if r.source != "bundle"}
    assert not offered & {build.tag.removeprefix("v") for build in builds}


@pytest.mark.parametrize(
    ("toolchain", "day", "before", "tag"),
    [
        ("tvm", date(2023, 8, 20), "0.20.0", "v0.13.0"),
        ("tvm", date(2026, 8, 20), "0.20.0", "v0.19.0"),
        ("tvm", None, "0.20.0", "v0.19.0"),
        ("tvm", date(2019, 1, 1), None, None),
        ("iree", date(2022, 3, 20), "2.9.0", "candidate-20220228.62"),
        ("python", date(2022, 3, 20), None, None),
    ],
)
def test_the_newest_build_that_fits_is_found(
    toolchain: str, day: date | None, before: str | None, tag: str | None
) -> None:
    """It is not younger than the report, and has the name that is gone later."""
    build = find_earlier_build(toolchain, day, before=before)
    assert (build.tag if build is not None else None) == tag


def test_a_toolchain_without_a_list_has_no_last_day() -> None:
    assert find_last_day("python") == date.min
