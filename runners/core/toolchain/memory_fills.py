"""Decide whether a failure depends on memory that the testcase never wrote, by runs with that memory filled.

The memory decides if the testcase is clean with one constant and fails with another, twice each. If no output is
known to be right, the memory decides if the outputs of two constants differ, twice each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from runners.core.findings.kinds import ControlEnd, Origin
from runners.core.findings.types import Confirmation
from runners.core.protocol import Exited, Observation, Outcome

FILLS: Mapping[str, str] = {
    "fill-zero": "0",
    "fill-highest": "the highest number of its type",
    "fill-lowest": "the lowest number of its type",
    "fill-one": "1",
}
"""Guest's name of a fill → the constant in words, in the order of the runs."""
FAILS = (Outcome.MATCH, Outcome.OTHER_FAILURE)


def decide_origin(run_filled: Callable[[str], Observation]) -> tuple[tuple[Observation, ...], Confirmation]:
    """Run the testcase at most six times with its memory filled. Return the runs, and the evidence of the origin."""

    def run(fill: str) -> Observation:
        return msgspec.structs.replace(run_filled(fill), changes=(f"what it never wrote filled with {FILLS[fill]}",))

    seen = _run_until_they_differ(run)
    clean = next((fill for fill, one in seen.items() if one.outcome is Outcome.PASS), None)
    fails = next((fill for fill, one in seen.items() if one.outcome in FAILS), None)
    runs = tuple(seen.values())
    if clean is None or fails is None:
        return _decide_by_output(run, seen)
    again = {fill: run(fill) for fill in (clean, fails)}
    runs = (*runs, *again.values())
    if again[clean].outcome is not Outcome.PASS or again[fails].outcome not in FAILS:
        return runs, _make_undecided(again)
    return runs, _blame_testcase(ControlEnd.FILL_DECIDES, _describe_decision(clean, fails))


def _decide_by_output(
    run: Callable[[str], Observation], seen: Mapping[str, Observation]
) -> tuple[tuple[Observation, ...], Confirmation]:
    """Compare the outputs of the runs, if all end well and no output is known to be right or wrong."""
    runs = tuple(seen.values())
    unjudged = all(one.outcome is Outcome.OTHER_FAILURE and one.ended == Exited(code=0) for one in runs)
    first, *others = seen
    other = next((fill for fill in others if seen[fill].excerpt != seen[first].excerpt), None)
    if not unjudged or other is None:
        return runs, _make_undecided(seen)
    again = {fill: run(fill) for fill in (first, other)}
    runs = (*runs, *again.values())
    if any(one.excerpt != seen[fill].excerpt for fill, one in again.items()):
        return runs, _make_undecided(again)
    return runs, _blame_testcase(ControlEnd.FILL_IS_PRINTED, _describe_outputs(first, other))


def _blame_testcase(end: ControlEnd, control: str) -> Confirmation:
    return Confirmation(origin=Origin.TESTCASE, control=control, control_end=end)


def _describe_outputs(first: str, other: str) -> str:
    return (
        f"with its unwritten memory filled with {FILLS[first]} the testcase prints one output, twice;"
        f" with {FILLS[other]} it prints another one, twice"
    )


def _run_until_they_differ(run: Callable[[str], Observation]) -> dict[str, Observation]:
    """Run the testcase with each constant until one run is clean and one fails."""
    seen: dict[str, Observation] = {}
    for fill in FILLS:
        seen[fill] = run(fill)
        outcomes = {one.outcome for one in seen.values()}
        if Outcome.PASS in outcomes and outcomes & set(FAILS):
            break
    return seen


def _describe_decision(clean: str, fails: str) -> str:
    return (
        f"with its unwritten memory filled with {FILLS[clean]} the testcase runs cleanly, twice;"
        f" with {FILLS[fails]} it fails, twice"
    )


def _make_undecided(seen: Mapping[str, Observation]) -> Confirmation:
    ended = ", ".join(f"{FILLS[fill]}: {one.outcome}" for fill, one in seen.items())
    control = f"filled before its first pass it ends as follows, so this does not decide whether it fails: {ended}"
    return Confirmation(origin=Origin.UNKNOWN, control=control)
