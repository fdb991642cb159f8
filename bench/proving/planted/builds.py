"""The builds that programs run on, and what a program's fault looks like over them.

A broken build has the faults of ``wheel_code`` and is otherwise the release that it was made from. Each fault is in
both broken builds of its toolchain, so that a program that shows it can be told over any of the patterns below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from runners.core.packages.catalogue import Catalogue
from runners.environments.wheel_sources import merge_releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A build with faults of our own. ``made_on`` orders it among the releases."""

    toolchain: str
    version: str
    base: str
    made_on: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Builds in order with their outcomes, and the verdict that follows from them."""

    verdict: str
    outcomes: Mapping[str, str]
    reported: str
    """The build that the report names."""
    told_by: str
    """The build whose output the report quotes."""
    accepted: tuple[str, ...] = ()
    never: tuple[str, ...] = ("invalid-repro",)


BROKEN = (
    Broken(toolchain="tvm", version="0.26.1.dev1", base="0.26.0", made_on=date(2026, 9, 2)),
    Broken(toolchain="tvm", version="0.27.1.dev1", base="0.27.0.post1", made_on=date(2026, 11, 10)),
    Broken(toolchain="iree", version="3.12.1.dev1", base="3.12.0", made_on=date(2026, 10, 9)),
    Broken(toolchain="iree", version="3.13.1.dev1", base="3.13.0", made_on=date(2026, 11, 9)),
)
CREATED = {
    "0.25.0": date(2026, 6, 25), "0.26.0": date(2026, 8, 20), "0.27.0": date(2026, 9, 28),
    "0.27.0.post1": date(2026, 10, 14), "0.26.1.dev1": date(2026, 9, 6), "0.27.1.dev1": date(2026, 11, 14),
    "2.9.0": date(2024, 11, 14), "3.4.0": date(2025, 5, 12), "3.5.0": date(2025, 6, 20),
    "3.6.0": date(2025, 8, 4), "3.7.0": date(2025, 9, 15), "3.8.0": date(2025, 10, 27),
    "3.9.0": date(2025, 12, 3), "3.10.0": date(2026, 2, 17), "3.11.0": date(2026, 4, 2),
    "3.12.0": date(2026, 10, 8), "3.13.0": date(2026, 10, 28), "3.12.1.dev1": date(2026, 10, 13),
    "3.13.1.dev1": date(2026, 11, 13),
}  # fmt: skip
"""Build → a day on which a report about it may have been written."""


def add_broken_builds(catalogue: Catalogue, wheels: Path | None = None) -> Catalogue:
    """Return the catalogue with the broken builds. Without the folder ``wheels``, only recorded runs can answer."""
    listings = dict(catalogue.listings)
    for broken in BROKEN:
        base = catalogue.find(broken.toolchain, broken.base)
        release = replace(
            base,
            version=broken.version,
            released=broken.made_on,
            distributions=tuple(f"{one.partition('==')[0]}=={broken.version}" for one in base.distributions),
            prerelease=True,
            commit=None,
            tag=None,
            built=None,
            ordinal=None,
            source="wheels",
            links=() if wheels is None else (str(wheels),),
        )
        listings[broken.toolchain] = merge_releases(listings[broken.toolchain], [release])
    return Catalogue(listings)


def find_base(version: str) -> str:
    """The release that a broken build was made from; any other build itself."""
    return next((broken.base for broken in BROKEN if broken.version == version), version)


def list_patterns(toolchain: str) -> tuple[Pattern, ...]:
    """What a fault of the broken builds may look like, for a fault that always shows."""
    old, middle, new, newest = ROWS[toolchain]
    return (
        Pattern(
            verdict="regression",
            outcomes={old: "pass", new: "pass", newest: "match"},
            reported=newest,
            told_by=newest,
            never=("invalid-repro", "fixed", "not-reproduced"),
        ),
        Pattern(
            verdict="fixed",
            outcomes={old: "pass", middle: "match", new: "pass"},
            reported=middle,
            told_by=middle,
            never=("invalid-repro", "confirmed", "regression"),
        ),
        Pattern(
            verdict="confirmed",
            outcomes={middle: "match", newest: "match"},
            reported=newest,
            told_by=newest,
            never=("invalid-repro", "fixed", "not-reproduced"),
        ),
        Pattern(
            verdict="regression",
            outcomes={middle: "match", new: "pass", newest: "match"},
            reported=newest,
            told_by=newest,
            never=("invalid-repro", "fixed", "not-reproduced"),
        ),
        Pattern(
            verdict="not-reproduced",
            outcomes={old: "pass", new: "pass"},
            reported=new,
            told_by=newest,
            never=("invalid-repro", "fixed", "confirmed", "regression"),
        ),
    )


ROWS = {
    "tvm": ("0.26.0", "0.26.1.dev1", "0.27.0.post1", "0.27.1.dev1"),
    "iree": ("3.12.0", "3.12.1.dev1", "3.13.0", "3.13.1.dev1"),
}
"""Toolchain → a release, a broken build after it, a later release, and a broken build newer than all."""
