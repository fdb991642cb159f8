"""The programs of TVM."""

from __future__ import annotations

from collections.abc import Iterator

from bench.proving.planted.families.tvm import claims, failures, mistakes, misuse, passes, unfounded, values
from bench.proving.planted.program import WRONG_DONE, Planted, Program, tell_over

BUILDS = (("0.26.0", "0.27.0.post1"), ("0.25.0", "0.27.0"), ("0.26.0", "0.27.0"), ("0.25.0", "0.27.0.post1"))
"""Pairs of releases that one program with a mistake after another is told over."""


def faults() -> Iterator[Program]:
    """Programs without a mistake, on which the broken builds are wrong."""
    yield from values.wrong_values()
    yield from failures.wrong_memory()
    yield from failures.errors()
    yield from failures.crashes()
    yield from passes.passes()
    yield from passes.other_interfaces()


def by_chance() -> Iterator[Program]:
    """Programs without a mistake, on which the broken builds are wrong in some runs."""
    yield from values.by_chance()


def on_releases() -> Iterator[Planted]:
    """Programs about releases as they are."""
    made = (*mistakes.out_of_bounds(), *mistakes.never_written(), *misuse.misused(), *misuse.misjudged())
    for number, (program, mended, accepted) in enumerate(made):
        builds = BUILDS[number % len(BUILDS)]
        yield tell_over(
            program,
            dict.fromkeys(builds, "match"),
            "invalid-repro",
            reported=builds[-1],
            accepted=("inconclusive", *accepted),
            never=WRONG_DONE,
            control={"repro.py": mended},
        )
    yield from claims.planted()
    yield from unfounded.unfounded()
