"""A refresh of the catalogue with a made-up index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runners.core.packages.catalogue import Listing, Release
from runners.environments import interpreters, refresh
from runners.environments.uv import NoSolution, Pin
from runners.environments.wheel_sources import PYTHONS
from runners.toolchains import TOOLCHAINS

DAY = datetime(2026, 5, 5, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FakeIndex:
    """An index with these versions of every package, one published per day, on all Python minors except
    ``without``."""

    versions: tuple[str, ...] = ("0.1.0", "0.2.0rc1", "0.2.0", "0.2.0.post1")
    without: tuple[str, ...] = ()

    def resolve(
        self,
        requirements: Sequence[str],
        *,
        python: Path,
        minor: str,
        newest: datetime | None = None,
        deps: bool = True,
        prereleases: bool = False,
    ) -> tuple[Pin, ...]:
        return tuple(self._newest(Requirement(text), minor) for text in requirements)

    def _newest(self, wanted: Requirement, minor: str) -> Pin:
        fits = [v for v in self.versions if wanted.specifier.contains(v, prereleases=True)]
        if not fits or minor in self.without:
            raise NoSolution(str(wanted))
        day = DAY + timedelta(days=self.versions.index(fits[-1]))
        return Pin(name=wanted.name, version=fits[-1], sha256="0", url="", uploaded=day)


@pytest.fixture
def python() -> interpreters.Interpreter:
    return interpreters.choose_interpreter(interpreters.PREFERRED)


def known(*releases: Release) -> Listing:
    return Listing(toolchain="tvm", repository="apache/tvm", taken=date(2026, 1, 1), releases=releases)


def test_new_builds_are_found_with_their_dates(python: interpreters.Interpreter) -> None:
    """Candidates and post-releases included. Each has its publication day, and no invented commit."""
    said: list[str] = []
    found = refresh.refresh_listing(known(), TOOLCHAINS["tvm"], FakeIndex(), python, say=said.append)
    assert [(r.version, r.released.day, r.prerelease) for r in found.releases] == [
        ("0.1.0", 5, False),
        ("0.2.0rc1", 6, True),
        ("0.2.0", 7, False),
        ("0.2.0.post1", 8, False),
    ]
    assert all(r.commit is None and r.pythons == PYTHONS for r in found.releases)
    assert len(said) == 4


def test_known_builds_keep_their_facts(python: interpreters.Interpreter) -> None:
    """Commits and ordinals of the snapshot survive a refresh."""
    old = Release(
        toolchain="tvm",
        version="0.2.0",
        released=date(2020, 1, 1),
        distributions=("apache-tvm==0.2.0",),
        pythons=("3.11",),
        commit="a" * 40,
        ordinal=7,
    )
    found = refresh.refresh_listing(known(old), TOOLCHAINS["tvm"], FakeIndex(), python, say=lambda _: None)
    assert old in found.releases
    assert len(found.releases) == 4
    assert found.taken > date(2026, 1, 1)


def test_minors_without_wheels_are_left_out(python: interpreters.Interpreter) -> None:
    """A minor without a solution is not offered."""
    index = FakeIndex(without=("3.13", "3.10"))
    found = refresh.refresh_listing(known(), TOOLCHAINS["tvm"], index, python, say=lambda _: None)
    assert {r.pythons for r in found.releases} == {("3.11", "3.12")}
