"""Does a failure depend on memory that the testcase never wrote? Runs with that memory filled, compared.

Clean with one constant and failing with another, twice each: then the memory decides whether the testcase fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from runners.core.findings import CONTROL, ORIGIN, Blame
from runners.core.protocol import Observation, Outcome

FILLS: Mapping[str, str] = {
    "fill-zero": "0",
    "fill-highest": "the highest number of its type",
    "fill-lowest": "the lowest number of its type",
    "fill-one": "1",
}
"""Constants to fill with, by the guest's name for them, in the order in which they are tried."""
FAILS = (Outcome.MATCH, Outcome.OTHER_FAILURE)


def decide_origin(run_filled: Callable[[str], Observation]) -> tuple[tuple[Observation, ...], dict[str, str]]:
    """Run the testcase with its memory filled, at most six times. Return the runs, and the evidence of the origin."""

    def run(fill: str) -> Observation:
        return msgspec.structs.replace(run_filled(fill), changes=(f"what it never wrote filled with {FILLS[fill]}",))

    seen = _run_until_they_differ(run)
    clean = next((fill for fill, one in seen.items() if one.outcome is Outcome.PASS), None)
    fails = next((fill for fill, one in seen.items() if one.outcome in FAILS), None)
    runs = tuple(seen.values())
    if clean is None or fails is None:
        return runs, _undecided(seen)
    again = {fill: run(fill) for fill in (clean, fails)}
    runs = (*runs, *again.values())
    if again[clean].outcome is not Outcome.PASS or again[fails].outcome not in FAILS:
        return runs, _undecided(again)
    return runs, {ORIGIN: Blame.TESTCASE.value, CONTROL: _say_decided(clean, fails)}


def _run_until_they_differ(run: Callable[[str], Observation]) -> dict[str, Observation]:
    """One run with each constant, until one is clean and one fails."""
    seen: dict[str, Observation] = {}
    for fill in FILLS:
        seen[fill] = run(fill)
        outcomes = {one.outcome for one in seen.values()}
        if Outcome.PASS in outcomes and outcomes & set(FAILS):
            break
    return seen


def _say_decided(clean: str, fails: str) -> str:
    return (
        f"with what it never wrote filled with {FILLS[clean]} the testcase runs cleanly, twice;"
        f" with {FILLS[fails]} it fails, twice"
    )


def _undecided(seen: Mapping[str, Observation]) -> dict[str, str]:
    ended = ", ".join(f"{FILLS[fill]}: {one.outcome}" for fill, one in seen.items())
    said = f"filled before its first pass it ends as follows, so this does not decide whether it fails: {ended}"
    return {ORIGIN: "unknown", CONTROL: said}
