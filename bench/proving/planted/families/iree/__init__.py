"""The programs of IREE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.proving.planted.families.iree import claims, failures, mistakes, misuse, movement, unfounded, values
from bench.proving.planted.program import WRONG_DONE, Planted, Program, tell_over

BUILDS = (("3.12.0", "3.13.0"), ("3.8.0", "3.13.0"), ("3.11.0", "3.12.0"), ("3.10.0", "3.13.0"))
"""Pairs of releases that one program with a mistake after another is told over."""
NAMED = ("3.12.0", "3.13.0")
"""The releases whose runtime names an access beyond a buffer; earlier ones end some of them with ABORTED alone."""


def faults() -> Iterator[Program]:
    """Programs without a mistake, on which the broken builds are wrong."""
    yield from values.elementwise()
    yield from movement.data_movement()
    yield from values.reductions()
    yield from values.on_one_target()
    yield from failures.crashes()
    yield from failures.refusals()
    yield from failures.without_output()


def by_chance() -> Iterator[Program]:
    """Programs without a mistake, on which the broken builds are wrong in some runs."""
    yield from values.by_chance()


def on_releases() -> Iterator[Planted]:
    """Programs about releases as they are."""
    made = (
        *(*mistakes.out_of_bounds(), *mistakes.never_written(), *mistakes.undefined()),
        *(*misuse.misused(), *misuse.misjudged()),
    )
    for number, (program, control) in enumerate(made):
        builds = NAMED if "OUT_OF_RANGE" in program.shows else BUILDS[number % len(BUILDS)]
        told = tell_over(
            program,
            dict.fromkeys(builds, "match"),
            "invalid-repro",
            reported=builds[-1],
            accepted=("inconclusive",),
            never=WRONG_DONE,
        )
        yield replace(told, control=replace(control, clean_on=builds))
    yield from claims.planted()
    yield from unfounded.unfounded()
