"""The search along a trail, run: probes side by side, the next builds made ready meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from runners.core.bisection import commits as trails
from runners.core.protocol import Observation, Outcome, Trail, TrailBuild

MOST_HICCUPS = 3
"""Failures of our own on one build before it is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """The effects of having builds, passed in."""

    seconds: Callable[[], Mapping[str, float]]
    """What having each build takes, by name; nothing for one that is ready."""
    prepare: Callable[[str], None]
    """Have a build ready; never raises: that it cannot be had is seen when it is run."""
    helper: Executor
    """Where builds are made ready beside the probes."""


Attempt = Callable[[str, int], Observation]
"""Runs the testcase on a named build, the given attempt (1-based)."""


def follow(
    trail: Trail,
    *,
    device: str,
    known: Iterable[Observation],
    attempt: Attempt,
    supply: Supply,
    executor: Executor,
    workers: int,
    expired: Callable[[], bool],
) -> tuple[Observation, ...]:
    """Run what the search along a trail asks for, until it asks for nothing or its probes or the time are spent.

    Observations of the trail's builds that are ``known`` count. Gives the new ones, in the order of their runs.
    """
    seen = list(known)
    before = len(seen)
    waiting: dict[str, Future[None]] = {}
    while len(seen) - before < trail.probes and not expired():
        events = [*trails.events_of(trail, seen, device), *trails.given_up(trail, seen, device, MOST_HICCUPS)]
        seconds = supply.seconds()
        wanted = trails.next_builds(trail, events, seconds, workers)[: trail.probes - (len(seen) - before)]
        if not wanted:
            break
        if any(seconds.values()):
            _make_ready(supply, waiting, [*wanted, *trails.soon(trail, events, seconds, wanted)])
        seen += _run(wanted, seen, waiting, attempt, executor)
    for future in waiting.values():
        future.cancel()
    return tuple(seen[before:])


def _make_ready(supply: Supply, waiting: dict[str, Future[None]], builds: Sequence[TrailBuild]) -> None:
    for build in builds:
        if build.name not in waiting:
            waiting[build.name] = supply.helper.submit(supply.prepare, build.name)


def _run(
    wanted: Sequence[TrailBuild],
    seen: Sequence[Observation],
    waiting: Mapping[str, Future[None]],
    attempt: Attempt,
    executor: Executor,
) -> list[Observation]:
    runs = {build.name: sum(one.version == build.name for one in seen) for build in wanted}
    pending = []
    for build in wanted:
        runs[build.name] += 1
        pending.append(executor.submit(_when_ready, build.name, runs[build.name], waiting.get(build.name), attempt))
    return [future.result() for future in pending]


def _when_ready(name: str, number: int, ready: Future[None] | None, attempt: Attempt) -> Observation:
    if ready is not None:
        ready.result()
    found = attempt(name, number)
    return attempt(name, number) if found.outcome is Outcome.INFRA else found
