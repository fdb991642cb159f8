"""List names of TVM that some available build lacks, from `bench.surveys.names` and `bench.surveys.registered`.

The reviewed entries of `runners.toolchains.tvm.drift` take precedence. Entries of the Python API only contain the
first build without a name. They have no successor, so no testcase is ported by them. Names in TVM's registries, which
programs write as strings, have a successor from the registries of the next build.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

from runners.core.toolchain.facts import DriftEntry

Span = tuple[str | None, str | None]
"""First build with a name (None: the oldest has it), first later one without it (None: the newest has it)."""


def load_spans() -> dict[str, Span]:
    """Load the spans: dotted name, or ``function(parameter)`` → span."""
    document = json.loads((resources.files("runners.toolchains.tvm") / "names.json").read_bytes())
    return {name: (since, gone) for name, (since, gone) in document["names"].items()}


def list_entries(spans: dict[str, Span]) -> Iterable[DriftEntry]:
    """Return one entry for each name."""
    for name, (since, gone) in spans.items():
        function, _, parameter = name.rstrip(")").partition("(")
        old = parameter or function
        yield DriftEntry(
            old=old,
            new=old if gone is None else None,
            kind="keyword" if parameter else "attribute",
            gone_in=gone,
            introduced_in=since if gone is None else None,
            note=f"first in {since}, of the available builds" if since else "",
            of=function if parameter else "",
            listed=True,
        )


def list_registered() -> Iterable[DriftEntry]:
    """Return one entry for each move of a registered name."""
    moves = json.loads((resources.files("runners.toolchains.tvm") / "registered.json").read_bytes())
    for since, old, new in moves:
        yield DriftEntry(old=old, new=new, kind="registered", gone_in=since, introduced_in=since, exact=True)


LISTED = tuple(list_entries(load_spans()))
REGISTERED = tuple(list_registered())
