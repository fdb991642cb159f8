"""Names of forks: a fork is no release, so its bare number would be taken for the release of that number. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runners.core.protocol import Observation
from runners.toolchains import find_toolchain


def list_forks(observations: Iterable[Observation]) -> tuple[str, ...]:
    """Return the versions of the builds that are forks, each once."""
    return tuple(dict.fromkeys(seen.version for seen in observations if seen.fork))


def describe_fork(toolchain: str, version: str) -> str:
    """Return ``TileLang's copy of TVM``; empty for a fork that the toolchain does not know."""
    known = find_toolchain(toolchain)
    bundle = known.find_bundle(version)
    return f"{bundle.title}'s copy of {known.TITLE.split()[-1]}" if bundle is not None and bundle.title else ""


def label_forks(text: str, forks: Iterable[str]) -> str:
    """Return ``text`` with ``fork`` before each version of a fork, in plain words and in a code span of its own.

    A version inside other code stays: a package of that version is another thing.
    """
    for version in forks:
        bare = re.compile(rf"(?<![Ff]ork )(?<![\w.`=/-])(`?){re.escape(version)}\1(?![\w`=/-]|\.\w)")
        text = bare.sub(lambda found: f"fork {found[0]}", text)
    return re.sub(r"(?:(?<=\. )|(?<=^- )|^)fork (?=`?\d)", "Fork ", text, flags=re.MULTILINE)
