"""List existing builds of a compiler that are not offered here: too old, or without wheels for this machine.

``earlier.json`` in a toolchain's folder lists them. If no offered build can run a report, the answer names a build
that could.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources

from packaging.version import Version


@dataclass(frozen=True, slots=True)
class EarlierBuild:
    """A tag of the compiler's repository, and its day."""

    tag: str
    day: date

    @property
    def version(self) -> Version | None:
        """The version of the tag. None for a tag with a date instead of a version."""
        found = re.fullmatch(r"v(\d+(?:\.\d+)+)", self.tag)
        return Version(found[1]) if found else None


@cache
def list_earlier_builds(toolchain: str) -> tuple[EarlierBuild, ...]:
    """Return the listed builds of a toolchain, oldest first. Empty without a list."""
    file = resources.files("runners.toolchains") / toolchain / "earlier.json"
    if not toolchain.isidentifier() or not file.is_file():
        return ()
    builds = json.loads(file.read_bytes())["builds"]
    return tuple(EarlierBuild(tag, date.fromisoformat(day)) for tag, day in builds)


def find_earlier_build(toolchain: str, day: date | None, *, before: str | None = None) -> EarlierBuild | None:
    """Return the newest listed build up to a day, of a version before ``before``. None without one."""
    fitting = (
        build
        for build in list_earlier_builds(toolchain)
        if (day is None or build.day <= day)
        and (before is None or build.version is None or build.version < Version(before))
    )
    return max(fitting, key=lambda build: build.day, default=None)


def find_last_day(toolchain: str) -> date:
    """Return the day of the newest listed build. Later reports are about builds that are offered here."""
    return max((build.day for build in list_earlier_builds(toolchain)), default=date.min)
