"""Names of TVM's Python API that some build at hand lacks, as `bench.surveys.names` found them by listing every
build.

What `runners.toolchains.tvm.drift` says of a name, read and tried by a person, comes first: these lines only say from
which build on a name is not there, never what it is called now, and no port is made from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

from runners.core.toolchain.facts import DriftEntry

Span = tuple[str | None, str | None]
"""First build with a name (None: the oldest here), first one without it again (None: the newest has it)."""


def load_spans() -> dict[str, Span]:
    """Dotted name, or ``function(parameter)`` → its span."""
    document = json.loads((resources.files("runners.toolchains.tvm") / "names.json").read_bytes())
    return {name: (since, gone) for name, (since, gone) in document["names"].items()}


def listed(spans: dict[str, Span]) -> Iterable[DriftEntry]:
    """One entry for each name."""
    for name, (since, gone) in spans.items():
        function, _, parameter = name.rstrip(")").partition("(")
        old = parameter or function
        yield DriftEntry(
            old=old,
            new=old if gone is None else None,
            kind="keyword" if parameter else "attribute",
            gone_in=gone,
            introduced_in=since if gone is None else None,
            note=f"first in {since}, of the builds at hand" if since else "",
            of=function if parameter else "",
            listed=True,
        )


LISTED = tuple(listed(load_spans()))
