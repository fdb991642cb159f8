"""Names of TVM's Python API that some available build lacks, as listed by `bench.surveys.names`.

The reviewed entries of `runners.toolchains.tvm.drift` take precedence. The entries here only state the first build
without a name. They know no successor, so no testcase is ported by them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources

from runners.core.toolchain.facts import DriftEntry

Span = tuple[str | None, str | None]
"""First build with a name (None: the oldest has it), and first build without it again (None: the newest has it)."""


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


LISTED = tuple(list_entries(load_spans()))
